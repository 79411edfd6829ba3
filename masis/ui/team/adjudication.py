"""Adjudication: what the reviewers of one case differ in, and the final verdict that keeps all of
theirs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import streamlit as st
from pydantic import Field

from masis.errors import InputError, MasisError, Removed, UnknownRecord
from masis.schema.base import Record
from masis.schema.review import Decision, Verdict, decided_about
from masis.schema.wording import count_noun, shorten
from masis.services import ANONYMOUS, CaseView, Workbench, decision_rules
from masis.services.decision_rules import (
    OTHER,
    DecidedAnswer,
    ProblemCode,
    reasons_for,
    seen_issues,
)
from masis.services.drafts import adjudication_subject, read_form
from masis.ui.components import HERE, register_component
from masis.ui.review.case import show_answer
from masis.ui.review.compare import CHANGES
from masis.ui.review.decision_form import check
from masis.ui.shell import address
from masis.ui.shell.keys import (
    APPROVE,
    BEGIN_AGAIN,
    CHANGE,
    ESCALATE,
    NEXT_TO_ADJUDICATE,
    OVERRIDE,
    PREVIOUS,
    REJECT,
    SUBMIT,
    UNDO,
    Key,
    focus_on,
    select_when_focused,
)
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.streamlit_internals import with_selectors
from masis.ui.team.taking import ask_name
from masis.views.diff import word_changes
from masis.views.headline import headline
from masis.views.log_entries import adopted_decision_text
from masis.views.markdown import colour_label, escape_markdown
from masis.views.words import DECIDE, DECIDED, Word

_LEFT = register_component("correction_left", "key_sheet", "correction_check")
_LAYOUT = (
    f"<style>{with_selectors((HERE / 'adjudication.css').read_text(encoding='utf-8'))}</style>"
)


def differences(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Name what decisions on one case differ in: verdict, approved answer, correction, reason,
    note, scores, labels.
    """
    said: dict[str, list[object]] = {
        "verdict": [each.verdict for each in decisions],
        "approved answer": [decided_about(each) for each in decisions if each.verdict == "approve"],
        "correction": [each.corrected_answer for each in decisions],
        "reason": [each.reason for each in decisions],
        "note": [each.note for each in decisions],
    }
    for name in dict.fromkeys(name for each in decisions for name in each.rubric_scores):
        said[f"score {name}"] = [each.rubric_scores.get(name) for each in decisions]
    labels: dict[tuple[Any, ...], list[list[str]]] = {}
    for number, each in enumerate(decisions):
        for label in each.labels:
            # a reported issue is compared with the other reports on the same words, never with
            # corrections of the audit
            key = (label.target, label.start, label.end, label.text, label.reports)
            labels.setdefault(key, [[] for _ in decisions])[number].append(
                f"{label.label} {label.severity}"
            )
    said |= {
        _label_group_text(*key): [sorted(each) for each in given] for key, given in labels.items()
    }
    return tuple(what for what, each in said.items() if any(other != each[0] for other in each[1:]))


def _label_group_text(target: str, _start: int, _end: int, text: str, reports: bool) -> str:
    if target == "answer":
        return "issues reported in the whole answer"
    return f"issues reported in “{text[:60]}”" if reports else f"{target} “{text[:60]}”"


def _verdict_text(decision: Decision) -> str:
    """Name a decision's verdict, and the answer that it approves."""
    if decision.verdict is None:
        return ""
    about = f" {decided_about(decision)}" if decision.verdict == "approve" else ""
    return f"{colour_label(DECIDED[decision.verdict])}{about}"


def decisions_on(workbench: Workbench, case_id: str) -> tuple[Decision, ...]:
    """Return the decisions of a case's reviewers that count, without those whose text
    was redacted.
    """
    return tuple(
        entry.decision
        for entry in workbench.reviews.individual(case_id)
        if entry.decision is not None
    )


def show_adjudication(workbench: Workbench, case_id: str) -> None:
    """Draw one case whose reviewers differ: in what, answer and evidence, every decision and the
    final verdict.
    """
    st.html(_LAYOUT)
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        _draw_adjudication_bar(workbench, case_id, None)
        st.markdown("**There is no such case.**")
        st.text(case_id[:500])
        return
    _draw_adjudication_bar(workbench, case_id, view)
    work = workbench.team.work(actor(), case_id)
    decisions = decisions_on(workbench, case_id)
    if work.pending or work.policy is None or not work.decided_by:
        _draw_question(view, ())
        st.markdown(
            "This case is not waiting for an adjudication: its reviewers have not all decided, or"
            " it has only one."
        )
        return
    run = view.run if view.run and view.run.iterations else None
    with st.container(key="adjudication"):
        read, final = st.columns([2, 1], gap="small")
        with read:
            _draw_question(view, differences(decisions))
            with st.container(border=True, key="adjudicated-answer", gap="xsmall"):
                if run and not view.machine_hidden:
                    worst = headline(run)  # the answer view opens at the passages that it is about
                    others = f" · {escape_markdown(worst.others)}" if worst.others else ""
                    st.markdown(
                        f"**The audit:** {colour_label(Word(worst.text, worst.tone))}{others}"
                    )
                show_answer(view, run, 0, None)
            _draw_versions(
                workbench,
                decisions,
                may=_may_adjudicate(workbench, work.decided_by) and _is_form_open(view),
            )
            st.page_link(
                "pages/review.py",
                label="Open the case with its audit",
                query_params={"case": case_id},
            )
        with final.container(border=True, gap="xsmall", key="adjudication-final"):
            _final(workbench, view, work.decided_by)


