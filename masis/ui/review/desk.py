"""The desk: everything that the page of a case shows of its answer, its evidence and its decision.

Without Streamlit, so that the page and the desk's API (``desk_api.py``) build the same data.
``components/desk.js`` draws it. The rules of the form are in ``decision_form.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from masis.errors import Removed
from masis.schema.base import Record
from masis.schema.review import Decision, answer_digest
from masis.schema.run import Run
from masis.schema.wording import count_noun
from masis.services import Actor, CaseView, Workbench
from masis.services.cases import WAITING
from masis.services.decision_rules import (
    NEEDS_REASON,
    DecidedAnswer,
    kept_citations,
)
from masis.services.drafts import case_subject, read_form, rubric_subject
from masis.services.records import NOT_DECIDED, CaseFilter
from masis.ui.review import decision_form as forms
from masis.ui.review.claiming import ClaimNotice, claim_notice
from masis.ui.review.decision_form import Data, FormFields
from masis.ui.review.form_texts import LONGEST_ANSWER
from masis.ui.review.label_form import label_rows, label_words
from masis.views.answer import (
    EVIDENCE_SHOWN,
    answer_view,
    for_browser,
    shown_answer,
    unaudited_answer_view,
)
from masis.views.diff import word_changes
from masis.views.minimal_evidence import add_outcomes, newest_results
from masis.views.numbers import moment_utc
from masis.views.words import DECIDE

NOTHING_TO_APPROVE = "There is no answer to approve."
MACHINE_SHOWN = ("marks", "findings", "verdicts", "scores")
"""The parts of the machine's verdict that the page shows by default.

They are stored with every decision, so the names must never change.
"""


class Place(Record):
    """The answer that is open, by the parameters of the page's address.

    ``run``, ``iteration`` (from 1) and ``against`` are empty for the newest audit, the original
    answer, and no comparison. ``evidence`` is the number of chunks shown. ``adjudication`` says
    that the final verdict on the case is open.
    """

    case: str
    run: str = ""
    iteration: str = ""
    against: str = ""
    evidence: int = EVIDENCE_SHOWN
    adjudication: bool = False


def chosen_run(workbench: Workbench, view: CaseView, run_id: str) -> Run | None:
    """Return the run with this id if it's a readable run of the case, else the newest."""
    if not run_id or (view.run and view.run.id == run_id):
        return view.run
    is_readable = any(run.id == run_id and run.readable for run in view.runs)
    return workbench.runs.get(run_id) if is_readable else view.run


def named_iteration(run: Run, text: str) -> int | None:
    """Return the index of the iteration that an address names, or None if there is none."""
    # the length is limited because int() refuses very long numbers
    is_valid = (
        text.isascii()
        and text.isdigit()
        and len(text) < 8
        and 1 <= int(text) <= len(run.iterations)
    )
    return int(text) - 1 if is_valid else None


def compared_iteration(run: Run, index: int, text: str) -> int | None:
    """Return the index of the iteration that an address compares with, or None."""
    count = len(run.iterations)
    if not text or count < 2:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) < 8
    other = min(max(1, int(text)) if is_number else 1, count) - 1
    return other if other != index else max(index - 1, 0) if index else 1


def whole_queue(queue: CaseFilter) -> CaseFilter:
    """Return the queue without its search and its filters, in the same order."""
    names = ("order", "seed", "size", "queue", "waits_in_queue")
    kept = {name: getattr(queue, name) for name in names}
    return CaseFilter(standings=() if queue.queue else NOT_DECIDED, **kept)


def answer_data(
    view: CaseView, run: Run | None, index: int, against: int | None, evidence: int
) -> Data:
    """Return the data of an answer with its marks, issues and evidence.

    An unaudited answer has no marks. If a decision has corrected the answer, the correction is
    shown first, with the original answer and with the iteration that was decided.
    """
    data = (
        answer_view(view.case, run, index, against=against, shown=evidence)
        if run
        else unaudited_answer_view(view.case, f"{view.case.id}/plain", shown=evidence)
    )
    decided = settled_decision(view)
    corrected_iterations = (0, (decided.iteration or 1) - 1) if decided else ()
    if decided and against is None and index in corrected_iterations:
        corrected = forms.correction(decided, run, view.case)
        digest = answer_digest(decided.corrected_answer or "")
        data = (
            {**data, "version": f"{data['version']}/{digest}", "corrected": corrected}
            if corrected
            else data
        )
    return dict(for_browser(data))


