"""The screening page: start a screening, list earlier ones, or show the one in the address.

A running screening is drawn live, can be opened by its address alone, and can be resumed if it was
interrupted. Below the list, the page shows the critic's acceptance memory, and whether people
disagree with its grades more often than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from masis.schema.screening import ScreeningEvent
from masis.schema.wording import count_noun
from masis.screening.rounds.memory import adapt_thresholds
from masis.screening.rounds.ruling import thresholds_of
from masis.screening.services import screening_service
from masis.screening.services.jobs import ScreeningJobs
from masis.screening.services.records import ScreeningProgress, ScreeningSummary
from masis.screening.services.screenings import DriftSeries
from masis.screening.ui.actions import (
    attempt,
    has_reviewer_name,
    name_field,
    open_screening,
    show_problem,
)
from masis.screening.ui.form import show_form
from masis.screening.ui.result import show_finished_screening, show_head, show_rounds
from masis.screening.views.charts import RATE_OVER, drift_chart
from masis.screening.views.words import DESIGN, OUTCOME
from masis.services import Workbench
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import LinkedRow, column, linked_table, row
from masis.ui.live import served_jobs, show_live, show_stop, waiting_text
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.views.numbers import day, moment
from masis.views.words import RUN_STATE, label

LISTED = 20
PAGE = Path(__file__).resolve().parents[1] / "pages" / "screening.py"
_MEMORY_PROBLEM = "memory-problem"


def show_screening(workbench: Workbench) -> None:
    """Draw the list of screenings, or the one in the address."""
    if screening_id := address.value("screening"):
        _show_one_screening(workbench, screening_id)
        return
    st.title("Screening")
    st.markdown(
        "The evidence critic searches abstracts for a question, grades each one, and decides"
        " whether the evidence suffices or more must be retrieved."
    )
    show_form(workbench)
    with st.container():
        _draw_earlier_screenings(workbench)
    binding = address.bind_query_param(
        "memory", False, shows=address.value("memory") == "yes", key="screening-memory-open"
    )
    panel = st.expander("Acceptance memory and drift", icon=":material/monitoring:", **binding)
    if panel.open:  # read memory and drift from the store only on demand
        memory, watch = panel.columns(2, gap="large")
        with memory:
            _draw_memory(workbench)
        with watch:
            _draw_drift(screening_service(workbench).drifts())


def _show_one_screening(workbench: Workbench, screening_id: str) -> None:
    icon = ":material/arrow_back:"
    st.button(
        "Screenings",
        icon=icon,
        type="tertiary",
        key="leave-screening",
        on_click=open_screening,
        args=("",),
    )
    jobs, summary = (
        served_jobs(),
        address.find_by_id(screening_service(workbench).summary, screening_id),
    )
    job = jobs.get(screening_id)
    if job is not None or (summary is not None and summary.state == "running"):
        show_head(
            job.subject if job else summary.question if summary else "", label(RUN_STATE["running"])
        )
        show_live(draw_live, screening_id)
    elif summary is None:
        _draw_missing_screening(screening_id, jobs.failure("screening", screening_id))
    elif summary.removed_at is not None:
        reason = f"Its rounds and grades were removed on {day(summary.removed_at)} by retention."
        show_head(summary.question, label(RUN_STATE["removed"]), reasons=[reason])
        st.page_link(PAGE, label="Screen it again", icon=":material/biotech:")
    elif summary.state == "interrupted":
        show_head(
            summary.question,
            label(RUN_STATE["interrupted"]),
            reasons=list(filter(None, [summary.why])),
        )
        resume, why = (
            acting(ScreeningJobs(jobs).resume_screening, screening_id),
            "Continues after the last finished round.",
        )
        action(
            "Resume the screening",
            "resume-screening",
            "play_arrow",
            resume,
            why=why,
            type="primary",
        )
        _draw_rounds_so_far(screening_service(workbench).progress(screening_id), "")
    else:
        show_finished_screening(workbench, screening_id)


def _draw_missing_screening(screening_id: str, why: str | None) -> None:
    """Say that the screening in the address doesn't exist, or why it failed."""
    st.title("The screening failed" if why else "There is no such screening")
    st.text(why or screening_id[:200])
    st.markdown(
        "Your question is still in the form. Fix the problem named here and start it again."
        if why
        else "It may be in another database, or the address may be incomplete."
    )


