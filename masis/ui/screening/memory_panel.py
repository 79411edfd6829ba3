"""The acceptance memory as a person sees it: what it holds, what it would change, how to reset it; and whether the
critic or a reviewer judges today as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import streamlit as st

from masis.errors import MasisError
from masis.schema.screening import Acceptance
from masis.screening.rounds.drift import Drift
from masis.screening.rounds.memory import adapted, by_design
from masis.screening.rounds.ruling import thresholds_of
from masis.services import Workbench
from masis.services.screening import DriftSeries, MemoryView
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.screening.charts import show_drift
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.views.charts import RATE_OVER
from masis.views.screening import DESIGN


class MemoryRow(NamedTuple):
    """What the memory holds of one design."""

    design: str
    accepted: int
    quality: float
    earliest: int
    latest: int


def memory_rows(entries: Iterable[Acceptance]) -> list[MemoryRow]:
    """Return the memory by design, the most accepted first, with the rounds each was accepted in."""
    rows = [
        MemoryRow(
            DESIGN[design],
            len(mine),
            fmean(entry.quality for entry in mine),
            min(entry.round for entry in mine),
            max(entry.round for entry in mine),
        )
        for design, mine in by_design(entries).items()
    ]
    return sorted(rows, key=lambda row: (-row.accepted, row.design))


def show_memory(workbench: Workbench) -> None:
    """Draw the panel: memory on the left, drift on the right."""
    memory, watch = st.columns(2, gap="large")
    with memory:
        st.header("Acceptance memory")
        _memory(workbench, workbench.screenings.memory())
    with watch:
        st.header("Drift")
        st.caption(
            "How often people change a grade that they judge, by grader and by reviewer. **Agree with the grade**, on "
            "an opened abstract, counts as well."
        )
        _drift(workbench.screenings.drifts())


def _memory(workbench: Workbench, memory: MemoryView) -> None:
    settings, entries, found = workbench.settings, memory.entries, memory.shift
    on = "on" if memory.on else "off"
    st.markdown(
        f"Earlier sufficient results can change what is required, by at most {settings.screening_memory_bound:.2f}. "
        f"In the settings this is **{on}**; a single screening can have its own setting, and records what it used."
    )
    if not entries:
        st.caption("Empty so far: a screening with a sufficient result adds its kept abstracts.")
        return
    st.dataframe(
        [
            {
                "Design": row.design,
                "Accepted": row.accepted,
                "Mean quality": round(row.quality, 2),
                "In rounds": f"{row.earliest}" if row.earliest == row.latest else f"{row.earliest} to {row.latest}",
            }
            for row in memory_rows(entries)
        ],
        hide_index=True,
        width="stretch",
    )
    own = thresholds_of(settings).required_average
    moved = adapted(settings.model_copy(update={"screening_memory": True}), entries).required_average
    st.caption(
        f"{found.why} Switched on, it would change what is required by {found.by:+.3f}: "
        f"{_numbers(own)} would become {_numbers(moved)}."
    )
    with st.popover("Reset", icon=":material/restart_alt:"):
        st.markdown("Nothing is deleted: an entry in the log records that earlier acceptances no longer count.")
        with st.container():
            if reviewer() is None:
                st.text_input("Your name", key="memory-name", max_chars=LONGEST_NAME)
        st.text_input("Reason", key="memory-reason", max_chars=500)
        st.button("Reset the memory", key="memory-reset", on_click=_reset, **needs("oversee"))
    if problem := st.session_state.pop("memory-problem", ""):
        st.warning(problem, icon=":material/error:")


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _reset() -> None:
    workbench = served_workbench()
    reason = str(st.session_state.get("memory-reason", "")).strip()
    if reviewer() is None:
        name_reviewer(workbench, st.session_state.get("memory-name", ""))
    if reviewer() is None or not reason:
        st.session_state["memory-problem"] = "A reset is recorded with a name and a reason: give both."
        return
    try:
        workbench.screenings.reset_memory(actor(), reason=reason)
    except MasisError as error:
        st.session_state["memory-problem"] = str(error)


def _drift(series: Sequence[DriftSeries]) -> None:
    watched = {f"{each.who}: {each.what}": each.drift for each in series if each.drift.points}
    if not watched:
        st.caption("No grade has been changed or agreed with yet, so there is nothing to compare.")
        return
    name = st.selectbox("Who", list(watched), key="drift-who", label_visibility="collapsed")
    st.caption(drift_words(watched[name]))
    show_drift(watched[name])


def drift_words(found: Drift) -> str:
    """Say what the drift test found, and which test it is."""
    return (
        f"{found.why} Drawn is the share of the newest {RATE_OVER} judgements that changed a grade; tested is a "
        "two-sided cumulative sum over all of them, in their order."
    )
