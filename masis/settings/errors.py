"""The message about a wrong name or value: its place, what is allowed there, and the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from masis.settings.aliases import (
    CRITIQUE,
    OTHER_VARIABLES,
    SPELLINGS,
    TABLES,
    TABLES_OF_TABLES,
    VARIABLES,
    Name,
    written,
)
from masis.settings.docs import GROUPS
from masis.settings.fields import Settings
from masis.settings.origins import Assignment, Origin, Problem
from masis.settings.ranges import choices, described, is_number, schema_of, spelled
from masis.settings.secrecy import may_be_a_key, shown

COMPARED = 80
"""Characters of a wrong name that are compared with right ones: telling them apart takes time by the square."""

SURE = 0.8
"""From here on a variable that nothing heeds is a misspelt one, and refused."""

CALLED_ELSEWHERE = {
    "base_url": "address",
    "api_base": "address",
    "url": "address",
    "endpoint": "address",
    "host": "address",
    "type": "kind",
    "max_concurrency": "concurrency",
    "reasoning_effort": "effort",
}
"""What other programs call the keys of a provider's table."""

_KEYS = "Keys stand in the environment or a secrets file: name the variable with key_env."


def nearest(name: str, names: Iterable[str], least: float = 0.6) -> str | None:
    """The right name that is nearest, whatever its capitals; None where none is near."""
    by_small = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name[:COMPARED].casefold(), by_small, n=1, cutoff=least)
    return by_small[near[0]] if near else None


def no_such_setting(name: Name, origin: Origin) -> Problem:
    """An unknown name. What was given for it is not repeated: it may be a key."""
    message = f"{origin.spoken}: there is no setting {_named(name)}."
    return Problem(origin, f"{message}{_hint(name)}")


def not_a_table(name: Name, origin: Origin) -> Problem:
    """A value where a table of settings stands."""
    table = written(name)
    return Problem(
        origin, f"{origin.spoken}: '{table}' is a table of settings: write [{table}], and KEY = VALUE below."
    )


def no_such_variable(variable: str) -> Problem | str:
    """A variable of ours that nothing heeds: a problem where it is nearly the name of one that is, else a warning."""
    origin = Origin("environment", variable)
    near = nearest(variable, [*VARIABLES, *OTHER_VARIABLES], SURE)
    table = next((table for table in TABLES_OF_TABLES if variable.startswith(f"MASIS_{table.upper()}_")), None)
    if table:
        example = "MASIS_PROVIDERS__VLLM__ADDRESS" if table == "providers" else f"[{table}.NAME] in masis.toml"
        return Problem(origin, f"{variable}: names no key of a table. Two underscores part the names: {example}.")
    if near:
        return Problem(origin, f"{variable}: there is no such variable. Did you mean {near!r}?")
    if variable.endswith(("_KEY", "_TOKEN", "_SECRET")):
        return (
            f"{variable}: nothing heeds this variable. Keys go by their own names: {variable.removeprefix('MASIS_')}."
        )
    return f"{variable}: nothing heeds this variable. 'masis config show' names those that are heeded."


def says_two_things(one: Assignment, other: Assignment) -> Problem:
    """One setting under two names, with different values."""
    both = f"{one.place} and {other.place} both give '{written(one.means)}'"
    return Problem(one.origin, f"{both}, and differ: {shown(one.value)} and {shown(other.value)}. Keep one of them.")


def wrong_value(error: ErrorDetails, assignments: Mapping[Name, Assignment]) -> Problem:
    """Which value is wrong, and what would be right."""
    name = tuple(str(part) for part in error["loc"])
    at = next((name[:length] for length in range(len(name), 0, -1) if name[:length] in assignments), None)
    if error["type"] == "missing" or at is None:
        return _missing(name, error, assignments)
    source = assignments[at]
    if error["type"] == "extra_forbidden":
        return _no_such_key(name, source)
    if name[-1] == "key_env":
        cure = "The key itself does not belong here."
        return Problem(source.origin, f"{source.place}: is no name of a variable, such as OPENAI_API_KEY. {cure}")
    return not_allowed(source, name)


def not_allowed(source: Assignment, name: Name) -> Problem:
    """A value that is not of its kind or out of its range."""
    schema = schema_of(name)
    value: Any = source.value
    repeated = "this" if name[0] == "providers" and not choices(schema) and not is_number(schema) else shown(value)
    message = f"{source.place}: {repeated} is not {described(schema)}."
    if (words := choices(schema)) and isinstance(value, str) and (near := nearest(value, words)):
        message += f" Did you mean {near!r}?"
    if name[0] in TABLES_OF_TABLES and len(name) < 3:
        message += f" Write [{name[0]}.NAME], and KEY = VALUE below."
    elif len(name) == 1:
        message += f" The default is {spelled(Settings.model_fields[name[0]].default)}."
    return Problem(source.origin, message)


def _named(name: Name) -> str:
    return "of that name" if any(map(may_be_a_key, name)) else f"'{written(name)[:COMPARED]}'"


def _hint(name: Name) -> str:
    """The nearest right name: where it is only in the wrong table, else beside it, else anywhere."""
    key, table = name[-1], name[:-1]
    beside = {each[-1]: each for each in (*SPELLINGS, *TABLES) if each[:-1] == table}
    if len(name) > 1 and (group := _table_of(key)):
        return f" {key!r} stands in [{group}], or above all tables."
    if key == CRITIQUE[-1]:
        return f" Did you mean '{written(CRITIQUE)}'?"
    if (near := nearest(key, beside)) is not None:
        return f" Did you mean '{written(beside[near])}'?"
    if table:
        return f" There are: {', '.join(beside)}."
    anywhere = nearest(key, Settings.model_fields)
    return f" Did you mean {anywhere!r}?" if anywhere else ""


def _table_of(key: str) -> str | None:
    return next((group.table for group in GROUPS if key in group.settings), None)


def _no_such_key(name: Name, source: Assignment) -> Problem:
    known = list(schema_of(name[:-1]).get("properties", {}))
    near = CALLED_ELSEWHERE.get(name[-1].casefold()) or nearest(name[-1], known)
    hint = f" Did you mean {near!r}?" if near in known else ""
    cure = f" {_KEYS}" if name[0] == "providers" else ""
    return Problem(
        source.origin, f"{source.place}: there is no such setting.{hint} There are: {', '.join(known)}.{cure}"
    )


def _missing(name: Name, error: ErrorDetails, assignments: Mapping[Name, Assignment]) -> Problem:
    beside = next(
        (each.origin for key, each in assignments.items() if key[: len(name) - 1] == name[:-1]), Origin("default")
    )
    place = f"{beside.spoken}, " if beside.kind == "file" else ""
    if error["type"] == "missing":
        message = f"{place}{written(name[:-1])}: has no {name[-1]!r}, which is {described(schema_of(name))}."
    else:
        message = f"{written(name) or 'The settings'}: {error['msg'].removeprefix('Value error, ')}"
    return Problem(beside, message)
