"""Adjudication: what the reviewers of one case differ in, and the final verdict that keeps all of theirs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError, Removed, UnknownRecord
from masis.schema.review import Decision, LogEntry, Verdict
from masis.services import ANONYMOUS, CaseView, Workbench
from masis.ui.components import HERE
from masis.ui.components.page_keys import focus_on
from masis.ui.review.case import show_answer
from masis.ui.review.compare import CHANGES
from masis.ui.shell import address
from masis.ui.shell.keys import APPROVE, ESCALATE, NEXT, OVERRIDE, PREVIOUS, REJECT, SUBMIT, UNDO, Key
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
    """Draw one case whose reviewers differ: in what, answer and evidence, every decision and the final verdict."""
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
    if found := differences(decisions):
        st.markdown(f"**They differ in:** {escaped(', '.join(found))}.")
    run = view.run if view.run and view.run.iterations else None
    with st.container(border=True, key="adjudicated-answer"):
        show_answer(view, run, 0, None)
    with st.container(key="adjudication"):
        *sides, final = st.columns([*(1 for _ in decisions), 1.1], gap="small")
        may = reviewer() is not None and actor().name not in work.decided_by
        first = next((each for each in decisions if each.corrected_answer), None)
        for number, (side, decision) in enumerate(zip(sides, decisions, strict=True), start=1):
            with side.container(border=True, height="stretch", gap="xsmall"):
                _side(workbench, decision, number, first, may=may)
        with final.container(border=True, gap="xsmall"):
            _final(workbench, view, entries, work.decided_by)
    st.page_link("pages/review.py", label="Open the case with its audit", query_params={"case": case_id})


def _bar(workbench: Workbench, case_id: str) -> None:
    """Draw the way back, how far the adjudications have come, and the ways to the cases beside this one."""
    page = workbench.team.adjudications(actor())
    ids, done = [row.id for row in page.rows], len(st.session_state.get(_DONE, ()))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Team", icon=":material/arrow_back:", type="tertiary", on_click=address.put, args=("case", ""))
        st.title("Adjudication", anchor=False, width="content")
        if page.total or done:
            place = f"{ids.index(case_id) + 1:,} of " if case_id in ids else ""
            st.caption(f"{place}{page.total:,} left for you" + (f", {done:,} done now" if done else ""))
        for label, key, forward in (("Previous", PREVIOUS, False), ("Next", NEXT, True)):
            if beside := _beside(workbench, case_id, forward=forward):
                st.button(label, shortcut=key.shortcut, on_click=address.put, args=("case", beside))


def _beside(workbench: Workbench, case_id: str, *, forward: bool = True) -> str | None:
    """Return the case that waits for an adjudication before or behind this one; behind the last one, the first."""
    waiting = workbench.team.to_adjudicate(actor())
    try:
        beside = workbench.cases.beside(case_id, waiting, forward=forward)
    except UnknownRecord:  # an address may name any case
        beside = None
    if beside or not forward:
        return beside
    first = workbench.cases.find(waiting.model_copy(update={"size": 2})).rows
    return next((row.id for row in first if row.id != case_id), None)


def _side(workbench: Workbench, decision: Decision, number: int, first: Decision | None, *, may: bool) -> None:
    """Draw what one reviewer decided, and what their correction changes in the ``first`` one and in the answer."""
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
            **needs("oversee"),
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
    if first is not None and first is not decision and first.corrected_answer != decision.corrected_answer:
        _changes(f"{first.reviewer}'s correction", first.corrected_answer or "", decision, f"between-{number}")
    try:
        _changes("the answer", workbench.reviews.answer_of(decision), decision, f"correction-{number}")
    except Removed:
        st.caption("Corrected answer; the one it corrects was removed")
        st.text(decision.corrected_answer)


def _changes(what: str, before: str, decision: Decision, key: str) -> None:
    """Draw how a correction differs from another text."""
    st.caption(f"Changes to {escaped(what)}")
    pieces = [change._asdict() for change in word_changes(before, decision.corrected_answer or "")]
    CHANGES(data={"pieces": pieces, "key": None, "description": f"What {decision.reviewer} changes in {what}"}, key=key)


def final_words(verdict: Verdict, about: Decision) -> str:
    """Return what the button says: what is done to which answer."""
    answer = "original" if about.iteration is None or about.iteration == 1 else f"revision {about.iteration - 1}"
    named = "the original answer" if answer == "original" else answer
    return {
        "approve": f"Approve {named} as final verdict",
        "override": "Record the corrected answer as final verdict",
        "reject": "Reject the answer as final verdict",
    }.get(verdict, "Escalate the case")


_KEYS: dict[Verdict, Key] = {"approve": APPROVE, "override": OVERRIDE, "reject": REJECT, "escalate": ESCALATE}
_NEEDS_REASON: tuple[Verdict, ...] = ("override", "reject")
_DRAFTS, _NOTICE, _DONE = "adjudication-drafts", "adjudication-notice", "adjudications-done"
_REFUSED = "adjudication-refused"


@dataclass
class _Draft:
    """What the adjudicator has entered for a case and not recorded yet.

    Streamlit forgets a field that it doesn't draw, so what is typed is kept here until the verdict is recorded.

    Attributes:
        verdict: What is chosen; None at first.
        taken: The decision that was taken into the form.
        texts: Reason, note and corrected answer by name.
        token: Tells one recording from the next.

    """

    verdict: Verdict | None = None
    taken: Decision | None = None
    texts: dict[str, str] = field(default_factory=dict)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, case_id: str) -> _Draft:
        drafts: dict[tuple[str, str], _Draft] = st.session_state.setdefault(_DRAFTS, {})
        return drafts.setdefault((actor().name, case_id), cls())


def _fill(case_id: str, **texts: str) -> None:
    """Put texts into the form."""
    _Draft.of(case_id).texts.update(texts)
    for name, text in texts.items():
        st.session_state[f"final-{name}-{case_id}"] = text


def _text(case_id: str, name: str, label: str, height: int, most: int | None = 2000) -> None:
    """Draw a field of the form, whose text is kept when another case is opened."""
    key, texts = f"final-{name}-{case_id}", _Draft.of(case_id).texts

    def keep() -> None:
        texts[name] = st.session_state[key]

    st.session_state.setdefault(key, texts.get(name, ""))
    st.text_area(label, key=key, max_chars=most, height=height, on_change=keep)


def _choose(case_id: str, verdict: Verdict, side: Decision | None = None) -> None:
    """Choose a verdict: a reviewer's own with its words, which can be changed before it is recorded."""
    draft = _Draft.of(case_id)
    draft.verdict, draft.taken = verdict, side
    if side is not None:
        _fill_from(side)


