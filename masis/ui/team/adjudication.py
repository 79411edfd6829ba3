"""Adjudication: the differences between the reviewers of a case, and its final verdict.

The final verdict is a new entry of the log. The reviewers' decisions stay as they are.
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
from masis.ui.team.leases import ask_name
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
    """Return the names of the parts in which decisions on one case differ, the verdict first.

    The parts are verdict, approved answer, correction, reason, note, scores and labels.
    """
    parts: dict[str, list[object]] = {
        "verdict": [decision.verdict for decision in decisions],
        "approved answer": [
            decided_about(decision) for decision in decisions if decision.verdict == "approve"
        ],
        "correction": [decision.corrected_answer for decision in decisions],
        "reason": [decision.reason for decision in decisions],
        "note": [decision.note for decision in decisions],
    }
    for name in dict.fromkeys(name for decision in decisions for name in decision.rubric_scores):
        parts[f"score {name}"] = [decision.rubric_scores.get(name) for decision in decisions]
    labels: dict[tuple[Any, ...], list[list[str]]] = {}
    for number, decision in enumerate(decisions):
        for label in decision.labels:
            # `reports` is a part of the key, so that a reported issue is compared with other
            # reports on the same words and never with a label that corrects the audit
            key = (label.target, label.start, label.end, label.text, label.reports)
            labels.setdefault(key, [[] for _ in decisions])[number].append(
                f"{label.label} {label.severity}"
            )
    parts |= {
        _label_group_text(*key): [sorted(labels_of_one) for labels_of_one in by_decision]
        for key, by_decision in labels.items()
    }
    return tuple(
        name for name, values in parts.items() if any(value != values[0] for value in values[1:])
    )


def _label_group_text(target: str, _start: int, _end: int, text: str, reports: bool) -> str:
    if target == "answer":
        return "issues reported in the whole answer"
    return f"issues reported in “{text[:60]}”" if reports else f"{target} “{text[:60]}”"


def _verdict_text(decision: Decision) -> str:
    """Return a decision's verdict in words, with the answer that it approves."""
    if decision.verdict is None:
        return ""
    about = f" {decided_about(decision)}" if decision.verdict == "approve" else ""
    return f"{colour_label(DECIDED[decision.verdict])}{about}"


def decisions_on(workbench: Workbench, case_id: str) -> tuple[Decision, ...]:
    """Return the current decisions of a case's reviewers, without redacted ones."""
    return tuple(
        entry.decision
        for entry in workbench.reviews.individual(case_id)
        if entry.decision is not None
    )


def show_adjudication(workbench: Workbench, case_id: str) -> None:
    """Draw the adjudication of a case: differences, answer, evidence, decisions, final verdict."""
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
            "This case isn't waiting for an adjudication. Some of its reviewers haven't decided"
            " yet, or it has only one reviewer."
        )
        return
    run = view.run if view.run and view.run.iterations else None
    with st.container(key="adjudication"):
        read, final = st.columns([2, 1], gap="small")
        with read:
            _draw_question(view, differences(decisions))
            with st.container(border=True, key="adjudicated-answer", gap="xsmall"):
                if run and not view.machine_hidden:
                    worst = headline(run)  # the answer view scrolls to the issue named here
                    others = f" · {escape_markdown(worst.others)}" if worst.others else ""
                    st.markdown(
                        f"**The audit:** {colour_label(Word(worst.text, worst.tone))}{others}"
                    )
                show_answer(view, run, 0, None)
            _draw_versions(
                workbench,
                decisions,
                editable=_can_adjudicate(workbench, work.decided_by) and _is_form_open(view),
            )
            st.page_link(
                "pages/review.py",
                label="Open the case with its audit",
                query_params={"case": case_id},
            )
        with final.container(border=True, gap="xsmall", key="adjudication-final"):
            _draw_final(workbench, view, work.decided_by)


def _draw_question(view: CaseView, parts: Sequence[str]) -> None:
    """Draw the question of a case, its id and the parts in which its reviewers differ.

    A long question is cut, with its full text as help. A scrolling container would keep its scroll
    position for the next case.
    """
    question = view.case.query
    with st.container(key="adjudicated-question", gap="xsmall"):
        st.text(
            shorten(question, LONG_QUESTION),
            help=escape_markdown(question) if len(question) > LONG_QUESTION else None,
        )
        difference = (
            f" · the reviewers differ in the {escape_markdown(', '.join(parts))}" if parts else ""
        )
        st.caption(f"{escape_markdown(view.case.id)}{difference}")


