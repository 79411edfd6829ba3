"""Load the settings from flags, the environment, the file and the defaults, strongest first.

Each source gives its values by the path of the setting, whatever name they were written under.
Stronger sources override single keys, pydantic validates the result, and the source that has a key
is the value's origin.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from masis.errors import SettingsError
from masis.settings import errors
from masis.settings.environment import config_file, environment_or, read_file, toml
from masis.settings.fields import Settings
from masis.settings.names import (
    OTHER_VARIABLES,
    SPELLINGS,
    TABLES,
    TABLES_OF_TABLES,
    Name,
    name_in_file,
    variable_of,
)
from masis.settings.origins import GivenSetting, Kind, LoadedSettings, SettingOrigin
from masis.settings.ranges import is_number, schema_of
from masis.settings.secrecy import may_be_a_key

MAX_DEPTH = 3
"""The deepest path of a value: providers, the name, the key."""

WEIGHTS = ("faithfulness_weight", "relevance_weight", "completeness_weight", "reasoning_weight")
"""The weights of the overall score (MASIS-EVAL-WEIGHTS)."""

ROUNDING = 0.005
"""How much their sum may differ from 1, because people round."""

MAX_SHOWN_PROBLEMS = 20
"""The number of problems that one error lists; the others are counted."""

VARIABLES = {variable_of(path): path for path in SPELLINGS}
"""Every variable of a setting, and the name that it means."""


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    models: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> LoadedSettings:
    """Return the settings from flags, the environment, the file and the defaults, strongest first.

    Args:
        flags: The values of ``--set``.
        models: The models of ``--model`` by role.
        environment: The environment; by default that of this process.
        file: The configuration file; by default the one that ``config_file`` finds.

    Raises:
        SettingsError: Something is wrong. The message lists every problem with its place and the
            nearest valid name or value.

    """
    environment = environment_or(environment)
    file = file or config_file(environment)
    of_file = _read_toml(file)
    variables = _read_variables(environment, of_file)
    return _merge_sources((of_file, variables, _read_flags(flags or {}, models or {})), file)


class SettingsSource:
    """The values of one source, and the problems with its names."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.given: dict[Name, GivenSetting] = {}
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def add(self, path: Name, setting: GivenSetting) -> None:
        """Add a value for the setting that ``path`` names, or for a key in a setting's tables.

        A whole table is added key by key; outside of the file it is written as JSON.
        """
        is_json = self.kind != "file" and path[0] in TABLES_OF_TABLES and len(path) < MAX_DEPTH
        for leaf, value in _leaves(path, _from_json(setting.value) if is_json else setting.value):
            name = ".".join(filter(None, (setting.name, name_in_file(leaf[len(path) :]))))
            leaf_setting = GivenSetting(value, setting.origin, name)
            earlier = self.given.setdefault(leaf, leaf_setting)
            # compare types too, because True == 1
            if (earlier.value, type(earlier.value)) != (value, type(value)):
                self.problems.append(errors.conflicting_values(leaf, earlier, leaf_setting))


def _read_toml(file: Path | None) -> SettingsSource:
    """Return the values of the configuration file.

    Raises:
        SettingsError: It can't be read.

    """
    source, origin = SettingsSource("file"), SettingOrigin("file", str(file))
    tables: list[tuple[Name, Mapping[str, Any]]] = (
        [((), toml(read_file(file), file))] if file else []
    )
    for table, tree in tables:  # grows while it's read
        for key, value in tree.items():
            name = (*table, key)
            if name in SPELLINGS:
                source.add((SPELLINGS[name],), GivenSetting(value, origin, name_in_file(name)))
            elif name not in TABLES:
                source.problems.append(errors.no_such_setting(name, origin.place))
            elif isinstance(value, Mapping):
                tables.append((name, value))
            else:
                source.problems.append(errors.not_a_table(name_in_file(name), origin.place))
    return source


def _read_variables(environment: Mapping[str, str], file: SettingsSource) -> SettingsSource:
    """Return the values of the variables that start with ``MASIS_``. An empty one counts as not
    set.

    ``MASIS_PROVIDERS__MY_SERVER__ADDRESS`` means ``my-server`` if the file has a table of that
    name.
    """
    source = SettingsSource("environment")
    tables = {
        # Names of environment variables have no dashes, dots or lower case (POSIX, 8.1).
        (path[0], re.sub(r"[^A-Z0-9]", "_", path[1].upper())): path[1]
        for path in file.given
        if len(path) > 1
    }
    for variable, text in environment.items():
        # the prefix is ours, so an unknown variable with it is probably a misspelling
        if not variable.startswith("MASIS_") or variable in OTHER_VARIABLES:
            continue
        spelling = VARIABLES.get(variable)
        path = (SPELLINGS[spelling],) if spelling else _path_in_table(variable, tables)
        if path is None:
            wrong, message = errors.no_such_variable(variable, VARIABLES)
            (source.problems if wrong else source.warnings).append(message)
        elif text.strip():
            source.add(path, GivenSetting(text.strip(), SettingOrigin("environment", variable)))
    return source


def _read_flags(assignments: Mapping[str, Any], models: Mapping[str, str]) -> SettingsSource:
    """Return the command line's values: ``--set KEY=VALUE``, and the model of each role."""
    source = SettingsSource("flag")
    for role, model in models.items():
        source.add((role,), GivenSetting(model, SettingOrigin("flag", "--model")))
    for key, value in assignments.items():
        name = _split_dotted(key)
        place = "--set" if any(map(may_be_a_key, name)) else f"--set {key}"
        path = (SPELLINGS[name],) if name in SPELLINGS else name
        if path[0] in TABLES_OF_TABLES or name in SPELLINGS:
            source.add(path, GivenSetting(value, SettingOrigin("flag", place)))
        else:
            source.problems.append(errors.no_such_setting(name, place))
    return source


