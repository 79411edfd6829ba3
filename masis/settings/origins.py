"""The sources of setting values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.settings.fields import Settings

Kind = Literal["default", "file", "environment", "flag"]
"""From the weakest to the strongest."""


class SettingOrigin(NamedTuple):
    """The source of a setting; ``place`` is the file, the variable or the option, "" for a
    default.
    """

    kind: Kind = "default"
    place: str = ""


class GivenSetting(NamedTuple):
    """A value, its source, and the name that it was written under, such as ``loop.max_iterations``
    in a file.
    """

    value: Any
    origin: SettingOrigin
    name: str = ""

    @property
    def place(self) -> str:
        """The start of an error: ``masis.toml, loop.max_iterations``, ``MASIS_STRICTNESS``, ``--set
        strictness``.
        """
        return ", ".join(filter(None, (self.origin.place, self.name)))


class LoadedSettings(NamedTuple):
    """Settings with the source of each value.

    ``origins`` has every setting by name, and each value in a table (``providers.vllm.address``).
    ``file`` is the configuration file that was read. ``warnings`` are for a person although nothing
    is wrong.
    """

    settings: Settings
    origins: Mapping[str, SettingOrigin]
    file: Path | None = None
    warnings: tuple[str, ...] = ()