LONG_QUESTION = 250
"""The number of characters shown of a question: two lines at 1440 pixels."""


def _draw_adjudication_bar(workbench: Workbench, case_id: str, view: CaseView | None) -> None:
    """Draw the bar above an adjudication: back, progress, the last action, and the other cases."""
    left = workbench.team.adjudications(actor(), size=1).total
    done = st.session_state.get(_DONE, {})
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
            # the line is there even when it's empty, so that the form below never moves
            with st.container(key="adjudication-last"):
                st.markdown(_last_action_text(view) if view else EMPTY)
            st.caption("Keys: H or ?", width="content")
        if view is not None and not _is_mine(view):
            _draw_undo_last(workbench, view)
        for label, key, forward in (
            ("Previous", PREVIOUS, False),
            ("Next", NEXT_TO_ADJUDICATE, True),
        ):
            neighbour = _neighbour_case(workbench, case_id, forward=forward)
            on_click, args = (
                (address.set_param, ("case", neighbour))
                if neighbour
                else (_set_notice, (case_id, NONE_BEFORE))
            )
            if neighbour or (view is not None and not forward):
                st.button(label, shortcut=key.shortcut, on_click=on_click, args=args)


def _set_notice(case_id: str, text: str, icon: str = ":material/info:") -> None:
    """Show a message in the line of the last action while this case is open."""
    st.session_state[_NOTICE] = (case_id, f"{icon} {escape_markdown(text)}")


def _neighbour_case(workbench: Workbench, case_id: str, *, forward: bool = True) -> str | None:
    """Return the previous or next case that waits for an adjudication; the first after the last."""
    waiting = workbench.team.to_adjudicate(actor())
    try:
        neighbour = workbench.cases.beside(case_id, waiting, forward=forward)
    except UnknownRecord:  # an address may name any case
        neighbour = None
    if neighbour or not forward:
        return neighbour
    first = workbench.cases.find(waiting.model_copy(update={"size": 2})).rows
    return next((row.id for row in first if row.id != case_id), None)


def _can_adjudicate(workbench: Workbench, decided_by: Sequence[str]) -> bool:
    """Return whether the user can adjudicate a case that these reviewers decided."""
    allowed = workbench.access.allows(actor(), "oversee")
    return allowed and reviewer() is not None and actor().name not in decided_by


