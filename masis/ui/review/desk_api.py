"""The desk's own endpoints of the JSON API: open an answer, save a draft, decide, undo, go on.

``components/desk.js`` calls them. An answer carries what to show next. A refusal says what to fix
(422) or what has changed (409), with the field of the form. ``masis/services/reviews.py`` records
decisions; the rules of a decision are in ``decision_rules.py``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from masis.errors import AnotherAnswer, CaseHeld, MasisError, Removed, StaleVersion
from masis.schema.base import Record
from masis.schema.review import Decision, LogEntry, answer_digest
from masis.schema.rules import Tone
from masis.schema.wording import shorten
from masis.server.endpoints import ApiCall, endpoint
from masis.services import Actor
from masis.services.api_records import CaseQuery
from masis.services.cases import WAITING
from masis.services.decision_rules import (
    problems,
)
from masis.services.drafts import (
    adjudication_subject,
    case_subject,
    clean,
    read_form,
    rubric_subject,
)
from masis.services.records import CaseFilter
from masis.ui.review import decision_form as forms
from masis.ui.review.decision_form import FormFields
from masis.ui.review.desk import OpenDesk, Place, whole_queue
from masis.ui.team.final_desk import FinalDesk, FinalFields
from masis.ui.team.leases import explain_empty_queue
from masis.views.answer import shown_answer
from masis.views.faults import revealed_words
from masis.views.log_entries import verdict_text
from masis.views.words import DECIDED

CHANGED = "Your entries are still here. Check them, then submit again."
CHANGED_FINAL = (
    "Nothing was recorded. Press M to see your entries and to give another final verdict."
)
ENTRIES_SAVED = (
    "Your entries are saved. Submit to load the current state; nothing will be recorded."
)


class FormMessage(Record):
    """A message of the form.

    ``where`` names the field that needs attention. ``narrowed`` says that cases outside of the
    search and its filters wait, so that the form offers a button to continue with them.
    """

    text: str
    tone: Tone = "calm"
    where: str = ""
    narrowed: bool = False


class FormRefused(MasisError):
    """A form that can't be recorded as it is.

    Attributes:
        field: The field that needs attention.
        confirms: What a repeated request confirms, if the refusal is only a question.

    """

    def __init__(
        self, message: str, *, field: str = "", confirms: str = "", status: int = 422
    ) -> None:
        super().__init__(message)
        self.field, self.confirms, self.status = field, confirms, status

    @property
    def http_status(self) -> int:  # type: ignore[override]
        """409 if something has changed, 422 if the form lacks something."""
        return self.status

    @property
    def about(self) -> dict[str, Any]:
        """Details for programs, with what a repeated request confirms."""
        return {**super().about, "confirms": self.confirms}


class DeskRequest(Record):
    """A request about the answer that is open. ``queue`` is the list that it was opened from."""

    place: Place
    queue: CaseQuery = CaseQuery()

    def open(self, call: ApiCall, **place: str) -> OpenDesk:
        """Open the answer, or another one of the same list."""
        there = self.place
        if place:
            there = Place(**place, adjudication=self.place.adjudication)
        kind = FinalDesk if there.adjudication else OpenDesk
        queue = self.queue.case_filter()

        def claim(case_id: str) -> None:
            if not there.adjudication:  # nobody takes a case to adjudicate it
                call.workbench.team.claim(call.actor, case_id, queue.queue)

        return kind.open(call.workbench, call.actor, there, queue, claim)


class Move(DeskRequest):
    """Which answer to open: the place itself, or another case of the list.

    ``came_from`` is the case that the person left to undo a decision.
    """

    to: Literal["here", "next", "skip", "whole_queue", "forward", "back"] = "here"
    came_from: str = ""


class DraftForm(DeskRequest):
    """The entries of the form.

    Attributes:
        fields: The entries.
        token: The form's, so that a late draft can be recognized.
        seen: The version of the case that was on the page.

    """

    fields: JsonValue
    token: str = Field(max_length=64)
    seen: int | None = None

    @property
    def subject(self) -> str:
        """The subject of the draft."""
        subject_of = adjudication_subject if self.place.adjudication else case_subject
        return subject_of(self.place.case)

    def form(self) -> FormFields:
        """Read the entries. A value that isn't valid is dropped."""
        kind = FinalFields if self.place.adjudication else FormFields
        return read_form(kind, self.fields)


