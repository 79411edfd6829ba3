"""Adjudication: what the reviewers of one case differ in, and the final verdict that keeps all of theirs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError, Removed, UnknownRecord
from masis.schema.review import Decision, LogEntry, Verdict
from masis.schema.wording import counted
from masis.services import ANONYMOUS, CaseView, Workbench
from masis.ui.components import HERE
from masis.ui.review.case import show_answer
from masis.ui.review.compare import CHANGES
from masis.ui.shell import address
from masis.ui.shell.keys import APPROVE, ESCALATE, NEXT, OVERRIDE, REJECT, SUBMIT, UNDO, Key
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.shell.streamlit_internals import with_selectors
from masis.ui.team.taking import ask_name
from masis.views.diff import word_changes
from masis.views.markdown import coloured, escaped
from masis.views.words import DECIDE, DECIDED

_LAYOUT = f"<style>{with_selectors((HERE / 'adjudication.css').read_text(encoding='utf-8'))}</style>"


def differences(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Name what decisions on one case differ in: verdict, answer, correction, reason, note, scores and labels."""
    said: dict[str, list[object]] = {
        "verdict": [each.verdict for each in decisions],
        "answer": [_answer(each) for each in decisions],
        "correction": [each.corrected_answer for each in decisions],
        "reason": [each.reason for each in decisions],
        "note": [each.note for each in decisions],
    }
    for name in dict.fromkeys(name for each in decisions for name in each.rubric_scores):
        said[f"score {name}"] = [each.rubric_scores.get(name) for each in decisions]
    labels: dict[tuple[Any, ...], list[list[str]]] = {}
    for number, each in enumerate(decisions):
        for label in each.labels:
            # a reported issue is compared with the other reports on the same words, never with corrections of the audit
            key = (label.target, label.start, label.end, label.text, label.reports)
            labels.setdefault(key, [[] for _ in decisions])[number].append(f"{label.label} {label.severity}")
    said |= {_labelled(*key): [sorted(each) for each in given] for key, given in labels.items()}
    return tuple(what for what, each in said.items() if any(other != each[0] for other in each[1:]))


def _labelled(target: str, _start: int, _end: int, text: str, reports: bool) -> str:
    if target == "answer":
        return "issues reported in the whole answer"
    return f"issues reported in “{text[:60]}”" if reports else f"{target} “{text[:60]}”"


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
    """Draw one case whose reviewers differ: answer and evidence, below them every decision and the final verdict."""
    st.html(_LAYOUT)
    _bar(workbench, case_id)
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        st.markdown("**There is no such case.**")
        st.text(case_id[:500])
        return
    work = workbench.team.work(actor(), case_id)
    with st.container(key="adjudicated-question"):
        st.text(view.case.query)
    if work.pending or work.policy is None or not work.decided_by:
        st.markdown(
            "This case is not waiting for an adjudication: its reviewers have not all decided, or it has only one."
        )
        return
    entries = workbench.reviews.individual(case_id)
    decisions = decisions_on(workbench, case_id)
    run = view.run if view.run and view.run.iterations else None
    with st.container(border=True, key="adjudicated-answer"):
        show_answer(view, run, 0, None)
    with st.container(key="adjudication"):
        *sides, final = st.columns([*(1 for _ in decisions), 1.1], gap="small")
        may = reviewer() is not None and actor().name not in work.decided_by
        for number, (side, decision) in enumerate(zip(sides, decisions, strict=True), start=1):
            with side.container(border=True, height="stretch", gap="xsmall"):
                _side(workbench, decision, number, may=may)
        with final.container(border=True, height="stretch", gap="xsmall"):
            _final(workbench, view, entries, work.decided_by)
    if found := differences(decisions):
        st.text(f"They differ in: {', '.join(found)}.")
    st.page_link("pages/review.py", label="Open the case with its audit", query_params={"case": case_id})


def _bar(workbench: Workbench, case_id: str) -> None:
    """Draw the way back, how far the adjudications have come, and the way to the next one."""
    page = workbench.team.adjudications(actor())
    ids, done = [row.id for row in page.rows], len(st.session_state.get(_DONE, ()))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Team", icon=":material/arrow_back:", type="tertiary", on_click=address.put, args=("case", ""))
        st.title("Adjudication", anchor=False, width="content")
        if case_id in ids:
            place = f"{done + ids.index(case_id) + 1:,} of {done + page.total:,}"
            st.caption(f"{place} that wait for you, {done:,} done now" if done else f"{place} that wait for you")
        elif page.total or done:
            left = counted(page.total, "case waits", "cases wait") if page.total else "No more case waits"
            st.caption(f"{left} for you")
        if following := _next(workbench, case_id):
            st.button("Next", shortcut=NEXT.shortcut, on_click=address.put, args=("case", following))