def _draw_versions(workbench: Workbench, decisions: Sequence[Decision], *, editable: bool) -> None:
    """Draw a card for every reviewer's decision and for the adjudicator's own texts.

    If the form is ``editable``, each card has a button and a number key that copy it into the form.
    """
    cards = [
        (
            decision,
            decision.reviewer,
            f"{decision.reviewer}'s decision",
            _Version.of(decision),
        )
        for decision in decisions
    ]
    draft = _Draft.of(decisions[0].case_id) if editable else _Draft()
    for name, mine in zip(("Mine", "Mine, earlier"), draft.mine, strict=False):
        cards.append((mine.as_decision(decisions, name), name, name.lower(), mine))
    first = next((decision for decision in decisions if decision.corrected_answer), None)
    for number, (column, (decision, name, title, version)) in enumerate(
        zip(st.columns(len(cards), gap="small"), cards, strict=True), start=1
    ):
        with column.container(border=True, height="stretch", gap="xsmall"):
            with st.container(
                horizontal=True, vertical_alignment="center", gap="xsmall", key=f"side-{number}"
            ):
                st.markdown(
                    f"**{escape_markdown(name)}**: {_verdict_text(decision)}", width="content"
                )
                # the label also marks the version in the form: more text would wrap the line
                if editable:
                    st.button(
                        "In the form"
                        if version == draft.form
                        else f"Take {escape_markdown(title)}",
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
    """Draw a decision, and compare its correction with the answer and the ``first`` correction."""
    lines = [f"Reason: {decision.reason}" if decision.reason else "No reason given"]
    lines += [f"Note: {decision.note}"] if decision.note else []
    lines += [f"{name}: {value}" for name, value in decision.rubric_scores.items()]
    for label in decision.labels:
        severity = f" ({label.severity})" if label.severity else ""
        words = f"“{label.text[:200]}”" if label.text else "the whole answer"
        lines.append(f"{label.label}{severity}: {words}{f', {label.note}' if label.note else ''}")
    st.text("\n".join(lines))
    if not decision.corrected_answer:
        return
    _draw_corrected(workbench, decision, decision.corrected_answer, f"correction-{number}")
    if first is not None and first.corrected_answer not in (None, decision.corrected_answer):
        title = f"{first.reviewer}'s correction"
        with st.expander(f"Changes to {escape_markdown(title)}"):
            _draw_changes(
                title, first.corrected_answer or "", decision.corrected_answer, f"between-{number}"
            )


def _draw_corrected(workbench: Workbench, about: Decision, corrected: str, key: str) -> None:
    """Draw the changes of a correction, or all of it if the answer that it corrects was removed."""
    if (before := _answer_before(workbench, about)) is not None:
        _draw_changes("the answer", before, corrected, key)
        return
    st.caption("Corrected answer (the answer that it corrects was removed)")
    st.text(corrected)


def _answer_before(workbench: Workbench, about: Decision) -> str | None:
    """Return the answer that a decision is about, or None if it was removed."""
    try:
        return workbench.reviews.answer_of(about)
    except Removed:
        return None


def _draw_changes(title: str, before: str, after: str, key: str) -> None:
    """Draw the differences between two texts with a few unchanged words around each."""
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
    CHANGES(data={"pieces": pieces, "key": None, "description": f"Changes to {title}"}, key=key)


BESIDE_CHANGE = 40
"""The number of unchanged characters shown on each side of a change."""


def final_words(verdict: Verdict, about: Decision, serious: int = 0) -> str:
    """Return the label of the submit button, with the number of serious issues left open."""
    open_issues = f" with {count_noun(serious, 'serious issue')} open" if serious else ""
    return {
        "approve": f"Approve {decided_about(about)}{open_issues}",
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
"""The key of the session state for the case whose form is open, and the time it was opened."""
_FIELDS = ("reason", "note", "corrected")
_MOST_MINE = 2


class _Version(Record):
    """A verdict with its texts, as the form has them.

    Attributes:
        verdict: The chosen verdict; None at first.
        taken: The reviewer whose decision was taken, whether or not it was changed since, or "".
        wrote: The reviewer whose reason and note the page filled in, whichever verdict was chosen
            since, or "".
        words: Reason, note and corrected answer by field name. The corrected answer is missing
            until the correction is started.
        given: The texts among these that the page filled in.

    """

    verdict: Verdict | None = None
    taken: str = ""
    wrote: str = ""
    words: dict[str, str] = Field(default_factory=dict)
    given: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, decision: Decision) -> _Version:
        """Return a decision as a version of the form."""
        texts = {
            "reason": decision.reason,
            "note": decision.note,
            "corrected": decision.corrected_answer,
        }
        words = {name: text for name, text in texts.items() if text is not None}
        name = decision.reviewer
        return cls(verdict=decision.verdict, taken=name, wrote=name, words=words, given=words)

    @property
    def typed_fields(self) -> dict[str, str]:
        """The texts that the adjudicator typed."""
        return {
            name: text
            for name, text in self.words.items()
            if text.strip() and text != self.given.get(name, "")
        }

    def with_correction(self, corrected: str) -> _Version:
        """Return a copy in which the page has filled in a correction."""
        start = {"corrected": corrected}
        return self.model_copy(update={"words": self.words | start, "given": self.given | start})

    def taken_decision(self, decisions: Sequence[Decision]) -> Decision | None:
        """Return the decision that was taken, if any."""
        return next((decision for decision in decisions if decision.reviewer == self.taken), None)

    def about(self, decisions: Sequence[Decision]) -> Decision:
        """Return the decision whose answer this version is about.

        That's the one taken, or else the first with the same verdict, or else the first.
        """
        return self.taken_decision(decisions) or next(
            (decision for decision in decisions if decision.verdict == self.verdict), decisions[0]
        )

    def as_decision(self, decisions: Sequence[Decision], name: str) -> Decision:
        """Return this version as a decision for its card, with ``name`` as the reviewer."""
        about, side = self.about(decisions), self.taken_decision(decisions)
        words = {field: self.words.get(field, "") for field in ("reason", "note")}
        corrected = self.words.get("corrected") if self.verdict == "override" else None
        update = {"reviewer": name, "verdict": self.verdict, "corrected_answer": corrected, **words}
        return about.model_copy(
            update=update if side else update | {"labels": (), "rubric_scores": {}}
        )


class _Draft(Record):
    """The adjudicator's draft for a case, saved with every change.

    The names are those of the stored drafts.

    Attributes:
        form: The present entries of the form.
        aside: Earlier typed entries that were replaced by taking a decision, newest first.
        parted: Whether anything was replaced so far. Only then do typed entries have a card, so
            that none appears with the first typed letter.
        changing: Whether the recorded verdict is being changed.
        token: Identifies the adjudication, so that it's recorded once.

    """

    form: _Version = _Version()
    aside: tuple[_Version, ...] = ()
    parted: bool = False
    changing: bool = False
    token: str = Field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, case_id: str) -> _Draft:
        """Return the draft of a case with the present texts of its fields.

        The callback of a button can run before the callback of a field that lost the focus with the
        same click, so the stored draft may be older than the fields.
        """
        draft = read_form(
            cls, served_workbench().drafts.get(actor(), adjudication_subject(case_id)).values
        )
        texts = {name: st.session_state.get(_field_key(case_id, name)) for name in _FIELDS}
        words = draft.form.words | {name: text for name, text in texts.items() if text is not None}
        return draft.model_copy(update={"form": draft.form.model_copy(update={"words": words})})

    @property
    def mine(self) -> tuple[_Version, ...]:
        """The adjudicator's typed versions, newest first; empty until one was replaced."""
        current = (self.form,) if self.parted and self.form.typed_fields else ()
        return (*current, *self.aside)[:_MOST_MINE]

    def save(self, case_id: str, **changes: Any) -> None:
        """Store the draft with these changes."""
        values = self.model_copy(update=changes).model_dump(mode="json")
        served_workbench().drafts.save(actor(), adjudication_subject(case_id), values)

    def load(self, case_id: str, form: _Version, **changes: Any) -> None:
        """Put a version into the form, and keep typed entries that it replaces."""
        is_lost = any(form.words.get(name) != text for name, text in self.form.typed_fields.items())
        aside = [
            *((self.form,) if is_lost else ()),
            *(version for version in self.aside if version != form),
        ]
        _reset_fields(
            case_id,
            *(name for name in _FIELDS if form.words.get(name) != self.form.words.get(name)),
        )
        self.save(
            case_id,
            form=form,
            aside=tuple(aside[:_MOST_MINE]),
            parted=self.parted or is_lost,
            **changes,
        )