class DecisionForm(DraftForm):
    """A submitted form.

    Attributes:
        shown: The answer that was on the page.
        acknowledged: The ids of the serious issues that were listed.
        confirmed: The questions that the form has asked already.
        left: The ids of the serious issues that the correction leaves and that weren't listed yet,
            as far as the browser knows. One question is about them and about the correction.
        advance: Whether to open the next case.
        adopts: Whether the draft was typed before a name was known.
        seconds: How long the form was open.

    """

    shown: dict[str, str]
    acknowledged: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    advance: bool = True
    came_from: str = ""
    adopts: bool = False
    seconds: float = 0.0


class UndoneEntry(DeskRequest):
    """An entry of the log to undo. Its case is opened."""

    entry: str


class SavedDraft(Record):
    """A saved draft, with the check of its correction."""

    saved_at: str
    check: dict[str, Any] | None = None
    message: FormMessage | None = None


class DeskAnswer(Record):
    """What to show now.

    Attributes:
        desk: The data of the answer to show; None if the one on the page stays.
        message: A message of the form.
        entry: The id of the recorded decision or skip, which U undoes from the next case. It's
            empty if nobody can undo it.
        done: The recorded decision or skip in words.

    """

    desk: dict[str, Any] | None = None
    message: FormMessage | None = None
    entry: str = ""
    done: str = ""


@endpoint("POST", "/desk/open", "read", "see pages, figures and reports")
def open_answer(call: ApiCall, body: Move) -> DeskAnswer:
    """Open an answer at the desk, or the next case of its list; this takes the case."""
    if body.to == "here":
        return DeskAnswer(desk=body.open(call).data())
    if body.place.adjudication:
        return _open_adjudication(call, body, forward=body.to != "back")
    if body.to in ("forward", "back"):
        return _open_neighbor(call, body, forward=body.to == "forward")
    if body.to == "whole_queue":
        whole = CaseQuery(**whole_queue(body.queue).model_dump())
        return open_next(call, body.model_copy(update={"queue": whole}), body.came_from)
    if body.to != "skip":
        return open_next(call, body, body.came_from)
    (entry,) = call.workbench.team.skip(call.actor, [body.place.case])
    done = f"Skipped {body.place.case}"
    answer = open_next(call, body, body.came_from, done)
    about = {"entry": entry.id, "done": f"{done}. It comes back after the other cases"}
    return answer.model_copy(update=about)


def open_next(call: ApiCall, body: DeskRequest, came_from: str, done: str = "") -> DeskAnswer:
    """Open the next case that waits for this person, or say why there is none."""
    team, case_id = call.workbench.team, body.place.case
    queue = call.workbench.cases.blind_filter(call.actor, body.queue.case_filter())
    # after an undo, return to the case that the reviewer came from
    next_id = came_from or _claim_next(call, queue, case_id)
    if next_id is not None:
        return DeskAnswer(desk=body.open(call, case=next_id).data())
    empty = team.explain_empty_queue(call.actor, queue)
    text = f"{done and f'{done}. '}{explain_empty_queue(empty)}"
    message = FormMessage(text=text, narrowed=empty.elsewhere > 0)
    return DeskAnswer(desk=body.open(call).data(), message=message)


def _claim_next(call: ApiCall, queue: CaseFilter, case_id: str) -> str | None:
    """Take the next case of a list, and return its id.

    Two people often ask for the next case within a few milliseconds. If each only looked it up,
    both would open the same one.
    """
    team = call.workbench.team
    if not call.actor.name or not call.workbench.access.allows(call.actor, "decide"):
        return team.next_open(call.actor, queue, case_id, without=[case_id])
    lease = team.claim_next(call.actor, queue, case_id, without=[case_id])
    return lease.case_id if lease else None


