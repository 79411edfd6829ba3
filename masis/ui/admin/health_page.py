"""The health page: the results of all checks with hints, and a test of the models on request."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from masis.audit.acceptance import RULE_VERSION
from masis.schema.wording import count_noun
from masis.services import HealthItem, Workbench
from masis.services.maintenance import health
from masis.services.maintenance.health import check_disk
from masis.services.reassessment import Reassessment, result_lines
from masis.settings import ROLES
from masis.ui.admin.health_reports import REPORTS, TimedReport
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown
from masis.views.markdown import escape_markdown
from masis.views.words import REASON

GROUPS: dict[str, tuple[str, ...]] = {
    "Storage": (
        "settings",
        "database",
        "schema",
        "writing",
        "decision log",
        "screening log",
        "disk",
    ),
    "Auditing": ("auditor", "models", *ROLES, "output validator", "evidence critic"),
    "Integrations": tuple(library.name for library in health.libraries()),
}
_TESTED_KEY = "models-tested"


def show_health(workbench: Workbench) -> None:
    """Draw the health page."""
    st.title("Health")
    checked = _report_to_show(workbench)
    if checked is None:
        return
    hidden = workbench.team.hides_counts_from(actor())
    items = (checked.without_counts() if hidden else checked).report.items
    tested: tuple[HealthItem, ...] = st.session_state.get(_TESTED_KEY, ())
    if tested:
        # The results of the test replace the check that called no model.
        items = (*(item for item in items if item.name != "models"), *tested)
    models_result = "no model was called"
    if tested:
        models_result = (
            "every model answered"
            if all(item.ok for item in tested)
            else "not every model can be used"
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Check again", icon=":material/refresh:", on_click=_check_again)
        action("Test the models", "test-models", "bolt", _test_models, workbench, why=_TEST_HELP)
        st.caption(
            f"Checked at {datetime.fromisoformat(checked.at):%H:%M:%S} UTC; {models_result}."
        )
    if all(item.ok for item in items):
        st.markdown(":green[**All checks passed.**]")
    else:
        st.markdown(f":red[**{count_noun(sum(not item.ok for item in items), 'check')} failed.**]")
    st.table(health_frame(items), border="horizontal", alt="Checks")
    show_reassessment(workbench)
    st.caption(
        f"On the command line: {command_markdown('masis health')}. For monitoring: `/healthz` "
        "(is the server alive?) and `/health.json` (did all checks pass? Status 200 or 503)."
    )
    st.page_link(
        "pages/retention.py",
        label="Retention: what is stored for how long",
        icon=":material/auto_delete:",
    )


LARGE_FILE_BYTES = 100_000_000
"""File size from which a check, which reads the whole file, only runs on request."""


def _report_to_show(workbench: Workbench) -> TimedReport | None:
    """Return a new report, or the last one if the file is large; None if there is none yet."""
    large = workbench.database.exists() and workbench.database.stat().st_size > LARGE_FILE_BYTES
    last = REPORTS.latest() if large else None
    if last is not None or not large:
        with st.spinner("Checking"):
            return last or REPORTS.current()
    st.markdown(
        "The database is checked once an hour, and no check has finished yet. A check reads the"
        " whole file, which takes minutes if it is large."
    )
    st.button("Check now", icon=":material/health_and_safety:", on_click=_check_again)
    return None


_TEST_HELP = (
    "Sends a one-word request to each language model in use, which may cost a fraction of a cent."
)


def health_frame(items: Iterable[HealthItem]) -> pd.DataFrame:
    """Return the checks as a table of Markdown cells with result, details and hints.

    They are grouped by area, with failed checks first. Checks without an area are last.
    """
    names = [name for group in GROUPS.values() for name in group]
    area = {name: title for title, group in GROUPS.items() for name in group}
    titles = [*GROUPS, "Other"]

    def place(item: HealthItem) -> tuple[int, bool, int]:
        known = item.name in area
        return (
            titles.index(area.get(item.name, "Other")),
            known and item.ok,
            names.index(item.name) if known else 0,
        )

    rows = [
        [
            area.get(item.name, "Other"),
            "Small audit" if item.name == "auditor" else item.name[:1].upper() + item.name[1:],
            (
                ":gray[– not installed]"
                if item.absent
                else ":green[✓ passed]"
                if item.ok
                else ":red[✗ failed]"
            ),
            escape_markdown(item.message)
            + (f" **{escape_markdown(item.hint)}**" if item.hint else ""),
        ]
        for item in sorted(items, key=place)
    ]
    frame = pd.DataFrame(rows, columns=["Area", "Check", "Result", "Details"])
    frame["Area"] = frame["Area"].mask(frame["Area"].duplicated(), "")
    return frame


def _check_again() -> None:
    REPORTS.current(renew=True)
    st.session_state.pop(_TESTED_KEY, None)


def _test_models(workbench: Workbench) -> None:
    workbench.access.require(actor(), "audit")
    with st.spinner("Calling each model"):
        st.session_state[_TESTED_KEY] = workbench.check_models()


def health_notice(workbench: Workbench) -> None:
    """Show above every page which checks failed, with a link to the health page.

    Its container always exists. Otherwise all elements of the page would move when it appears, and
    Streamlit would rebuild the fields in which the user is typing.
    """
    last = REPORTS.latest()
    wrong = [item.name for item in last.report.items if not item.ok] if last else []
    # The disk is checked on every run, because it can fill up between two hourly reports.
    if not (disk := check_disk(workbench.database)).ok and disk.name not in wrong:
        wrong.append(disk.name)
    with st.container(key="health-notice", horizontal=True, vertical_alignment="center"):
        if wrong:
            st.markdown(
                ":red[:material/error: **Health checks failed:**"
                f" {', '.join(dict.fromkeys(wrong))}.]"
            )
            st.page_link("pages/health.py", label="What to do", icon=":material/health_and_safety:")


# --- Reassessment

MOST_REASSESSED_HERE = 2_000
"""Most cases reassessed on the page, which takes about ten seconds. The command can be interrupted.
"""

_REASSESSMENT_KEY = "reassessed"


def show_reassessment(workbench: Workbench) -> None:
    """Draw how many audits an earlier rule judged, and the button that applies the current one."""
    st.header("Acceptance")
    waiting = workbench.reassessment.waiting()
    reassessment: Reassessment | None = st.session_state.get(_REASSESSMENT_KEY)
    if not waiting and not (reassessment and reassessment.applied):
        st.markdown(
            f"The current acceptance rule ({RULE_VERSION}) has judged every audit that people"
            " haven't decided."
        )
        return
    if waiting:
        st.markdown(
            f"An earlier acceptance rule judged {count_noun(waiting, 'audit')}. Its results remain"
            f" in force. Reassessing applies rule {RULE_VERSION} to the stored iterations. It"
            " doesn't repeat audits and doesn't change people's decisions."
        )
    if waiting > MOST_REASSESSED_HERE:
        st.markdown(
            "That's too many for this page. Use the command line:"
            f" {command_markdown('masis db reassess')}."
        )
        return
    if reassessment is not None:
        lines = [*result_lines(reassessment)]
        if reassessment.reasons:
            named = ", ".join(
                f"{REASON[code].text} {count:,}"
                for code, count in reassessment.reasons.most_common()
            )
            lines.append(f"Reasons for review: {named}.")
        st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines))
    if not waiting:
        return
    unnamed = not actor().name.strip()
    shown: dict[str, Any] = {"requires": "oversee"}
    with st.container(horizontal=True, vertical_alignment="center"):
        action("Show what would change", "reassess-look", "", _reassess, workbench, False, **shown)
        if reassessment is not None and not reassessment.applied:
            shown |= {
                "disabled": unnamed,
                "why": "Each change becomes an entry in the decision log, under your name.",
            }
            label = f"Reassess {count_noun(waiting, 'audit')}"
            action(label, "reassess-do", "", _reassess, workbench, True, type="primary", **shown)
            if unnamed:
                st.caption("Type your name first. The decision log records it with each change.")


def _reassess(workbench: Workbench, apply: bool) -> None:
    with st.spinner("Reassessing"):
        st.session_state[_REASSESSMENT_KEY] = workbench.reassessment.run(actor(), apply=apply)