def _field_key(case_id: str, name: str) -> str:
    return f"final-{name}-{case_id}"


def _reset_fields(case_id: str, *names: str) -> None:
    """Drop the texts of fields, so that they start with the texts of the draft."""
    for name in names:
        st.session_state.pop(_field_key(case_id, name), None)


def _save_fields(case_id: str) -> None:
    _Draft.of(case_id).save(case_id)  # `of` reads the present texts of the fields


def _draw_text(case_id: str, name: str, label: str, height: int, most: int | None = 2000) -> None:
    """Draw a field of the form. Its text is saved in the draft."""
    key, draft = _field_key(case_id, name), _Draft.of(case_id)
    st.session_state.setdefault(key, draft.form.words.get(name, ""))
    hint = "Type it, or press the number of one below" if name == "reason" else None
    st.text_area(
        label,
        key=key,
        max_chars=most,
        height=height,
        placeholder=hint,
        on_change=_save_fields,
        args=(case_id,),
    )


def _choose_verdict(case_id: str, verdict: Verdict) -> None:
    """Choose a verdict, and keep the texts. Another verdict is no longer the one taken."""
    draft = _Draft.of(case_id)
    taken = draft.form.taken if verdict == draft.form.verdict else ""
    draft.save(case_id, form=draft.form.model_copy(update={"verdict": verdict, "taken": taken}))