def _open_adjudication(call: ApiCall, body: Move, *, forward: bool) -> DeskAnswer:
    """Open the next or the previous case that waits for an adjudication."""
    desk = body.open(call)
    neighbor = desk.neighbor(forward=forward) if isinstance(desk, FinalDesk) else None
    if neighbor is not None:
        return DeskAnswer(desk=body.open(call, case=neighbor).data())
    if not desk.waiting:
        text = "No case is waiting for adjudication."
    else:
        text = f"This is the {'only' if forward else 'first'} case waiting for adjudication."
    return DeskAnswer(message=FormMessage(text=text))


def _open_neighbor(call: ApiCall, body: Move, *, forward: bool) -> DeskAnswer:
    """Open the next or the previous case of the list."""
    workbench = call.workbench
    queue = workbench.cases.blind_filter(call.actor, body.queue.case_filter())
    neighbor = workbench.cases.neighbor(body.place.case, queue, forward=forward)
    if neighbor is not None:
        return DeskAnswer(desk=body.open(call, case=neighbor).data())
    others_wait = forward and workbench.team.explain_empty_queue(call.actor, queue).elsewhere > 0
    text = f"This is the {'last' if forward else 'first'} case of the list."
    return DeskAnswer(message=FormMessage(text=text, narrowed=others_wait))


@endpoint("PUT", "/desk/draft", "decide", "save drafts of decisions")
def save_draft(call: ApiCall, body: DraftForm) -> SavedDraft:
    """Save the form of the answer that is open, and extend the lease on its case."""
    fields = body.form()
    saved_at = store_form(call, body.subject, fields, body.token)
    message = None
    try:
        if not body.place.adjudication:
            _renew_lease(call, body.place.case, body.queue.queue)
    except CaseHeld as error:
        message = FormMessage(text=str(error), tone="warn")
    check = None
    if fields.verdict == "override" or body.place.adjudication:
        desk = body.open(call)
        check = desk.check(fields)
        if body.place.adjudication and desk.view.summary.version != body.seen:
            text = f"This case has changed since you opened it.{desk.explain_change('')}"
            message = FormMessage(text=f"{text} {ENTRIES_SAVED}", tone="warn")
    return SavedDraft(saved_at=saved_at, check=check, message=message)


def store_form(call: ApiCall, subject: str, fields: FormFields, token: str = "") -> str:
    """Save a form as a draft, or remove an empty one, and return when it was saved."""
    values = {} if fields.empty else fields.model_dump(mode="json")
    return call.workbench.drafts.save_form(call.actor, subject, values, token).saved_at or ""


def _renew_lease(call: ApiCall, case_id: str, queue: str) -> None:
    """Extend the lease of a person who is typing on a case that they can decide.

    Raises:
        CaseHeld: Another person has taken the case.

    """
    team = call.workbench.team
    waits = call.workbench.cases.summary(case_id).state in WAITING
    if queue:
        waits = call.workbench.queues.has_waiting(call.actor, queue, case_id)
    if not call.actor.name or not waits:
        return
    if call.actor.name not in team.work(call.actor, case_id, queue or None).decided_by:
        team.claim(call.actor, case_id, queue)


@endpoint("POST", "/desk/decisions", "decide", "decide cases")
def decide(call: ApiCall, body: DecisionForm) -> DeskAnswer:
    """Record the decision of the form, and open the next case."""
    workbench = call.workbench
    if body.adopts:
        workbench.drafts.adopt(call.actor)
    desk = body.open(call)
    # the answer to this decision was lost, and it's sent again
    history = desk.view.history
    repeated = next((made for made in history if _is_made_by(made, call.actor, body.token)), None)
    if repeated is not None:
        if isinstance(desk, FinalDesk):
            return _after_final(call, body, desk, repeated)
        return _after(call, body, repeated)
    fields = body.form()
    store_form(call, body.subject, fields, body.token)
    try:
        if isinstance(desk, FinalDesk) and isinstance(fields, FinalFields):
            entry = _record_final(call, body, desk, fields)
            return _after_final(call, body, desk, entry)
        decision = _checked_decision(desk, body, fields)
        entry = workbench.reviews.submit(
            call.actor,
            decision.model_copy(
                update={
                    "rubric_scores": desk.rubric_scores(),
                    "queue": desk.queue.queue or None,
                }
            ),
            seen_version=body.seen,
            shown=body.shown["digest"],
        )
    except AnotherAnswer as error:
        raise FormRefused(str(error), status=409) from error
    except StaleVersion as error:
        again = desk.explain_change(body.shown.get("place", ""))
        raise FormRefused(
            f"This case has changed since you opened it. You now see its current state.{again}"
            f" {CHANGED_FINAL if body.place.adjudication else CHANGED}",
            status=409,
        ) from error
    workbench.drafts.clear(call.actor, rubric_subject(desk.case_id))
    return _after(call, body, entry)


