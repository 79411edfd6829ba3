"""Adjudication: what the reviewers of one case differ in, and the final verdict that keeps all of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError, Removed, UnknownRecord
from masis.schema.review import Decision, LogEntry, Verdict
from masis.services import ANONYMOUS, CaseView, Workbench
from masis.services.records import CaseFilter
from masis.ui.review.case import show_answer
from masis.ui.review.compare import CHANGES
from masis.ui.shell import address
from masis.ui.shell.keys import APPROVE, ESCALATE, NEXT, OVERRIDE, REJECT, SUBMIT, UNDO, Key
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.team.taking import ask_name
from masis.views.diff import word_changes
from masis.views.markdown import coloured, escaped
from masis.views.words import DECIDE, DECIDED

TEXT_HEIGHT = 320
"""Pixels that answer and evidence have: what lies below, the decisions, begins in view."""


class Difference(NamedTuple):
    """One thing that reviewers say differently: its name, and what each of them says ("" where nothing)."""

    what: str
    said: tuple[str, ...]


def differences(decisions: tuple[Decision, ...]) -> tuple[Difference, ...]:
    """Return what decisions on one case differ in: verdict, answer, scores and labels; nothing else.

    Corrected answers are left out: each is drawn against the original where its decision is.
    """
    found = [
        Difference("Verdict", tuple(DECIDED[each.verdict].text if each.verdict else "" for each in decisions)),
        Difference("Answer", tuple(_answer(each) for each in decisions)),
    ]
    found += [
        Difference(name, tuple(str(each.rubric_scores.get(name, "")) for each in decisions))
        for name in dict.fromkeys(name for each in decisions for name in each.rubric_scores)
    ]
    labels: dict[tuple[Any, ...], list[list[str]]] = {}
    for number, each in enumerate(decisions):
        for label in each.labels:
            # a reported issue is compared with the other reports on the same words, never with corrections of the audit
            key = (label.target, label.start, label.end, label.text, label.reports)
            word = f"{label.label} ({label.severity})" if label.reports else label.label
            labels.setdefault(key, [[] for _ in decisions])[number].append(word)
    found += [
        Difference(_labelled(*key), tuple(", ".join(sorted(each)) for each in said)) for key, said in labels.items()
    ]
    return tuple(each for each in found if len(set(each.said)) > 1)


def _labelled(target: str, _start: int, _end: int, text: str, reports: bool) -> str:
    if target == "answer":
        return "Issues reported in the whole answer"
    return f"Issues reported in “{text[:120]}”" if reports else f"{target.capitalize()} “{text[:120]}”"


def _answer(decision: Decision) -> str:
    if decision.verdict != "approve":
        return ""
    return "original" if decision.iteration is None or decision.iteration == 1 else f"revision {decision.iteration - 1}"


VERDICT_DIFFERS = "the verdict"


def what_differs(decisions: Sequence[Decision]) -> str:
    """Say what keeps decisions from settling a case: the verdict, the correction, or the answer they are about."""
    if len({each.verdict for each in decisions}) > 1:
        return VERDICT_DIFFERS
    return "the correction" if decisions and decisions[0].verdict == "override" else "the answer"


def decisions_on(workbench: Workbench, case_id: str) -> tuple[Decision, ...]:
    """Return the decisions of a case's reviewers that count, without those whose text was redacted."""
    return tuple(entry.decision for entry in workbench.reviews.individual(case_id) if entry.decision is not None)


