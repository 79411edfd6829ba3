"""The decision on one case: the form, the current decision, the log of the case, and the way to the
next one.

The form lives in a component of our own, so that keys act at once and what is typed is kept as it
rests, not only when a field is left. It runs as a fragment: typing redraws nothing else. Rules of
the form are in ``decision_form.py``.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import streamlit as st

from masis.errors import AnotherAnswer, MasisError, Removed, StaleVersion, StoreError
from masis.schema.review import Decision, LogEntry, answer_digest
from masis.schema.run import Run
from masis.schema.team import LabelTypes
from masis.schema.wording import count_noun
from masis.services import CaseView, Workbench, decision_rules
from masis.services.cases import WAITING
from masis.services.decision_rules import (
    NEEDS_REASON,
    OTHER,
    REASON_CODE,
    DecidedAnswer,
    reasons_for,
)
from masis.services.drafts import case_subject, clean, read_form
from masis.services.records import CaseFilter, explained_errors
from masis.ui.components import noop, register_component
from masis.ui.review import decision_form as forms
from masis.ui.review.claiming import ClaimNotice
from masis.ui.review.decision_form import FormFields
from masis.ui.shell import address, keys
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer, suggested_name
from masis.ui.shell.served_database import served_database
from masis.ui.team.case_work import forget_scores, rubric_scores
from masis.ui.team.taking import keep_typing, why_nothing
from masis.views.answer import ShownAnswer, shown_answer
from masis.views.diff import word_changes
from masis.views.faults import revealed_words
from masis.views.log_entries import verdict_text
from masis.views.numbers import moment_utc
from masis.views.words import DECIDE

MACHINE_SHOWN = ("marks", "findings", "verdicts", "scores")
"""What of the machine's verdict the page shows by default; stored with every decision, so the words
never change.
"""

_FORM = "decision-form"
_PREVIOUS = "previous-decision"
_CARRIED = "carried-message"
_COMPONENT = register_component("decision", "key_sheet", "report_issue", "correction_check")


@dataclass
class _Message:
    """Something to say above the form; ``where`` names the field that wants attention.

    ``narrowed``: cases outside of the search and its filters wait; a button leads to them.
    """

    text: str
    tone: str
    where: str = ""
    narrowed: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class _Recording(NamedTuple):
    """A submit that is being recorded, and whether the next case opens after it."""

    token: str
    advance: bool


@dataclass
class _Form:
    """What a session knows about the form it has open.

    ``token`` goes with every submit of it: the same token twice is one decision. ``acks`` has the
    last post of each mount that was kept, ``handled`` names the last submit that was answered,
    ``done`` the tokens of decisions made here. ``asked`` is what was asked about once: the same
    again is recorded. ``came_from``: the case from which an undo led here. ``recording`` stays
    until what follows a decision is done: another run of the page can end the one that recorded it
    at any point where Streamlit is called.
    """

    case_id: str
    reviewer: str
    restored: str | None
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    message: _Message | None = None
    acks: dict[str, int] = field(default_factory=dict)
    handled: dict[str, Any] | None = None
    done: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    came_from: str = ""
    recording: _Recording | None = None

    def renew(self) -> None:
        """Start a fresh form, as after a submit."""
        self.token, self.restored, self.asked = uuid.uuid4().hex, None, set()

    def keep(self, posted: dict[str, Any]) -> bool:
        """Note that a post is kept; returns False for one that is older: the page states its last
        draft for good.
        """
        mount, seq = clean(posted.get("mount"), 64), posted.get("seq")
        if not isinstance(seq, int) or seq <= self.acks.get(mount, -1):
            return False
        self.acks[mount] = seq
        return True

    def ask_once(self, about: str, says: str, where: str) -> bool:
        """Ask once about something, in place of recording it; returns whether it has not been asked
        before.
        """
        if about in self.asked:
            return False
        self.asked.add(about)
        self.message = _Message(says, "warn", where)
        return True


@dataclass
class _Previous:
    """The decision made here last: U on the next case undoes it."""

    entry: str
    case_id: str
    words: str


class _QueuePlace(NamedTuple):
    """The queue the address describes, and how many of its cases need review."""

    case_filter: CaseFilter
    waiting: int


class _PanelContext(NamedTuple):
    """What the panel is about; fixed for one run of the page."""

    workbench: Workbench
    view: CaseView
    run: Run | None
    at: int
    shown: tuple[str, ...]
    place: _QueuePlace
    notice: ClaimNotice | None

    @property
    def case_id(self) -> str:
        return self.view.case.id

    @property
    def answer(self) -> str:
        """The answer shown."""
        return self.run.iterations[self.at].answer if self.run else self.view.case.answer or ""

    @property
    def shown_answer(self) -> ShownAnswer:
        """Which answer the page shows."""
        return shown_answer(self.view.case, self.run, self.at)

    @property
    def decided_answer(self) -> DecidedAnswer:
        """What the rules of a decision ask about the answer shown."""
        return DecidedAnswer(self.answer, forms.serious_issues(self.run, self.at))

    @property
    def answer_name(self) -> str:
        """The name of the answer shown."""
        return forms.shown_name(self.run, self.at)


def decision_panel(
    workbench: Workbench,
    view: CaseView,
    run: Run | None,
    index: int,
    *,
    machine_shown: tuple[str, ...] = MACHINE_SHOWN,
    notice: ClaimNotice | None = None,
) -> None:
    """Draw the decision on iteration ``index`` (from 0) of ``run``, or on an unaudited case
    (``run`` is None).
    """
    who = actor()
    case_filter = workbench.cases.blind_filter(who, address.case_filter())
    place = _QueuePlace(case_filter, workbench.team.count_open(actor(), case_filter))
    run = run if run and run.iterations else None
    _panel(_PanelContext(workbench, view, run, index if run else 0, machine_shown, place, notice))
    if notice and notice.adjudicate:
        st.page_link(
            "pages/team.py",
            label="Adjudicate it",
            icon=":material/balance:",
            query_params={"case": view.case.id},
        )
    # below the panel: above it, a fragment would have another id than the same page has for a
    # reviewer
    if not workbench.access.allows(who, "decide"):
        roles = ", ".join(who.roles) or "none"
        st.info(
            f"You can read this case. Deciding takes the role reviewer; you have {roles}.",
            icon=":material/lock:",
        )


@st.fragment
def _panel(context: _PanelContext) -> None:
    """Draw the panel as a fragment; it reports an unreachable database itself."""
    try:
        with explained_errors(served_database()):
            _draw_decision(context)
    except StoreError as error:
        st.error(
            "The database can't be used just now. What you typed is stored in this browser.",
            icon=":material/error:",
        )
        st.text(str(error))


def _draw_decision(context: _PanelContext) -> None:
    form = _open_form(context)
    _resume(context, form)
    key = f"decision-{hashlib.sha256(context.case_id.encode()).hexdigest()[:16]}"
    _keep_posted(context, form, st.session_state.get(key, {}).get("draft"))
    posted = _COMPONENT(
        data=_data(context, form),
        key=key,
        on_draft_change=noop,
        on_submit_change=noop,
        on_act_change=noop,
    )
    # a page that outlived its server posts again what this session has not seen yet
    kept_late = _keep_posted(context, form, posted.draft)
    for asked, do in ((posted.submit, _submit_decision), (posted.act, _run_form_action)):
        if isinstance(asked, dict):
            _say_errors(context, form, asked, do)
            st.rerun()
    if kept_late:
        st.rerun()


def _open_form(context: _PanelContext) -> _Form:
    """Return the form of this case and person, opened again where the session had
    another one open.
    """
    form: _Form | None = st.session_state.get(_FORM)
    if form is None or (form.case_id, form.reviewer) != (context.case_id, actor().name):
        _, saved_at = stored_form(context.workbench, context.case_id)
        message = form.message if form and form.case_id == context.case_id else None
        acks = form.acks if form and form.case_id == context.case_id else {}
        carried = st.session_state.pop(_CARRIED, None)
        came_from = ""
        if carried and carried[0] == context.case_id:
            _, message, came_from = carried
        form = _Form(
            context.case_id, actor().name, saved_at, message=message, acks=acks, came_from=came_from
        )
        st.session_state[_FORM] = form
    return form


def _keep_posted(context: _PanelContext, form: _Form, posted: object) -> bool:
    """Keep what the page posted, once; returns whether it was new."""
    if not isinstance(posted, dict) or posted.get("case") != context.case_id:
        return False
    if posted.get("token") in _recorded_tokens(context, form) or not form.keep(posted):
        return False
    try:
        store_form(context.workbench, context.case_id, read_form(FormFields, posted.get("fields")))
    except MasisError as error:
        form.message = _Message(f"The draft could not be saved: {error}", "bad")
        return False
    form.message = None
    try:
        keep_typing(context.workbench, context.case_id)
    except MasisError as error:
        form.message = _Message(str(error), "warn")
    return True


def _recorded_tokens(context: _PanelContext, form: _Form) -> list[str]:
    """Tokens of decisions that are in the log: what is still posted under them is past."""
    return [
        *form.done,
        *(
            entry.decision.token
            for entry in context.view.history
            if entry.decision and entry.decision.token
        ),
    ]


def stored_form(workbench: Workbench, case_id: str) -> tuple[FormFields, str | None]:
    """Return the form as the person of this session left it, and when it was stored; None where
    nothing was.
    """
    draft = workbench.drafts.get(actor(), case_subject(case_id))
    return read_form(FormFields, draft.values), draft.saved_at


def store_form(workbench: Workbench, case_id: str, fields: FormFields) -> None:
    """Store the form; an empty one is removed."""
    if fields.empty:
        workbench.drafts.clear(actor(), case_subject(case_id))
    else:
        workbench.drafts.save(actor(), case_subject(case_id), fields.model_dump(mode="json"))


def _say_errors(
    context: _PanelContext, form: _Form, posted: dict[str, Any], do: Callable[..., None]
) -> None:
    try:
        do(context, form, posted)
    except AnotherAnswer as error:
        form.message = _Message(str(error), "warn")
    except StaleVersion:
        again = _audited_again(context, posted.get("shown"))
        form.message = _Message(
            f"This case has changed since you opened it; its current state is shown.{again} What"
            " you entered is still here: check it, then submit again.",
            "warn",
        )
    except MasisError as error:
        form.message = _Message(str(error), "bad")


def _audited_again(context: _PanelContext, posted: object) -> str:
    """Say who asked for an audit newer than the one whose answer was shown, and when; "" where
    there is none.
    """
    shown = posted.get("place") if isinstance(posted, dict) else None
    runs = () if context.view.machine_hidden else context.workbench.runs.for_case(context.case_id)
    newest = next((run for run in runs if run.readable), None)
    if (
        newest is None
        or newest.ended_at is None
        or not isinstance(shown, str)
        or f"/{newest.id}/" in shown
    ):
        return ""
    by = f" by {newest.asked_by}" if newest.asked_by else ""
    return f" It was audited again{by} at {newest.ended_at[11:16]} UTC."


def _submit_decision(context: _PanelContext, form: _Form, posted: dict[str, Any]) -> None:
    """Record the decision of the form (``masis/services/reviews.py``), or say what keeps it from
    being recorded.
    """
    if posted.get("case") != context.case_id:
        return
    form.handled = {"mount": posted.get("mount"), "sends": posted.get("sends")}
    token = clean(posted.get("token"), 64) or form.token
    if token in _recorded_tokens(context, form):
        return
    fields = read_form(FormFields, posted.get("fields"))
    if reviewer() is None:
        name_reviewer(context.workbench, posted.get("reviewer"))
        form.reviewer = actor().name
    store_form(context.workbench, context.case_id, fields)
    form.keep(posted)
    if missing := forms.find_problem(fields, reviewer() or ""):
        form.message = _Message(missing.message, "warn", missing.field)
        return
    decision = forms.decision_of(
        fields,
        case_id=context.case_id,
        run=context.run,
        index=context.at,
        reviewer=actor().name,
        token=token,
        machine_shown=context.shown,
        shown=context.shown_answer["digest"],
        acknowledged=posted.get("acknowledged"),
    )
    found = decision_rules.problems(decision, context.decided_answer)
    if missing := forms.to_mend(each for each in found if each.code != "serious_issues_open"):
        form.message = _Message(missing.message, "warn", missing.field)
        return
    why = (
        "Say what it waits for: choose a reason or write a note. Submit again to escalate without."
    )
    if forms.is_unexplained_escalation(fields) and form.ask_once("why", why, "reason"):
        return
    _assert_shown(context, posted.get("shown"))
    if fields.verdict == "override" and (doubts := _doubts(context, fields)):
        says = (
            f"Look at the correction again: {'; '.join(doubts)}. Nothing was recorded; Ctrl Enter"
            " again records it."
        )
        if form.ask_once(f"correction {fields.corrected}", says, "corrected"):
            return
    if found:  # the answer is the one shown, so these issues were open all the time
        form.message = _Message(
            f"Nothing was recorded: {context.answer_name} has serious issues open that were not"
            " listed to you. Approve again to see them.",
            "warn",
        )
        return
    seen = posted.get("seen")
    form.recording = _Recording(token, advance=posted.get("advance") is True)
    entry = context.workbench.reviews.submit(
        actor(),
        decision.model_copy(
            update={"rubric_scores": rubric_scores(context.workbench, context.case_id)}
        ),
        seen_version=seen if isinstance(seen, int) else context.view.summary.version,
        shown=posted["shown"]["digest"],
    )
    _open_next(context, form, form.recording, entry)


def _resume(context: _PanelContext, form: _Form) -> None:
    """Go on after a decision whose run was ended by another one of the page before it could."""
    if (recording := form.recording) is None:
        return
    for entry in context.view.history:
        if entry.decision and entry.decision.token == recording.token:
            _open_next(context, form, recording, entry)


def _open_next(context: _PanelContext, form: _Form, recording: _Recording, entry: LogEntry) -> None:
    """Say that a decision is recorded and open the next case."""
    forget_scores(context.workbench, context.case_id)
    words = verdict_text(entry.decision) if entry.decision else "Decided"
    form.done.append(recording.token)
    form.renew()
    planted = context.workbench.cases.open_for(actor(), context.case_id).planted
    if planted is not None:
        # the page stays: what was planted stands beside the words, and can't be undone
        form.message = _Message(f"{words}. {revealed_words(planted)} Next (N)", "calm")
        st.session_state.pop(_PREVIOUS, None)
        form.recording = None
        return
    form.message = _Message(f"{words}. Undo (U) · Next (N)", "good")
    st.session_state[_PREVIOUS] = _Previous(
        entry.id, context.case_id, f"{words} of {context.case_id}"
    )
    if recording.advance:
        _next_waiting(context, form, skip=False, done=words)
    form.recording = None  # last: a run that another ends before this goes on from here


def _doubts(context: _PanelContext, fields: FormFields) -> list[str]:
    original = context.run.iterations[0].answer if context.run else context.answer
    settings = context.workbench.settings
    return list(
        forms.doubts(fields.corrected or "", context.answer, context.view.case, original, settings)
    )


def _assert_shown(context: _PanelContext, posted: object) -> None:
    """Raise AnotherAnswer unless the answer that stood on the page is the one that this submit
    would decide about.
    """
    shown = context.shown_answer
    if not isinstance(posted, dict) or (posted.get("place"), posted.get("digest")) != (
        shown["place"],
        shown["digest"],
    ):
        raise AnotherAnswer(
            "Nothing was recorded: the answer on the page has"
            f" changed.{_audited_again(context, posted)} It is {context.answer_name} now: read it,"
            " then decide."
        )


def _run_form_action(context: _PanelContext, form: _Form, posted: dict[str, Any]) -> None:
    """Do what a key or a button asked for, other than to submit."""
    if posted.get("case") != context.case_id:
        return
    if reviewer() is None and posted.get("reviewer"):
        name_reviewer(context.workbench, posted["reviewer"])
        form.reviewer = actor().name
    match posted.get("kind"):
        case "undo":
            _undo_decision(context, form, clean(posted.get("entry"), 64))
        case "discard":
            context.workbench.drafts.clear(actor(), case_subject(context.case_id))
            form.keep(posted)
            form.renew()
        case "undo_previous":
            _undo_previous(context, form)
        case "iteration" if run := context.run:
            at = context.at + (1 if posted.get("step") == 1 else -1)
            _show_iteration(min(max(at, 0), len(run.iterations) - 1))
        case "switch" if (run := context.run) and run.revised:
            _show_iteration(0 if context.at else run.iterations.index(run.revised))
        case "take_revision":
            _take_revision(context, form)
        case "next" | "skip" as how:
            _next_waiting(context, form, skip=how == "skip")
        case "whole_queue":
            address.clear(address.FILTERS)
            whole = context.place._replace(
                case_filter=context.workbench.cases.blind_filter(actor(), address.case_filter())
            )
            _next_waiting(context._replace(place=whole), form, skip=False)
        case "forward":
            _go_beside(context, form, forward=True)
        case "search":
            address.leave_case()
        case "back":
            _go_beside(context, form, forward=False)


def _undo_decision(context: _PanelContext, form: _Form, entry_id: str) -> None:
    if reviewer() is None:
        form.message = _Message(
            "Type your name first: it is recorded with an undo, too.", "warn", "reviewer"
        )
        return
    restored = _take_back(context.workbench, entry_id)
    st.session_state.pop(_PREVIOUS, None)
    form.renew()
    form.message = _Message(f"Undone; the log records that too.{restored}", "calm")


def _undo_previous(context: _PanelContext, form: _Form) -> None:
    """Undo the decision made here last and open its case again."""
    previous: _Previous | None = st.session_state.pop(_PREVIOUS, None)
    if previous is None:
        form.message = _Message("There is no decision of this session to undo.", "calm")
        return
    restored = _take_back(context.workbench, previous.entry)
    words = (
        f"Undone: {previous.words[:1].lower()}{previous.words[1:]}; the log records that"
        f" too.{restored}"
    )
    st.session_state[_CARRIED] = (previous.case_id, _Message(words, "calm"), context.case_id)
    address.open_case(previous.case_id)


def _take_back(workbench: Workbench, entry_id: str) -> str:
    """Undo an entry; where it is a decision of one's own, say whether its form is filled in as it
    was.
    """
    decision = workbench.reviews.get(entry_id).decision
    workbench.reviews.undo(actor(), entry_id)
    own = decision is not None and decision.reviewer == reviewer()
    return (
        " What you had entered is back in the form."
        if decision and own and _restore(workbench, decision)
        else ""
    )


def _restore(workbench: Workbench, undone: Decision) -> bool:
    """Put an undone decision of one's own back into the form, unless something new has been begun
    there.
    """
    if not stored_form(workbench, undone.case_id)[0].empty:
        return False
    code = undone.extra.get(REASON_CODE, "")
    known = undone.verdict is not None and code in {
        reason.code for reason in reasons_for(undone.verdict)
    }
    store_form(
        workbench,
        undone.case_id,
        FormFields(
            verdict=undone.verdict,
            reason=code if known else "",
            other=undone.reason if code == OTHER else "",
            note=undone.note,
            corrected=undone.corrected_answer,
            **_labels_of(workbench, undone),
        ),
    )
    return True


def _labels_of(workbench: Workbench, undone: Decision) -> dict[str, Any]:
    """Return the labels of an undone decision as fields; none where the answer that they are about
    is gone.
    """
    if not undone.labels:
        return {}
    try:
        answer = workbench.reviews.answer_of(undone)
    except Removed:
        return {}
    return forms.labels_of(undone, answer_digest(answer))


def _revision(context: _PanelContext) -> int | None:
    """Return the index of the revision that can be taken as a correction: the one shown, else the
    suggested one.
    """
    run = context.run
    if run is None or run.revised is None:
        return None
    return context.at or run.best or run.iterations.index(run.revised)


def _take_revision(context: _PanelContext, form: _Form) -> None:
    """Put a revision into the correction of the original answer, which is what is decided about."""
    index = _revision(context)
    if index is None or context.run is None:
        return
    kept, _ = stored_form(context.workbench, context.case_id)
    corrected = context.run.iterations[index].answer
    store_form(
        context.workbench,
        context.case_id,
        kept.model_copy(update={"verdict": "override", "corrected": corrected, "reason": ""}),
    )
    form.renew()
    name = forms.shown_name(context.run, index)
    words = f"{name.capitalize()} is the correction now: choose a reason, then submit."
    form.message = _Message(words, "calm", "reason")
    _show_iteration(0)


def _show_iteration(index: int) -> None:
    address.set_param("iteration", str(index + 1) if index else "")
    address.set_param("against", "")


def _next_waiting(context: _PanelContext, form: _Form, *, skip: bool, done: str = "") -> None:
    team, case_filter = context.workbench.team, context.place.case_filter
    here = context.case_id
    if skip:
        team.skip(actor(), [here])
        done = f"Skipped {here}"
    # who came back to undo goes on where that was
    found = form.came_from or team.next_open(actor(), case_filter, here, without=[here])
    if found is None:
        empty = team.explain_empty_queue(actor(), case_filter)
        form.message = _Message(
            f"{done and f'{done}. '}{why_nothing(empty)}", "calm", narrowed=empty.elsewhere > 0
        )
        return
    if skip:
        st.session_state[_CARRIED] = (
            found,
            _Message(f"{done}; it comes again after the others.", "calm"),
            "",
        )
    address.open_case(found)


def _go_beside(context: _PanelContext, form: _Form, *, forward: bool) -> None:
    """Open the case that the list has next or before."""
    found = context.workbench.cases.beside(
        context.case_id, context.place.case_filter, forward=forward
    )
    if found is None:
        elsewhere = (
            forward
            and context.workbench.team.explain_empty_queue(
                actor(), context.place.case_filter
            ).elsewhere
            > 0
        )
        words = f"This is the {'last' if forward else 'first'} case of the list."
        form.message = _Message(words, "calm", narrowed=elsewhere)
    else:
        address.open_case(found)


def _data(context: _PanelContext, form: _Form) -> dict[str, Any]:
    """Return everything the component draws."""
    workbench, view = context.workbench, context.view
    fields, saved_at = stored_form(workbench, context.case_id)
    iteration = context.run.iterations[context.at] if context.run else None
    history = forms.history(view.history)
    revision = _revision(context)
    override = fields.verdict == "override"
    corrected = context.answer if fields.corrected is None else fields.corrected
    return {
        "case": context.case_id,
        "form": form.token,
        "reviewer": reviewer() or "",
        "done": _recorded_tokens(context, form)[:50],
        "acks": form.acks,
        "handled": form.handled,
        "seen": view.summary.version,
        "draft": fields.model_dump(mode="json"),
        "blank": FormFields().model_dump(mode="json"),
        "saved_at": saved_at,
        "restored": moment_utc(form.restored or ""),
        "message": vars(form.message) if form.message else None,
        "answer": context.answer,
        "shown": context.shown_answer,
        "about": {"name": context.answer_name, "note": _about_answer(context)},
        "serious": forms.serious_rows(context.run, context.at),
        "previous": _previous(context),
        "notice": context.notice._asdict() if context.notice else None,
        "suggested_name": suggested_name(),
        "revision": forms.shown_name(context.run, revision) if revision else "",
        "longest": max(forms.LONGEST_ANSWER, len(context.answer)),
        "verdicts": [
            {
                "code": code,
                "text": word.text,
                "tone": word.tone,
                "meaning": word.meaning,
                "needs_reason": code in NEEDS_REASON,
            }
            for code, word in DECIDE.items()
        ],
        "reasons": forms.reasons(iteration),
        "check": (
            forms.check(corrected, view.case, workbench.settings, context.answer)
            if override
            else None
        ),
        "labels": {
            "base": forms.label_base(context.run, context.at),
            "rows": forms.label_rows(iteration) if iteration else [],
            "choices": forms.choices(),
        },
        "reporting": _reporting(context),
        "standing": _standing_entry(context, history),
        "history": forms.with_audits(history, view.runs),
        "go": {"waiting": context.place.waiting > 0, "says": _left_text(context)},
        "keys": keys.key_map(),
    }


def _left_text(context: _PanelContext) -> str:
    """Say how many cases are left in what a search or a filter shows, else in the queue."""
    waiting, view = context.place.waiting, context.view
    narrowed = "in this list" if any(map(address.value, address.FILTERS)) else ""
    if address.value("q"):
        narrowed = "in this search"
    where = narrowed or "to review"
    if view.summary.state in WAITING and waiting <= 1:
        return f"This is the last one {where}"
    if not waiting and (view.decision is None or view.summary.state == "accepted"):
        return f"No other case {narrowed or 'in the queue'} needs review"
    return f"{waiting:,} left {where}"


def _reporting(context: _PanelContext) -> forms.Data:
    """Return what is needed to report issues in the answer shown, and those of the decision that
    stands on it.
    """
    entry = context.view.decision
    decision = entry.decision if entry else None
    about_shown = (
        decision is not None
        and bool(decision.reported)
        and (context.run is None or decision.run_id == context.run.id)
        and decision.iteration in ((context.at + 1,) if context.run else (None, 1))
    )
    types = context.workbench.store.team.in_force(LabelTypes)
    return forms.reporting(context.answer, types, decision if about_shown else None)


def _previous(context: _PanelContext) -> str:
    """Name the decision made here last, where it is about another case."""
    previous: _Previous | None = st.session_state.get(_PREVIOUS)
    return previous.words if previous and previous.case_id != context.case_id else ""


def _about_answer(context: _PanelContext) -> str:
    """Say what the answer shown is among those of its audit, and how it differs from
    the original.
    """
    run = context.run
    if run is None or len(run.iterations) < 2:
        return ""
    if context.at == 0:
        return (
            f"The audit suggests {forms.shown_name(run, run.best)}: V shows it."
            if run.best
            else "The audit suggests no revision; V shows the best of those it made."
        )
    changes = word_changes(run.iterations[0].answer, run.iterations[context.at].answer)
    gone, new = (
        sum(len(each.text.split()) for each in changes if each.kind == kind)
        for kind in ("out", "in")
    )
    which = "Suggested by the audit" if context.at == run.best else "Not suggested by the audit"
    changed = f"Against the original: {count_noun(gone, 'word')} removed, {new:,} added."
    return f"{which}. {changed} D shows the changes, V the original."


def _standing_entry(context: _PanelContext, history: list[forms.Data]) -> forms.Data | None:
    """Return the entry that decides the case now; a person can undo what a person decided."""
    entry = context.view.decision
    row = next((row for row in history if entry and row["id"] == entry.id), None)
    if entry is None or row is None or entry.decision is None:
        return None
    if entry.decision.kind != "decision":
        return None
    # where all reviewers of a case have decided, an adjudication decides: the notice says so
    return {**row, "undoable": not (context.notice and context.notice.adjudicate)}