def _next(workbench: Workbench, case_id: str) -> str | None:
    """Return another case that waits for an adjudication: the one behind this one, else the first."""
    waiting = workbench.team.to_adjudicate(actor())
    try:
        behind = workbench.cases.beside(case_id, waiting, forward=True)
    except UnknownRecord:  # an address may name any case
        behind = None
    first = workbench.cases.find(waiting.model_copy(update={"size": 2})).rows
    return behind or next((row.id for row in first if row.id != case_id), None)


def _side(workbench: Workbench, decision: Decision, number: int, *, may: bool) -> None:
    """Draw what one reviewer decided: verdict, reason, note, scores, labels, and what their correction changes."""
    verdict = coloured(DECIDED[decision.verdict]) if decision.verdict else ""
    about = f", {_answer(decision)}" if _answer(decision) else ""
    st.markdown(f"**{escaped(decision.reviewer)}**: {verdict}{about}")
    if may:
        st.button(
            f"Take {escaped(decision.reviewer)}'s decision",
            key=f"take-{number}",
            shortcut=str(number),
            width="stretch",
            on_click=_choose,
            args=(decision.case_id, decision.verdict, decision),
            **needs("oversee", help="Fills the final verdict; nothing is recorded before you submit it."),
        )
    said = [f"Reason: {decision.reason}" if decision.reason else "No reason given"]
    said += [f"Note: {decision.note}"] if decision.note else []
    said += [f"{name}: {value}" for name, value in decision.rubric_scores.items()]
    for label in decision.labels:
        severity = f" ({label.severity})" if label.severity else ""
        words = f"“{label.text[:200]}”" if label.text else "the whole answer"
        said.append(f"{label.label}{severity}: {words}{f', {label.note}' if label.note else ''}")
    st.text("\n".join(said))
    if not decision.corrected_answer:
        return
    try:
        changes = word_changes(workbench.reviews.answer_of(decision), decision.corrected_answer)
    except Removed:
        st.caption("Corrected answer; the one it corrects was removed")
        st.text(decision.corrected_answer)
    else:
        pieces = [change._asdict() for change in changes]
        description = f"What {decision.reviewer} changes in the answer"
        CHANGES(data={"pieces": pieces, "key": None, "description": description}, key=f"correction-{number}")


def final_words(verdict: Verdict, about: Decision) -> str:
    """Return what the button says: what is done to which answer."""
    answer = "original" if about.iteration is None or about.iteration == 1 else f"revision {about.iteration - 1}"
    if verdict == "approve":
        return f"Approve the {answer} answer for good" if answer == "original" else f"Approve {answer} for good"
    return {"override": "Record the corrected answer for good", "reject": "Reject the answer for good"}.get(
        verdict, "Escalate the case"
    )


_KEYS: dict[Verdict, Key] = {"approve": APPROVE, "override": OVERRIDE, "reject": REJECT, "escalate": ESCALATE}
_CHOSEN, _RECORDED, _DONE = "adjudication-chosen", "adjudication-recorded", "adjudications-done"
_REFUSED = "adjudication-refused"


class _Choice(NamedTuple):
    """What the adjudicator has chosen for a case and not recorded yet; ``taken`` is the decision it follows."""

    case_id: str
    verdict: Verdict
    token: str
    taken: Decision | None = None


def _choose(case_id: str, verdict: Verdict, taken: Decision | None = None) -> None:
    """Choose a verdict: a reviewer's own with its words, which can be changed before it is recorded."""
    st.session_state[_CHOSEN] = _Choice(case_id, verdict, uuid.uuid4().hex, taken)
    if taken is not None:
        st.session_state[f"final-reason-{case_id}"] = taken.reason
        st.session_state[f"final-corrected-{case_id}"] = taken.corrected_answer or ""


