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
from masis.settings.origins import STRENGTH, Fault, Given, Origin, Read
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
    tables = frozenset(each.means[:2] for each in of_file.given if len(each.means) > 1)
    reads = (of_file, from_environment(environment, tables), from_flags(flags or {}, models or {}))
    faults = [fault for read in reads for fault in read.faults]
    strongest: dict[Name, Given] = {}
    for read in reads:
        faults += _contradictions(read.given)
        first: dict[Name, Given] = {}
        for each in read.given:
            first.setdefault(each.means, each)
        strongest |= first
    settings = _checked(strongest, faults)
    if settings is None:
        raise SettingsError(_told(faults)) from None
    return Loaded(
        settings,
        _origins(strongest),
        file,
        {name: each.origin for name, each in strongest.items() if len(name) > 1},
        tuple(warning for read in reads for warning in read.warnings),
    )


def _contradictions(given: Iterable[Given]) -> list[Fault]:
    """Settings that one source gives under two names with different values."""
    first: dict[Name, Given] = {}
    told = []
    for each in given:
        other = first.setdefault(each.means, each)
        if other is not each and (other.value != each.value or type(other.value) is not type(each.value)):
            told.append(says_two_things(other, each))
    return told


def _checked(given: Mapping[Name, Given], faults: list[Fault]) -> Settings | None:
    """The settings, or None with what is wrong added to ``faults``."""
    right: dict[Name, Given] = {}
    for name, each in given.items():
        if _of_another_kind(each, schema_of(name)):
            faults.append(not_allowed(each, name))
        else:
            right[name] = each
    try:
        settings = Settings.model_validate(_as_tree(right))
    except ValidationError as error:
        faults += dict.fromkeys(wrong_value(each, right) for each in error.errors())
        return None
    faults += _together(settings, given)
    return None if faults else settings


def _of_another_kind(given: Given, schema: Schema) -> bool:
    """Whether a value is of a kind that pydantic would bend into the right one: true into 1.

    A file has kinds of its own, so that a number in quotes there is a slip; the environment and flags have text alone.
    """
    value = given.value
    if isinstance(value, bool):
        return is_number(schema)
    if given.origin.kind != "file":
        return False
    if schema.get("type") == "boolean":
        return isinstance(value, str | int | float)
    return is_number(schema) and isinstance(value, str)


def _together(settings: Settings, given: Mapping[Name, Given]) -> Iterator[Fault]:
    """What is right by itself and wrong together: weights of a mean add up to 1."""
    weights = {name: getattr(settings, name) for name in WEIGHTS}
    said = [given[name,] for name in WEIGHTS if (name,) in given]
    if said and abs(sum(weights.values()) - 1) > ROUNDING:
        last = max(said, key=lambda each: STRENGTH.index(each.origin.kind))
        spoken = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        told = f"the weights of the overall score add up to {sum(weights.values()):g}, not to 1 ({spoken})."
        yield Fault(last.origin, f"{last.place}: {told}")


def _as_tree(given: Mapping[Name, Given]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for name, each in given.items():
        tree = whole
        for part in name[:-1]:
            if not isinstance(tree.get(part), dict):
                tree[part] = {}
            tree = tree[part]
        if each.value != {} or not isinstance(tree.get(name[-1]), dict):
            tree[name[-1]] = each.value
    return whole


def _origins(given: Mapping[Name, Given]) -> dict[str, Origin]:
    """The origin of each setting; of a table, that of its strongest value."""
    found = {name: Origin("default") for name in Settings.model_fields}
    for name, each in given.items():
        if STRENGTH.index(each.origin.kind) > STRENGTH.index(found[name[0]].kind):
            found[name[0]] = each.origin
    return found


def _told(faults: list[Fault]) -> str:
    told = [fault.message for fault in sorted(faults, key=lambda fault: fault.order)]
    more = len(told) - SHOWN
    return "\n".join([*told[:SHOWN], *([f"and {more} more."] if more > 0 else [])])
