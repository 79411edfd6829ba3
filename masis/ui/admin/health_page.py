"""Health: what is in order, what is not and what to do about it; and whether the models answer, where that is asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import streamlit as st

from masis.services import HealthItem, Workbench, health
from masis.services.health import of_disk
from masis.settings import ROLES
from masis.ui.admin.health_reports import REPORTS, Checked
from masis.ui.components import health_list
from masis.ui.shell.served_database import command_markdown

GROUPS: dict[str, tuple[str, ...]] = {
    "What is kept": ("settings", "database", "schema", "writing", "decision log", "screening log", "disk"),
    "What judges": ("auditor", "models", *ROLES, "output validator", "evidence critic"),
    "Doors to other systems": tuple(door.name for door in health.DOORS),
}
NAMES = {"auditor": "small audit"}

_TESTED = "models-tested"


def show_health(workbench: Workbench) -> None:
    """The page of health."""
    st.title("Health")
    with st.spinner("Looking at everything"):
        checked = REPORTS.current()
    found = checked.report.items
    tested: tuple[HealthItem, ...] = st.session_state.get(_TESTED, ())
    if tested:
        found = (*(item for item in found if item.name != "models"), *tested)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Look again", icon=":material/refresh:", on_click=_look)
        st.button("Test the models", icon=":material/bolt:", on_click=_ask, args=(workbench,), help=_ASKING)
        st.caption(f"Looked at {_time(checked)}; {_asked(tested)}.")
    health_list({"sound": all(item.ok for item in found), "groups": groups(found)}, key="health")
    st.caption(
        f"On the command line: {command_markdown('masis health')}. For whoever watches the server: `/healthz` "
        "(does it live?) and `/health.json` (all of this, 200 or 503)."
    )
    st.page_link("pages/retention.py", label="Retention: what is kept how long", icon=":material/auto_delete:")


_ASKING = "Asks each language model that fills a role for a word, which may cost a fraction of a cent."


def groups(found: Iterable[HealthItem]) -> list[dict[str, Any]]:
    """What was found in its groups, what is not in order first in each; what belongs to none comes last."""
    left = list(found)
    made = []
    for title, names in GROUPS.items():
        items = [item for item in left if item.name in names]
        left = [item for item in left if item.name not in names]
        made.append(_group(title, sorted(items, key=lambda item: (item.ok, names.index(item.name)))))
    if left:
        made.append(_group("Besides", left))
    return [group for group in made if group["items"]]


def _group(title: str, items: Iterable[HealthItem]) -> dict[str, Any]:
    return {
        "title": title,
        "items": [
            {
                "ok": item.ok,
                "absent": item.absent,
                "name": NAMES.get(item.name, item.name),
                "message": item.message,
                "cure": item.cure,
            }
            for item in items
        ],
    }


def _asked(tested: tuple[HealthItem, ...]) -> str:
    if not tested:
        return "nothing was asked over the network"
    return "every model answers" if all(item.ok for item in tested) else "not every model can judge here"


def _time(checked: Checked) -> str:
    return datetime.fromisoformat(checked.at).strftime("%H:%M:%S UTC")


def _look() -> None:
    REPORTS.renewed()
    st.session_state.pop(_TESTED, None)


def _ask(workbench: Workbench) -> None:
    with st.spinner("Asking each model for a word"):
        st.session_state[_TESTED] = workbench.check_models()


def health_notice(workbench: Workbench) -> None:
    """Name what the last health check found wrong and link to its page, above every page.

    Its container is always there: without it every element of the page would move up, and what is being typed with it.
    """
    last = REPORTS.latest()
    wrong = [item.name for item in last.report.items if not item.ok] if last else []
    if not (disk := of_disk(workbench.database)).ok and disk.name not in wrong:
        wrong.append(disk.name)
    with st.container(key="health-notice", horizontal=True, vertical_alignment="center"):
        if wrong:
            st.markdown(f":red[:material/error: **Not in order:** {', '.join(dict.fromkeys(wrong))}.]")
            st.page_link("pages/health.py", label="What to do", icon=":material/health_and_safety:")