def _final(workbench: Workbench, view: CaseView, entries: tuple[LogEntry, ...], reviewers: tuple[str, ...]) -> None:
    """Draw the final verdict: what was recorded last, who may give it, the one there is, and the form."""
    case_id = view.case.id
    _recorded(workbench)
    who = "Anybody else" if workbench.access.allows(ANONYMOUS, "oversee") else "A lead who is none of them"
    st.markdown("**Final verdict**")
    final = view.decision.decision if view.decision else None
    if view.state != "needs_adjudication" and final is not None and final.verdict is not None:
        st.markdown(f"Final: {coloured(DECIDED[final.verdict])} by {escaped(final.reviewer)}.")
    else:
        st.caption(f"Decided by {escaped(' and '.join(reviewers))}. {who} may adjudicate.")
    ask_name(workbench)
    if reviewer() is None or actor().name in reviewers:
        return
    chosen: _Choice | None = st.session_state.get(_CHOSEN)
    chosen = chosen if chosen and chosen.case_id == case_id else None
    with st.container(horizontal=True, gap="xsmall", key="final-verdicts"):
        for name, key in _KEYS.items():
            st.button(
                DECIDE[name].text,
                key=f"final-{name}",
                shortcut=key.shortcut,
                type="primary" if chosen and name == chosen.verdict else "secondary",
                on_click=_choose,
                args=(case_id, name),
            )
    decisions = [entry.decision for entry in entries if entry.decision is not None]
    alike = [each for each in decisions if chosen and each.verdict == chosen.verdict] or decisions[:1]
    about = (chosen and chosen.taken) or alike[0]
    answers = list({_answer(each): each for each in reversed(alike)})
    if chosen and chosen.verdict == "approve" and chosen.taken is None and len(answers) > 1:
        answer = st.segmented_control("Answer", answers, default=answers[0], required=True)
        about = next(each for each in alike if _answer(each) == answer)
    with st.container(key="final-form"), st.form(f"adjudicate-{case_id}", border=False, enter_to_submit=False):
        of_whom = f" ({escaped(about.reviewer)}'s: change it where yours differs)" if chosen and chosen.taken else ""
        st.text_area(f"Reason{of_whom}", key=f"final-reason-{case_id}", max_chars=2000, height=80)
        if chosen and chosen.verdict == "override":
            st.session_state.setdefault(f"final-corrected-{case_id}", about.corrected_answer or view.case.answer or "")
            begins = f"Corrected answer, beginning with {escaped(about.reviewer)}'s"
            label = begins if about.corrected_answer else "Corrected answer"
            with st.container(key="final-corrected"):
                st.text_area(label, key=f"final-corrected-{case_id}", height=150)
        st.form_submit_button(
            final_words(chosen.verdict, about) if chosen else "Choose a verdict",
            type="primary",
            shortcut=SUBMIT.shortcut,
            width="stretch",
            # by the shortcut alone (enter_to_submit): the form would send Ctrl+Enter in a field a second time
            on_click=_submit,
            args=(workbench, view, about, entries),
            **needs("oversee", disabled=chosen is None),
        )
    if refused := st.session_state.pop(_REFUSED, None):
        st.warning(escaped(refused))


def _submit(workbench: Workbench, view: CaseView, about: Decision, entries: tuple[LogEntry, ...]) -> None:
    """Record the final verdict and open the next case; keep what was entered where it is refused."""
    case_id = view.case.id
    chosen: _Choice | None = st.session_state.get(_CHOSEN)
    if chosen is None or chosen.case_id != case_id:
        return
    reason = st.session_state.get(f"final-reason-{case_id}", "")
    if chosen.verdict in ("override", "reject") and not reason.strip():
        st.session_state[_REFUSED] = "Nothing was recorded: type a reason."
        return
    try:
        decision = Decision(
            kind="adjudication",
            reviewer=actor().name,
            case_id=case_id,
            run_id=about.run_id,
            iteration=about.iteration,
            verdict=chosen.verdict,
            reason=reason,
            corrected_answer=st.session_state.get(f"final-corrected-{case_id}")
            if chosen.verdict == "override"
            else None,
            machine_shown=() if view.machine_hidden else ("scores", "verdicts"),
            token=chosen.token,
            extra={"individual": [entry.id for entry in entries]},
        )
        if chosen.taken is not None:
            decision = taken(decision, chosen.taken)
        entry = workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except ValidationError as error:
        st.session_state[_REFUSED] = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    except MasisError as error:
        st.session_state[_REFUSED] = str(error)
    else:
        st.session_state[_RECORDED] = (entry.id, f"{DECIDED[chosen.verdict].text} for good: {case_id}")
        st.session_state[_DONE] = {*st.session_state.get(_DONE, ()), entry.id}
        st.session_state.pop(_CHOSEN, None)
        address.put("case", _next(workbench, case_id) or case_id)


def taken(decision: Decision, side: Decision) -> Decision:
    """Return an adjudication with what else the reviewer whose side it takes had entered: note, labels and scores."""
    return decision.model_copy(
        update={
            **{name: getattr(side, name) for name in ("note", "labels", "rubric_scores")},
            "versions": side.versions,
            "extra": {**decision.extra, "taken_from": side.reviewer},
        }
    )


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
    """Undo the adjudication recorded last, and open its case again."""
    undone = workbench.reviews.undo(actor(), entry_id)
    st.session_state.pop(_RECORDED, None)
    st.session_state[_DONE] = st.session_state.get(_DONE, set()) - {entry_id}
    if undone.decision is not None:
        address.put("case", undone.decision.case_id)