def _fill_from(decision: Decision) -> None:
    """Put what a decision says into the form; where it corrects nothing, a correction typed before is kept."""
    _fill(decision.case_id, reason=decision.reason, note=decision.note)
    if decision.corrected_answer:
        _fill(decision.case_id, corrected=decision.corrected_answer)


def _final(workbench: Workbench, view: CaseView, entries: tuple[LogEntry, ...], reviewers: tuple[str, ...]) -> None:
    """Draw the final verdict: what was recorded last, who may give it, the one there is, and the form."""
    case_id = view.case.id
    st.markdown("**Final verdict**")
    final = view.decision.decision if view.decision else None
    with st.container(gap="xsmall", key="adjudication-recorded"):
        if view.state != "needs_adjudication" and final is not None and final.verdict is not None:
            st.markdown(f"Final: {coloured(DECIDED[final.verdict])} by {escaped(final.reviewer)}.")
            st.text("\n".join(filter(None, (final.reason, final.note))))
        else:
            who = "Anybody else" if workbench.access.allows(ANONYMOUS, "oversee") else "A lead who is none of them"
            st.caption(f"Decided by {escaped(' and '.join(reviewers))}. {who} may adjudicate.")
        _undoable(workbench, view)
    ask_name(workbench)
    if reviewer() is None or actor().name in reviewers:
        return
    draft = _Draft.of(case_id)
    with st.container(horizontal=True, gap="xsmall", key="final-verdicts"):
        for name, key in _KEYS.items():
            st.button(
                DECIDE[name].text,
                key=f"final-{name}",
                shortcut=key.shortcut,
                type="primary" if name == draft.verdict else "secondary",
                on_click=_choose,
                args=(case_id, name),
            )
    decisions = [entry.decision for entry in entries if entry.decision is not None]
    alike = [each for each in decisions if draft.verdict and each.verdict == draft.verdict] or decisions[:1]
    about = draft.taken or alike[0]
    answers = list({_answer(each): each for each in reversed(alike)})
    if draft.verdict == "approve" and draft.taken is None and len(answers) > 1:
        answer = st.segmented_control(
            "Answer",
            answers,
            default=answers[0],
            required=True,
            key=f"final-answer-{case_id}",
            persist_state="session",
        )
        about = next(each for each in alike if _answer(each) == answer)
    with st.container(key="final-form", gap="xsmall"):
        needed = "" if draft.verdict in _NEEDS_REASON else " (optional)"
        of_whom = f" ({escaped(about.reviewer)}'s: change it where yours differs)" if draft.taken else needed
        with st.container(key="final-reason"):
            _text(case_id, "reason", f"Reason{of_whom}", 80)
        if draft.verdict == "override":
            with st.container(key="final-corrected", gap="xsmall"):
                _corrected(workbench, about, decisions)
        _text(case_id, "note", "Note (optional)", 68)
    with st.container(key="final-act", gap="xsmall"):
        if refused := st.session_state.pop(_REFUSED, None):
            st.warning(escaped(refused))
        st.button(
            final_words(draft.verdict, about) if draft.verdict else "Choose a verdict",
            key="final-submit",
            type="primary",
            shortcut=SUBMIT.shortcut,
            width="stretch",
            on_click=_submit,
            args=(workbench, view, about, entries),
            **needs("oversee", disabled=draft.verdict is None),
        )


