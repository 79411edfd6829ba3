"""The decision panel of a case: the form, the current decision, the history and the next case.

The form is a component of our own, because Streamlit's widgets send a text only when the field
loses the focus. The component acts on keys at once and saves a draft after each pause in typing. It
runs as a fragment, so that typing doesn't rerun the rest of the page. The rules of the form are in
``decision_form.py``.
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
from masis.ui.team.leases import explain_empty_queue, renew_lease
from masis.views.answer import ShownAnswer, shown_answer
from masis.views.diff import word_changes
from masis.views.faults import revealed_words
from masis.views.log_entries import verdict_text
from masis.views.numbers import moment_utc
from masis.views.words import DECIDE

MACHINE_SHOWN = ("marks", "findings", "verdicts", "scores")
"""The parts of the machine's verdict that the page shows by default.

They are stored with every decision, so the names must never change.
"""

_FORM = "decision-form"
_PREVIOUS = "previous-decision"
_CARRIED = "carried-message"
_COMPONENT = register_component("decision", "key_sheet", "report_issue", "correction_check")


@dataclass
class _Message:
    """A message of the form.

    ``where`` names the field that needs attention. ``narrowed`` says that cases outside of the
    search and its filters wait, so that the form offers a button to continue with them.
    """

    text: str
    tone: str
    where: str = ""
    narrowed: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class _Recording(NamedTuple):
    """A submitted decision that is being recorded, and whether the next case opens after it."""

    token: str
    advance: bool


@dataclass
class _Form:
    """The state of the form that a session has open.

    Attributes:
        token: Identifies the decision. A token that is submitted twice is recorded once.
        acks: The number of the last saved post for each mount of the component.
        handled: The last submit that was answered.
        done: The tokens of the decisions made in this session.
        asked: The doubts that the form has raised. Submitting again records the decision anyway.
        came_from: The case that the reviewer left to undo a decision on this one.
        recording: Set until a decision and its follow-up are complete, because Streamlit can end
            a run for a newer one at any call.

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
        """Note that a post is saved, and return True; return False if a newer one is saved already.

        Posts can arrive twice or late, since the page repeats what wasn't confirmed.
        """
        mount, seq = clean(posted.get("mount"), 64), posted.get("seq")
        if not isinstance(seq, int) or seq <= self.acks.get(mount, -1):
            return False
        self.acks[mount] = seq
        return True

    def ask_once(self, about: str, question: str, where: str) -> bool:
        """Show a question instead of recording, and return True; return False if it was asked."""
        if about in self.asked:
            return False
        self.asked.add(about)
        self.message = _Message(question, "warn", where)
        return True


@dataclass
class _Previous:
    """The last decision of this session, which U on the next case undoes."""

    entry: str
    case_id: str
    words: str


class _QueuePlace(NamedTuple):
    """The queue the address describes, and how many of its cases need review."""

    case_filter: CaseFilter
    waiting: int


class _PanelContext(NamedTuple):
    """The case, the answer and the queue that the panel is about, fixed for one run of the page."""

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
        """The answer shown, as the rules of a decision need it."""
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
    """Draw the decision panel for an answer.

    Args:
        workbench: The services.
        view: The case.
        run: The audit shown, or None for an unaudited case.
        index: The iteration shown, from 0.
        machine_shown: The parts of the machine's verdict that the page shows.
        notice: The work of other people on the case.

    """
    user = actor()
    case_filter = workbench.cases.blind_filter(user, address.case_filter())
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
    # Drawn below the panel: an element above it would change the fragment's id, which depends on
    # its position, between people with and without the role.
    if not workbench.access.allows(user, "decide"):
        roles = ", ".join(user.roles) or "none"
        st.info(
            "You can read this case. You need the reviewer role to decide it."
            f" Your roles: {roles}.",
            icon=":material/lock:",
        )