def show_adjudication(workbench: Workbench, case_id: str) -> None:
    """Draw one case whose reviewers differ: answer, evidence, decisions side by side, and the final verdict."""
    _recorded(workbench)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Team", icon=":material/arrow_back:", type="tertiary", on_click=address.put, args=("case", ""))
        st.title("Adjudication", anchor=False, width="content")
        if following := _next(workbench, case_id):
            st.button("Next", shortcut=NEXT.shortcut, on_click=address.put, args=("case", following))
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        st.markdown("**There is no such case.**")
        st.text(case_id[:500])
        return
    work = workbench.team.work(actor(), case_id)
    st.text(view.case.query)
    if work.pending or work.policy is None or not work.decided_by:
        st.markdown(
            "This case is not waiting for an adjudication: its reviewers have not all decided, or it has only one."
        )
        return
    entries = workbench.reviews.individual(case_id)
    decisions = decisions_on(workbench, case_id)
    run = view.run if view.run and view.run.iterations else None
    with st.container(border=True, height=TEXT_HEIGHT, key="adjudicated-answer"):
        show_answer(view, run, 0, None)
    open_ = view.state == "needs_adjudication" and reviewer() is not None and actor().name not in work.decided_by
    for number, (column, decision) in enumerate(zip(st.columns(len(decisions)), decisions, strict=True), start=1):
        with column.container(border=True, height="stretch", gap="xsmall"):
            verdict = coloured(DECIDED[decision.verdict]) if decision.verdict else ""
            about = f", {_answer(decision)}" if _answer(decision) else ""
            st.markdown(f"**{escaped(decision.reviewer)}**: {verdict}{about}")
            if open_ and _take_button(decision, number, by_key=_chosen(view.case.id) is None):
                _record(workbench, view, taken(decision, view, entries))
            _decision(workbench, decision, number)
    if found := differences(decisions):
        st.markdown("**What they differ in**")
        rows = [[escaped(each.what), *(escaped(said) or "–" for said in each.said)] for each in found]
        names = [escaped(decision.reviewer) for decision in decisions]
        st.table(pd.DataFrame(rows, columns=["", *names]).set_index(""), border="horizontal", alt="Differences")
    st.page_link("pages/review.py", label="Open the case with its audit", query_params={"case": case_id})
    _final(workbench, view, entries, work.decided_by)


def _next(workbench: Workbench, case_id: str) -> str | None:
    """Return another case that waits for an adjudication: the one behind this one, else the first."""
    waiting = CaseFilter(states=("needs_adjudication",), order="oldest")
    behind = workbench.cases.beside(case_id, waiting, forward=True) if _there(workbench, case_id) else None
    first = workbench.cases.find(waiting.model_copy(update={"size": 1})).rows
    return behind or next((row.id for row in first if row.id != case_id), None)


def _there(workbench: Workbench, case_id: str) -> bool:
    try:
        workbench.cases.summary(case_id)
    except UnknownRecord:
        return False
    return True


def _take_button(decision: Decision, number: int, *, by_key: bool) -> bool:
    """Offer to take one side; its key is off while another verdict is being given, whose reason may begin so."""
    words = f"Take {escaped(decision.reviewer)}'s decision as it is"
    shortcut = str(number) if by_key else None
    return st.button(words, key=f"take-{number}", shortcut=shortcut, width="stretch", **needs("oversee"))


def _chosen(case_id: str) -> Verdict | None:
    """Return the verdict of their own that the adjudicator has chosen for a case and not recorded yet."""
    chosen: Verdict | None = st.session_state.get(_verdict_key(case_id))
    return chosen


def _verdict_key(case_id: str) -> str:
    return f"final-verdict-{case_id}"


def taken(decision: Decision, view: CaseView, entries: Sequence[LogEntry]) -> Decision:
    """Return the adjudication that takes one reviewer's decision as it is, reason, correction and labels with it."""
    return decision.model_copy(
        update={
            "kind": "adjudication",
            "reviewer": actor().name,
            "token": None,
            "policy": None,
            "about": None,
            "machine_shown": () if view.machine_hidden else ("scores", "verdicts"),
            "extra": {"individual": [entry.id for entry in entries], "taken_from": decision.reviewer},
        }
    )


def _decision(workbench: Workbench, decision: Decision, number: int) -> None:
    """Draw what a reviewer's decision says beside its verdict: reason, note, what its correction changes, labels."""
    for title, text in (("Reason", decision.reason), ("Note", decision.note)):
        if text:
            st.caption(title)
            st.text(text)
    if decision.corrected_answer:
        try:
            changes = word_changes(workbench.reviews.answer_of(decision), decision.corrected_answer)
        except Removed:
            st.caption("Corrected answer; the one it corrects was removed")
            st.text(decision.corrected_answer)
        else:
            pieces = [change._asdict() for change in changes]
            description = f"What {decision.reviewer} changes in the answer"
            CHANGES(data={"pieces": pieces, "key": None, "description": description}, key=f"correction-{number}")
    for label in decision.labels:
        severity = f" ({label.severity})" if label.severity else ""
        st.text(f"{label.label}{severity}: {label.text[:200] or 'the whole answer'}\n{label.note}".strip())


