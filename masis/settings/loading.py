"""Reading the settings: flags over environment over file over defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from masis.settings.environment import config_file, environment_or
from masis.settings.origins import Loaded


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    models: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Return settings from flags over environment over file over defaults.

    ``models`` are those that ``--model`` gave by role. Raises SettingsError naming everything that is wrong, each with
    its place and the nearest right name or value.
    """
    # Here, since pydantic-settings takes 40 ms to import, which only those who read settings pay.
    from masis.settings.sources import Flags, TomlFile, Variables, merged

    environment = environment_or(environment)
    file = file or config_file(environment)
    of_file = TomlFile(file)
    return merged((Flags(flags or {}, models or {}), Variables(environment, of_file), of_file), file)
