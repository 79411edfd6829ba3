"""Errors about a wrong setting name or value: where it is, what is allowed, and the nearest valid
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic_core import ErrorDetails

from masis.settings.fields import MAX_COMPARED_CHARACTERS, Settings, nearest
from masis.settings.names import (
    OTHER_VARIABLES,
    SPELLINGS,
    TABLES,
    TABLES_OF_TABLES,
    Name,
    name_in_file,
)
from masis.settings.origins import GivenSetting
from masis.settings.ranges import describe_range, is_number, schema_of, value_text
from masis.settings.secrecy import may_be_a_key, safe_value

MISSPELT_FROM = 0.8
"""An unknown variable at least this similar to a known one is a misspelling, and an error."""

FOREIGN_NAMES = {
    "base_url": "address",
    "api_base": "address",
    "url": "address",
    "endpoint": "address",
    "host": "address",
    "type": "kind",
    "max_concurrency": "concurrency",
    "reasoning_effort": "effort",
}
"""Names that other programs use for the keys of a provider's table."""

_KEYS = "Put the key into the environment or a secrets file, and name its variable in key_env."


def no_such_setting(name: Name, place: str) -> str:
    """Return the error for an unknown name. It doesn't repeat the value, which may be a key."""
    if any(map(may_be_a_key, name)):
        return f"{place}: there is no setting of that name."
    paths = (*sorted(TABLES), *SPELLINGS)
    paths_in_table = {path[-1]: path for path in paths if path[:-1] == name[:-1]}
    if same_name := [path for path in paths if path[-1].casefold() == name[-1].casefold()]:
        suggested_path = min(same_name, key=lambda path: abs(len(path) - len(name)))
    else:
        suggested_path = paths_in_table.get(nearest(name[-1], paths_in_table) or "", ())
    suggestion = f" Did you mean '{name_in_file(suggested_path)}'?" if suggested_path else ""
    if paths_in_table and len(name) > 1 and not suggested_path:
        suggestion = f" There are: {', '.join(paths_in_table)}."
    written = name_in_file(name)[:MAX_COMPARED_CHARACTERS]
    return f"{place}: there is no setting '{written}'.{suggestion}"


def not_a_table(table: str, place: str) -> str:
    """Return the error for a value in the place of a table of settings."""
    return f"{place}: '{table}' is a table of settings. Write [{table}], and KEY = VALUE below."


def no_such_variable(variable: str, variables: Iterable[str]) -> tuple[bool, str]:
    """Return whether an unknown ``MASIS_`` variable is an error, and the message.

    If it resembles no known variable, the message is only a warning.
    """
    if table := next(
        (table for table in TABLES_OF_TABLES if variable.startswith(f"MASIS_{table.upper()}_")),
        None,
    ):
        example = (
            "MASIS_PROVIDERS__VLLM__ADDRESS"
            if table == "providers"
            else f"[{table}.NAME] in masis.toml"
        )
        return (
            True,
            f"{variable}: isn't a key of a table. Use two underscores between names: {example}.",
        )
    if similar := nearest(variable, [*variables, *OTHER_VARIABLES], MISSPELT_FROM):
        return True, f"{variable}: there is no such variable. Did you mean {similar!r}?"
    hint = "'masis config show' lists the variables that are read."
    if variable.endswith(("_KEY", "_TOKEN", "_SECRET")):
        hint = f"Keys have no prefix: {variable.removeprefix('MASIS_')}."
    return False, f"{variable}: this variable isn't read. {hint}"


def conflicting_values(path: Name, first: GivenSetting, second: GivenSetting) -> str:
    """Return the error for a setting that has different values under two names."""
    both = f"{first.place} and {second.place} both set '{name_in_file(path)}'"
    values = f"{safe_value(first.value)} and {safe_value(second.value)}"
    return f"{both}, but differ: {values}. Keep one of them."


def wrong_value(
    error: ErrorDetails, settings: Mapping[Name, GivenSetting]
) -> tuple[GivenSetting, str]:
    """Return the wrong value and the message that says what is allowed."""
    path = tuple(str(part) for part in error["loc"])
    if error["type"] == "missing":
        sibling = next(
            setting for key, setting in settings.items() if key[: len(path) - 1] == path[:-1]
        )
        table_place = f"{sibling.origin.place}, {name_in_file(path[:-1])}"
        return (
            sibling,
            f"{table_place}: has no {path[-1]!r}, which is {describe_range(schema_of(path))}.",
        )
    setting = next(setting for key, setting in settings.items() if key[: len(path)] == path)
    if error["type"] == "extra_forbidden":
        known_names = list(schema_of(path[:-1])["properties"])
        suggested_name = FOREIGN_NAMES.get(path[-1].casefold()) or nearest(path[-1], known_names)
        suggestion = f" Did you mean {suggested_name!r}?" if suggested_name in known_names else ""
        hint = f" {_KEYS}" if path[0] == "providers" else ""
        names = f"There are: {', '.join(known_names)}.{hint}"
        return setting, f"{setting.place}: there is no such setting.{suggestion} {names}"
    if path[-1] == "key_env":
        hint = "Don't put the key itself here."
        return (
            setting,
            f"{setting.place}: isn't the name of a variable, such as OPENAI_API_KEY. {hint}",
        )
    return setting, not_allowed(path, setting)


def not_allowed(path: Name, setting: GivenSetting) -> str:
    """Return the error for a value of the wrong type or out of range."""
    schema, value = schema_of(path), setting.value
    words = schema.get("enum", ())
    repeated = (
        "this"
        if path[0] == "providers" and not words and not is_number(schema)
        else safe_value(value)
    )
    message = f"{setting.place}: {repeated} is not {describe_range(schema)}."
    if isinstance(value, str) and (similar := nearest(value, words)):
        message += f" Did you mean {similar!r}?"
    if path[0] in TABLES_OF_TABLES and len(path) < 3:
        return f"{message} Write [{path[0]}.NAME], and KEY = VALUE below."
    return (
        message
        if len(path) > 1
        else f"{message} The default is {value_text(Settings.model_fields[path[0]].default)}."
    )