def _draw_question(view: CaseView, differ: Sequence[str]) -> None:
    """Draw what a case asks, its id and what its reviewers differ in; the whole of a long question
    is its hint.

    It is cut and never scrolls: what is scrolled stays so on every later case.
    """
    asked = view.case.query
    with st.container(key="adjudicated-question", gap="xsmall"):
        st.text(
            shorten(asked, LONG_QUESTION),
            help=escape_markdown(asked) if len(asked) > LONG_QUESTION else None,
        )
        what = (
            f" · the reviewers differ in the {escape_markdown(', '.join(differ))}" if differ else ""
        )
        st.caption(f"{escape_markdown(view.case.id)}{what}")


LONG_QUESTION = 250
"""Characters of a question that are shown: two lines at 1440 pixels."""


def _draw_adjudication_bar(workbench: Workbench, case_id: str, view: CaseView | None) -> None:
    """Draw the way back, how far the adjudications have come, what was done last, and the ways to
    the cases beside.
    """
    # what was done last stands in a line that is always there: the form below never moves
    left, done = (
        workbench.team.adjudications(actor(), size=1).total,
        st.session_state.get(_DONE, {}),
    )
    escalated = sum(draft.form.verdict == "escalate" for _, draft in done.values())
    facts = [f"{left:,} left for you"] if left or done else []
    facts += [f"{len(done) - escalated:,} decided now"] if len(done) > escalated else []
    facts += [f"{escalated:,} escalated now"] if escalated else []
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="adjudication-bar"
    ):
        st.button(
            "Team",
            icon=":material/arrow_back:",
            type="tertiary",
            on_click=address.set_param,
            args=("case", ""),
        )
        st.title("Adjudication", anchor=False, width="content")
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key="adjudication-said"
        ):
            st.caption(", ".join(facts), width="content")
            with st.container(key="adjudication-last"):
                st.markdown(_said_last(view) if view else EMPTY)
            st.caption("Keys: H or ?", width="content")
        if view is not None and not _is_mine(view):
            _undo_last(workbench, view)
        for label, key, forward in (
            ("Previous", PREVIOUS, False),
            ("Next", NEXT_TO_ADJUDICATE, True),
        ):
            beside = _neighbour_case(workbench, case_id, forward=forward)
            does, args = (
                (address.set_param, ("case", beside))
                if beside
                else (_notice, (case_id, NONE_BEFORE))
            )
            if beside or (view is not None and not forward):
                st.button(label, shortcut=key.shortcut, on_click=does, args=args)


def _notice(case_id: str, words: str, sign: str = ":material/info:") -> None:
    """Say something in the line of what was done last, while this case is open."""
    st.session_state[_NOTICE] = (case_id, f"{sign} {escape_markdown(words)}")


def _neighbour_case(workbench: Workbench, case_id: str, *, forward: bool = True) -> str | None:
    """Return the case that waits for an adjudication before or behind this one; behind the last
    one, the first.
    """
    waiting = workbench.team.to_adjudicate(actor())
    try:
        beside = workbench.cases.beside(case_id, waiting, forward=forward)
    except UnknownRecord:  # an address may name any case
        beside = None
    if beside or not forward:
        return beside
    first = workbench.cases.find(waiting.model_copy(update={"size": 2})).rows
    return next((row.id for row in first if row.id != case_id), None)


def _may_adjudicate(workbench: Workbench, decided_by: Sequence[str]) -> bool:
    """Return whether whoever looks at a case may adjudicate it."""
    allowed = workbench.access.allows(actor(), "oversee")
    return allowed and reviewer() is not None and actor().name not in decided_by