def _is_made_by(entry: LogEntry, actor: Actor, token: str) -> bool:
    decision = entry.decision
    return decision is not None and (decision.token, decision.reviewer) == (token, actor.name)


def _record_final(
    call: ApiCall, body: DecisionForm, desk: FinalDesk, fields: FinalFields
) -> LogEntry:
    """Record the final verdict of the form.

    Raises:
        FormRefused: Something is missing.

    """
    if fields.verdict is None:
        raise FormRefused(
            "Press a reviewer's number to use their decision, or choose a verdict.",
            field="verdict",
        )
    decision, answer = desk.decision_of(fields)
    confirms = _correction_question(fields)
    if confirms in body.confirmed:
        decision = desk.with_kept_citations(decision)
    if problem := next(iter(problems(decision, answer)), None):
        field = "corrected" if problem.field == "corrected_answer" else "other"
        if problem.code == "citations_unknown":
            raise FormRefused(
                f"Nothing was recorded: {problem.message}. Press Ctrl Enter again to record it as"
                " it is.",
                field=field,
                confirms=confirms,
            )
        raise FormRefused(f"Nothing was recorded: {problem.message}.", field=field)
    extra = decision.extra | {"seconds": round(body.seconds, 1)}
    final = decision.model_copy(update={"token": body.token, "extra": extra})
    entry = call.workbench.reviews.adjudicate(
        call.actor,
        final,
        seen_version=body.seen,
        kept_labels=desk.kept_labels(fields, final),
    )
    call.workbench.drafts.clear(call.actor, body.subject)
    return entry


def _after_final(call: ApiCall, body: DecisionForm, desk: FinalDesk, entry: LogEntry) -> DeskAnswer:
    """Return what comes after a final verdict: the next case that waits, or the settled one."""
    final = entry.decision
    verdict = final.verdict if final else None
    word = DECIDED[verdict].text.lower() if verdict else "decided"
    done = f"{desk.case_id}, “{shorten(desk.view.case.query, 200)}”: {word}"
    following = desk.neighbor()
    if following is not None:
        return DeskAnswer(desk=body.open(call, case=following).data(), entry=entry.id, done=done)
    message = FormMessage(
        text=f"Recorded: {word}. No other case needs your adjudication. Undo (U)", tone="good"
    )
    settled = body.open(call, case=desk.case_id).data()
    return DeskAnswer(desk=settled, message=message, entry=entry.id, done=done)


def _correction_question(fields: FormFields) -> str:
    """Return what a repeated submission confirms about this correction; another text is new."""
    return f"correction {answer_digest(fields.corrected or '')}"


