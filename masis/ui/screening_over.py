"""A screening that is over: what came of it, handing the kept abstracts on, taking the log elsewhere, overriding."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO

import streamlit as st

from masis.errors import MasisError
from masis.schema.screening import Grade, GradeField
from masis.screening.ensemble import agreement_of
from masis.screening_desk import OpenedScreening, ScreeningDesk
from masis.ui.decision_form import LONGEST_NAME
from masis.ui.jobs import audit_jobs
from masis.ui.place import workbench
from masis.ui.reviewer import name_reviewer, reviewer
from masis.ui.screening_override import override_panel
from masis.ui.screening_result import abstracts, head, opened_abstract, rounds
from masis.ui.words import spoken
from masis.workbench import Workbench


def show_over(bench: Workbench, screening_id: str) -> None:
    """The page of one screening."""
    if handed := st.session_state.pop("screening-handed", None):
        st.switch_page("pages/new.py", query_params=handed)
    desk = ScreeningDesk(bench)
    opened = _opened(str(bench.database), screening_id, bench.store.screenings.summary(screening_id).version)
    screening = opened.screening
    head(screening)
    with st.container(horizontal=True, vertical_alignment="center"):
        _hand_over(opened)
        with st.popover("Export", icon=":material/download:"):
            _exports(desk, opened)
        if words := agreement_words(screening.grades):
            st.text(words)
    if problem := st.session_state.pop("screening-problem", ""):
        st.error(problem, icon=":material/error:")
    for warning in screening.warnings[:5]:
        st.warning("A source or a grader failed; what it left out is not in the counts.", icon=":material/warning:")
        st.text(warning)
    rounds(screening)
    abstracts(opened)

    def record(abstract_id: str, field: GradeField, value: float | bool | str | None, reason: str, by: str) -> None:
        ScreeningDesk(workbench()).override(
            screening_id,
            abstract_id,
            field,
            value,
            reason=reason,
            reviewer=by,
            machine_shown=("grades", "reasons", "words"),
            seen_version=opened.summary.version,
        )

    opened_abstract(opened, lambda shown, grade: override_panel(shown, grade, record))


@st.cache_resource(show_spinner=False, max_entries=16)
def _opened(database: str, screening_id: str, version: int) -> OpenedScreening:
    """The screening as it stood at this version, which rises with whatever anybody says about it."""
    return ScreeningDesk(workbench()).open(screening_id)


def agreement_words(grades: tuple[Grade, ...]) -> str:
    """How far several graders agree; empty where there was one."""
    found = agreement_of(grades)
    if found.same is None:
        return ""
    alpha = f", Krippendorff's alpha {found.alpha:.2f}" if found.alpha is not None else ""
    return f"{found.graders} graders agree on {found.same:.0%} of {spoken(found.compared, 'abstract')}{alpha}"


def _hand_over(opened: OpenedScreening) -> None:
    kept = len(opened.screening.kept)
    if not kept:
        st.button("Audit with these abstracts", disabled=True, help="None is kept.", icon=":material/fact_check:")
        return
    label = f"Audit with {'this abstract' if kept == 1 else f'these {kept} abstracts'}"
    if reviewer() is None:
        st.text_input(
            "Your name",
            key="hand-over-name",
            max_chars=LONGEST_NAME,
            placeholder="Your name",
            label_visibility="collapsed",
            width=220,
        )
    st.button(
        label,
        type="primary",
        icon=":material/fact_check:",
        key="hand-over",
        help="The kept abstracts become the evidence of a case; an answer is drafted from them and audited.",
        on_click=_go_on,
        args=(opened.screening.id,),
    )


def _go_on(screening_id: str) -> None:
    bench = workbench()
    if reviewer() is None and name_reviewer(bench, st.session_state.get("hand-over-name", "")) is None:
        st.session_state["screening-problem"] = "Type your name first: it is kept with the hand-over."
        return
    try:
        case = ScreeningDesk(bench).hand_over(screening_id, reviewer=reviewer() or "")
        done = bench.finished_run(case)
        run_id = done.id if done else audit_jobs().start(case.id)
    except MasisError as error:
        st.session_state["screening-problem"] = str(error)
        return
    st.session_state["screening-handed"] = {"job": run_id, "case": case.id}


def _exports(desk: ScreeningDesk, opened: OpenedScreening) -> None:
    screening = opened.screening
    kept = len(screening.kept)
    st.download_button(
        f"The screening log, CSV ({spoken(len(screening.grades), 'abstract')})",
        lambda: _written(lambda out: desk.write_csv(screening.id, out)),
        file_name=f"screening-{screening.id[:8]}.csv",
        mime="text/csv",
        icon=":material/table:",
        on_click="ignore",
        width="stretch",
        help="Every abstract screened with its grade, its reasons and the round it came in.",
    )
    st.download_button(
        f"The kept abstracts, RIS ({kept})",
        lambda: _written(lambda out: desk.write_ris(screening.id, out)),
        file_name=f"screening-{screening.id[:8]}.ris",
        mime="application/x-research-info-systems",
        icon=":material/library_books:",
        disabled=not kept,
        on_click="ignore",
        width="stretch",
        help="For a reference manager, each with its grade as notes.",
    )


def _written(write: Callable[[BinaryIO], int]) -> io.BytesIO:
    out = io.BytesIO()
    write(out)
    return out