def _draw_versions(workbench: Workbench, decisions: Sequence[Decision], *, may: bool) -> None:
    """Draw every reviewer's decision and what the adjudicator typed, each with the key that puts it
    into the form.
    """
    cards = [
        (each, each.reviewer, f"{each.reviewer}'s decision", _Version.of(each))
        for each in decisions
    ]
    draft = _Draft.of(decisions[0].case_id) if may else _Draft()
    for name, mine in zip(("Mine", "Mine, earlier"), draft.mine, strict=False):
        cards.append((mine.as_decision(decisions, name), name, name.lower(), mine))
    first = next((each for each in decisions if each.corrected_answer), None)
    for number, (column, (decision, name, what, version)) in enumerate(
        zip(st.columns(len(cards), gap="small"), cards, strict=True), start=1
    ):
        with column.container(border=True, height="stretch", gap="xsmall"):
            with st.container(
                horizontal=True, vertical_alignment="center", gap="xsmall", key=f"side-{number}"
            ):
                st.markdown(
                    f"**{escape_markdown(name)}**: {_verdict_text(decision)}", width="content"
                )
                # its button says what the form holds: a further word would push it into the next
                # line
                if may:
                    st.button(
                        "In the form" if version == draft.form else f"Take {escape_markdown(what)}",
                        key=f"take-{number}",
                        shortcut=str(number),
                        on_click=_take,
                        args=(decision.case_id, version),
                    )
            _draw_decision_side(
                workbench, decision, number, first if number <= len(decisions) else None
            )


def _draw_decision_side(
    workbench: Workbench, decision: Decision, number: int, first: Decision | None
) -> None:
    """Draw what a decision says, what it corrects in the answer and, on request, in the ``first``
    correction.
    """
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
    _corrects(workbench, decision, decision.corrected_answer, f"correction-{number}")
    if first is not None and first.corrected_answer not in (None, decision.corrected_answer):
        what = f"{first.reviewer}'s correction"
        with st.expander(f"Changes to {escape_markdown(what)}"):
            _draw_changes(
                what, first.corrected_answer or "", decision.corrected_answer, f"between-{number}"
            )


def _corrects(workbench: Workbench, about: Decision, corrected: str, key: str) -> None:
    """Draw what a correction changes in the answer that a decision is about; the whole of it where
    that was removed.
    """
    if (before := _answer_before(workbench, about)) is not None:
        _draw_changes("the answer", before, corrected, key)
        return
    st.caption("Corrected answer; the one it corrects was removed")
    st.text(corrected)


def _answer_before(workbench: Workbench, about: Decision) -> str | None:
    """Return the answer that a decision is about; None where it was removed."""
    try:
        return workbench.reviews.answer_of(about)
    except Removed:
        return None


def _draw_changes(what: str, before: str, after: str, key: str) -> None:
    """Draw how a correction differs from another text, with no more of what is the same than the
    words beside it.
    """
    pieces = [change._asdict() for change in word_changes(before, after)]
    for number, piece in enumerate(pieces):
        if piece["kind"] == "same" and len(piece["text"]) > 2 * BESIDE_CHANGE:
            head = "" if number == 0 else piece["text"][:BESIDE_CHANGE].rsplit(" ", 1)[0]
            tail = (
                ""
                if number == len(pieces) - 1
                else piece["text"][-BESIDE_CHANGE:].split(" ", 1)[-1]
            )
            piece["text"] = f"{head} … {tail}"
    CHANGES(data={"pieces": pieces, "key": None, "description": f"Changes to {what}"}, key=key)


BESIDE_CHANGE = 40
"""Characters of an unchanged text that are shown on each side of a change."""


def final_words(verdict: Verdict, about: Decision, serious: int = 0) -> str:
    """Return what the button says: what is done to which answer, and how many serious issues stay
    open.
    """
    although = f" with {count_noun(serious, 'serious issue')} open" if serious else ""
    return {
        "approve": f"Approve {decided_about(about)}{although}",
        "override": "Record the corrected answer",
        "reject": "Reject the answer",
    }.get(verdict, "Escalate the case")


_KEYS: dict[Verdict, Key] = {
    "approve": APPROVE,
    "override": OVERRIDE,
    "reject": REJECT,
    "escalate": ESCALATE,
}
_NOTICE, _DONE = "adjudication-notice", "adjudications-done"
_REFUSED = "adjudication-refused"
OPENED = "adjudication-opened"
"""The case whose form is open, and since when, in the session state."""
_FIELDS = ("reason", "note", "corrected")
_MOST_MINE = 2


