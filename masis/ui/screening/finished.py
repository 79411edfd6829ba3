"""A finished screening: its result, auditing with the kept abstracts, exports, overriding a grade."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

import streamlit as st

from masis.errors import MasisError
from masis.schema.screening import DESIGNS, STUDY_TYPES, Grade, GradeField, Override, OverrideField, Screening
from masis.schema.wording import counted
from masis.screening.grading.ensemble import agreement_of
from masis.screening.rounds.overrides import effective_overrides
from masis.screening.synthesis.criteria import criteria_of
from masis.services import Actor, Workbench
from masis.services.screening import OpenedScreening
from masis.ui.live import served_jobs
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.screening.appraisal import LONGEST_REASON, Record, show_appraisal
from masis.ui.screening.concepts import change_concepts, show_concepts
from masis.ui.screening.findings import criterion_reasons, show_criteria, show_findings, show_flow
from masis.ui.screening.result import abstracts, head, opened_abstract, rounds
from masis.ui.shell import address
from masis.ui.shell.keys import AGREE
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.views.numbers import day, moment
from masis.views.screening import FIELD, OUTCOME, RECOMMENDATION, RECOMMENDATIONS, SUFFICIENCY, value_text

# A person's override of one grade: set a field with a reason, see its effect at once, undo it.

AGREES_HELP = (
    "You looked at it and would grade it the same. Agreements count in how often people change a grade (Drift)."
)

Agree = Callable[[str, bool, Actor], None]
"""Records that a person agrees with a grade, or takes it back: abstract, whether they agree, actor."""


def agreement_bar(opened: OpenedScreening, grade: Grade, record: Agree) -> None:
    """Draw who agrees with the critic's grade of the abstract, and the button to agree or to take it back."""
    mine = [each for each in opened.agreements if each.abstract_id == grade.abstract_id]
    name = reviewer()
    agreed = name is not None and any(each.reviewer == name for each in mine)
    with st.container(horizontal=True, vertical_alignment="center", key="agreement-bar"):
        if agreed:
            st.button(
                "Undo my agreement",
                key="agree-undo",
                icon=":material/undo:",
                type="tertiary",
                on_click=_agree,
                args=(grade.abstract_id, False, record),
                **needs("decide"),
            )
        else:
            changed = bool(set(grade.overridden) - {"direction"})  # which no grader sets
            why = "A person has changed this grade: undo that first." if changed else AGREES_HELP
            st.button(
                "Agree with the grade",
                key="agree",
                icon=":material/thumb_up:",
                shortcut=AGREE.shortcut,
                on_click=_agree,
                args=(grade.abstract_id, True, record),
                **needs("decide", disabled=changed, help=why),
            )
        if mine:
            st.text(", ".join(f"{each.reviewer} agrees ({day(each.at)})" for each in mine), width="stretch")


def _agree(abstract_id: str, agrees: bool, record: Agree) -> None:
    if reviewer() is None:
        name_reviewer(served_workbench(), st.session_state.get("override-name", ""))
    if reviewer() is None:
        st.session_state["override-problem"] = "Type your name first: it is recorded with the agreement."
        return
    try:
        record(abstract_id, agrees, actor())
    except MasisError as error:
        st.session_state["override-problem"] = str(error)


def override_panel(opened: OpenedScreening, grade: Grade, record: Record) -> None:
    """Draw the form, what is in force on this abstract, and what follows for the screening."""
    overridden = effective_overrides(opened.overrides).get(grade.abstract_id, {})
    with st.container(border=True, key="override-panel"):
        st.markdown("**Override this grade**")
        with st.container():  # always there, so that the fields below stay where they are once the name is known
            if reviewer() is None:
                st.text_input("Your name", key="override-name", max_chars=LONGEST_NAME, width=320)
        field_at, value_at, why_at, go_at = st.columns([2.5, 3.1, 2.8, 2.1], vertical_alignment="bottom")
        with field_at:
            field: GradeField = st.selectbox(
                "Field",
                list(FIELD),
                key="override-field",
                format_func=lambda name: FIELD[name].text,
            )
        with value_at:
            _value(grade, field)
        why_at.text_input(
            "Reason", key="override-reason", max_chars=LONGEST_REASON, placeholder="Why this value is right"
        )
        if criteria := criterion_reasons(criteria_of(opened.screening.settings)):
            st.pills("Criterion of the team, as the reason", criteria, key="override-criterion")
        go_at.button(
            "Override the field",
            key="override-record",
            type="primary",
            width="stretch",
            on_click=_record,
            args=(grade.abstract_id, field, record),
            **needs("decide"),
        )
        if problem := st.session_state.pop("override-problem", ""):
            st.warning(problem, icon=":material/error:")
        for name in FIELD:
            if name in overridden:
                _in_force(name, overridden[name], record)
        _what_follows(opened)


def _key(grade: Grade, field: GradeField) -> str:
    return f"override-{grade.abstract_id}-{field}"


