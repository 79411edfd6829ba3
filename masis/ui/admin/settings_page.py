"""Settings: what the workbench was told and by whom, where its data lies, and the ways to health and retention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from masis.services import Workbench
from masis.settings import GROUPS, Loaded, Origin, Row, load, rows, spelled
from masis.ui.admin.health_reports import REPORTS
from masis.ui.components import overview_head, settings_table
from masis.ui.queue.overview import state_counts
from masis.ui.review.answer_view import LabelData, label
from masis.ui.shell.served_database import command_markdown
from masis.ui.shell.wording import Word, spoken
from masis.version import APP, RUBRIC

ORIGIN: dict[str, Word] = {
    "default": Word("default", "calm", "Nobody said otherwise"),
    "file": Word("file", "busy", "From the configuration file"),
    "environment": Word("environment", "busy", "From an environment variable"),
    "flag": Word("flag", "busy", "From the command line"),
}


def show_settings(workbench: Workbench) -> None:
    """The page of settings."""
    st.title("Settings")
    told, state = st.columns([62, 38], gap="large")
    with told:
        _settings(workbench)
    with state:
        _health()
        _database(workbench)


def _settings(workbench: Workbench) -> None:
    loaded = load()
    st.markdown(
        "These hold for every audit unless it is given others. To change one, write it into `masis.toml` in the folder "
        "the server is started in (`max_iterations = 2`) or into the environment (`MASIS_MAX_ITERATIONS=2`), and start "
        "the server again. A single audit can be given its own: under **New audit**, or with "
        "`masis audit --set max_iterations=2`."
    )
    st.text(f"Configuration file: {loaded.file.resolve() if loaded.file else 'none'}")
    for warning in loaded.warnings:
        st.text(f"Note: {warning}")
    if loaded.settings != workbench.settings:
        st.warning(
            "File or environment have changed since the server was started. It holds to the values shown here until "
            "it is started again.",
            icon=":material/restart_alt:",
        )
    settings_table({"groups": setting_groups(loaded._replace(settings=workbench.settings))}, key="settings-table")


def setting_groups(loaded: Loaded) -> list[dict[str, Any]]:
    """The settings in their groups, each with value, default, meaning and origin."""
    return [
        {"title": group.title, "meaning": group.meaning, "rows": [_row(row) for row in rows(loaded, group)]}
        for group in GROUPS
    ]


def _row(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": row.spelled,
        "default": spelled(row.default) if row.default is not None else "",
        "changed": row.changed,
        "meaning": row.words.meaning,
        "origin": _origin_label(row.origin),
    }


def _origin_label(origin: Origin) -> LabelData:
    return {**label(ORIGIN[origin.kind]), "meaning": origin.spot or ORIGIN[origin.kind].meaning}


def _health() -> None:
    """What the last look said, and the ways to what keeps this sound."""
    st.subheader("Health and retention")
    last = REPORTS.latest()
    if last is not None:
        sound = ":green[:material/check_circle: All is in order.]" if last.report.ok else ":red[Not all is in order.]"
        st.markdown(f"{sound} (looked at {last.at[11:16]} UTC)")
    st.page_link("pages/health.py", label="Health: look, and test the models", icon=":material/health_and_safety:")
    st.page_link("pages/retention.py", label="Retention: what is kept how long", icon=":material/auto_delete:")


def _database(workbench: Workbench) -> None:
    st.subheader("Database")
    st.caption("Cases, audits, decisions and drafts lie in this one file:")
    st.text(str(workbench.database))
    states = workbench.cases.facets().states
    st.caption(f"{_size(workbench.database)} on disk, {spoken(sum(states.values()), 'case')}")
    rows = state_counts(states)
    if rows and (chosen := overview_head({"headline": "", "sub": "", "states": rows}, key="states")):
        st.switch_page("pages/queue.py", query_params={"state": chosen})
    st.caption(f"MASIS Workbench {APP}, rubric {RUBRIC}")
    st.caption(f"To copy it while it is in use: {command_markdown('masis export --out archive.jsonl')}")


def _size(database: Path) -> str:
    """The file with what SQLite keeps beside it while it is in use."""
    files = (database.with_name(database.name + suffix) for suffix in ("", "-wal"))
    return f"{sum(file.stat().st_size for file in files if file.exists()) / 1e6:,.1f} MB"