def final_words(verdict: Verdict, about: Decision) -> str:
    """Return what the button says: what is done to which answer."""
    answer = "original" if about.iteration is None or about.iteration == 1 else f"revision {about.iteration - 1}"
    if verdict == "approve":
        return f"Approve the {answer} answer for good" if answer == "original" else f"Approve {answer} for good"
    return {"override": "Record the corrected answer for good", "reject": "Reject the answer for good"}.get(
        verdict, "Escalate the case"
    )


_KEYS: dict[Verdict, Key] = {"approve": APPROVE, "override": OVERRIDE, "reject": REJECT, "escalate": ESCALATE}


def _final(workbench: Workbench, view: CaseView, entries: tuple[LogEntry, ...], reviewers: tuple[str, ...]) -> None:
    """Draw the final verdict: who may give it, the one there is, and the form."""
    st.header("Final verdict")
    who = "Anybody else" if workbench.access.allows(ANONYMOUS, "oversee") else "A lead who is none of them"
    st.caption(f"Decided by {escaped(' and '.join(reviewers))}. {who} may adjudicate.")
    final = view.decision.decision if view.decision else None
    if view.state != "needs_adjudication" and final is not None and final.verdict is not None:
        st.markdown(f"Final: {coloured(DECIDED[final.verdict])} by {escaped(final.reviewer)}.")
    ask_name(workbench)
    if reviewer() is None or actor().name in reviewers:
        return
    decisions = [entry.decision for entry in entries if entry.decision is not None]
    verdict = _chosen(view.case.id)
    with st.container(horizontal=True, gap="small", key="final-verdicts"):
        for name, key in _KEYS.items():
            st.button(
                DECIDE[name].text,
                key=f"final-{name}",
                shortcut=key.shortcut,
                type="primary" if name == verdict else "secondary",
                on_click=st.session_state.__setitem__,
                args=(_verdict_key(view.case.id), name),
            )
    if verdict is None:
        return
    alike = [each for each in decisions if each.verdict == verdict] or decisions[:1]
    answers = list({_answer(each): each for each in reversed(alike)}) if verdict == "approve" else [""]
    about = alike[0]
    if len(answers) > 1:
        answer = st.segmented_control("Answer", answers, default=answers[0], required=True)
        about = next(each for each in alike if _answer(each) == answer)
    with st.form("adjudicate", border=False):
        reason = st.text_area("Reason", key="final-reason", max_chars=2000, height=80)
        corrected = None
        if verdict == "override":
            begins = f"Corrected answer, beginning with {escaped(about.reviewer)}'s"
            label = begins if about.corrected_answer else "Corrected answer"
            corrected = st.text_area(label, about.corrected_answer or view.case.answer or "", height=200)
        words = final_words(verdict, about)
        sent = st.form_submit_button(words, type="primary", shortcut=SUBMIT.shortcut, **needs("oversee"))
    if not sent:
        return
    try:
        decision = Decision(
            kind="adjudication",
            reviewer=actor().name,
            case_id=view.case.id,
            run_id=about.run_id,
            iteration=about.iteration,
            verdict=verdict,
            reason=reason,
            corrected_answer=corrected,
            machine_shown=() if view.machine_hidden else ("scores", "verdicts"),
            extra={"individual": [entry.id for entry in entries]},
        )
    except ValidationError as error:
        st.warning(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "))
    else:
        _record(workbench, view, decision)


def _record(workbench: Workbench, view: CaseView, decision: Decision) -> None:
    """Record an adjudication and open the next case; say what is wrong where it is refused."""
    try:
        entry = workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except MasisError as error:
        st.warning(escaped(str(error)))
    else:
        done = DECIDED[decision.verdict].text if decision.verdict else ""
        st.session_state[_RECORDED] = (entry.id, f"{done} for good: {view.case.id}")
        address.put("case", _next(workbench, view.case.id) or view.case.id)
        st.rerun()


_RECORDED = "adjudication-recorded"


def _recorded(workbench: Workbench) -> None:
    """Say which adjudication was recorded last in this session, with the way to undo it."""
    with st.container(horizontal=True, vertical_alignment="center", key="adjudication-recorded"):
        if recorded := st.session_state.get(_RECORDED):
            entry_id, words = recorded
            st.markdown(f":green[:material/check_circle:] {escaped(words)}")
            st.button(
                "Undo",
                key="undo-adjudication",
                shortcut=UNDO.shortcut,
                on_click=_undo,
                args=(workbench, entry_id),
            )


def _undo(workbench: Workbench, entry_id: str) -> None:
    workbench.reviews.undo(actor(), entry_id)
    st.session_state.pop(_RECORDED, None)
