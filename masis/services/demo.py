"""The demo cases, and where the application's files lie."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from masis.datasets.loading import read_cases
from masis.schema.case import Case


def app_root() -> Path:
    """The folder of ``app.py``, ``pages/`` and ``data/``: the checkout, or ``_app`` inside the installed package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_app"
    return installed if installed.is_dir() else package.parent


def demo_case_files() -> list[Path]:
    """The files of the demo cases, by name."""
    return sorted((app_root() / "data" / "cases").glob("*.jsonl"))


def demo_cases() -> Iterable[Case]:
    """The demo cases, file by file."""
    for file in demo_case_files():
        yield from read_cases(file)