def _value(grade: Grade, field: GradeField) -> None:
    """Draw a widget for the field, set to its current value."""
    key, current = _key(grade, field), getattr(grade, field)
    if field == "recommendation":
        st.segmented_control(
            "Value",
            RECOMMENDATIONS,
            default=current,
            key=key,
            required=True,
            format_func=lambda each: RECOMMENDATION[each].text,
        )
    elif field in ("relevance_score", "methodology_score"):
        st.slider("Value", 0.0, 1.0, value=float(current or 0.0), step=0.01, key=key)
    elif field == "sample_size_adequate":
        st.segmented_control(
            "Value",
            [True, False],
            default=current,
            key=key,
            format_func=lambda each: value_text("sample_size_adequate", each),
        )
    else:
        known: list[str] = list(STUDY_TYPES if field == "study_type" else DESIGNS)
        index = known.index(current) if current in known else 0
        st.selectbox("Value", known, index=index, key=key, format_func=lambda each: value_text(field, each))


def _record(abstract_id: str, field: GradeField, record: Record) -> None:
    typed = str(st.session_state.get("override-reason", "")).strip()
    reason = typed or str(st.session_state.get("override-criterion") or "")
    value: Any = st.session_state.get(f"override-{abstract_id}-{field}")
    if reviewer() is None:
        name_reviewer(served_workbench(), st.session_state.get("override-name", ""))
    if reviewer() is None:
        st.session_state["override-problem"] = "Type your name first: it is recorded with the override."
    elif value is None:
        st.session_state["override-problem"] = "Choose a value first."
    elif not reason:
        st.session_state["override-problem"] = "Give a reason first: it is recorded with the override."
    else:
        _save(abstract_id, field, value, reason, record)
        if "override-problem" not in st.session_state:
            st.session_state["override-reason"] = ""
            st.session_state["override-criterion"] = None


def _save(abstract_id: str, field: GradeField, value: Any, reason: str, record: Record) -> None:
    try:
        record(abstract_id, field, value, reason, actor())
    except MasisError as error:
        st.session_state["override-problem"] = str(error)


def _in_force(field: GradeField, override: Override, record: Record) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(
            f"{FIELD[field].text} set to {value_text(field, override.value)} by {override.reviewer}, "
            f"{moment(override.at)} UTC: {override.reason}",
            width="stretch",
        )
        st.button(
            "Undo",
            key=f"undo-override-{field}",
            icon=":material/undo:",
            type="tertiary",
            on_click=_undo_override,
            args=(override.abstract_id, field, record),
            **needs("decide"),
        )


def _undo_override(abstract_id: str, field: GradeField, record: Record) -> None:
    st.session_state.pop(f"override-{abstract_id}-{field}", None)
    if reviewer() is None:
        st.session_state["override-problem"] = "Type your name first: it is recorded with an undo, too."
        return
    _save(abstract_id, field, None, "", record)


def _what_follows(opened: OpenedScreening) -> None:
    """Say what the screening comes to now, and what the critic's own result was where that differs."""
    now, machine = opened.screening, opened.machine
    last = now.rounds[-1].ruling if now.rounds else None
    result = f"The result is now **{OUTCOME[now.outcome].text.lower()}**, {counted(len(now.kept), 'abstract')} kept"
    if last is not None:
        result += f", last round: {SUFFICIENCY[last.decision].text}"
    if now.outcome != machine.outcome:
        result += f"; the critic's result was {OUTCOME[machine.outcome].text.lower()}"
    st.markdown(f"{result}.")


def show_over(workbench: Workbench, screening_id: str) -> None:
    """Draw the page of one finished screening."""
    if handed := st.session_state.pop("screening-handed", None):
        st.switch_page("pages/new.py", query_params=handed)
    opened = _opened(str(workbench.database), screening_id, workbench.store.screenings.summary(screening_id).version)
    screening = opened.screening
    head(screening)
    show_concepts(screening)
    with st.container(horizontal=True, vertical_alignment="center"):
        _hand_over(opened)
        with st.popover("Change the concepts", icon=":material/edit:"):
            change_concepts(screening)
        with st.popover("Search further", icon=":material/travel_explore:"):
            _further(screening)
        with st.popover("Export", icon=":material/download:"):
            _exports(workbench, opened)
        if words := agreement_words(screening.grades):
            st.text(words)
    with st.container():  # these are always there, so that the fields below stay where they are
        if problem := st.session_state.pop("screening-problem", ""):
            st.error(problem, icon=":material/error:")
        for warning in screening.warnings[:5]:
            st.warning("A source or a grader failed; its part is missing from the counts.", icon=":material/warning:")
            st.text(warning)
    with st.container():
        show_findings(opened)
    with st.container():
        show_criteria(screening)
        show_flow(opened)
    with st.container():
        rounds(screening)
    with st.container():
        abstracts(opened)

    def record(
        abstract_id: str, field: OverrideField, value: float | bool | str | None, reason: str, by: Actor
    ) -> None:
        served_workbench().screenings.override(
            by,
            screening_id,
            abstract_id,
            field,
            value,
            reason=reason,
            machine_shown=("grades", "reasons", "words", "appraisal"),
            seen_version=opened.summary.version,
        )

    def agree(abstract_id: str, agrees: bool, by: Actor) -> None:
        served_workbench().screenings.agree(
            by,
            screening_id,
            abstract_id,
            agrees=agrees,
            machine_shown=("grades", "reasons", "words"),
            seen_version=opened.summary.version,
        )

    def deciding(shown: OpenedScreening, grade: Grade) -> None:
        agreement_bar(shown, grade, agree)
        show_appraisal(shown, grade, record)
        override_panel(shown, grade, record)

    opened_abstract(opened, deciding)