def _take(case_id: str, version: _Version) -> None:
    """Put a reviewer's decision or the adjudicator's own version into the form."""
    _Draft.of(case_id).load(case_id, version)


def _reopen_verdict(case_id: str, final: Decision | None) -> None:
    """Open the form with the recorded verdict to change it. The lead gives a new reason."""
    form = _Version()
    if final is not None and final.verdict != "escalate":
        name = final.extra.get("taken_from", "")
        version = _Version.of(final.model_copy(update={"reason": ""}))
        form = version.model_copy(update={"taken": name, "wrote": name})
    _Draft.of(case_id).load(case_id, form, changing=True)


def _is_form_open(view: CaseView) -> bool:
    """Return whether the case waits for an adjudication or its verdict is being changed."""
    return view.state == "needs_adjudication" or _Draft.of(view.case.id).changing


def _standing_verdict(view: CaseView) -> Decision | None:
    """Return the current final verdict of a case, if it has one."""
    final = view.decision.decision if view.decision and view.state != "needs_adjudication" else None
    return final if final is not None and final.verdict is not None else None


def _author_text(text: str, name: str, decisions: Sequence[Decision], taken_from: str) -> str:
    """Return the possessive name of the reviewer whose reason or note was taken, or "".

    Only the reviewer whose decision was taken counts. That another one wrote the same words is a
    coincidence.
    """
    is_taken = any(
        decision.reviewer == taken_from and getattr(decision, name) == text
        for decision in decisions
    )
    return f"{taken_from}’s" if is_taken and text.strip() else ""


def _draw_final(workbench: Workbench, view: CaseView, reviewers: tuple[str, ...]) -> None:
    """Draw the final verdict of a case and, for people who can adjudicate, its form."""
    case_id = view.case.id
    decisions = decisions_on(workbench, case_id)
    final = _standing_verdict(view)
    can_adjudicate = _can_adjudicate(workbench, reviewers)
    with st.container(gap="xsmall", key="adjudication-recorded"):
        st.markdown(
            "**Final verdict**"
            + ("" if final is None or final.verdict == "escalate" else " (settled)")
        )
        if final is None and not can_adjudicate:
            others = (
                "Anybody else"
                if workbench.access.allows(ANONYMOUS, "oversee")
                else "Any other lead"
            )
            st.caption(
                f"Decided by {escape_markdown(' and '.join(reviewers))}. {others} can adjudicate."
            )
        if final is not None:
            _draw_standing_verdict(final, decisions, workbench.reviews.settled_by(case_id))
        with st.container(horizontal=True, gap="xsmall"):
            if _is_mine(view) and view.decision:
                _draw_undo_button("Undo it", _undo_adjudication, workbench, view.decision.id)
            if can_adjudicate and view.state != "needs_adjudication":
                escalated = final is not None and final.verdict == "escalate"
                label = (
                    "Keep it" if _is_form_open(view) else "Decide it" if escalated else "Change it"
                )
                on_click, args = (
                    (_discard_draft, (case_id,))
                    if _is_form_open(view)
                    else (_reopen_verdict, (case_id, final))
                )
                st.button(
                    label,
                    key="final-change",
                    shortcut=CHANGE.shortcut,
                    on_click=on_click,
                    args=args,
                )
        if final is not None and final.corrected_answer and not _is_form_open(view):
            _draw_corrected(workbench, final, final.corrected_answer, "final-correction")
    ask_name(workbench)
    if not can_adjudicate or not _is_form_open(view):
        return
    if st.session_state.get(OPENED, ("", 0.0))[0] != case_id:
        st.session_state[OPENED] = (case_id, time.monotonic())
    _draw_final_form(workbench, view, decisions)


def _draw_standing_verdict(
    final: Decision, decisions: Sequence[Decision], settled_by: Sequence[str]
) -> None:
    """Draw the current final verdict with its reason and note."""
    if final.verdict is None:
        return
    waits = (
        ": it waits for more evidence or another reviewer" if final.verdict == "escalate" else ""
    )
    agreed = final.kind != "adjudication"
    took = "" if agreed else adopted_decision_text(final, decisions)
    names = escape_markdown(" and ".join(settled_by))
    taken = f" ({escape_markdown(took)})" if took else ""
    st.markdown(f"{_verdict_text(final)} by {names}{taken}{waits}.")
    lines = []
    for name in ("reason", "note"):
        if text := getattr(final, name):
            author = _author_text(
                text, name, () if agreed else decisions, final.extra.get("taken_from", "")
            )
            lines.append(f"{f'{author} {name}' if author else name.capitalize()}: {text}")
    st.text("\n".join(lines) or "No reason given")