SUMMARY_COLUMNS = [
    column("Question", "main"),
    column("Outcome", "pills"),
    column("Rounds", "figure"),
    column("Kept", "figure"),
    column("Searched", hide="hide-narrow"),
    column("Started (UTC)", "figure", hide="hide-medium"),
]


def _draw_earlier_screenings(workbench: Workbench) -> None:
    screenings: tuple[ScreeningSummary, ...] = screening_service(workbench).newest(LISTED)
    st.header("Earlier screenings")
    if not screenings:
        st.caption("None yet. Each is stored with its rounds and grades, and can be opened again.")
        return
    rows = [_summary_row(summary) for summary in screenings]
    if opened := linked_table(
        SUMMARY_COLUMNS, rows, description="Earlier screenings", key="screening-list"
    ):
        address.set_param("screening", opened)
        st.rerun()
    if len(screenings) == LISTED:
        st.caption(f"The newest {count_noun(LISTED, 'screening')}.")


def _summary_row(summary: ScreeningSummary) -> LinkedRow:
    """Return a row of the list for one screening, with its outcome and the number of overrides."""
    word = OUTCOME[summary.outcome] if summary.outcome else RUN_STATE[summary.state]
    if summary.removed_at is not None:
        word = RUN_STATE["removed"]
    searched = ", ".join(source.removeprefix("corpus:") for source in summary.sources)
    if summary.overrides:
        searched += f" · {count_noun(summary.overrides, 'override')}"
    href = link("screening", screening=summary.id)
    return row(
        {"text": summary.question, "href": href, "open": summary.id},
        {"pills": [label(word)]},
        summary.rounds,
        summary.kept,
        searched,
        moment(summary.started_at),
        open=summary.id,
    )


# A running screening


def draw_live(screening_id: str) -> bool:
    """Draw the progress so far and return whether the screening is running."""
    workbench, jobs = served_workbench(), served_jobs()
    has_job, summary = (
        jobs.get(screening_id) is not None,
        address.find_by_id(screening_service(workbench).summary, screening_id),
    )
    running = summary is not None and summary.state == "running"
    if not has_job and (not running or screening_id in screening_service(workbench).mark_lost()):
        return False
    stopping, stop = (
        jobs.is_cancelling("screening", screening_id),
        acting(jobs.cancel, "screening", screening_id),
    )
    show_stop("screening", "rounds", stopping=stopping, on_click=stop, label="Stop the screening")
    if waits := waiting_text("screening", screening_id, summary is not None):
        st.text(waits)
    else:
        activity = activity_text(screening_service(workbench).events(screening_id))
        _draw_rounds_so_far(screening_service(workbench).progress(screening_id), activity)
    return True


def _draw_rounds_so_far(done: ScreeningProgress, waiting: str) -> None:
    keep_share = (
        done.thresholds.keep_share
        if done.thresholds
        else served_workbench().settings.screening_keep_share
    )
    show_rounds([finished.round for finished in done.progress.finished], keep_share, waiting)


def activity_text(events: Sequence[ScreeningEvent]) -> str:
    """Say what the screening is doing, based on its last event."""
    last = events[-1] if events else None
    if last is None or last.kind in ("screening_started", "round_finished"):
        return "Starting the next round."
    number, data = f"Round {last.round}" if last.round is not None else "It", last.data
    if last.kind == "round_started":
        queries = data.get("queries")
        count = len(queries) if isinstance(queries, list) else 1
        return f"{number}: searching ({count_noun(count, 'query', 'queries')})."
    if last.kind == "searched":
        return f"{number}: {data.get('retrieved')} found, {data.get('new')} to grade."
    if last.kind == "graded":
        return f"{number}: {data.get('done')} of {data.get('of')} graded."
    return last.message or f"{number} continues."


# Acceptance memory and drift