class _Version(Record):
    """A verdict with its words, as the form holds them.

    Attributes:
        verdict: What is chosen; None at first.
        taken: The reviewer whose decision it is, changed or not; "" where it is nobody's.
        wrote: The reviewer whose reason and note the page put there, whatever is chosen since; ""
            where nobody's.
        words: Reason, note and corrected answer by name; the last is missing until it is begun.
        given: Of these, what the page put there.

    """

    verdict: Verdict | None = None
    taken: str = ""
    wrote: str = ""
    words: dict[str, str] = Field(default_factory=dict)
    given: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, decision: Decision) -> _Version:
        """Return a decision as the form takes it."""
        texts = {
            "reason": decision.reason,
            "note": decision.note,
            "corrected": decision.corrected_answer,
        }
        words = {name: text for name, text in texts.items() if text is not None}
        whose = decision.reviewer
        return cls(verdict=decision.verdict, taken=whose, wrote=whose, words=words, given=words)

    @property
    def typed_fields(self) -> dict[str, str]:
        """The words that the adjudicator typed."""
        return {
            name: text
            for name, text in self.words.items()
            if text.strip() and text != self.given.get(name, "")
        }

    def beginning_with(self, corrected: str) -> _Version:
        """Return it with a correction that the page puts there."""
        begun = {"corrected": corrected}
        return self.model_copy(update={"words": self.words | begun, "given": self.given | begun})

    def side(self, decisions: Sequence[Decision]) -> Decision | None:
        """Return the decision that it took."""
        return next((each for each in decisions if each.reviewer == self.taken), None)

    def about(self, decisions: Sequence[Decision]) -> Decision:
        """Return the decision whose answer it is about: the one it took, else one with
        its verdict.
        """
        return self.side(decisions) or next(
            (each for each in decisions if each.verdict == self.verdict), decisions[0]
        )

    def as_decision(self, decisions: Sequence[Decision], name: str) -> Decision:
        """Return it as its card shows it, under a name."""
        about, side = self.about(decisions), self.side(decisions)
        words = {each: self.words.get(each, "") for each in ("reason", "note")}
        corrected = self.words.get("corrected") if self.verdict == "override" else None
        update = {"reviewer": name, "verdict": self.verdict, "corrected_answer": corrected, **words}
        return about.model_copy(
            update=update if side else update | {"labels": (), "rubric_scores": {}}
        )


class _Draft(Record):
    """What the adjudicator has entered for a case and not recorded yet, stored as it is entered.

    Attributes:
        form: What the form holds.
        aside: What the adjudicator had typed when something else was put in its place, the newest
            first.
        parted: Whether anything was put aside: from then on what they typed has a card, which no
            letter adds.
        changing: Whether the verdict that stands is to be changed.
        token: Tells one recording from the next.

    """

    form: _Version = _Version()
    aside: tuple[_Version, ...] = ()
    parted: bool = False
    changing: bool = False
    token: str = Field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, case_id: str) -> _Draft:
        """Return the draft of a case, with what its fields hold: their own callbacks may come after
        another's.
        """
        draft = read_form(
            cls, served_workbench().drafts.get(actor(), adjudication_subject(case_id)).values
        )
        held = {name: st.session_state.get(_field_key(case_id, name)) for name in _FIELDS}
        words = draft.form.words | {name: text for name, text in held.items() if text is not None}
        return draft.model_copy(update={"form": draft.form.model_copy(update={"words": words})})

    @property
    def mine(self) -> tuple[_Version, ...]:
        """What the adjudicator typed, the newest first; none until something else was put in its
        place.
        """
        return (*((self.form,) if self.parted and self.form.typed_fields else ()), *self.aside)[
            :_MOST_MINE
        ]

    def save(self, case_id: str, **changes: Any) -> None:
        """Store the draft with these changes."""
        values = self.model_copy(update=changes).model_dump(mode="json")
        served_workbench().drafts.save(actor(), adjudication_subject(case_id), values)

    def load(self, case_id: str, form: _Version, **changes: Any) -> None:
        """Put a version into the form; what was typed there and is not part of it is kept as the
        adjudicator's own.
        """
        lost = any(form.words.get(name) != text for name, text in self.form.typed_fields.items())
        aside = [*((self.form,) if lost else ()), *(each for each in self.aside if each != form)]
        _empty_fields(
            case_id,
            *(name for name in _FIELDS if form.words.get(name) != self.form.words.get(name)),
        )
        self.save(
            case_id,
            form=form,
            aside=tuple(aside[:_MOST_MINE]),
            parted=self.parted or lost,
            **changes,
        )


def _field_key(case_id: str, name: str) -> str:
    return f"final-{name}-{case_id}"


def _empty_fields(case_id: str, *names: str) -> None:
    """Let fields begin with what the draft holds."""
    for name in names:
        st.session_state.pop(_field_key(case_id, name), None)


def _keep_fields(case_id: str) -> None:
    """Keep what the fields of a case hold."""
    _Draft.of(case_id).save(case_id)


