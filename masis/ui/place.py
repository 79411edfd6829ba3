"""Which database the pages show, and the one workbench on it that all sessions of this process share."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from masis.settings import database_path, load
from masis.workbench import Workbench

_served: list[Path] = []


def serve_database(path: Path) -> None:
    """Say which database this process serves; before the first page runs."""
    _served[:] = [path]


def served_database() -> Path:
    """The database named at the start, else the one of the settings (``MASIS_DB``, the user's data folder)."""
    return _served[0] if _served else database_path()


@st.cache_resource(show_spinner=False)
def _opened(path: str) -> Workbench:
    return Workbench.open(Path(path), load().settings)


def workbench() -> Workbench:
    """The workbench on the served database, opened (and migrated) on first use."""
    return _opened(str(served_database()))
