"""Reading the settings: flags over environment over file over defaults, and everything that is wrong at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.errors import SettingsError
from masis.settings.aliases import Name
from masis.settings.environment import config_file, environment_or
from masis.settings.errors import not_allowed, says_two_things, wrong_value
from masis.settings.fields import Settings
from masis.settings.origins import STRENGTH, Assignment, Origin, Problem, Read
from masis.settings.ranges import Schema, is_number, schema_of
from masis.settings.sources import from_environment, from_file, from_flags

WEIGHTS = ("faithfulness_weight", "relevance_weight", "completeness_weight", "reasoning_weight")
"""Those of the overall score (MASIS-EVAL-WEIGHTS)."""

ROUNDING = 0.005
"""How far their sum may be off 1: people round."""

SHOWN = 20
"""Faults that one error names; more are counted."""


class Loaded(NamedTuple):
    """Settings with the origin of each value.

    ``file`` is the configuration file that was read, ``inside`` has the origin of each value inside of a table
    (``("providers", "vllm", "address")``), ``warnings`` is what a person should know though nothing is wrong.
    """

    settings: Settings
    origins: dict[str, Origin]
    file: Path | None = None
    inside: Mapping[Name, Origin] = {}
    warnings: tuple[str, ...] = ()


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    models: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Settings from flags over environment over file over defaults. ``models`` are those that ``--model`` gave by role.

    Raises SettingsError naming everything that is wrong, each with its place and the nearest right name or value.
    """
    environment = environment_or(environment)
    file = file or config_file(environment)
    of_file = from_file(file) if file is not None else Read()
    tables = frozenset(each.means[:2] for each in of_file.assignments if len(each.means) > 1)
    reads = (of_file, from_environment(environment, tables), from_flags(flags or {}, models or {}))
    problems = [problem for read in reads for problem in read.problems]
    strongest: dict[Name, Assignment] = {}
    for read in reads:
        problems += _contradictions(read.assignments)
        first: dict[Name, Assignment] = {}
        for each in read.assignments:
            first.setdefault(each.means, each)
        strongest |= first
    settings = _checked(strongest, problems)
    if settings is None:
        raise SettingsError(_told(problems)) from None
    return Loaded(
        settings,
        _origins(strongest),
        file,
        {name: each.origin for name, each in strongest.items() if len(name) > 1},
        tuple(warning for read in reads for warning in read.warnings),
    )


def _contradictions(assignments: Iterable[Assignment]) -> list[Problem]:
    """Settings that one source gives under two names with different values."""
    first: dict[Name, Assignment] = {}
    found = []
    for each in assignments:
        other = first.setdefault(each.means, each)
        if other is not each and (other.value != each.value or type(other.value) is not type(each.value)):
            found.append(says_two_things(other, each))
    return found


def _checked(assignments: Mapping[Name, Assignment], problems: list[Problem]) -> Settings | None:
    """The settings, or None with what is wrong added to ``problems``."""
    right: dict[Name, Assignment] = {}
    for name, each in assignments.items():
        if _of_another_kind(each, schema_of(name)):
            problems.append(not_allowed(each, name))
        else:
            right[name] = each
    try:
        settings = Settings.model_validate(_as_tree(right))
    except ValidationError as error:
        problems += dict.fromkeys(wrong_value(each, right) for each in error.errors())
        return None
    problems += _together(settings, assignments)
    return None if problems else settings


def _of_another_kind(assignment: Assignment, schema: Schema) -> bool:
    """Whether a value is of a kind that pydantic would bend into the right one: true into 1.

    A file has kinds of its own, so that a number in quotes there is a slip; the environment and flags have text alone.
    """
    value = assignment.value
    if isinstance(value, bool):
        return is_number(schema)
    if assignment.origin.kind != "file":
        return False
    if schema.get("type") == "boolean":
        return isinstance(value, str | int | float)
    return is_number(schema) and isinstance(value, str)


def _together(settings: Settings, assignments: Mapping[Name, Assignment]) -> Iterator[Problem]:
    """What is right by itself and wrong together: weights of a mean add up to 1."""
    weights = {name: getattr(settings, name) for name in WEIGHTS}
    weighted = [assignments[name,] for name in WEIGHTS if (name,) in assignments]
    if weighted and abs(sum(weights.values()) - 1) > ROUNDING:
        last = max(weighted, key=lambda each: STRENGTH.index(each.origin.kind))
        spoken = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        message = f"the weights of the overall score add up to {sum(weights.values()):g}, not to 1 ({spoken})."
        yield Problem(last.origin, f"{last.place}: {message}")


def _as_tree(assignments: Mapping[Name, Assignment]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for name, each in assignments.items():
        tree = whole
        for part in name[:-1]:
            if not isinstance(tree.get(part), dict):
                tree[part] = {}
            tree = tree[part]
        if each.value != {} or not isinstance(tree.get(name[-1]), dict):
            tree[name[-1]] = each.value
    return whole


def _origins(assignments: Mapping[Name, Assignment]) -> dict[str, Origin]:
    """The origin of each setting; of a table, that of its strongest value."""
    found = {name: Origin("default") for name in Settings.model_fields}
    for name, each in assignments.items():
        if STRENGTH.index(each.origin.kind) > STRENGTH.index(found[name[0]].kind):
            found[name[0]] = each.origin
    return found


def _told(problems: list[Problem]) -> str:
    messages = [problem.message for problem in sorted(problems, key=lambda problem: problem.order)]
    more = len(messages) - SHOWN
    return "\n".join([*messages[:SHOWN], *([f"and {more} more."] if more > 0 else [])])