def _corrected(workbench: Workbench, about: Decision, decisions: Sequence[Decision]) -> None:
    """Draw the corrected answer, which begins with the original or with what is chosen above it."""
    case_id, texts = about.case_id, _Draft.of(about.case_id).texts
    try:
        begins = {"the original": workbench.reviews.answer_of(about)}
    except Removed:
        begins = {}
    begins |= {f"{each.reviewer}'s": each.corrected_answer for each in decisions if each.corrected_answer}
    if "corrected" not in texts:
        _fill(case_id, corrected=next(iter(begins.values()), ""))
    _text(case_id, "corrected", "Corrected answer", 180, None)
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.caption("Begin again with")
        for number, (whose, text) in enumerate(begins.items()):
            st.button(
                escaped(whose),
                key=f"begin-{number}",
                type="tertiary",
                on_click=_fill,
                args=(case_id,),
                kwargs={"corrected": text},
                disabled=text == texts["corrected"],
            )


def _submit(workbench: Workbench, view: CaseView, about: Decision, entries: tuple[LogEntry, ...]) -> None:
    """Record the final verdict and open the next case; keep what was entered where it is refused."""
    case_id = view.case.id
    draft = _Draft.of(case_id)
    if draft.verdict is None:
        return
    # what the fields hold: their own callbacks may come after this one
    reason, note, corrected = (
        st.session_state.get(f"final-{name}-{case_id}", "") for name in ("reason", "note", "corrected")
    )
    if draft.verdict in _NEEDS_REASON and not reason.strip():
        st.session_state[_REFUSED] = "Nothing was recorded: type a reason."
        focus_on("final-reason")
        return
    try:
        decision = Decision(
            kind="adjudication",
            reviewer=actor().name,
            case_id=case_id,
            run_id=about.run_id,
            iteration=about.iteration,
            verdict=draft.verdict,
            reason=reason,
            note=note,
            corrected_answer=corrected if draft.verdict == "override" else None,
            machine_shown=() if view.machine_hidden else ("scores", "verdicts"),
            token=draft.token,
            extra={"individual": [entry.id for entry in entries]},
        )
        if draft.taken is not None:
            decision = taken(decision, draft.taken)
        entry = workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except ValidationError as error:
        st.session_state[_REFUSED] = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    except MasisError as error:
        st.session_state[_REFUSED] = str(error)
    else:
        del st.session_state[_DRAFTS][actor().name, case_id]
        st.session_state[_DONE] = {*st.session_state.get(_DONE, ()), entry.id}
        as_final = "" if draft.verdict == "escalate" else " as final verdict"
        following = _beside(workbench, case_id) or case_id
        st.session_state[_NOTICE] = (following, f"{DECIDED[draft.verdict].text}{as_final}: {case_id}", entry.id)
        address.put("case", following)


def taken(decision: Decision, side: Decision) -> Decision:
    """Return an adjudication with what else the reviewer whose side it takes had entered: labels and scores."""
    return decision.model_copy(
        update={
            **{name: getattr(side, name) for name in ("labels", "rubric_scores")},
            "versions": side.versions,
            "extra": {**decision.extra, "taken_from": side.reviewer},
        }
    )


def _undoable(workbench: Workbench, view: CaseView) -> None:
    """Say what was done on the way to this case, and offer to undo the final verdict it has, else the one just done."""
    # only on the case that the act has led to: on others it would say what was done to some other one long ago
    case_id, words, undoable = st.session_state.get(_NOTICE, ("", "", None))
    here = case_id == view.case.id
    final = view.decision.decision if view.decision else None
    if view.decision and final and final.kind == "adjudication" and final.reviewer == actor().name:
        undoable = view.decision.id
    elif not here:
        undoable = None
    with st.container(horizontal=True, vertical_alignment="center"):
        if here:
            st.markdown(f":green[:material/check_circle:] {escaped(words)}")
        if undoable:
            st.button(
                "Undo", key="undo-adjudication", shortcut=UNDO.shortcut, on_click=_undo, args=(workbench, undoable)
            )


def _undo(workbench: Workbench, entry_id: str) -> None:
    """Undo an adjudication, and open its case again with what was entered."""
    given = workbench.reviews.get(entry_id).decision
    try:
        workbench.reviews.undo(actor(), entry_id)
    except MasisError as error:  # somebody else has decided since
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state[_DONE] = st.session_state.get(_DONE, set()) - {entry_id}
    if given is None or given.verdict is None:
        return
    _choose(given.case_id, given.verdict)
    _fill_from(given)
    st.session_state[_NOTICE] = (given.case_id, f"Undone: {given.case_id} waits for you again", None)
    address.put("case", given.case_id)
