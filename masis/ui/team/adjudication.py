"""Adjudication: what the reviewers of one case differ in, and the final verdict that keeps all of theirs."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError, UnknownRecord
from masis.schema.review import Decision, LogEntry, Verdict
from masis.services import CaseView, Workbench
from masis.ui.shell import address
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.team.taking import ask_name
from masis.views.markdown import coloured, escaped
from masis.views.words import DECIDE, DECIDED


class Difference(NamedTuple):
    """One thing that reviewers say differently: its name, and what each of them says ("" where nothing)."""

    what: str
    said: tuple[str, ...]


def differences(decisions: tuple[Decision, ...]) -> tuple[Difference, ...]:
    """Return what decisions on one case differ in: verdict, answer, corrected text, scores and labels; nothing else."""
    found = [
        Difference("Verdict", tuple(DECIDED[each.verdict].text if each.verdict else "" for each in decisions)),
        Difference("Answer", tuple(_answer(each) for each in decisions)),
        Difference("Corrected answer", tuple(each.corrected_answer or "" for each in decisions)),
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


def show_adjudication(workbench: Workbench, case_id: str) -> None:
    """Draw one case whose reviewers differ."""
    if st.button("Team", icon=":material/arrow_back:", type="tertiary"):
        address.put("case", "")
        st.rerun()
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        st.title("There is no such case")
        st.text(case_id[:500])
        return
    work = workbench.team.work(actor(), case_id)
    st.title("Adjudication", anchor=False)
    st.text(view.case.query)
    if work.pending or work.policy is None or not work.decided_by:
        st.markdown(
            "This case is not waiting for an adjudication: its reviewers have not all decided, or it has only one."
        )
        return
    entries = workbench.reviews.individual(case_id)
    _differences(entries)
    st.page_link("pages/review.py", label="Open the case with its evidence", query_params={"case": case_id})
    final = view.decision.decision if view.decision else None
    if view.state != "needs_adjudication" and final is not None and final.verdict is not None:
        st.markdown(f"Final: {coloured(DECIDED[final.verdict])} by {escaped(final.reviewer)}.")
    ask_name(workbench)
    if reviewer() is not None:
        _decide(workbench, view, entries)


def _differences(entries: tuple[LogEntry, ...]) -> None:
    decisions = tuple(entry.decision for entry in entries if entry.decision is not None)
    st.header("What they differ in")
    for difference in differences(decisions):
        st.markdown(f"**{escaped(difference.what)}**")
        for column, decision, said in zip(st.columns(len(decisions)), decisions, difference.said, strict=True):
            with column:
                st.caption(escaped(decision.reviewer))
                st.text(said or "–")
    st.header("Reasons and notes")
    for decision in decisions:
        words = "\n".join(each for each in (decision.reason, decision.note) if each)
        st.caption(escaped(decision.reviewer))
        st.text(words or "–")


def final_words(verdict: Verdict, about: Decision) -> str:
    """Return what the button says: what is done to which answer."""
    answer = "original" if about.iteration is None or about.iteration == 1 else f"revision {about.iteration - 1}"
    if verdict == "approve":
        return f"Approve the {answer} answer for good" if answer == "original" else f"Approve {answer} for good"
    return {"override": "Record the corrected answer for good", "reject": "Reject the answer for good"}.get(
        verdict, "Escalate the case"
    )


def _decide(workbench: Workbench, view: CaseView, entries: tuple[LogEntry, ...]) -> None:
    decisions = [entry.decision for entry in entries if entry.decision is not None]
    st.header("Final verdict")
    names = {name: word.text for name, word in DECIDE.items()}
    verdict = st.segmented_control("Verdict", list(names), key="final-verdict", format_func=names.__getitem__)
    if verdict is None:
        return
    alike = [each for each in decisions if each.verdict == verdict] or decisions[:1]
    answers = list({_answer(each): each for each in reversed(alike)}) if verdict == "approve" else [""]
    chosen = (
        st.segmented_control("Answer", answers, default=answers[0], required=True) if len(answers) > 1 else answers[0]
    )
    about = next(each for each in alike if verdict != "approve" or _answer(each) == chosen)
    with st.form("adjudicate", border=False):
        reason = st.text_area("Reason", key="final-reason", max_chars=2000, height=80)
        corrected = None
        if verdict == "override":
            corrected = st.text_area("Corrected answer", about.corrected_answer or view.case.answer or "", height=200)
        sent = st.form_submit_button(final_words(verdict, about), type="primary", **needs("oversee"))
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
        workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except ValidationError as error:
        st.warning(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "))
    except MasisError as error:
        st.warning(escaped(str(error)))
    else:
        st.rerun()