@st.fragment
def _panel(context: _PanelContext) -> None:
    """Draw the panel as a fragment, which has to report an unreachable database itself."""
    try:
        with explained_errors(served_database()):
            _draw_decision(context)
    except StoreError as error:
        st.error(
            "The database can't be used right now. Your draft is stored in this browser.",
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
    # After a restart of the server, an open page posts drafts that this session hasn't seen yet.
    saved_late = _keep_posted(context, form, posted.draft)
    for request, handle in ((posted.submit, _submit_decision), (posted.act, _run_form_action)):
        if isinstance(request, dict):
            _report_errors(context, form, request, handle)
            st.rerun()
    if saved_late:
        st.rerun()


def _open_form(context: _PanelContext) -> _Form:
    """Return the open form of this case and person, or open a new one for them."""
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
    """Save a draft that the page posted, and return whether it was new."""
    if not isinstance(posted, dict) or posted.get("case") != context.case_id:
        return False
    if posted.get("token") in _recorded_tokens(context, form) or not form.keep(posted):
        return False
    try:
        store_form(context.workbench, context.case_id, read_form(FormFields, posted.get("fields")))
    except MasisError as error:
        form.message = _Message(f"The draft couldn't be saved: {error}", "bad")
        return False
    form.message = None
    try:
        renew_lease(context.workbench, context.case_id)
    except MasisError as error:
        form.message = _Message(str(error), "warn")
    return True


def _recorded_tokens(context: _PanelContext, form: _Form) -> list[str]:
    """Return the tokens of recorded decisions, so that late posts of their forms are ignored."""
    return [
        *form.done,
        *(
            entry.decision.token
            for entry in context.view.history
            if entry.decision and entry.decision.token
        ),
    ]


def stored_form(workbench: Workbench, case_id: str) -> tuple[FormFields, str | None]:
    """Return the user's draft of the form, and the time it was saved (None if there is none)."""
    draft = workbench.drafts.get(actor(), case_subject(case_id))
    return read_form(FormFields, draft.values), draft.saved_at


def store_form(workbench: Workbench, case_id: str, fields: FormFields) -> None:
    """Save the form as a draft, or remove the draft if the form is empty."""
    if fields.empty:
        workbench.drafts.clear(actor(), case_subject(case_id))
    else:
        workbench.drafts.save(actor(), case_subject(case_id), fields.model_dump(mode="json"))


def _report_errors(
    context: _PanelContext, form: _Form, posted: dict[str, Any], handle: Callable[..., None]
) -> None:
    try:
        handle(context, form, posted)
    except AnotherAnswer as error:
        form.message = _Message(str(error), "warn")
    except StaleVersion:
        again = _audited_again(context, posted.get("shown"))
        form.message = _Message(
            f"This case has changed since you opened it. You now see its current state.{again} Your"
            " entries are still here. Check them, then submit again.",
            "warn",
        )
    except MasisError as error:
        form.message = _Message(str(error), "bad")


def _audited_again(context: _PanelContext, posted: object) -> str:
    """Say who started a newer audit than the one on the page, and when; "" if there is none."""
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
    """Record the decision of the form, or show why it can't be recorded.

    ``masis/services/reviews.py`` records it; the rules of a decision are in ``decision_rules.py``.
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
    if problem := forms.find_problem(fields, reviewer() or ""):
        form.message = _Message(problem.message, "warn", problem.field)
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
    problems = decision_rules.problems(decision, context.decided_answer)
    if problem := forms.to_mend(each for each in problems if each.code != "serious_issues_open"):
        form.message = _Message(problem.message, "warn", problem.field)
        return
    question = (
        "Say what the case waits for: choose a reason or write a note. Submit again to escalate it"
        " without one."
    )
    if forms.is_unexplained_escalation(fields) and form.ask_once("why", question, "reason"):
        return
    _assert_shown(context, posted.get("shown"))
    if fields.verdict == "override" and (doubts := _doubts(context, fields)):
        question = (
            f"Nothing was recorded. Check the correction: {'; '.join(doubts)}. Press Ctrl Enter"
            " again to record it as it is."
        )
        if form.ask_once(f"correction {fields.corrected}", question, "corrected"):
            return
    if problems:  # only serious issues are left, and the answer has not changed since it was shown
        form.message = _Message(
            f"Nothing was recorded. You haven't seen all serious issues that are open in"
            f" {context.answer_name}. Approve again to see them.",
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
    """Finish the follow-up of a decision whose run was ended by a newer run of the page."""
    if (recording := form.recording) is None:
        return
    for entry in context.view.history:
        if entry.decision and entry.decision.token == recording.token:
            _open_next(context, form, recording, entry)


def _open_next(context: _PanelContext, form: _Form, recording: _Recording, entry: LogEntry) -> None:
    """Confirm that a decision is recorded, and open the next case."""
    forget_scores(context.workbench, context.case_id)
    words = verdict_text(entry.decision) if entry.decision else "Decided"
    form.done.append(recording.token)
    form.renew()
    planted = context.workbench.cases.open_for(actor(), context.case_id).planted
    if planted is not None:
        # Stay on the page to show what was planted. A decision on a planted fault can't be undone.
        form.message = _Message(f"{words}. {revealed_words(planted)} Next (N)", "calm")
        st.session_state.pop(_PREVIOUS, None)
        form.recording = None
        return
    form.message = _Message(f"{words}. Undo (U) · Next (N)", "good")
    st.session_state[_PREVIOUS] = _Previous(
        entry.id, context.case_id, f"{words} of {context.case_id}"
    )
    if recording.advance:
        _open_next_waiting(context, form, skip=False, done=words)
    form.recording = None  # last, so that `_resume` repeats this if a newer run ends it before


def _doubts(context: _PanelContext, fields: FormFields) -> list[str]:
    original = context.run.iterations[0].answer if context.run else context.answer
    settings = context.workbench.settings
    return list(
        forms.doubts(fields.corrected or "", context.answer, context.view.case, original, settings)
    )


def _assert_shown(context: _PanelContext, posted: object) -> None:
    """Raise AnotherAnswer unless the page showed the answer that the submit decides about."""
    shown = context.shown_answer
    if not isinstance(posted, dict) or (posted.get("place"), posted.get("digest")) != (
        shown["place"],
        shown["digest"],
    ):
        raise AnotherAnswer(
            "Nothing was recorded, because the answer on the page has"
            f" changed.{_audited_again(context, posted)} It is {context.answer_name} now. Read it,"
            " then decide."
        )


def _run_form_action(context: _PanelContext, form: _Form, posted: dict[str, Any]) -> None:
    """Run the action of a key or a button other than Submit."""
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
        case "next" | "skip" as kind:
            _open_next_waiting(context, form, skip=kind == "skip")
        case "whole_queue":
            address.clear(address.FILTERS)
            whole_queue = context.place._replace(
                case_filter=context.workbench.cases.blind_filter(actor(), address.case_filter())
            )
            _open_next_waiting(context._replace(place=whole_queue), form, skip=False)
        case "forward":
            _open_neighbour(context, form, forward=True)
        case "search":
            address.leave_case()
        case "back":
            _open_neighbour(context, form, forward=False)


def _undo_decision(context: _PanelContext, form: _Form, entry_id: str) -> None:
    if reviewer() is None:
        form.message = _Message(
            "Type your name first. It's recorded with an undo, too.", "warn", "reviewer"
        )
        return
    restored = _take_back(context.workbench, entry_id)
    st.session_state.pop(_PREVIOUS, None)
    form.renew()
    form.message = _Message(f"Undone. The log records that, too.{restored}", "calm")


def _undo_previous(context: _PanelContext, form: _Form) -> None:
    """Undo the last decision of this session, and open its case."""
    previous: _Previous | None = st.session_state.pop(_PREVIOUS, None)
    if previous is None:
        form.message = _Message("This session has no decision to undo.", "calm")
        return
    restored = _take_back(context.workbench, previous.entry)
    words = (
        f"Undone: {previous.words[:1].lower()}{previous.words[1:]}. The log records that,"
        f" too.{restored}"
    )
    st.session_state[_CARRIED] = (previous.case_id, _Message(words, "calm"), context.case_id)
    address.open_case(previous.case_id)


def _take_back(workbench: Workbench, entry_id: str) -> str:
    """Undo an entry, and return a sentence if its entries are back in the form."""
    decision = workbench.reviews.get(entry_id).decision
    workbench.reviews.undo(actor(), entry_id)
    is_own = decision is not None and decision.reviewer == reviewer()
    return (
        " Your entries are back in the form."
        if decision and is_own and _restore(workbench, decision)
        else ""
    )


def _restore(workbench: Workbench, undone: Decision) -> bool:
    """Fill the form with an undone decision, unless it has new entries. Return whether it did."""
    if not stored_form(workbench, undone.case_id)[0].empty:
        return False
    code = undone.extra.get(REASON_CODE, "")
    is_known = undone.verdict is not None and code in {
        reason.code for reason in reasons_for(undone.verdict)
    }
    store_form(
        workbench,
        undone.case_id,
        FormFields(
            verdict=undone.verdict,
            reason=code if is_known else "",
            other=undone.reason if code == OTHER else "",
            note=undone.note,
            corrected=undone.corrected_answer,
            **_labels_of(workbench, undone),
        ),
    )
    return True


def _labels_of(workbench: Workbench, undone: Decision) -> dict[str, Any]:
    """Return the labels of an undone decision as fields, or none if its answer is gone."""
    if not undone.labels:
        return {}
    try:
        answer = workbench.reviews.answer_of(undone)
    except Removed:
        return {}
    return forms.labels_of(undone, answer_digest(answer))


def _revision(context: _PanelContext) -> int | None:
    """Return the index of the revision that can become the correction, or None.

    It's the revision shown, or else the one that the audit suggests, or else its best one.
    """
    run = context.run
    if run is None or run.revised is None:
        return None
    return context.at or run.best or run.iterations.index(run.revised)


def _take_revision(context: _PanelContext, form: _Form) -> None:
    """Copy a revision into the correction of the original answer, and show that answer."""
    index = _revision(context)
    if index is None or context.run is None:
        return
    fields, _ = stored_form(context.workbench, context.case_id)
    corrected = context.run.iterations[index].answer
    store_form(
        context.workbench,
        context.case_id,
        fields.model_copy(update={"verdict": "override", "corrected": corrected, "reason": ""}),
    )
    form.renew()
    name = forms.shown_name(context.run, index)
    text = f"{name.capitalize()} is the correction now. Choose a reason, then submit."
    form.message = _Message(text, "calm", "reason")
    _show_iteration(0)


def _show_iteration(index: int) -> None:
    address.set_param("iteration", str(index + 1) if index else "")
    address.set_param("against", "")


def _open_next_waiting(context: _PanelContext, form: _Form, *, skip: bool, done: str = "") -> None:
    """Open the next case that waits for this person, or say why there is none."""
    team, case_filter = context.workbench.team, context.place.case_filter
    case_id = context.case_id
    if skip:
        team.skip(actor(), [case_id])
        done = f"Skipped {case_id}"
    # after an undo, return to the case that the reviewer came from
    next_id = form.came_from or team.next_open(actor(), case_filter, case_id, without=[case_id])
    if next_id is None:
        empty = team.explain_empty_queue(actor(), case_filter)
        form.message = _Message(
            f"{done and f'{done}. '}{explain_empty_queue(empty)}",
            "calm",
            narrowed=empty.elsewhere > 0,
        )
        return
    if skip:
        st.session_state[_CARRIED] = (
            next_id,
            _Message(f"{done}. It comes back after the other cases.", "calm"),
            "",
        )
    address.open_case(next_id)


def _open_neighbour(context: _PanelContext, form: _Form, *, forward: bool) -> None:
    """Open the next or the previous case of the list."""
    neighbour = context.workbench.cases.beside(
        context.case_id, context.place.case_filter, forward=forward
    )
    if neighbour is not None:
        address.open_case(neighbour)
        return
    others_wait = (
        forward
        and context.workbench.team.explain_empty_queue(actor(), context.place.case_filter).elsewhere
        > 0
    )
    text = f"This is the {'last' if forward else 'first'} case of the list."
    form.message = _Message(text, "calm", narrowed=others_wait)


def _data(context: _PanelContext, form: _Form) -> dict[str, Any]:
    """Return the data that the component draws (``decision.js``)."""
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
    """Say how many cases are left in the search or the filtered list, or else in the queue."""
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
    """Return the data for reporting issues in the answer shown, with those reported already."""
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
    """Describe the last decision of this session if it's about another case."""
    previous: _Previous | None = st.session_state.get(_PREVIOUS)
    return previous.words if previous and previous.case_id != context.case_id else ""


def _about_answer(context: _PanelContext) -> str:
    """Say whether the audit suggests the answer shown, and how it differs from the original."""
    run = context.run
    if run is None or len(run.iterations) < 2:
        return ""
    if context.at == 0:
        return (
            f"The audit suggests {forms.shown_name(run, run.best)}. Press V to see it."
            if run.best
            else "The audit suggests no revision. Press V to see the best one it made."
        )
    changes = word_changes(run.iterations[0].answer, run.iterations[context.at].answer)
    removed, added = (
        sum(len(change.text.split()) for change in changes if change.kind == kind)
        for kind in ("out", "in")
    )
    origin = "Suggested by the audit" if context.at == run.best else "Not suggested by the audit"
    changed = f"Against the original: {count_noun(removed, 'word')} removed, {added:,} added."
    return f"{origin}. {changed} D shows the changes, V the original."


def _standing_entry(context: _PanelContext, history: list[forms.Data]) -> forms.Data | None:
    """Return the entry with the current decision of the case, if a person made it."""
    entry = context.view.decision
    row = next((row for row in history if entry and row["id"] == entry.id), None)
    if entry is None or row is None or entry.decision is None:
        return None
    if entry.decision.kind != "decision":
        return None
    # Once all reviewers have decided, only an adjudication changes the case, as the notice says.
    return {**row, "undoable": not (context.notice and context.notice.adjudicate)}
