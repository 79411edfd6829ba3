"""One case: where it stands, the answer with its marks beside the evidence, the iterations and their scores."""

from __future__ import annotations

from typing import Any

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.run import Run
from masis.settings import OFFLINE
from masis.store.records import RunSummary
from masis.ui import address, scores
from masis.ui.components import case_head, reading_desk, score_table
from masis.ui.desk import desk, label, state_label, unaudited_desk
from masis.ui.jobs import audit_jobs
from masis.ui.words import FLAG, STOPPED, spoken
from masis.workbench import CaseView, Workbench

OFFLINE_SAYS = "No language model was involved: rules and measurements judged this answer."


def show_case(bench: Workbench, case_id: str) -> None:
    """The page of one case."""
    jobs = audit_jobs()
    back, audit = st.columns([4, 1], vertical_alignment="center")
    if back.button("Queue", icon=":material/arrow_back:", type="tertiary"):
        address.leave_case()
    try:
        view = bench.open_case(case_id)
    except UnknownRecord:
        st.title("There is no such case")
        st.text(case_id[:500])
        st.markdown("It may be in another database, or its id may be cut off in the address you followed.")
        return
    running = next((run for run in view.runs if run.state == "running"), None)
    busy = jobs.under_way(case_id) or running is not None
    audit.button(
        "Audit again" if view.run else "Audit now",
        icon=":material/fact_check:",
        type="secondary" if view.run else "primary",
        width="stretch",
        disabled=busy,
        on_click=jobs.start,
        args=(case_id,),
    )
    _head(view, running=busy)
    if why := jobs.failure(case_id):
        st.error("The last audit could not be made.", icon=":material/error:")
        st.text(why)
    if busy:
        _progress(case_id)
    if view.run is None:
        if not busy:
            st.markdown(
                "This case has not been audited. **Audit now** checks its citations and claims against the evidence."
            )
        reading_desk(unaudited_desk(view.case, f"{case_id}/plain"), key="desk")
    elif view.run.iterations:
        _audited(view, view.run)
    else:
        st.warning("The last audit ended before it had finished one iteration.", icon=":material/warning:")
        for warning in view.run.warnings:
            st.text(warning.message)
        reading_desk(unaudited_desk(view.case, f"{view.run.id}/plain"), key="desk")


def _head(view: CaseView, *, running: bool) -> None:
    case, run = view.case, view.run
    summary = next((each for each in view.runs if run and each.id == run.id), None)
    flags = [label(word) for flag, word in FLAG.items() if summary and flag in summary.flags]
    facts = [str(case.metadata["field"])] if case.metadata.get("field") else []
    facts += [case.id, spoken(len(case.evidence), "chunk of evidence", "chunks of evidence")]
    data: dict[str, Any] = {
        "question": case.query,
        "state": state_label("running" if running else view.state),
        "flags": flags,
        "facts": facts,
        "reasons": [reason.message for reason in run.review_reasons] if run else [],
    }
    case_head(data, key="head")


def _audited(view: CaseView, run: Run) -> None:
    names = [_iteration_name(run, index) for index in range(len(run.iterations))]
    index = min(address.number("iteration"), len(names)) - 1
    st.session_state["iteration"] = index
    left, right = st.columns([5, 6], vertical_alignment="bottom")
    left.segmented_control(
        "Iteration",
        range(len(names)),
        key="iteration",
        format_func=names.__getitem__,
        on_change=_choose_iteration,
        required=True,
    )
    right.caption(f"{_ended(run)} {_judges(run)}")
    reading_desk(desk(view.case, run, index), key="desk")
    st.space("small")
    st.subheader("Scores")
    chart, table = st.columns([5, 6], gap="large")
    if len(names) > 1:
        chart.altair_chart(scores.chart(run), width="stretch")
    else:
        chart.caption("One iteration: there is no course to draw.")
    with table:
        score_table(scores.score_table(run, index), key="scores")
    _reasoning(run, index)
    if len(view.runs) > 1:
        st.caption(f"{spoken(len(view.runs), 'audit')} of this case are kept; this is the newest finished one.")


def _iteration_name(run: Run, index: int) -> str:
    origin = "revised" if index else "drafted here" if run.draft else "as it came"
    name = f"{index + 1} · {origin}"
    return f"{name}, chosen" if index == run.best and len(run.iterations) > 1 else name


def _ended(run: Run) -> str:
    count = spoken(len(run.iterations), "iteration")
    sentence = f"{count}; it ended because {STOPPED[run.termination_reason]}."
    best = run.best_iteration
    first = run.iterations[0]
    if best and best is not first and first.quality_score is not None and best.quality_score is not None:
        sentence += f" Quality {first.quality_score:.2f} → {best.quality_score:.2f}."
    return sentence


def _judges(run: Run) -> str:
    models = sorted({model for model in run.models.values() if model != OFFLINE})
    return f"Judged by {', '.join(models)}." if models else OFFLINE_SAYS


def _reasoning(run: Run, index: int) -> None:
    critique = run.iterations[index].critique
    if critique.unscored:
        st.subheader("What the critic said")
        st.text(f"Unscored: {critique.unscored.reason}")
    elif critique.critique_reasoning:
        st.subheader("What the critic said")
        st.text(critique.critique_reasoning)


def _choose_iteration() -> None:
    chosen = st.session_state["iteration"]
    address.put("iteration", str(chosen + 1) if chosen else "")


@st.fragment(run_every=1.0)
def _progress(case_id: str) -> None:
    """What the running audit has done so far; draws the whole page anew once it is over."""
    from masis.ui.place import workbench

    bench, jobs = workbench(), audit_jobs()
    running: RunSummary | None = next((run for run in bench.open_case(case_id).runs if run.state == "running"), None)
    if running is None and not jobs.under_way(case_id):
        st.rerun()
    with st.container(border=True):
        st.markdown("**Auditing.** The page shows the result when it is there; you can leave it meanwhile.")
        for event in bench.store.runs.events(running.id)[-6:] if running else ():
            st.text(event.message or event.kind.replace("_", " "))
        if jobs.under_way(case_id):
            st.button("Stop after this step", on_click=jobs.cancel, args=(case_id,))