def _draw_final_form(workbench: Workbench, view: CaseView, decisions: Sequence[Decision]) -> None:
    """Draw the form of the final verdict: the verdicts, their fields and the submit button."""
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
    same_verdict = [decision for decision in decisions if decision.verdict == verdict]
    answers = list({decided_about(decision): decision for decision in reversed(same_verdict)})
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
        about = next(decision for decision in same_verdict if decided_about(decision) == answer)
    optional = not workbench.reviews.explain_needed_reason(case_id, verdict)
    select_when_focused({draft.form.given.get(name, "") for name in ("reason", "note")})
    with st.container(key="final-form", gap="xsmall"):
        if verdict is None:
            st.caption(
                "Take a reviewer's decision by its number, or choose a verdict. Then give a reason"
                " and a note."
            )
        else:
            with st.container(key="final-reason"):
                _draw_text(
                    case_id,
                    "reason",
                    _field_label(draft.form, "reason", decisions, optional=optional),
                    68,
                )
                usual = [reason.text for reason in reasons_for(verdict) if reason.code != OTHER]
                # adjudication.css shows the list while the field is empty and has the focus
                with st.container(key="final-usual"):
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
        if refusal := st.session_state.pop(_REFUSED, None):
            st.warning(escape_markdown(refusal))
        form = _Draft.of(case_id).form  # read again, as the correction may have been started above
        missing, serious = None, 0
        if verdict is not None:
            decision = _final_decision(view, form, about, verdict)
            decided = workbench.reviews.decided_answer(actor(), decision)
            missing = _final_problem(_with_seen_issues(decision, decided), decided)
            serious = len(decided.serious)
        # the issues left in an approved answer come from the audit, which may be hidden
        original = None if view.machine_hidden else _answer_before(workbench, about)
        final_answer = {"override": form.words.get("corrected"), "approve": original}.get(
            verdict or ""
        )
        if final_answer and not (missing and missing.field == "final-corrected"):
            checked = check(final_answer, view.case, workbench.settings)
            _LEFT(data={"corrected": final_answer, "check": checked}, key="final-left")
        if verdict is not None:
            st.button(
                missing.label if missing else final_words(verdict, about, serious),
                key="final-submit",
                type="secondary" if missing else "primary",
                shortcut=SUBMIT.shortcut,
                width="stretch",
                on_click=_submit_final,
                args=(workbench, view, about),
            )


def _field_label(
    form: _Version, name: str, decisions: Sequence[Decision], *, optional: bool
) -> str:
    """Return the label of a field, with the author of its text or that it's optional."""
    text, given = form.words.get(name, ""), form.given.get(name, "")
    suffix = " (optional)" if optional else ""
    if text.strip() and (author := _author_text(given, name, decisions, form.wrote)):
        suffix = (
            f" (changed from {escape_markdown(author)})"
            if text != given
            else f" ({escape_markdown(author)}, unchanged)"
        )
    return f"{name.capitalize()}{suffix}"