def settled_decision(view: CaseView) -> Decision | None:
    """Return the person's decision that settles the case."""
    entry = view.decision if view.summary.standing == "decided" else None
    return entry.decision if entry and entry.decision and entry.decision.verdict else None


@dataclass(frozen=True)
class OpenDesk:
    """The answer of a case that a person has open.

    Attributes:
        run: The audit shown, or None for an unaudited case.
        index: The iteration shown, from 0.
        against: The iteration that it's compared with, from 0, or None.
        notice: The work of other people on the case.
        queue: The list from which the case was opened, as its address describes it.

    """

    workbench: Workbench
    actor: Actor
    place: Place
    view: CaseView
    run: Run | None
    index: int
    against: int | None
    notice: ClaimNotice | None
    queue: CaseFilter

    fields_type: ClassVar[type[FormFields]] = FormFields
    reports_title: ClassVar[str] = "Issues that you found"

    @classmethod
    def open(
        cls,
        workbench: Workbench,
        actor: Actor,
        place: Place,
        queue: CaseFilter,
        claim: Callable[[str], object],
        view: CaseView | None = None,
    ) -> Self:
        """Open an answer, note that, and claim its case for a person who can decide it.

        Args:
            workbench: The services.
            actor: The person.
            place: The answer.
            queue: The list from which the case was opened.
            claim: Claims the case with this id.
            view: The case, if it was opened already.

        Raises:
            UnknownRecord: There is no such case.

        """
        view = view or workbench.cases.open_for(actor, place.case)
        if queue.queue and workbench.queues.has_waiting(actor, queue.queue, place.case):
            # What another queue decided isn't the decision of this one.
            view = view._replace(decision=None)
        workbench.cases.note_opened(actor, place.case)
        run = chosen_run(workbench, view, place.run)
        run = run if run and run.iterations else None
        index = (named_iteration(run, place.iteration) or 0) if run else 0
        return cls(
            workbench,
            actor,
            place,
            view,
            run,
            index,
            compared_iteration(run, index, place.against) if run else None,
            claim_notice(workbench, actor, view, claim, queue.queue),
            queue,
        )

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.view.case.id

    @property
    def subject(self) -> str:
        """The subject of the draft."""
        return case_subject(self.case_id)

    @property
    def answer(self) -> str:
        """The answer shown."""
        return self.run.iterations[self.index].answer if self.run else self.view.case.answer or ""

    @property
    def can_approve(self) -> bool:
        """Whether there is an answer to approve."""
        return bool(self.answer.strip())

    @property
    def answer_name(self) -> str:
        """The name of the answer shown."""
        return forms.shown_name(self.run, self.index)

    @property
    def decided_answer(self) -> DecidedAnswer:
        """The answer shown, as the rules of a decision need it."""
        return DecidedAnswer(self.answer, forms.serious_issues(self.run, self.index))

    @property
    def machine_shown(self) -> tuple[str, ...]:
        """The parts of the machine's verdict that the page shows. A comparison hides the marks."""
        if self.view.machine_hidden:
            return ()
        return tuple(part for part in MACHINE_SHOWN if part != "marks" or self.against is None)

    @property
    def revision(self) -> int | None:
        """The index of the revision that can become the correction, or None.

        It's the revision shown, or else the one that the audit suggests, or else its best one.
        """
        run = self.run
        if run is None or run.revised is None:
            return None
        return self.index or run.best or run.iterations.index(run.revised)

    @cached_property
    def waiting(self) -> int:
        """The number of cases in the queue that need review."""
        return self.workbench.team.count_open(self.actor, self.open_queue)

    @property
    def open_queue(self) -> CaseFilter:
        """The list without the filters that would reveal audit results hidden from this person."""
        return self.workbench.cases.blind_filter(self.actor, self.queue)

    @property
    def is_narrowed(self) -> bool:
        """Whether the list is a search or has a filter."""
        return self.queue.model_copy(update={"page": 1}) != whole_queue(self.queue)

    def data(self) -> Data:
        """Return the data that ``desk.js`` draws."""
        view, run = self.view, self.run
        draft = self.workbench.drafts.get(self.actor, self.subject)
        fields = read_form(self.fields_type, draft.values)
        iteration = run.iterations[self.index] if run else None
        history = forms.history(view.history, view.case, run)
        return {
            "place": self.place.model_dump(),
            "reviewer": self.actor.name,
            "queue": self.queue.model_dump(mode="json", exclude_defaults=True),
            "view": self._answer_data(),
            "seen": view.summary.version,
            "tokens": [
                entry.decision.token
                for entry in view.history
                if entry.decision and entry.decision.token
            ][:50],
            "draft": fields.model_dump(mode="json"),
            "blank": self.fields_type().model_dump(mode="json"),
            "saved_at": draft.saved_at or "",
            "restored": moment_utc(draft.saved_at or ""),
            "answer": self.answer,
            "shown": shown_answer(view.case, run, self.index),
            "about": {
                "name": self.answer_name if self.can_approve else "the case",
                "note": self._about_answer(),
            },
            "serious": forms.serious_rows(run, self.index),
            "unconfirmed": forms.unconfirmed_rows(iteration),
            "notice": self.notice._asdict() if self.notice else None,
            "revision": forms.shown_name(run, self.revision) if self.revision else "",
            "iterations": {
                "at": self.index,
                "count": len(run.iterations) if run else 1,
                "revised": run.iterations.index(run.revised) if run and run.revised else 0,
            },
            "longest": max(LONGEST_ANSWER, len(self.answer)),
            "verdicts": [
                {
                    "code": code,
                    **word._asdict(),
                    "needs_reason": code in NEEDS_REASON,
                    "refused": NOTHING_TO_APPROVE
                    if code == "approve" and not self.can_approve
                    else "",
                }
                for code, word in DECIDE.items()
            ],
            "reasons": forms.reasons(iteration),
            "check": self.check(fields),
            "labels": {
                "base": forms.label_base(run, self.index),
                "rows": label_rows(iteration, view.case) if iteration else [],
                "nothing": self._explain_no_rows(),
                **label_words(),
            },
            "reporting": self._reporting(),
            "standing": self._standing(history),
            "history": forms.with_audits(history, view.runs),
            "go": {"waiting": self.waiting > 0, "says": self._left_text()},
        }

    def _explain_no_rows(self) -> str:
        """Say why the answer has no part to label, for the case that it has none."""
        if self.view.machine_hidden:
            return (
                "The policy hides the audit from you, so its claims and references can't be"
                " labelled now."
            )
        return "There is no claim or reference to label."

    def _answer_data(self) -> Data:
        """Return the answer, with the outcome of each claim verified without its passages."""
        data = answer_data(self.view, self.run, self.index, self.against, self.place.evidence)
        if self.run is None or self.view.machine_hidden:
            return data
        results = self.workbench.minimal_evidence.results(self.actor, self.case_id)
        newest = newest_results(results, self.run.id, self.index + 1)
        if not newest:
            return data
        # The browser draws an answer again only if its version changes.
        version = f"{data['version']}/{max(result.at for result in newest.values())}"
        return data | {"version": version, "claims": add_outcomes(data["claims"], newest)}

    def check(self, fields: FormFields) -> Data | None:
        """Return the check of the correction in the form, or None if it has none."""
        if fields.verdict != "override":
            return None
        corrected = self.answer if fields.corrected is None else fields.corrected
        check = forms.check(
            corrected,
            self.view.case,
            self.workbench.settings,
            self.answer,
            blind=self.view.machine_hidden,
        )
        return {**check, "audited": forms.audited_issues(self.run, corrected)}

    def doubts(self, corrected: str) -> list[str]:
        """Return reasons to believe that a correction has a slip in it."""
        original = self.run.iterations[0].answer if self.run else self.answer
        settings, blind = self.workbench.settings, self.view.machine_hidden
        case = self.view.case
        return list(forms.doubts(corrected, self.answer, case, original, settings, blind=blind))

    def with_kept_citations(self, decision: Decision) -> Decision:
        """Return an override that says that its unknown references were seen and are kept."""
        answer = self.workbench.reviews.decided_answer(self.actor, decision)
        kept = kept_citations(answer.unknown_citations)
        return decision.model_copy(update={"extra": decision.extra | kept})

    def rubric_scores(self) -> dict[str, int | str]:
        """Return the rubric scores that the reviewer has chosen but not submitted."""
        values = self.workbench.drafts.get(self.actor, rubric_subject(self.case_id)).values
        return {name: value for name, value in values.items() if isinstance(value, int | str)}

    def explain_change(self, shown_place: str) -> str:
        """Say who audited the case again after it was shown, and when; "" if nobody did."""
        hidden = self.view.machine_hidden
        newest = None if hidden else next((run for run in self.view.runs if run.readable), None)
        if newest is None or newest.ended_at is None or f"/{newest.id}/" in shown_place:
            return ""
        by = f" by {newest.asked_by}" if newest.asked_by else ""
        return f" It was audited again{by} at {newest.ended_at[11:16]} UTC."

    def _left_text(self) -> str:
        """Say how many cases are left in the search or the filtered list, or else in the queue."""
        state = self.view.summary.state
        is_waiting = state in WAITING
        narrowed = "in this list" if self.is_narrowed else ""
        if self.queue.queue:
            named = self.workbench.queues.get(self.actor, self.queue.queue)
            narrowed = narrowed or f"in “{named.name}”"
            is_waiting = self.workbench.queues.has_waiting(self.actor, named.id, self.case_id)
        if self.queue.text:
            narrowed = "in this search"
        where = narrowed or "to review"
        if is_waiting and self.waiting <= 1:
            return f"This is the last one {where}"
        if not self.waiting and (self.view.decision is None or state == "accepted"):
            return f"No other case {narrowed or 'in the queue'} needs review"
        return f"{self.waiting:,} left {where}"

    def _reporting(self) -> Data:
        """Return the data for reporting issues in the answer shown, with those reported already."""
        entry = self.view.decision
        decision = entry.decision if entry else None
        about_shown = (
            decision is not None
            and bool(decision.reported)
            and (self.run is None or decision.run_id == self.run.id)
            and decision.iteration in ((self.index + 1,) if self.run else (None, 1))
        )
        types = self.workbench.queues.label_types(self.actor, self.queue.queue)
        # Without an audit, or with a hidden one, the page can't tell what the audit missed.
        title = "Issues that the audit missed" if self.run else self.reports_title
        found = forms.reporting(self.answer, types, decision if about_shown else None)
        return {"title": title, **found}

    def _about_answer(self) -> str:
        """Say whether the audit suggests the answer shown, and how it differs from the original."""
        run = self.run
        if not self.can_approve:
            return "It has no answer. Write one (override), reject the case, or escalate it."
        if run is None or len(run.iterations) < 2:
            return ""
        if self.index == 0:
            return (
                f"The audit suggests {forms.shown_name(run, run.best)}. Press V to see it."
                if run.best
                else "The audit doesn't recommend any of its revisions. Press V to see the best"
                " one."
            )
        changes = word_changes(run.iterations[0].answer, self.answer)
        removed, added = (
            sum(len(change.text.split()) for change in changes if change.kind == kind)
            for kind in ("out", "in")
        )
        is_suggested = self.index == run.best
        origin = "Suggested by the audit" if is_suggested else "Not suggested by the audit"
        changed = f"Against the original: {count_noun(removed, 'word')} removed, {added:,} added."
        return f"{origin}. {changed} D shows the changes, V the original."

    def _standing(self, history: list[Data]) -> Data | None:
        """Return the entry with the current decision of the case, if a person made it."""
        entry = self.view.decision
        row = next((row for row in history if entry and row["id"] == entry.id), None)
        if entry is None or row is None or entry.decision is None:
            return None
        if entry.decision.kind != "decision":
            return None
        # Once all reviewers have decided, only an adjudication changes the case, as the notice says
        undoable = not (self.notice and self.notice.adjudicate)
        return {**row, "undoable": undoable, "entries": self._entries_of(entry.decision)}

    def _entries_of(self, decision: Decision) -> Data | None:
        """Return the person's own decision as entries of the form, if it's on the answer shown."""
        try:
            answer = self.workbench.reviews.answer_of(decision)
        except Removed:
            return None
        if decision.reviewer != self.actor.name or answer != self.answer:
            return None
        return forms.entries_of(decision, answer).model_dump(mode="json")
