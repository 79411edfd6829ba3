"""Which database the pages show, and the one workbench on it that all sessions of this process share."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import streamlit as st

from masis.services import Workbench
from masis.settings import database_path, load

_served: list[Path] = []


def serve_database(path: Path) -> None:
    """Say which database this process serves; before the first page runs."""
    _served[:] = [path]


def served_database() -> Path:
    """The database named at the start, else the one of the settings (``MASIS_DB``, the user's data folder)."""
    return _served[0] if _served else database_path()


def command(words: str) -> str:
    """A command as a person types it to reach the served database, which it names where it would take another."""
    served = served_database().resolve()
    return words if served == database_path().resolve() else f"{words} --db {shlex.quote(str(served))}"


def told_command(words: str) -> str:
    """The same as code within Markdown, whatever the name of the database holds."""
    text = command(words)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


@st.cache_resource(show_spinner=False)
def _opened(path: str) -> Workbench:
    return Workbench.open(Path(path), load().settings)


def workbench() -> Workbench:
    """The workbench on the served database, opened (and migrated) on first use."""
    return _opened(str(served_database()))
