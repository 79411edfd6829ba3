"""The demo cases, and the settings that audit them with recorded replies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from masis.datasets.loading import read_cases
from masis.schema.calls import DEMO_REPLIES, REPLAY
from masis.schema.case import Case
from masis.settings import ROLES, Settings
from masis.version import app_root


def demo_case_files() -> list[Path]:
    """The files of the demo cases, by name."""
    return sorted((app_root() / "data" / "cases").glob("*.jsonl"))


def demo_cases() -> Iterable[Case]:
    """The demo cases, file by file."""
    for file in demo_case_files():
        yield from read_cases(file)


def recorded_settings(settings: Settings) -> Settings:
    """These settings with the demo's recorded replies in every role: what its cases are audited with."""
    return settings.model_copy(update=dict.fromkeys(ROLES, f"{REPLAY}{DEMO_REPLIES}"))
