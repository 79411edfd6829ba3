"""The settings in force and who set them, the database, and the links to health and retention."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from masis.schema.wording import counted
from masis.services import Workbench
from masis.settings import GROUPS, Loaded, Origin, load
from masis.settings.ranges import spelled
from masis.settings.reference import Row, rows
from masis.ui.admin.health_reports import REPORTS
from masis.ui.admin.verifier_panel import show_verifier
from masis.ui.queue.overview import standing_counts
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown
from masis.version import APP, RUBRIC
from masis.views.markdown import escaped
from masis.views.numbers import file_size
from masis.views.words import Word

ORIGIN: dict[str, Word] = {
    "default": Word("default", "calm", "Not set anywhere else"),
    "file": Word("file", "busy", "From the configuration file"),
    "environment": Word("environment", "busy", "From an environment variable"),
    "flag": Word("flag", "busy", "From the command line"),
}


def show_settings(workbench: Workbench) -> None:
    """Draw the page of settings."""
    st.title("Settings")
    verifier, state = st.columns(2, gap="large")
    with verifier:
        show_verifier(workbench)
    with state:
        _health()
        _database(workbench)
    _settings(workbench)


def _settings(workbench: Workbench) -> None:
    st.header("All settings")
    loaded = load()
    st.markdown(
        "These apply to every audit that does not have its own. To change one, write it into `masis.toml` in the "
        "folder the server is started in (`max_iterations = 2`) or into the environment (`MASIS_MAX_ITERATIONS=2`), "
        "and start the server again. A single audit can have its own: under **New audit**, or with "
        "`masis audit --set max_iterations=2`."
    )
    st.text(f"Configuration file: {loaded.file.resolve() if loaded.file else 'none'}")
    for warning in loaded.warnings:
        st.text(f"Note: {warning}")
    # The verifier may have been chosen on this page.
    if loaded.settings.model_copy(update={"verifier": workbench.settings.verifier}) != workbench.settings:
        st.warning(
            "The configuration file or the environment has changed since the server was started. The values shown here "
            "apply until it is started again.",
            icon=":material/restart_alt:",
        )
    if loaded.settings.verifier != workbench.settings.verifier:
        st.text("The verifier was chosen on this page and applies until the server stops.")
    shown = loaded._replace(settings=workbench.settings)
    st.table(settings_frame(shown), border="horizontal", alt="Settings")


def settings_frame(loaded: Loaded) -> pd.DataFrame:
    """Return the settings as Markdown cells, each group below a row with its title; a changed value stands out."""
    cells: list[list[str]] = []
    for group in GROUPS:
        cells.append([f"**{group.title}**", "", f"*{escaped(group.meaning)}*", ""])
        cells += [
            [f"`{row.name}`", _value(row), escaped(row.meaning), _origin(row.origin)] for row in rows(loaded, group)
        ]
    return pd.DataFrame(cells, columns=["Setting", "Value", "Meaning", "Set by"])


def _value(row: Row) -> str:
    if not row.changed:
        return escaped(row.spelled)
    default = f" (default {escaped(spelled(row.default))})" if row.default is not None else ""
    return f"**:blue[{escaped(row.spelled)}]**{default}"


def _origin(origin: Origin) -> str:
    word = ORIGIN[origin.kind].text
    return word if origin.kind == "default" else f":blue-badge[{word}] {escaped(origin.place)}"


def _health() -> None:
    """Draw the result of the last health check, and the links to health and retention."""
    st.header("Health and retention")
    last = REPORTS.latest()
    if last is not None:
        sound = ":green[:material/check_circle: All checks passed.]" if last.report.ok else ":red[A check failed.]"
        st.markdown(f"{sound} (checked at {last.at[11:16]} UTC)")
    st.page_link(
        "pages/health.py", label="Health: check again, and test the models", icon=":material/health_and_safety:"
    )
    st.page_link("pages/retention.py", label="Retention: what is stored for how long", icon=":material/auto_delete:")


def _database(workbench: Workbench) -> None:
    st.header("Database")
    st.caption("Cases, audits, decisions and drafts are stored in this one file:")
    st.text(str(workbench.database))
    standings = workbench.cases.facets_for(actor()).standings
    st.caption(f"{_size(workbench.database)} on disk, {counted(sum(standings.values()), 'case')}")
    standing_counts(standings)
    st.caption(f"MASIS Workbench {APP}, rubric {RUBRIC}")
    st.caption(f"To copy it while it is in use: {command_markdown('masis db backup FILE')}")


def _size(database: Path) -> str:
    """Return the size of the database file with the one SQLite writes beside it while it is in use."""
    files = (database.with_name(database.name + suffix) for suffix in ("", "-wal"))
    return file_size(sum(file.stat().st_size for file in files if file.exists()))