def _draw_text(case_id: str, name: str, label: str, height: int, most: int | None = 2000) -> None:
    """Draw a field of the form, whose text is kept when another case is opened."""
    key, draft = _field_key(case_id, name), _Draft.of(case_id)
    st.session_state.setdefault(key, draft.form.words.get(name, ""))
    hint = "Type it, or press the number of one below" if name == "reason" else None
    st.text_area(
        label,
        key=key,
        max_chars=most,
        height=height,
        placeholder=hint,
        on_change=_keep_fields,
        args=(case_id,),
    )


def _choose_verdict(case_id: str, verdict: Verdict) -> None:
    """Choose a verdict, with the words that are there."""
    draft = _Draft.of(case_id)
    taken = draft.form.taken if verdict == draft.form.verdict else ""
    draft.save(case_id, form=draft.form.model_copy(update={"verdict": verdict, "taken": taken}))


def _take(case_id: str, version: _Version) -> None:
    """Put a reviewer's decision, or what the adjudicator had typed, into the form."""
    _Draft.of(case_id).load(case_id, version)


def _reopen_verdict(case_id: str, final: Decision | None) -> None:
    """Open the form on a case whose verdict stands, with that verdict; why it is replaced is for
    the lead to say.
    """
    form = _Version()
    if final is not None and final.verdict != "escalate":
        given, whose = (
            _Version.of(final.model_copy(update={"reason": ""})),
            final.extra.get("taken_from", ""),
        )
        form = given.model_copy(update={"taken": whose, "wrote": whose})
    _Draft.of(case_id).load(case_id, form, changing=True)


def _is_form_open(view: CaseView) -> bool:
    """Return whether the form is drawn: the reviewers differ, or the verdict that stands is to be
    changed.
    """
    return view.state == "needs_adjudication" or _Draft.of(view.case.id).changing


def _standing_verdict(view: CaseView) -> Decision | None:
    """Return the verdict that stands on a case."""
    final = view.decision.decision if view.decision and view.state != "needs_adjudication" else None
    return final if final is not None and final.verdict is not None else None


def _of_whom(text: str, name: str, decisions: Sequence[Decision], taken_from: str) -> str:
    """Say that a reason or note is a reviewer's, whose decision was taken with it; "" where it
    isn't.

    Another reviewer may have written the same words: that makes them nobody's but whoever chose to
    write them.
    """
    wrote = any(each.reviewer == taken_from and getattr(each, name) == text for each in decisions)
    return f"{taken_from}’s" if wrote and text.strip() else ""


def _final(workbench: Workbench, view: CaseView, reviewers: tuple[str, ...]) -> None:
    """Draw the final verdict: what was recorded last, who may give it, the one there is, and the
    form.
    """
    case_id = view.case.id
    decisions = decisions_on(workbench, case_id)
    final = _standing_verdict(view)
    may = _may_adjudicate(workbench, reviewers)
    with st.container(gap="xsmall", key="adjudication-recorded"):
        st.markdown(
            "**Final verdict**"
            + ("" if final is None or final.verdict == "escalate" else " (settled)")
        )
        if final is None and not may:
            who = (
                "Anybody else"
                if workbench.access.allows(ANONYMOUS, "oversee")
                else "A lead who is none of them"
            )
            st.caption(
                f"Decided by {escape_markdown(' and '.join(reviewers))}. {who} may adjudicate."
            )
        if final is not None:
            _draw_standing_verdict(final, decisions, workbench.reviews.settled_by(case_id))
        with st.container(horizontal=True, gap="xsmall"):
            if _is_mine(view) and view.decision:
                _undo_button("Undo it", _undo_adjudication, workbench, view.decision.id)
            if may and view.state != "needs_adjudication":
                escalated = final is not None and final.verdict == "escalate"
                label = (
                    "Keep it" if _is_form_open(view) else "Decide it" if escalated else "Change it"
                )
                does, args = (
                    (_forget, (case_id,))
                    if _is_form_open(view)
                    else (_reopen_verdict, (case_id, final))
                )
                st.button(
                    label, key="final-change", shortcut=CHANGE.shortcut, on_click=does, args=args
                )
        if final is not None and final.corrected_answer and not _is_form_open(view):
            _corrects(workbench, final, final.corrected_answer, "final-correction")
    ask_name(workbench)
    if not may or not _is_form_open(view):
        return
    if st.session_state.get(OPENED, ("", 0.0))[0] != case_id:
        st.session_state[OPENED] = (case_id, time.monotonic())
    _draw_final_form(workbench, view, decisions)