def _draw_correction(workbench: Workbench, about: Decision, decisions: Sequence[Decision]) -> None:
    """Draw the field of the corrected answer, the texts to start it with, and its changes."""
    case_id = about.case_id
    draft = _Draft.of(case_id)
    before = _answer_before(workbench, about)
    starts = {} if before is None else {"the original": before}
    starts |= {
        f"{decision.reviewer}'s": decision.corrected_answer
        for decision in decisions
        if decision.corrected_answer
    }
    if "corrected" not in draft.form.words:
        draft.load(case_id, draft.form.with_correction(next(iter(starts.values()), "")))
        draft = _Draft.of(case_id)
    corrected, given = draft.form.words["corrected"], draft.form.given.get("corrected")
    origin = next((escape_markdown(name) for name, text in starts.items() if text == given), "")
    state = f"{origin}, unchanged" if corrected == given else f"changed from {origin}"
    _draw_text(
        case_id,
        "corrected",
        f"Corrected answer ({state})" if origin else "Corrected answer",
        150,
        None,
    )
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.caption("Start again with", width="content")
        texts = list(starts.values())
        # the key goes through the texts: each press takes the one after the present text
        following = (texts.index(corrected) + 1) % len(texts) if corrected in texts else 0
        for number, (name, text) in enumerate(starts.items()):
            st.button(
                escape_markdown(name),
                key=f"begin-{number}",
                type="tertiary",
                shortcut=BEGIN_AGAIN.shortcut if number == following else None,
                on_click=_restart_correction,
                args=(case_id, text),
                disabled=text == corrected,
            )
    with st.container(key="final-changes", gap="xsmall"):
        if before is None or corrected.split() != before.split():
            _draw_corrected(workbench, about, corrected, "final-changes-made")


def _restart_correction(case_id: str, text: str) -> None:
    draft = _Draft.of(case_id)
    draft.load(case_id, draft.form.with_correction(text))


class _MissingField(NamedTuple):
    """A problem of a final verdict: the label of the button, the message, and the field."""

    label: str
    message: str
    field: str


_PROBLEM_LABELS: dict[ProblemCode, str] = {
    "correction_missing": "The correction is empty",
    "correction_changes_nothing": "Nothing is changed yet",
    "reason_missing": "A reason is needed",
}
"""The label of the submit button while a final verdict has a problem.

A label has to fit in one line: a second one would push the form's last field under the button.
"""


def _final_problem(decision: Decision, answer: DecidedAnswer) -> _MissingField | None:
    """Return the first problem that keeps a final verdict from being recorded, or None."""
    problem = next(iter(decision_rules.problems(decision, answer)), None)
    if problem is None:
        return None
    field = "final-corrected" if problem.field == "corrected_answer" else "final-reason"
    label = _PROBLEM_LABELS.get(problem.code, "Not complete yet")
    return _MissingField(label, f"{problem.message}.", field)


