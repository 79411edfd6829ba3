"""The file, the environment and the flags, each read into values with their places and whatever is wrong with them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from masis.settings.aliases import OTHER_VARIABLES, SPELLINGS, TABLES, TABLES_OF_TABLES, VARIABLES, Name
from masis.settings.environment import read_file, toml
from masis.settings.errors import no_such_setting, no_such_variable, not_a_table
from masis.settings.origins import Assignment, Origin, Problem, Read
from masis.settings.ranges import schema_of
from masis.settings.secrecy import may_be_a_key
from masis.settings.toml_positions import key_lines

DEEPEST = 3
"""How deep values lie in tables: providers, the name, the key."""

Found = Assignment | Problem
"""A value, or what is wrong with it."""


def from_file(file: Path) -> Read:
    """The settings of a file. Raises SettingsError where it can't be read at all."""
    text = read_file(file)
    tree = toml(text, file)
    lines = key_lines(text)

    def origin(name: Name) -> Origin:
        return Origin("file", str(file), lines.get(name))

    return _sorted(_in_tree(tree, (), origin))


def from_flags(assignments: Mapping[str, Any], models: Mapping[str, str]) -> Read:
    """What the command line gave: ``--set KEY=VALUE``, and the model of each role."""
    return _sorted(_in_flags(assignments, models))


def from_environment(environment: Mapping[str, str], known: frozenset[Name]) -> Read:
    """The variables that begin with ``MASIS_``. An empty one counts as not set.

    ``known`` are the tables inside of settings that the file has: ``MASIS_PROVIDERS__MY_SERVER__ADDRESS`` means
    ``my-server`` where that is one of them.
    """
    found: list[Found] = []
    warnings: list[str] = []
    for variable, text in environment.items():
        if not variable.startswith("MASIS_") or variable in OTHER_VARIABLES:
            continue
        origin = Origin("environment", variable)
        name = VARIABLES.get(variable) or _inside(variable, known)
        if name is None:
            problem = no_such_variable(variable)
            if isinstance(problem, Problem):
                found.append(problem)
            else:
                warnings.append(problem)
        elif text.strip():
            found += _typed(name, text.strip(), origin)
    return _sorted(found, warnings)


def _sorted(found: Iterator[Found] | list[Found], warnings: list[str] | None = None) -> Read:
    all_found = list(found)
    assignments = tuple(each for each in all_found if isinstance(each, Assignment))
    return Read(assignments, tuple(each for each in all_found if isinstance(each, Problem)), tuple(warnings or ()))


def _in_tree(tree: Mapping[str, Any], table: Name, origin: Any) -> Iterator[Found]:
    for key, value in tree.items():
        name = (*table, key)
        place = origin(name)
        if name in SPELLINGS:
            yield from _leaves(name, (SPELLINGS[name],), value, origin)
        elif name not in TABLES:
            yield no_such_setting(name, place)
        elif isinstance(value, Mapping):
            yield from _in_tree(value, name, origin)
        else:
            yield not_a_table(name, place)


def _leaves(name: Name, means: Name, value: Any, origin: Any) -> Iterator[Assignment]:
    """The value, or those of each of its tables: a stronger source may change one and leave the others."""
    if means[0] in TABLES_OF_TABLES and len(means) < DEEPEST and isinstance(value, Mapping) and value:
        for key, inside in value.items():
            yield from _leaves((*name, key), (*means, key), inside, origin)
    else:
        yield Assignment(name, means, value, origin(name))


def _in_flags(assignments: Mapping[str, Any], models: Mapping[str, str]) -> Iterator[Found]:
    for role, model in models.items():
        yield Assignment((role,), (role,), model, Origin("flag", "--model"))
    for key, value in assignments.items():
        name = _dotted(key)
        origin = Origin("flag", "--set" if any(map(may_be_a_key, name)) else f"--set {key}")
        if name in SPELLINGS or name[0] in TABLES_OF_TABLES:
            yield from _typed(name, value, origin) if isinstance(value, str) else [_assigned(name, value, origin)]
        else:
            yield no_such_setting(name, origin)


def _dotted(key: str) -> Name:
    """``prices."openai:gpt-4o".input`` in its parts."""
    path: list[str] = []
    try:
        tree: Any = tomllib.loads(f"{key} = 0")
    except ValueError:
        return (key,)
    while isinstance(tree, dict) and len(tree) == 1:
        [(part, tree)] = tree.items()
        path.append(part)
    return tuple(path) if tree == 0 else (key,)


def _inside(variable: str, known: frozenset[Name]) -> Name | None:
    """The name inside of a table that a variable stands for; None where it names no such table."""
    table, *parts = variable.removeprefix("MASIS_").split("__")
    if table.lower() not in TABLES_OF_TABLES or not 1 <= len(parts) <= 2 or not all(parts):
        return None
    of_file = {_as_variable(name[1]): name[1] for name in known if name[0] == table.lower()}
    return (table.lower(), of_file.get(parts[0], parts[0].lower()), *(part.lower() for part in parts[1:]))


def _as_variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def _typed(name: Name, text: str, origin: Origin) -> Iterator[Found]:
    """A text as the value it means: whole tables and lists are JSON; numbers and choices are read later."""
    means = SPELLINGS.get(name)
    kind = schema_of((means,)).get("type") if means else None
    if kind == "array" and not text.startswith("["):
        yield _assigned(name, [part.strip() for part in text.split(",") if part.strip()], origin)
    elif kind in ("object", "array"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            cure = "A whole table is written as JSON here; single values have names."
            yield Problem(origin, f"{origin.spoken}: is no JSON. {cure}")
            return
        yield from _leaves(name, (str(means),), value, lambda _: origin)
    else:
        yield _assigned(name, text, origin)


def _assigned(name: Name, value: Any, origin: Origin) -> Assignment:
    means = SPELLINGS.get(name)
    return Assignment(name, (means,) if means else name, value, origin)