def _checked_decision(desk: OpenDesk, body: DecisionForm, fields: FormFields) -> Decision:
    """Return the decision of the form.

    Raises:
        FormRefused: Something is missing, has to be confirmed, or isn't what the page showed.

    """
    if problem := forms.find_problem(fields, desk.actor.name):
        raise FormRefused(problem.message, field=problem.field)
    decision = forms.decision_of(
        fields,
        case_id=desk.case_id,
        run=desk.run,
        index=desk.index,
        reviewer=desk.actor.name,
        token=body.token,
        machine_shown=desk.machine_shown,
        shown=shown_answer(desk.view.case, desk.run, desk.index)["digest"],
        acknowledged=body.acknowledged,
    )
    if fields.verdict == "override" and fields.corrected is None:
        # The form sends no text while the field has the answer as it is
        decision = decision.model_copy(update={"corrected_answer": desk.decided_answer.text})
    found = problems(decision, desk.decided_answer)
    if problem := forms.to_mend(
        problem for problem in found if problem.code != "serious_issues_open"
    ):
        raise FormRefused(problem.message, field=problem.field)
    if forms.is_unexplained_escalation(fields) and "why" not in body.confirmed:
        raise FormRefused(
            "Say what the case waits for: choose a reason or write a note. Submit again to escalate"
            " it without one.",
            field="reason",
            confirms="why",
        )
    if dict(shown_answer(desk.view.case, desk.run, desk.index)) != body.shown:
        raise FormRefused(
            "Nothing was recorded, because the answer on the page has"
            f" changed.{desk.explain_change(body.shown.get('place', ''))} It is {desk.answer_name}"
            " now. Read it, then decide.",
            status=409,
        )
    confirms = _correction_question(fields)
    asks = fields.verdict == "override" and confirms not in body.confirmed
    doubts = desk.doubts(fields.corrected or "") if asks else []
    left = asks and _leaves_serious_issues(desk, body, fields)
    if doubts or left:
        check = f" Check the correction: {'; '.join(doubts)}." if doubts else ""
        read = " Read the serious issues that are left." if left else ""
        raise FormRefused(
            f"Nothing was recorded.{check}{read} Press Ctrl Enter again to record it as it is.",
            field="corrected",
            confirms=confirms,
        )
    if found:  # only serious issues are left, and the answer has not changed since it was shown
        raise FormRefused(
            f"Nothing was recorded. You haven't seen all serious issues that are open in"
            f" {desk.answer_name}. Approve again to see them."
        )
    if "last" not in body.confirmed and not desk.queue.queue:
        reviewers = desk.workbench.team.completes_earlier_policy(desk.actor, desk.case_id)
        if reviewers:
            raise FormRefused(
                f"Nothing was recorded yet. You are the last of {reviewers} reviewers of this case,"
                " so your decision can't be undone. Submit again to record it.",
                confirms="last",
            )
    return desk.with_kept_citations(decision) if confirms in body.confirmed else decision


def _leaves_serious_issues(desk: OpenDesk, body: DecisionForm, fields: FormFields) -> bool:
    """Return whether a correction leaves serious issues that weren't listed.

    If it's a revision, its own audit decides. The browser may have sent a new text before it was
    checked, and then compared its words with the issues of the answer shown.
    """
    audited = forms.audited_issues(desk.run, fields.corrected or "")
    if audited is None:
        return bool(body.left)
    listed = {name for row in audited["serious"] for name in row["ids"]}
    return not listed.issubset(body.acknowledged)


def _after(call: ApiCall, body: DecisionForm, entry: LogEntry) -> DeskAnswer:
    """Return what comes after a recorded decision: the next case, or the decided one."""
    words = verdict_text(entry.decision) if entry.decision else "Decided"
    desk = body.open(call)
    if desk.view.planted is not None:
        # Stay on the page to show what was planted. A decision on a planted fault can't be undone.
        text = f"{words}. {revealed_words(desk.view.planted)} Next (N)"
        return DeskAnswer(desk=desk.data(), message=FormMessage(text=text), done=words)
    done = f"{words} of {desk.case_id}"
    about = {"entry": entry.id, "done": done}
    undo = "Undo (U)"
    if desk.notice is not None and desk.notice.adjudicate:
        # without the entry, the form offers no undo, which would be refused
        about = {"done": done}
        undo = "All reviewers have decided, so only an adjudication can change it."
    if body.advance:
        answer = open_next(call, body, body.came_from, words).model_copy(update=about)
        if answer.entry or answer.message is not None:
            return answer
        return answer.model_copy(update={"message": FormMessage(text=f"{done}. {undo}")})
    message = FormMessage(text=f"{words}. {undo} · Next (N)", tone="good")
    return DeskAnswer(desk=desk.data(), message=message, **about)