def _draw_standing_verdict(
    final: Decision, decisions: Sequence[Decision], whose: Sequence[str]
) -> None:
    """Draw the verdict that stands, with reason and note."""
    if final.verdict is None:
        return
    waits = (
        ": it waits for more evidence or another reviewer" if final.verdict == "escalate" else ""
    )
    agreed = final.kind != "adjudication"
    took = "" if agreed else adopted_decision_text(final, decisions)
    st.markdown(
        f"{_verdict_text(final)} by"
        f" {escape_markdown(' and '.join(whose))}{f' ({escape_markdown(took)})' if took else ''}{waits}."
    )
    said = []
    for name in ("reason", "note"):
        if text := getattr(final, name):
            of = _of_whom(
                text, name, () if agreed else decisions, final.extra.get("taken_from", "")
            )
            said.append(f"{f'{of} {name}' if of else name.capitalize()}: {text}")
    st.text("\n".join(said) or "No reason given")


def _draw_final_form(workbench: Workbench, view: CaseView, decisions: Sequence[Decision]) -> None:
    """Draw the verdicts to choose from, the fields of the one chosen, and the button that records
    it.
    """
    case_id = view.case.id
    draft = _Draft.of(case_id)
    with st.container(horizontal=True, gap="xsmall", key="final-verdicts"):
        for name, key in _KEYS.items():
            st.button(
                DECIDE[name].text,
                key=f"final-{name}",
                shortcut=key.shortcut,
                type="primary" if name == draft.form.verdict else "secondary",
                on_click=_choose_verdict,
                args=(case_id, name),
            )
    verdict, about = draft.form.verdict, draft.form.about(decisions)
    alike = [each for each in decisions if each.verdict == verdict]
    answers = list({decided_about(each): each for each in reversed(alike)})
    if verdict == "approve" and not draft.form.taken and len(answers) > 1:
        answer = st.segmented_control(
            "Answer",
            answers,
            default=answers[0],
            format_func=str.capitalize,
            required=True,
            key=f"final-answer-{case_id}",
            persist_state="session",
        )
        about = next(each for each in alike if decided_about(each) == answer)
    optional = not workbench.reviews.explain_needed_reason(case_id, verdict)
    select_when_focused({draft.form.given.get(name, "") for name in ("reason", "note")})
    with st.container(key="final-form", gap="xsmall"):
        if verdict is None:
            st.caption(
                "Take a reviewer's decision by its number, or choose a verdict: its reason and note"
                " follow."
            )
        else:
            with st.container(key="final-reason"):
                _draw_text(
                    case_id,
                    "reason",
                    _field_label(draft.form, "reason", decisions, optional=optional),
                    68,
                )
                usual = [each.text for each in reasons_for(verdict) if each.code != OTHER]
                with st.container(key="final-usual"):  # while the field is empty and has the focus
                    st.markdown(
                        "\n".join(f"{number}. {text}" for number, text in enumerate(usual, start=1))
                    )
        if verdict == "override":
            with st.container(key="final-corrected", gap="xsmall"):
                final = _standing_verdict(view)
                _draw_correction(workbench, about, [*decisions, *([final] if final else [])])
        if verdict is not None:
            with st.container(key="final-note"):
                _draw_text(
                    case_id, "note", _field_label(draft.form, "note", decisions, optional=True), 68
                )
    with st.container(key="final-act", gap="xsmall"):
        if refused := st.session_state.pop(_REFUSED, None):
            st.warning(escape_markdown(refused))
        form = _Draft.of(case_id).form  # with the correction that was begun above
        lacks, serious = None, 0
        if verdict is not None:
            decision = _final_decision(view, form, about, verdict)
            decided = workbench.reviews.decided_answer(actor(), decision)
            lacks, serious = (
                _lacks(_with_seen_issues(decision, decided), decided),
                len(decided.serious),
            )
        # what it leaves was found by the audit
        original = None if view.machine_hidden else _answer_before(workbench, about)
        stands = {"override": form.words.get("corrected"), "approve": original}.get(verdict or "")
        if stands and not (lacks and lacks.field == "final-corrected"):
            checked = check(stands, view.case, workbench.settings)
            _LEFT(data={"corrected": stands, "check": checked}, key="final-left")
        if verdict is not None:
            st.button(
                lacks.label if lacks else final_words(verdict, about, serious),
                key="final-submit",
                type="secondary" if lacks else "primary",
                shortcut=SUBMIT.shortcut,
                width="stretch",
                on_click=_submit_final,
                args=(workbench, view, about),
            )


def _field_label(
    form: _Version, name: str, decisions: Sequence[Decision], *, optional: bool
) -> str:
    """Name a field, and say whose words stand in it, changed or not, or that it may stay empty."""
    text, given = form.words.get(name, ""), form.given.get(name, "")
    more = " (optional)" if optional else ""
    if text.strip() and (whose := _of_whom(given, name, decisions, form.wrote)):
        more = (
            f" (changed from {escape_markdown(whose)})"
            if text != given
            else f" ({escape_markdown(whose)}, unchanged)"
        )
    return f"{name.capitalize()}{more}"