@st.cache_resource(show_spinner=False, max_entries=16)
def _opened(database: str, screening_id: str, version: int) -> OpenedScreening:
    """Return the screening at this version, which rises with every override."""
    return served_workbench().screenings.open(screening_id)


def agreement_words(grades: tuple[Grade, ...]) -> str:
    """Say how far several graders agree; empty where there was one."""
    found = agreement_of(grades)
    if found.same is None:
        return ""
    alpha = f", Krippendorff's alpha {found.alpha:.2f}" if found.alpha is not None else ""
    return f"{found.graders} graders agree on {found.same:.0%} of {counted(found.compared, 'abstract')}{alpha}"


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
        on_click=_go_on,
        args=(opened.screening.id,),
        **needs(
            "audit",
            help="The kept abstracts become the evidence of a case; an answer is drafted from them and audited.",
        ),
    )


def _go_on(screening_id: str) -> None:
    workbench = served_workbench()
    if reviewer() is None and name_reviewer(workbench, st.session_state.get("hand-over-name", "")) is None:
        st.session_state["screening-problem"] = "Type your name first: it is recorded with the case."
        return
    try:
        case = workbench.screenings.hand_over(actor(), screening_id)
        done = workbench.audits.finished(case)
        run_id = done.id if done else served_jobs().audit(actor(), case.id)
    except MasisError as error:
        st.session_state["screening-problem"] = str(error)
        return
    st.session_state["screening-handed"] = {"job": run_id, "case": case.id}


MOST_FURTHER = 8


def _further(screening: Screening) -> None:
    """Ask for further rounds: a new screening that goes on from this one."""
    missing = screening.rounds[-1].missing if screening.rounds else ()
    if missing:
        st.text("Still missing:\n" + "\n".join(f"• {each}" for each in missing))
    st.number_input("Further rounds, at most", 1, MOST_FURTHER, 2, key="further-rounds")
    st.button(
        "Search further",
        type="primary",
        icon=":material/play_arrow:",
        key="search-further",
        on_click=_go_further,
        args=(screening.id,),
        **needs("audit"),
    )
    st.caption(
        "It asks for what is missing and becomes a screening of its own, with these rounds and overrides; this one "
        "stays as it is. Where no query is left that was not tried, it ends at once."
    )


def _go_further(screening_id: str) -> None:
    try:
        further = served_jobs().search_further(actor(), screening_id, int(st.session_state["further-rounds"]))
    except MasisError as error:
        st.session_state["screening-problem"] = str(error)
        return
    for name in ("abstract", "show", "order", "page"):
        address.put(name, "")
    address.put("screening", further)


def _exports(workbench: Workbench, opened: OpenedScreening) -> None:
    who = actor()
    if not workbench.access.allows(who, "export"):
        st.caption("Exports take the role lead.")
        return
    screening = opened.screening
    kept = len(screening.kept)
    st.download_button(
        f"The screening log, CSV ({counted(len(screening.grades), 'abstract')})",
        lambda: _written(lambda out: workbench.screenings.write_csv(who, screening.id, out)),
        file_name=f"screening-{screening.id[:8]}.csv",
        mime="text/csv",
        icon=":material/table:",
        on_click="ignore",
        width="stretch",
        help="Every abstract screened with its grade, its reasons and the round it came in.",
    )
    st.download_button(
        f"The kept abstracts, RIS ({kept})",
        lambda: _written(lambda out: workbench.screenings.write_ris(who, screening.id, out)),
        file_name=f"screening-{screening.id[:8]}.ris",
        mime="application/x-research-info-systems",
        icon=":material/library_books:",
        disabled=not kept,
        on_click="ignore",
        width="stretch",
        help="For a reference manager, each with its grade as notes.",
    )
    st.download_button(
        "All abstracts with labels, RIS",
        lambda: _written(lambda out: workbench.screenings.write_ris(who, screening.id, out, RECOMMENDATIONS)),
        file_name=f"screening-{screening.id[:8]}-labels.ris",
        mime="application/x-research-info-systems",
        icon=":material/label:",
        on_click="ignore",
        width="stretch",
        help="For ASReview, Rayyan or Covidence. `masis screening labels` takes their decisions back as overrides.",
    )
    st.download_button(
        "The PRISMA flow diagram, SVG",
        lambda: workbench.screenings.prisma(who, screening.id),
        file_name=f"screening-{screening.id[:8]}-flow.svg",
        mime="image/svg+xml",
        icon=":material/account_tree:",
        on_click="ignore",
        width="stretch",
        help="For a manuscript: dark on white, in any size.",
    )


def _written(write: Callable[[BinaryIO], int]) -> io.BytesIO:
    out = io.BytesIO()
    write(out)
    return out