@endpoint("POST", "/desk/undo", "decide", "undo own decisions or auto-acceptances")
def undo_entry(call: ApiCall, body: UndoneEntry) -> DeskAnswer:
    """Undo a decision or a skip, open its case, and put a decision's entries into the form."""
    if not call.actor.name:
        raise FormRefused(
            "Type your name first. It's recorded with an undo, too.", field="reviewer"
        )
    reviews = call.workbench.reviews
    undone = reviews.get(clean(body.entry, 64)).decision
    reviews.undo(call.actor, body.entry)
    case_id = undone.case_id if undone else body.place.case
    if undone is not None and undone.kind == "adjudication" and body.place.adjudication:
        return _reopen_adjudication(call, body, undone)
    restored = (
        " Your entries are back in the form."
        if undone
        and undone.kind != "skip"
        and undone.reviewer == call.actor.name
        and _restore(call, undone)
        else ""
    )
    done = f"Undone. The undo is recorded in the log.{restored}"
    here = case_id == body.place.case
    if undone is not None and not here:
        words = "skipped" if undone.kind == "skip" else f"{verdict_text(undone)} of"
        done = f"Undone: {words[:1].lower()}{words[1:]} {case_id}. The undo is recorded in the log."
        done += restored
    desk = body.open(call) if here else body.open(call, case=case_id)
    data = desk.data()
    if restored:
        data["restored"] = ""  # the entries are those of the decision, and not an earlier draft's
    return DeskAnswer(desk=data, message=FormMessage(text=done))


def _reopen_adjudication(call: ApiCall, body: UndoneEntry, undone: Decision) -> DeskAnswer:
    """Open the case of an undone final verdict, with its entries if the case waits again."""
    desk = body.open(call, case=undone.case_id)
    assert isinstance(desk, FinalDesk)
    if desk.final is not None and desk.final.verdict is not None:
        call.workbench.drafts.clear(call.actor, desk.subject)
        owner = "your" if desk.final.reviewer == call.actor.name else f"{desk.final.reviewer}'s"
        text = f"{owner} verdict applies again ({DECIDED[desk.final.verdict].text.lower()})"
    else:
        name = undone.extra.get("taken_from", "")
        taken = next((side for side in desk.decisions if side.reviewer == name), None)
        given = desk.version_of(taken).given if taken else {}
        version = desk.version_of(undone).model_dump()
        version |= {"taken": name, "wrote": name, "given": given}
        version |= {"cause": undone.cause, "sentence": undone.rubric_sentence}
        store_form(call, desk.subject, FinalFields(**version))
        text = f"{desk.case_id} waits for you again, “{shorten(desk.view.case.query, 200)}”"
    return DeskAnswer(desk=desk.data(), message=FormMessage(text=f"Undone: {text}"))


def _restore(call: ApiCall, undone: Decision) -> bool:
    """Fill the form with an undone decision, unless it has new entries. Return whether it did."""
    subject = case_subject(undone.case_id)
    if not read_form(FormFields, call.workbench.drafts.get(call.actor, subject).values).empty:
        return False
    try:
        answer = call.workbench.reviews.answer_of(undone) if undone.labels else None
    except Removed:
        answer = None
    fields = forms.entries_of(undone, answer)
    store_form(call, subject, fields)
    return True


@endpoint("POST", "/desk/revision", "decide", "save drafts of decisions")
def take_revision(call: ApiCall, body: DraftForm) -> DeskAnswer:
    """Make a revision the correction of the original answer in the form, and show that answer."""
    desk = body.open(call)
    if desk.revision is None or desk.run is None:
        return DeskAnswer(desk=desk.data())
    corrected = desk.run.iterations[desk.revision].answer
    fields = read_form(FormFields, body.fields)
    update = {"verdict": "override", "corrected": corrected, "reason": ""}
    store_form(call, desk.subject, fields.model_copy(update=update))
    name = forms.shown_name(desk.run, desk.revision)
    text = f"{name.capitalize()} is the correction now. Choose a reason, then submit."
    place = {"case": desk.case_id, "run": desk.place.run}
    message = FormMessage(text=text, where="reason")
    return DeskAnswer(desk=body.open(call, **place).data(), message=message)