def _leaves(path: Name, value: Any) -> Iterator[tuple[Name, Any]]:
    """Yield the values in a table of tables by path; for any other setting, the value itself."""
    if (
        path[0] in TABLES_OF_TABLES
        and len(path) < MAX_DEPTH
        and isinstance(value, Mapping)
        and value
    ):
        for key, inside in value.items():
            yield from _leaves((*path, key), inside)
    else:
        yield path, value


def _from_json(value: Any) -> Any:
    """Return the table that a text encodes as JSON; any other value unchanged, to be rejected
    later.
    """
    try:
        decoded = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return decoded if isinstance(decoded, Mapping) else value


def _path_in_table(variable: str, tables: Mapping[tuple[str, str], str]) -> Name | None:
    """Return the path in a table that a variable means, or None if it doesn't name such a table."""
    table, *parts = variable.removeprefix("MASIS_").split("__")
    if table.lower() not in TABLES_OF_TABLES or not 1 <= len(parts) <= 2 or not all(parts):
        return None
    name = tables.get((table.lower(), parts[0]), parts[0].lower())
    return (table.lower(), name, *(part.lower() for part in parts[1:]))


def _split_dotted(key: str) -> Name:
    """Split a dotted TOML key such as ``prices."openai:gpt-4o".input`` into its parts."""
    path: list[str] = []
    try:
        # TOML's own parser knows the rules for quoted and dotted keys.
        tree: Any = tomllib.loads(f"{key} = 0")
    except ValueError:
        return (key,)
    while isinstance(tree, dict) and len(tree) == 1:
        [(part, tree)] = tree.items()
        path.append(part)
    return tuple(path) if tree == 0 else (key,)


def _merge_sources(sources: tuple[SettingsSource, ...], file: Path | None) -> LoadedSettings:
    """Merge the sources, weakest first.

    Raises:
        SettingsError: Something is wrong; the message lists every problem.

    """
    merged: dict[Name, GivenSetting] = {}
    origins = dict.fromkeys(Settings.model_fields, SettingOrigin())
    for source in sources:
        for path, setting in source.given.items():
            merged[path] = setting
            origins[path[0]] = origins[name_in_file(path)] = setting.origin
    wrong = [
        (setting, errors.not_allowed(path, setting))
        for path, setting in merged.items()
        if _is_wrong_kind(path, setting)
    ]
    settings = None
    try:
        settings = Settings.model_validate(_nest_paths(merged))
    except ValidationError as error:
        wrong += [errors.wrong_value(problem, merged) for problem in error.errors()]
    else:
        wrong += _check_weights(settings, merged)
    problems = []
    for source in sources:
        problems += source.problems
        problems += dict.fromkeys(
            message for setting, message in wrong if setting.origin.kind == source.kind
        )
    if problems or settings is None:
        if len(problems) > MAX_SHOWN_PROBLEMS:
            problems[MAX_SHOWN_PROBLEMS:] = [f"and {len(problems) - MAX_SHOWN_PROBLEMS} more."]
        # Without the cause, because pydantic's error repeats values, and one may be a key.
        raise SettingsError("\n".join(problems)) from None
    return LoadedSettings(
        settings, origins, file, tuple(warning for source in sources for warning in source.warnings)
    )


def _nest_paths(merged: Mapping[Name, GivenSetting]) -> dict[str, Any]:
    """Return the values in nested tables by their paths."""
    tree: dict[str, Any] = {}
    # Shorter paths first, so that a table exists before its keys are added.
    for *tables, key in sorted(merged, key=len):
        table: Any = tree
        for name in tables:
            table = table.setdefault(name, {}) if isinstance(table, dict) else None
        if isinstance(table, dict):  # else there is a value where this source has a table
            table[key] = merged[*tables, key].value
    return tree


def _is_wrong_kind(path: Name, setting: GivenSetting) -> bool:
    """Return whether pydantic would convert a value of the wrong type into a valid one, such as
    true into 1.

    A file has types, so a quoted number is a mistake there; the environment and flags have only
    text.
    """
    schema = schema_of(path)
    if isinstance(setting.value, bool):
        return is_number(schema)
    text_for_number = isinstance(setting.value, str) and is_number(schema)
    return setting.origin.kind == "file" and (text_for_number or schema.get("type") == "boolean")


def _check_weights(
    settings: Settings, merged: Mapping[Name, GivenSetting]
) -> Iterator[tuple[GivenSetting, str]]:
    """Yield an error if the weights of the overall score, each valid alone, don't add up to 1."""
    weights = {name: getattr(settings, name) for name in WEIGHTS}
    weight_settings = [merged[name,] for name in WEIGHTS if (name,) in merged]
    if weight_settings and abs(sum(weights.values()) - 1) > ROUNDING:
        # The strongest source is the one that a person most likely changed last.
        last = max(weight_settings, key=lambda setting: get_args(Kind).index(setting.origin.kind))
        listed = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
        message = (
            f"the weights of the overall score add up to {sum(weights.values()):g}, not to 1"
            f" ({listed})."
        )
        yield last, f"{last.place}: {message}"
