"""Reading the settings: flags over environment over file over defaults, and what a wrong one is told."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from masis.errors import SettingsError
from masis.schema.providers import Price, ProviderSettings
from masis.settings.environment import config_file, environment_or, read_file
from masis.settings.fields import Settings


class Origin(NamedTuple):
    """Where a setting's value came from: ``default``, ``file``, ``environment`` or ``flag``, and the exact place."""

    kind: Literal["default", "file", "environment", "flag"]
    place: str


class Loaded(NamedTuple):
    """Settings with the origin of each value."""

    settings: Settings
    origins: dict[str, Origin]


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Settings from flags over environment over file over defaults.

    Raises SettingsError naming the key, its place and the nearest right key.
    """
    environment = environment_or(environment)
    file = file or config_file(environment)
    values: dict[str, Any] = {}
    origins = {name: Origin("default", "") for name in Settings.model_fields}

    def take(key: str, value: Any, origin: Origin) -> None:
        if key not in Settings.model_fields:
            near = difflib.get_close_matches(key, Settings.model_fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{origin.place}: there is no setting {key!r}.{hint}")
        values[key], origins[key] = value, origin

    if file is not None:
        for key, value in read_file(file).items():
            take(key, value, Origin("file", f"{file}, {key}"))
    for variable, value in environment.items():
        if variable.startswith("MASIS_") and (key := variable.removeprefix("MASIS_").lower()) in Settings.model_fields:
            take(key, value, Origin("environment", variable))
    for key, value in (flags or {}).items():
        take(key, value, Origin("flag", f"--set {key}"))
    try:
        return Loaded(Settings.model_validate(values), origins)
    except ValidationError as error:
        raise SettingsError(_wrong_value(error, origins)) from None


def _wrong_value(error: ValidationError, origins: Mapping[str, Origin]) -> str:
    """Which value is wrong. What stands where no value belongs is never repeated: it may be a key."""
    first = error.errors()[0]
    key, *inside = (str(part) for part in first["loc"])
    place = ".".join([origins[key].place if key in origins else key, *inside])
    if inside[-1:] == ["key_env"]:
        return f"{place}: is no name of a variable, such as OPENAI_API_KEY. The key itself does not belong here."
    if first["type"] != "extra_forbidden":
        return f"{place}: {first['msg']} (got {first['input']!r})"
    known = ProviderSettings.model_fields if key == "providers" else Price.model_fields
    cure = " Keys stand in the environment or a secrets file: name the variable with key_env." * (key == "providers")
    return f"{place}: there is no such setting. There are: {', '.join(known)}.{cure}"