def _final_decision(view: CaseView, form: _Version, about: Decision, verdict: Verdict) -> Decision:
    """Return the final verdict of the form, on the answer that the decision ``about`` is about."""
    words = {name: form.words.get(name, "") for name in _FIELDS}
    return Decision(
        kind="adjudication",
        # without a name the form asks for it first, and nothing can be recorded
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
    """Add the serious issues left open to an approval; the page shows them with their number."""
    if decision.verdict != "approve":
        return decision
    return decision.model_copy(update={"extra": decision.extra | seen_issues(answer.serious)})


def _submit_final(workbench: Workbench, view: CaseView, about: Decision) -> None:
    """Record the final verdict and open the next case. If it's refused, the draft stays."""
    case_id = view.case.id
    draft = _Draft.of(case_id)
    form, verdict = draft.form, draft.form.verdict
    if verdict is None:
        return
    side = form.taken_decision(decisions_on(workbench, case_id))
    about = side or about  # a decision taken just now is newer than the button's argument
    try:
        decision = _final_decision(view, form, about, verdict)
        answer = workbench.reviews.decided_answer(actor(), decision)
        decision = _with_seen_issues(decision, answer)
        if missing := _final_problem(decision, answer):
            _show_refusal(missing.message, missing.field)
            return
        update: dict[str, Any] = {
            "token": draft.token,
            "extra": (
                decision.extra
                | {
                    "individual": [entry.id for entry in workbench.reviews.individual(case_id)],
                    "seconds": round(time.monotonic() - st.session_state[OPENED][1], 1),
                }
            ),
        }
        if side is not None:  # the taken decision brings its labels and scores
            update["labels"] = side.labels
            update["rubric_scores"] = side.rubric_scores
            update["versions"] = side.versions
            update["extra"] |= {"taken_from": side.reviewer}
        decision = decision.model_copy(update=update)
        entry = workbench.reviews.adjudicate(actor(), decision, seen_version=view.summary.version)
    except MasisError as error:
        _show_refusal(str(error), "final-corrected" if isinstance(error, InputError) else None)
    else:
        _discard_draft(case_id)
        del st.session_state[OPENED]
        st.session_state[_DONE] = st.session_state.get(_DONE, {}) | {entry.id: (case_id, draft)}
        as_final = "" if verdict == "escalate" else " as final verdict"
        following = _neighbour_case(workbench, case_id) or case_id
        text = f"{case_id}: {DECIDED[verdict].text.lower()}{as_final}, {_quoted_question(view)}"
        _set_notice(following, text, DONE)
        address.set_param("case", following)


def _discard_draft(case_id: str) -> None:
    """Empty the form of a case."""
    served_workbench().drafts.clear(actor(), adjudication_subject(case_id))
    _reset_fields(case_id, *_FIELDS)


def _show_refusal(reason: str, container: str | None) -> None:
    """Say why nothing was recorded, and focus the field that needs a change."""
    st.session_state[_REFUSED] = f"Nothing was recorded: {reason}"
    if container:
        focus_on(container)


def _quoted_question(view: CaseView) -> str:
    """Return a case's question for the end of a message, where the page cuts it."""
    return f"“{shorten(view.case.query, 200)}”"


DONE = ":green[:material/check_circle:]"
NONE_BEFORE = "This is the first case that waits"
NOTHING_TO_UNDO = "You have nothing more to undo here"
EMPTY = "&nbsp;"
"""A line without text that keeps its height."""


def _last_action_text(view: CaseView) -> str:
    """Return the message about the last action if it led to this case, else an empty line."""
    case_id, text = st.session_state.get(_NOTICE, ("", ""))
    return text if case_id == view.case.id else EMPTY


def _is_mine(view: CaseView) -> bool:
    """Return whether the current verdict of a case is the user's own adjudication."""
    final = _standing_verdict(view)
    return final is not None and final.kind == "adjudication" and final.reviewer == actor().name


def _draw_undo_last(workbench: Workbench, view: CaseView) -> None:
    """Draw the button that undoes the session's last adjudication, on whichever case it was."""
    if done := st.session_state.get(_DONE):
        entry_id = next(reversed(done))
        _draw_undo_button(
            f"Undo {escape_markdown(done[entry_id][0])}", _undo_adjudication, workbench, entry_id
        )
    elif done is not None:
        _draw_undo_button("Undo", _set_notice, view.case.id, NOTHING_TO_UNDO)


def _draw_undo_button(label: str, on_click: Callable[..., None], *args: Any) -> None:
    st.button(label, key="undo-adjudication", shortcut=UNDO.shortcut, on_click=on_click, args=args)


def _undo_adjudication(workbench: Workbench, entry_id: str) -> None:
    """Undo an adjudication and open its case. If the case waits again, the form is filled in."""
    undone = workbench.reviews.get(entry_id).decision
    try:
        workbench.reviews.undo(actor(), entry_id)
    except MasisError as error:  # somebody else has decided since
        st.session_state.get(_DONE, {}).pop(entry_id, None)
        _set_notice(address.value("case"), str(error), ":orange[:material/warning:]")
        return
    _, draft = st.session_state.setdefault(_DONE, {}).pop(entry_id, ("", None))
    if undone is None or undone.verdict is None:
        return
    case_id = undone.case_id
    view = workbench.cases.open_for(actor(), case_id)
    _discard_draft(case_id)
    if (final := _standing_verdict(view)) is not None and final.verdict is not None:
        owner = "your" if final.reviewer == actor().name else f"{final.reviewer}'s"
        text = f"{owner} verdict applies again ({DECIDED[final.verdict].text.lower()})"
    else:
        text = f"{case_id} waits for you again, {_quoted_question(view)}"
        draft = draft or _draft_of_final(undone, decisions_on(workbench, case_id))
        draft.save(case_id, token=uuid.uuid4().hex)
    _set_notice(case_id, f"Undone: {text}", DONE)
    address.set_param("case", case_id)


def _draft_of_final(final: Decision, decisions: Sequence[Decision]) -> _Draft:
    """Rebuild the draft of a final verdict that was recorded in another session."""
    name = final.extra.get("taken_from", "")
    form = _Version.of(final).model_copy(update={"taken": name, "wrote": name})
    side = form.taken_decision(decisions)
    return _Draft(form=form.model_copy(update={"given": _Version.of(side).words if side else {}}))