def _draw_memory(workbench: Workbench) -> None:
    settings, memory = workbench.settings, screening_service(workbench).memory()
    st.header("Acceptance memory")
    st.markdown(
        "Earlier sufficient results can change what is required, by at most"
        f" {settings.screening_memory_bound:.2f}. In the settings this is"
        f" **{'on' if memory.on else 'off'}**; a single screening can have its own setting, and"
        " records what it used."
    )
    if not memory.entries:
        st.caption("It's empty. A screening with a sufficient result adds its kept abstracts.")
        return
    entries = pd.DataFrame(
        [entry.model_dump(include={"design", "quality", "round"}) for entry in memory.entries]
    )
    by_design = entries.groupby(entries["design"].fillna("other").map(DESIGN).rename("Design")).agg(
        Accepted=("quality", "size"),
        mean=("quality", "mean"),
        first=("round", "min"),
        last=("round", "max"),
    )
    by_design["Mean quality"] = by_design["mean"].map("{:.2f}".format)
    by_design["In rounds"] = [
        f"{a}" if a == b else f"{a} to {b}"
        for a, b in zip(by_design["first"], by_design["last"], strict=True)
    ]
    # stable, so that designs with the same count stay in alphabetical order
    by_design = by_design.sort_values("Accepted", ascending=False, kind="stable")[
        ["Accepted", "Mean quality", "In rounds"]
    ]
    st.table(by_design, border="horizontal", alt="Accepted abstracts by design")
    # computed as if the memory were on, to show what it would change
    moved = adapt_thresholds(settings.model_copy(update={"screening_memory": True}), memory.entries)
    default, then = (
        ", ".join(f"{value:.2f}" for value in thresholds.required_average)
        for thresholds in (thresholds_of(settings), moved)
    )
    st.caption(
        f"{memory.shift.why} Switched on, it would change what is required by"
        f" {memory.shift.by:+.3f}: {default} would become {then}."
    )
    with st.popover("Reset", icon=":material/restart_alt:"):
        st.markdown(
            "Nothing is deleted. An entry in the log records that earlier acceptances no longer"
            " count."
        )
        with st.container():
            name_field("memory-name")
        st.text_input("Reason", key="memory-reason", max_chars=500)
        action("Reset the memory", "memory-reset", "restart_alt", _reset_memory, requires="oversee")
    show_problem(_MEMORY_PROBLEM)


def _reset_memory() -> None:
    reason = str(st.session_state.get("memory-reason", "")).strip()
    if not has_reviewer_name("memory-name") or not reason:
        st.session_state[_MEMORY_PROBLEM] = (
            "A reset is recorded with a name and a reason. Enter both."
        )
    else:
        attempt(
            lambda: screening_service(served_workbench()).reset_memory(actor(), reason=reason),
            _MEMORY_PROBLEM,
        )


def _draw_drift(series: Sequence[DriftSeries]) -> None:
    """Draw the rate of disagreement by judgement, its baseline, and where drift was detected."""
    st.header("Drift")
    st.caption(
        "How often people change a grade that they judge, by grader and by reviewer. **Agree with"
        " the grade**, on an opened abstract, counts as well."
    )
    watched = {
        f"{drifts.name}: {drifts.counts}": drifts.drift for drifts in series if drifts.drift.points
    }
    if not watched:
        st.caption("No grade has been changed or agreed with yet, so there is nothing to compare.")
        return
    drift = watched[
        st.selectbox("Who", list(watched), key="drift-who", label_visibility="collapsed")
    ]
    if len(drift.points) < 2:
        st.caption(f"{drift.why} A chart needs at least two judgements.")
        return
    st.caption(
        f"{drift.why} The chart shows the share of the newest {RATE_OVER} judgements that changed a"
        " grade. Drift is tested by a two-sided cumulative sum over all of them, in their order."
    )
    usual = [] if drift.usual is None else [{"value": drift.usual}]
    newest = (
        # min_periods=1, so that the line starts at the first judgement instead of after a full
        # window
        pd.Series([point.value for point in drift.points]).rolling(RATE_OVER, min_periods=1).mean()
    )
    rows = [
        {
            "number": point.number + 1,
            "value": value,
            "alarm": "drift noticed" if point.alarm else "judgement",
        }
        for point, value in zip(drift.points, newest, strict=True)
    ]
    draw_chart(
        drift_chart,
        rows=rows,
        usual=usual,
        description="Disagreement in the order of the judgements",
    )
