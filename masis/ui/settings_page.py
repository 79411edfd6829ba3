"""Settings and health: what the workbench was told and by whom, where its data lies, whether all is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from masis.settings import GROUPS, Loaded, Origin, Row, load, rows, spelled
from masis.ui.components.records import health_list, overview_head, settings_table
from masis.ui.desk import LabelData, label
from masis.ui.overview import state_counts
from masis.ui.words import Word, spoken
from masis.version import APP, RUBRIC
from masis.workbench import HealthItem, Workbench

CHECKED_AT_ONCE = 2_000
"""Cases up to which everything is checked whenever the page opens: the whole file is read for it."""

ORIGIN: dict[str, Word] = {
    "default": Word("default", "calm", "Nobody said otherwise"),
    "file": Word("file", "busy", "From the configuration file"),
    "environment": Word("environment", "busy", "From an environment variable"),
    "flag": Word("flag", "busy", "From the command line"),
}
HEALTH_NAMES = {
    "auditor": "Offline auditor",
    "models": "Models",
    "database": "Database",
    "decision log": "Decision log",
    "screening log": "Screening log",
    "disk": "Disk",
}


def show_settings(bench: Workbench) -> None:
    """The page of settings and health."""
    st.title("Settings and health")
    told, state = st.columns([62, 38], gap="large")
    with told:
        _settings(bench)
    with state:
        _health(bench)
        _database(bench)


def _settings(bench: Workbench) -> None:
    loaded = load()
    st.markdown(
        "These hold for every audit unless it is given others. To change one, write it into `masis.toml` in the folder "
        "the server is started in (`max_iterations = 2`) or into the environment (`MASIS_MAX_ITERATIONS=2`), and start "
        "the server again. A single audit can be given its own: under **New audit**, or with "
        "`masis audit --set max_iterations=2`."
    )
    st.text(f"Configuration file: {loaded.file or 'none'}")
    for warning in loaded.warnings:
        st.text(f"Note: {warning}")
    if loaded.settings != bench.settings:
        st.warning(
            "File or environment have changed since the server was started. It holds to the values shown here until "
            "it is started again.",
            icon=":material/restart_alt:",
        )
    settings_table({"groups": setting_groups(loaded._replace(settings=bench.settings))}, key="settings-table")


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
        "meaning": row.words.meaning if row.default is not None else "",
        "origin": _origin_label(row.origin),
    }


def _origin_label(origin: Origin) -> LabelData:
    return {**label(ORIGIN[origin.kind]), "meaning": origin.spot or ORIGIN[origin.kind].meaning}


def _health(bench: Workbench) -> None:
    st.subheader("Health")
    few = sum(bench.store.cases.facets().states.values()) <= CHECKED_AT_ONCE
    found: tuple[HealthItem, ...] = bench.health().items if few else st.session_state.get("health", ())
    if found:
        sound = all(item.ok for item in found)
        health_list({"sound": sound, "items": [_item(item) for item in found]}, key="health")
    else:
        st.caption("Checking everything reads the whole file: with this many cases that takes some seconds.")
    with st.container(horizontal=True):
        st.button("Test the models", icon=":material/bolt:", on_click=_test_models, args=(bench,))
        st.button("Check everything", icon=":material/health_and_safety:", on_click=_check, args=(bench,))
    if (tested := st.session_state.get("models-tested")) is not None:
        _tested(tested)


def _item(item: HealthItem) -> dict[str, Any]:
    return {"ok": item.ok, "name": HEALTH_NAMES.get(item.name, item.name), "message": item.message}


def _test_models(bench: Workbench) -> None:
    with st.spinner("Asking each model for a word"):
        st.session_state["models-tested"] = bench.check_models()


def _check(bench: Workbench) -> None:
    st.session_state["health"] = bench.health().items
    st.toast("Everything was checked.", icon=":material/health_and_safety:")


def _tested(items: tuple[HealthItem, ...]) -> None:
    sound = all(item.ok for item in items)
    if sound:
        st.success("Every model that judges answers.", icon=":material/check_circle:")
    else:
        st.error("Not every model can judge here.", icon=":material/error:")
    for item in items:
        st.text(f"{'✓' if item.ok else '✗'} {item.message}")


def _database(bench: Workbench) -> None:
    st.subheader("Database")
    st.caption("Cases, audits, decisions and drafts lie in this one file:")
    st.text(str(bench.database))
    states = bench.store.cases.facets().states
    st.caption(f"{_size(bench.database)} on disk, {spoken(sum(states.values()), 'case')}")
    rows = state_counts(states)
    if rows and (chosen := overview_head({"headline": "", "sub": "", "states": rows}, key="states")):
        st.switch_page("pages/queue.py", query_params={"state": chosen})
    st.caption(f"MASIS Workbench {APP}, rubric {RUBRIC}")
    st.caption("To copy it while it is in use: `masis export --out archive.jsonl`")


def _size(database: Path) -> str:
    """The file with what SQLite keeps beside it while it is in use."""
    files = (database.with_name(database.name + suffix) for suffix in ("", "-wal"))
    return f"{sum(file.stat().st_size for file in files if file.exists()) / 1e6:,.1f} MB"
