"""The database that the pages show, and the workbench that all sessions of this process share."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import streamlit as st

from masis.errors import SettingsError
from masis.extensions import extensions
from masis.services import OPEN, SIGN_IN_REQUIRED, Workbench
from masis.settings import database_path, load
from masis.ui.shell.reach import served_reach

# A list, because a module that imports the name would keep the value it had then.
_served: list[Path] = []
_found: set[Path] = set()


def serve_database(path: Path) -> None:
    """Set the database that this process serves. Call it before the first page runs."""
    _served[:] = [path]
    has_disappeared(path)


def has_disappeared(path: Path) -> bool:
    """Return whether a database that this process has seen is no longer at its path."""
    if path.exists():
        _found.add(path)
        return False
    # Otherwise a moved database would look like one that doesn't exist yet.
    return path in _found


def served_database() -> Path:
    """Return the served database, or the one in the settings if none was set.

    The settings name it by ``MASIS_DB`` or the user's data folder.
    """
    return _served[0] if _served else database_path()


def command(words: str) -> str:
    """Return a shell command, with ``--db`` if it would otherwise use a different database."""
    served = served_database().resolve()
    return (
        words if served == database_path().resolve() else f"{words} --db {shlex.quote(str(served))}"
    )


def command_markdown(words: str) -> str:
    """Return the same command as Markdown code, even if the database path contains special
    characters.
    """
    text = command(words)
    # A code span ends at a run of as many backticks as it starts with (CommonMark, section 6.1).
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


@st.cache_resource(show_spinner=False)
def _open_served(path: str) -> Workbench:
    access = OPEN if served_reach().sign_in is None else SIGN_IN_REQUIRED
    return Workbench.open(Path(path), load().settings, access=access)


@st.cache_resource(show_spinner=False)
def hidden_pages() -> frozenset[str]:
    """Return the names of the pages that the settings hide.

    Settings that can't be read hide none. Every page says what is wrong with them.
    """
    try:
        settings = load().settings
    except SettingsError:
        return frozenset()
    return frozenset(
        page.address
        for extension in extensions()
        for page in extension.pages
        if page.setting and not getattr(settings, page.setting)
    )


def served_workbench() -> Workbench:
    """Return the workbench on the served database, which is opened and migrated on first use."""
    return _open_served(str(served_database()))