def _draw_correction(workbench: Workbench, about: Decision, decisions: Sequence[Decision]) -> None:
    """Draw the corrected answer, which begins with what is chosen below it, and what it changes."""
    case_id, draft, before = (
        about.case_id,
        _Draft.of(about.case_id),
        _answer_before(workbench, about),
    )
    begins = {} if before is None else {"the original": before}
    begins |= {
        f"{each.reviewer}'s": each.corrected_answer for each in decisions if each.corrected_answer
    }
    if "corrected" not in draft.form.words:
        draft.load(case_id, draft.form.beginning_with(next(iter(begins.values()), "")))
        draft = _Draft.of(case_id)
    corrected, given = draft.form.words["corrected"], draft.form.given.get("corrected")
    whose = next((escape_markdown(name) for name, text in begins.items() if text == given), "")
    state = f"{whose}, unchanged" if corrected == given else f"changed from {whose}"
    _draw_text(
        case_id,
        "corrected",
        f"Corrected answer ({state})" if whose else "Corrected answer",
        150,
        None,
    )
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.caption("Begin again with", width="content")
        texts = list(begins.values())
        following = (texts.index(corrected) + 1) % len(texts) if corrected in texts else 0
        for number, (whose, text) in enumerate(begins.items()):
            st.button(
                escape_markdown(whose),
                key=f"begin-{number}",
                type="tertiary",
                shortcut=BEGIN_AGAIN.shortcut if number == following else None,
                on_click=_begin_with,
                args=(case_id, text),
                disabled=text == corrected,
            )
    with st.container(key="final-changes", gap="xsmall"):
        if before is None or corrected.split() != before.split():
            _corrects(workbench, about, corrected, "final-changes-made")


def _begin_with(case_id: str, text: str) -> None:
    draft = _Draft.of(case_id)
    draft.load(case_id, draft.form.beginning_with(text))


class _Lack(NamedTuple):
    """What a final verdict lacks: as the button says it, as a refusal does, and the field that
    holds it.
    """

    label: str
    why: str
    field: str


_LACKS: dict[ProblemCode, str] = {
    "correction_missing": "The correction is empty",
    "correction_changes_nothing": "Nothing is changed yet",
    "reason_missing": "A reason is needed",
}
"""What the button says in place of its name while a final verdict has this problem."""


def _lacks(decision: Decision, answer: DecidedAnswer) -> _Lack | None:
    """Return the first problem that keeps a final verdict from being recorded."""
    for problem in decision_rules.problems(decision, answer):
        field = "final-corrected" if problem.field == "corrected_answer" else "final-reason"
        # in one line: a second one would push the form's last field under the button
        return _Lack(_LACKS.get(problem.code, "Not complete yet"), f"{problem.message}.", field)
    return None


def _final_decision(view: CaseView, form: _Version, about: Decision, verdict: Verdict) -> Decision:
    """Return the final verdict that the form makes, about the answer of a reviewer's decision."""
    words = {name: form.words.get(name, "") for name in _FIELDS}
    return Decision(
        kind="adjudication",
        # who has no name yet is asked for it, and can't record anything before
        reviewer=actor().name or "?",
        case_id=view.case.id,
        run_id=about.run_id,
        iteration=about.iteration,
        verdict=verdict,
        reason=words["reason"],
        note=words["note"],
        corrected_answer=words["corrected"] if verdict == "override" else None,
        machine_shown=() if view.machine_hidden else ("scores", "verdicts"),
    )


def _with_seen_issues(decision: Decision, answer: DecidedAnswer) -> Decision:
    """Return an approval that names the serious issues it leaves open: the button says how many,
    the answer which.
    """
    if decision.verdict != "approve":
        return decision
    return decision.model_copy(update={"extra": decision.extra | seen_issues(answer.serious)})


def _submit_final(workbench: Workbench, view: CaseView, about: Decision) -> None:
    """Record the final verdict and open the next case; keep what was entered where it
    is refused.
    """
    case_id = view.case.id
    draft = _Draft.of(case_id)
    form, verdict = draft.form, draft.form.verdict
    if verdict is None:
        return
    side = form.side(decisions_on(workbench, case_id))
    about = side or about  # taken a moment ago, it is newer than what the button was drawn with
    try:
        decision = _final_decision(view, form, about, verdict)
        answer = workbench.reviews.decided_answer(actor(), decision)
        decision = _with_seen_issues(decision, answer)
        if lacks := _lacks(decision, answer):
            _show_refusal(lacks.why, lacks.field)
            return
        more: dict[str, Any] = {
            "token": draft.token,
            "extra": (
                decision.extra
                | {
                    "individual": [entry.id for entry in workbench.reviews.individual(case_id)],
                    "seconds": round(time.monotonic() - st.session_state[OPENED][1], 1),
                }
            ),
        }
        decision = decision.model_copy(update=more)
        if side is not None:  # what else the reviewer had entered is taken, too
            more = {
                "labels": side.labels,
                "rubric_scores": side.rubric_scores,
                "versions": side.versions,
            }
            decision = decision.model_copy(
                update={**more, "extra": {**decision.extra, "taken_from": side.reviewer}}
            )
        entry = workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except MasisError as error:
        _show_refusal(str(error), "final-corrected" if isinstance(error, InputError) else None)
    else:
        _forget(case_id)
        del st.session_state[OPENED]
        st.session_state[_DONE] = st.session_state.get(_DONE, {}) | {entry.id: (case_id, draft)}
        as_final = "" if verdict == "escalate" else " as final verdict"
        following = _neighbour_case(workbench, case_id) or case_id
        words = f"{case_id}: {DECIDED[verdict].text.lower()}{as_final}, {_question_ending(view)}"
        _notice(following, words, DONE)
        address.set_param("case", following)


