"""Where the value of a setting came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.settings.fields import Settings

Kind = Literal["default", "file", "environment", "flag"]
"""From the weakest to the strongest."""


class SettingOrigin(NamedTuple):
    """Which source has a setting: ``place`` is the file, the variable or the option; empty for a
    default.
    """

    kind: Kind = "default"
    place: str = ""


class GivenSetting(NamedTuple):
    """A value, where it came from, and the name it was written under: ``loop.max_iterations`` in a
    file.
    """

    value: Any
    origin: SettingOrigin
    name: str = ""

    @property
    def place(self) -> str:
        """How errors begin: ``masis.toml, loop.max_iterations``, ``MASIS_STRICTNESS``, ``--set
        strictness``.
        """
        return ", ".join(filter(None, (self.origin.place, self.name)))


class LoadedSettings(NamedTuple):
    """Settings with the origin of each value.

    ``origins`` has every setting by its name, and each value inside of a table
    (``providers.vllm.address``). ``file`` is the configuration file that was read, ``warnings`` is
    what a person should know though nothing is wrong.
    """

    settings: Settings
    origins: Mapping[str, SettingOrigin]
    file: Path | None = None
    warnings: tuple[str, ...] = ()