def _forget(case_id: str) -> None:
    """Empty the form of a case."""
    served_workbench().drafts.clear(actor(), adjudication_subject(case_id))
    _empty_fields(case_id, *_FIELDS)


def _show_refusal(why: str, container: str | None) -> None:
    """Say why nothing was recorded, and put the focus where that can be mended."""
    st.session_state[_REFUSED] = f"Nothing was recorded: {why}"
    if container:
        focus_on(container)


def _question_ending(view: CaseView) -> str:
    """Return a case's question for the end of a message, which is cut where its line ends."""
    return f"“{shorten(view.case.query, 200)}”"


DONE = ":green[:material/check_circle:]"
NONE_BEFORE = "No case waits before this one"
NOTHING_TO_UNDO = "Nothing more of what you recorded here can be undone"
EMPTY = "&nbsp;"
"""What a line holds that is there though it says nothing."""


def _said_last(view: CaseView) -> str:
    """Say what was done on the way to this case; on others it would be about some other one, long
    ago.
    """
    case_id, words = st.session_state.get(_NOTICE, ("", ""))
    return words if case_id == view.case.id else EMPTY


def _is_mine(view: CaseView) -> bool:
    """Return whether the verdict that stands on a case is an adjudication of whoever
    looks at it.
    """
    final = _standing_verdict(view)
    return final is not None and final.kind == "adjudication" and final.reviewer == actor().name


def _undo_last(workbench: Workbench, view: CaseView) -> None:
    """Offer to undo what this session recorded last, wherever it has gone on to; where nothing is
    left, say so.
    """
    if done := st.session_state.get(_DONE):
        entry_id = next(reversed(done))
        _undo_button(
            f"Undo {escape_markdown(done[entry_id][0])}", _undo_adjudication, workbench, entry_id
        )
    elif done is not None:
        _undo_button("Undo", _notice, view.case.id, NOTHING_TO_UNDO)


def _undo_button(label: str, does: Callable[..., None], *args: Any) -> None:
    st.button(label, key="undo-adjudication", shortcut=UNDO.shortcut, on_click=does, args=args)


def _undo_adjudication(workbench: Workbench, entry_id: str) -> None:
    """Undo an adjudication and open its case, with what was entered where it waits again."""
    given = workbench.reviews.get(entry_id).decision
    try:
        workbench.reviews.undo(actor(), entry_id)
    except MasisError as error:  # somebody else has decided since
        st.session_state.get(_DONE, {}).pop(entry_id, None)
        _notice(address.value("case"), str(error), ":orange[:material/warning:]")
        return
    _, draft = st.session_state.setdefault(_DONE, {}).pop(entry_id, ("", None))
    if given is None or given.verdict is None:
        return
    view = workbench.cases.open_for(actor(), given.case_id)
    _forget(given.case_id)
    if (final := _standing_verdict(view)) is not None and final.verdict is not None:
        whose = "your" if final.reviewer == actor().name else f"{final.reviewer}'s"
        words = f"{whose} verdict stands again ({DECIDED[final.verdict].text.lower()})"
    else:
        words = f"{given.case_id} waits for you again, {_question_ending(view)}"
        (draft or _draft_of_final(given, decisions_on(workbench, given.case_id))).save(
            given.case_id, token=uuid.uuid4().hex
        )
    _notice(given.case_id, f"Undone: {words}", DONE)
    address.set_param("case", given.case_id)


def _draft_of_final(given: Decision, decisions: Sequence[Decision]) -> _Draft:
    """Return the draft that a final verdict was recorded from, in another session."""
    whose = given.extra.get("taken_from", "")
    form = _Version.of(given).model_copy(update={"taken": whose, "wrote": whose})
    side = form.side(decisions)
    return _Draft(form=form.model_copy(update={"given": _Version.of(side).words if side else {}}))
