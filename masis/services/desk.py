"""A reviewer's desk for programs. It uses the same rules, permissions and log as the pages.

import masis

desk = masis.Desk("review.db", reviewer="Ada")
desk.audit(cases)
for row in desk.queue():
    case = desk.show(row.id)
    desk.decide(row.id, "reject", reason="unsupported")
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import ValidationError

from masis.api.batch import BatchItem, Options, audit_all
from masis.datasets.exports.export import DECIDED, ENCODINGS, Selection
from masis.errors import InputError, MasisError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.batches import Batch, SentenceLabel
from masis.schema.case import Severity
from masis.schema.explain import explain, explain_fields, kind_of
from masis.schema.minimal_evidence import MinimalEvidence
from masis.schema.reading import FieldMap, id_text
from masis.schema.review import (
    SHOWN_UNKNOWN,
    WITHOUT_ANSWER,
    AdjudicationCause,
    Decision,
    LogEntry,
    Verdict,
    answer_digest,
    answer_name,
)
from masis.schema.run import Run
from masis.services.batch_actions import BatchRequest
from masis.services.batches import BatchPreview, Progress
from masis.services.cases import WAITING, CaseView
from masis.services.decision_imports import read_exported
from masis.services.decision_rules import (
    REASON_CODE,
    DecidedAnswer,
    DecisionProblem,
    kept_citations,
    problems,
    reason_and_code,
    reason_codes,
    seen_issues,
    seen_labels,
)
from masis.services.labels import LabelRecord, read_labels
from masis.services.queues import QueueFigures, QueuePreview
from masis.services.records import (
    VIEWER_FIELDS,
    CaseFilter,
    CaseSummary,
    DecisionFilter,
    ReviewQueue,
)
from masis.services.team import IN_A_QUEUE
from masis.services.workbench import Workbench
from masis.settings import Settings, database_path, default_reviewer

SHOWN = ("answer", "verdicts", "scores", "issues")
"""The parts of the machine's verdict that ``Desk.show`` shows, as a later decision records them."""

_ROW_FIELDS = {
    *("case", "case_id", "verdict", "reason", "note", "corrected_answer", "iteration", "labels"),
    *("machine_shown", "reviewer", "token", "acknowledge", "acknowledge_citations"),
    *("version", "line", "queue"),
}


FILTERS = tuple(name for name in CaseFilter.model_fields if name not in VIEWER_FIELDS)
"""The filters of the queue that a caller can set."""


def select_cases(split: str | None, *, any_state: bool, **filters: Any) -> Selection:
    """Return the selection of an export: the cases that a person decided, unless other states are
    named.

    Raises:
        InputError: There is no such filter, or it can't have this value.

    """
    states = {} if any_state else {"states": DECIDED}
    try:
        return Selection(CaseFilter(**(states | filters)), split)
    except ValidationError as error:
        raise explain_fields(error, FILTERS) from error


def encoding_of(path: Path) -> str:
    """Return the encoding of an export that a file's extension names, else JSON Lines."""
    ending = path.suffix[1:].lower()
    return ending if ending in ENCODINGS else ENCODINGS[0]


def export_path(out: str | PathLike[str]) -> Path:
    """Return the path of an export. Raises InputError if it can't be a file."""
    path = Path(out)
    if path.name in ("", "-") or not path.parent.is_dir():
        problem = "isn't a file" if path.name in ("", "-") else f"{path.parent} doesn't exist"
        raise InputError(problem, hint="Name a file in an existing folder.", field="out")
    return path


RowOutcome = Literal["recorded", "imported", "unchanged", "refused"]
"""What became of a row: ``unchanged`` is an exported decision that is here already."""


class DecisionRowResult(NamedTuple):
    """The result of one row of a file of decisions: its log entry, or an error.

    A row of an export of decided cases has a result for each of its decisions. ``case_added`` says
    that its case wasn't here.
    """

    line: int
    case: str
    verdict: str
    entry: LogEntry | None
    error: MasisError | None
    outcome: RowOutcome = "recorded"
    case_added: bool = False


def is_address(db: object) -> bool:
    """Return whether a value names a server rather than a file."""
    return isinstance(db, str) and db.partition("://")[0].lower() in ("http", "https")


class Desk:
    """A person's desk on one database, or on a team's server.

    On a database, permissions aren't checked, because anyone who can open the file can change it.
    On a server, the person's role decides.

    Args:
        db: The database, which is created if needed, or an open workbench. By default it's the
            database that the commands use. An address such as ``https://audits.example.org`` is a
            server's (``RemoteDesk``).
        reviewer: The name to record with decisions. By default it's the login name.
        settings: The workbench's settings.
        options: For a server: ``token`` and ``insecure`` (see ``RemoteDesk``).

    Raises:
        StoreError: The database can't be read.

    """

    for_addresses: ClassVar[type[Desk] | None] = None
    """The class of a desk on a server, which ``remote_desk.py`` sets; ``masis.Desk`` imports it."""

    def __new__(cls, db: str | PathLike[str] | Workbench | None = None, **_: Any) -> Desk:
        """Return a desk on a server if ``db`` is an address, as ``pathlib.Path`` chooses by
        system.
        """
        is_remote = cls is Desk and is_address(db)
        return super().__new__(cls.for_addresses if is_remote and cls.for_addresses else cls)

    def __init__(
        self,
        db: str | PathLike[str] | Workbench | None = None,
        *,
        reviewer: str | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        if options or (isinstance(db, str) and re.fullmatch(r"[\w.-]+:\d+(?:/.*)?", db)):
            problem = f"{', '.join(options)}: only for a server" if options else f"{db!r} is a file"
            raise InputError(
                problem, hint="Name a server with its scheme, such as masis.Desk('https://...')."
            )
        self._opened_here = not isinstance(db, Workbench)
        if not isinstance(db, Workbench):
            db = Workbench.open(database_path(None if db is None else Path(db)), settings)
        self.workbench, self.actor = (
            db,
            Actor(name=default_reviewer() if reviewer is None else reviewer),
        )
        self._seen: dict[str, int] = {}

    @classmethod
    def for_actor(cls, workbench: Workbench, actor: Actor) -> Desk:
        """Return the desk of a person who has signed in, with the permissions of their roles."""
        desk = cls(workbench, reviewer=actor.name)
        desk.actor = actor
        return desk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database if this desk opened it; a workbench that was passed in stays open."""
        if self._opened_here:
            self.workbench.close()

    def audit(
        self,
        cases: Any,
        *,
        map: FieldMap | None = None,  # noqa: A002 (the name that audit_many has)
        again: bool = False,
        concurrency: int | None = None,
        progress: bool = True,
        max_cost: float | None = None,
    ) -> list[Run]:
        """Store and audit cases, and return their runs in the order of the cases.

        A case with a finished run for the same text and settings isn't audited again; its run is
        returned.

        Args:
            cases: Cases, mappings, a data frame, an Arrow table or a Hugging Face data set, as for
                ``audit_many``.
            map: The column or key that holds a field, if the names differ: ``{"answer":
                "response"}``.
            again: Audit every case again.
            concurrency: The number of audits that run at once.
            progress: Whether to show a progress bar on stderr.
            max_cost: The limit for all audits together in US dollars. Runs beyond it aren't stored.

        Raises:
            InputError: As for ``audit_many``.
            CaseConflict: A case is already stored with other content. If the cases are a list or a
                frame, nothing was audited.

        """
        audits = self.workbench.audits

        def audit_one(job: BatchItem, settings: Settings, cancelled: Callable[[], bool]) -> Run:
            if not again and (run := audits.newest_finished(job.case, settings)) is not None:
                return run
            return audits.audit(self.actor, job.case, settings=settings, cancelled=cancelled)

        options = Options(concurrency, progress, max_cost, map)
        found = audit_all(
            cases,
            self.workbench.settings,
            audit_one,
            options,
            on_case=lambda case: self.workbench.cases.add_one(self.actor, case),
        )
        return list(found.values())

    def queue(self, *, limit: int = 50, **filters: Any) -> tuple[CaseSummary, ...]:
        """Return the cases that need this reviewer's decision, most urgent first.

        Audit results are left out if the team's policy hides them from the reviewer.

        Args:
            limit: The number of cases, up to 1,000.
            filters: The queue's filters: ``text``, ``fields``, ``datasets``, ``tiers``, ``order``
                and so on. ``queue`` names a queue that the team has set up.

        Raises:
            InputError: A filter doesn't exist or has an invalid value.
            UnknownRecord: There is no such queue.
            NotAllowed: The reviewer isn't one of the queue's people.

        """
        try:
            case_filter = CaseFilter(**{**filters, "size": limit})
        except ValidationError as error:
            raise naming_limit(explain_fields(error, FILTERS)) from error
        self.workbench.queues.require_member(self.actor, case_filter.queue)
        return self.workbench.cases.find_for(
            self.actor, self.workbench.team.open_to(self.actor, case_filter)
        ).rows

    def queues(self, *, archived: bool = False) -> tuple[QueueFigures, ...]:
        """Return the named queues with their figures; ``archived`` includes closed ones."""
        service = self.workbench.queues
        queues = service.all(self.actor, archived=archived)
        return tuple(service.figures(self.actor, queue.id) for queue in queues)

    def preview_queue(self, **filters: Any) -> QueuePreview:
        """Return what filters would hold as a queue. See ``queue`` for the filters."""
        return self.workbench.queues.preview(self.actor, queue_filter(filters))

    def create_queue(self, name: str, **filters: Any) -> ReviewQueue:
        """Create a queue with the cases that the filters match. ``change_queue`` sets it up.

        Raises:
            InputError: The name is missing or taken, or a filter can't fill a queue.
            NotAllowed: You aren't a lead.

        """
        return self.workbench.queues.create(self.actor, name, queue_filter(filters))

    def change_queue(self, queue: str, /, **changes: Any) -> ReviewQueue:
        """Change a queue and return its new version.

        Args:
            queue: Its name or id.
            changes: The values to set: ``name``, ``policy`` (``reviewers``, ``machine``, ``rule``,
                ``agree``, ``lease_minutes``), ``rubric``, ``label_types``, ``instructions``,
                ``people`` and ``archived``; ``cases`` are the filters that fill it.

        Raises:
            InputError: A value isn't valid.
            UnknownRecord: There is no such queue.
            NotAllowed: You aren't a lead.

        """
        service = self.workbench.queues
        return service.change(self.actor, changed_queue(service.get(self.actor, queue), changes))

    def show(self, case_id: str) -> CaseView:
        """Return a case with its newest audit and decisions, limited to what this reviewer may see.

        A later ``decide`` records that it was shown, and fails if the case has changed in the
        meantime.

        Raises:
            UnknownRecord: There is no such case.

        """
        view = self._open(case_id)
        self.workbench.cases.note_opened(self.actor, case_id)
        self._seen[case_id] = view.summary.version
        return view

    def _open(self, case_id: str) -> CaseView:
        """Return a case.

        Raises:
            UnknownRecord: There is no such case; the message suggests the nearest id.

        """
        try:
            return self.workbench.cases.open_for(self.actor, case_id)
        except UnknownRecord as error:
            ids = {
                newest.casefold(): newest
                for newest in reversed(self.workbench.store.evidence.newest_ids("cases"))
            }
            # cut, because difflib's time grows with the square of the length
            near = difflib.get_close_matches(case_id[:200].casefold(), ids, n=1, cutoff=0.8)
            if not near:
                raise
            raise UnknownRecord(
                f"there is no case {case_id!r}. Did you mean {ids[near[0]]!r}?"
            ) from error

    def decide(
        self,
        case_id: str,
        verdict: Verdict,
        *,
        reason: str = "",
        note: str = "",
        corrected_answer: str | None = None,
        iteration: int = 1,
        labels: Iterable[LabelRecord] = (),
        machine_shown: Sequence[str] | None = None,
        acknowledge: bool = False,
        acknowledge_citations: bool = False,
        version: int | None = None,
        token: str | None = None,
        cause: AdjudicationCause | None = None,
        rubric_sentence: str = "",
        final: bool = False,
        queue: str = "",
    ) -> LogEntry:
        """Decide an answer of a case, by the rules of the page.

        Args:
            case_id: The case.
            verdict: ``approve``, ``override``, ``reject`` or ``escalate``.
            reason: The code of a reason (``unsupported``) or a sentence; write a single word as
                ``other: WORD``. ``override`` and ``reject`` need a reason or a
                ``note``.
            note: Anything else worth recording.
            corrected_answer: The answer that an ``override`` uses instead.
            iteration: The answer of the audit to decide: 1 is the original one, 2 its first
                revision.
            labels: Labels on words of the answer, on chunks or on the case, and issues that the
                audit missed (``LabelRecord``).
            machine_shown: The parts of the machine's verdict that the reviewer saw; ``()`` for
                none. By default they are what ``show`` showed on this desk; otherwise they're
                unknown, which never counts as blind.
            acknowledge: Confirm that open serious issues were seen, also those of ``labels``, to
                approve the answer anyway.
            acknowledge_citations: Confirm that the corrected answer is to keep references that
                don't name evidence.
            version: The version of the case that was looked at (``summary.version``). By default
                it's that of ``show``.
            token: An idempotency key: the same token makes no second decision.
            cause: Why the reviewers differed (``slip``, ``ambiguous`` or ``gap``), for a final
                verdict.
            rubric_sentence: A sentence to propose for the rubric, with the cause ``gap``.
            final: Whether it's the final verdict on a case of several reviewers (``adjudicate``).
            queue: The named queue in which to decide. By default it's the first one, "All cases".

        Raises:
            InputError: Something is missing or wrong; it names the field and has a hint.
            UnknownRecord: There is no such case or iteration.
            StaleVersion: The case has changed since ``version``.
            CaseHeld: Another reviewer has taken the case.
            StoreError: All decisions that the case needs have been made.

        """
        check_verdict(verdict)
        view = self._open(case_id)
        run = view.run if view.run is not None and view.run.iterations else None
        answer = _decided_text(view, run, iteration)
        issues = run.iterations[iteration - 1].issues if run else ()
        serious = tuple(issue for issue in issues if issue.major)
        drafted = run is not None and run.draft is not None
        about = answer_name(iteration if run else None, drafted=drafted)
        extra: dict[str, Any] = {"answer": about if answer.strip() else WITHOUT_ANSWER}
        given = read_labels(labels, answer, view.case.evidence)
        if verdict == "approve" and acknowledge:
            extra |= seen_issues(serious) | seen_labels(given)
        words, code = reason_and_code(verdict, reason)
        if code:
            extra[REASON_CODE] = code
        shown = self._shown_parts(case_id, view, machine_shown)
        try:
            decision = Decision(
                kind="adjudication" if final else "decision",
                reviewer=self.actor.name,
                case_id=case_id,
                run_id=run.id if run else None,
                iteration=iteration if run else None,
                verdict=verdict,
                reason=words,
                note=note.strip(),
                corrected_answer=corrected_answer,
                labels=given,
                machine_shown=shown,
                token=token,
                cause=cause,
                rubric_sentence=" ".join(rubric_sentence.split()),
                extra=extra,
                queue=queue or None,
            )
        except ValidationError as error:
            raise explain(error) from error
        seen = version if version is not None else self._seen.get(case_id, view.summary.version)
        reviews = self.workbench.reviews
        unknown: tuple[str, ...] = ()
        if verdict == "override":
            unknown = reviews.decided_answer(self.actor, decision).unknown_citations
        if acknowledge_citations:
            decision = decision.model_copy(update={"extra": extra | kept_citations(unknown)})
        if final:
            return self._hide_number(reviews.adjudicate(self.actor, decision, seen_version=seen))
        decided = DecidedAnswer(answer, serious, unknown_citations=unknown)
        for problem in problems(decision, decided):
            # The service checks the same rules, but its hints name the fields of the page.
            raise problem.as_error(_argument_hint(problem, verdict, run))
        entry = reviews.submit(self.actor, decision, seen_version=seen, shown=answer_digest(answer))
        # The decision has changed the case, so the version that was shown is outdated.
        self._seen.pop(case_id, None)
        return self._hide_number(entry)

    def _hide_number(self, entry: LogEntry) -> LogEntry:
        return self.workbench.reviews.shown_to(self.actor.name, entry)

    def adjudicate(self, case_id: str, verdict: Verdict, **values: Any) -> LogEntry:
        """Give the final verdict on a case that several reviewers decided.

        ``values`` are the other arguments of ``decide``. A reason is needed unless the verdict
        approves the answer as one of the reviewers did.

        It raises the errors of ``decide``, and StoreError if the case has no decisions to
        adjudicate, some are missing, or one of them is this person's.
        """
        return self.decide(case_id, verdict, final=True, **values)

    def label(
        self,
        case_id: str,
        labels: Iterable[LabelRecord],
        *,
        acknowledge: bool = False,
        acknowledge_citations: bool = False,
    ) -> LogEntry:
        """Add labels to this reviewer's decision on a case.

        A new log entry repeats the decision with all labels.

        ``acknowledge`` confirms that serious issues were seen, as for ``decide``. A reviewer who
        approved an answer before they were shown the audit's issues now approves it again.
        ``acknowledge_citations`` keeps references of the corrected answer that don't name evidence.

        It raises the errors of ``decide``, and InputError if the reviewer hasn't decided the case.
        """
        decisions = (entry.decision for entry in self.workbench.reviews.individual(case_id))
        own = next(
            (
                decision
                for decision in decisions
                if decision is not None and decision.reviewer == self.actor.name
            ),
            None,
        )
        if own is None:
            raise InputError(
                "has no decision of yours", hint="Decide it first, with the labels.", field="case"
            )
        answer = self.workbench.reviews.answer_of(own)
        added = read_labels(labels, answer, self.workbench.store.cases.get(case_id).evidence)
        if not added:
            raise InputError(
                "has no label", hint='Add one: {"text": "...", "label": "..."}.', field="labels"
            )
        again = own.model_copy(
            # without the token, which would return the earlier entry instead of adding one
            update={"labels": (*own.labels, *added), "token": None, "about": None, "policy": None}
        )
        decided = self.workbench.reviews.decided_answer(self.actor, own)
        seen = {}
        if acknowledge and own.verdict == "approve":
            seen = seen_issues(decided.serious) | seen_labels(again.labels)
        kept = kept_citations(decided.unknown_citations) if acknowledge_citations else {}
        again = again.model_copy(update={"extra": again.extra | seen | kept})
        version = self.workbench.cases.summary(case_id).version
        entry = self.workbench.reviews.submit(
            self.actor,
            again,
            seen_version=version,
            shown=answer_digest(answer),
            kept_labels=len(own.labels),
        )
        return self._hide_number(entry)

    def log(
        self, case_id: str | None = None, *, limit: int = 50, text: str = ""
    ) -> tuple[LogEntry, ...]:
        """Return the newest log entries that this reviewer may see, for one case or for all.

        With ``text``, only those whose reason, note or label notes have all its words.
        """
        if case_id is not None:
            self._open(case_id)  # names an unknown case, and suggests the nearest id
        log_filter = DecisionFilter(
            case_id=case_id, size=limit, text=text, blind_to=self.actor.name
        )
        return self.workbench.reviews.entries(log_filter).rows

    def undo(self, entry_id: str) -> LogEntry:
        """Undo an entry of the log with a new entry.

        Raises:
            UnknownRecord: There is no such entry.
            StoreError: It isn't a decision.

        """
        return self._hide_number(self.workbench.reviews.undo(self.actor, entry_id))

    def comment(self, case_id: str, text: str) -> LogEntry:
        """Add a comment to a case.

        Raises:
            InputError: The comment is empty or too long.
            UnknownRecord: There is no such case.

        """
        return self._hide_number(self.workbench.team.comment(self.actor, case_id, text))

    def assign(
        self, case_ids: Sequence[str], reviewers: Sequence[str], *, remove: bool = False
    ) -> int:
        """Assign cases to reviewers, or with ``remove`` take assignments back; return how many
        cases.

        Raises:
            InputError: A name is missing or too long, or there are too many cases.
            UnknownRecord: There is no such case.

        """
        team = self.workbench.team
        change = team.unassign if remove else team.assign
        return change(self.actor, as_names(case_ids, "case_ids"), as_names(reviewers, "reviewers"))

    def tag(self, case_ids: Sequence[str], tags: Sequence[str], *, remove: bool = False) -> int:
        """Add tags to cases, or with ``remove`` remove them; return how many cases.

        Raises:
            InputError: A tag is missing or too long, or there are too many cases.
            UnknownRecord: There is no such case.

        """
        team = self.workbench.team
        change = team.untag if remove else team.tag
        return change(self.actor, as_names(case_ids, "case_ids"), as_names(tags, "tags"))

    def preview_batch(self, action: str, cases: Sequence[str] = (), **values: Any) -> BatchPreview:
        """Return what an action on many cases would do, and which cases it would leave out.

        The arguments and errors are those of ``apply_batch``.
        """
        return self.workbench.batches.preview(self.actor, batch_request(action, cases, **values))

    def apply_batch(
        self,
        action: str,
        cases: Sequence[str] = (),
        *,
        token: str | None = None,
        expected: str = "",
        progress: Progress | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        **values: Any,
    ) -> Batch:
        """Apply an action to many cases, each with its own entry in the log, and return the batch.

        A case that is refused doesn't affect the others.

        Args:
            action: ``approve``, ``reject``, ``tag``, ``untag`` or ``assign``.
            cases: The cases. Without them, the filters choose: by default all that need a decision.
            token: An idempotency key: the same token makes no second batch.
            expected: The ``digest`` of the preview, to refuse if the cases have changed since.
            progress: Called with the batch after some of its cases.
            cancelled: Asked between cases whether to stop.
            values: ``reason``, ``note``, ``names`` (tags or reviewers) and ``acknowledge`` (serious
                issues that the preview lists); and without ``cases``, filters of the queue.

        Raises:
            InputError: Something is missing or wrong.
            StoreError: No case can be included, or the cases have changed.
            UnknownRecord: There is no such case.

        """
        batches = self.workbench.batches
        batch = batches.start(
            self.actor,
            batch_request(action, cases, **values),
            token=token or "",
            expected=expected,
        )
        return batches.run(self.actor, batch.id, progress, cancelled)

    def label_sentence(
        self,
        case_id: str,
        words: str,
        label: str,
        *,
        severity: Severity | None = None,
        note: str = "",
        acknowledge: bool = False,
        token: str | None = None,
        progress: Progress | None = None,
    ) -> Batch:
        """Label words of a case in every answer with the same sentence that this reviewer decided.

        Args:
            case_id: A case that this reviewer decided.
            words: Words of its decided answer.
            label: The label, or with ``severity`` one of the team's issue types.
            severity: Report an issue that the audit missed.
            note: What is wrong, in one's own words.
            acknowledge: Whether serious issues of approved answers were seen.
            token: An idempotency key.
            progress: Called with the batch after some of its cases.

        Raises:
            InputError: The reviewer hasn't decided the case, or the words aren't in its answer.
            UnknownRecord: There is no such case.

        """
        batches = self.workbench.batches
        request = batches.sentence_request(
            self.actor,
            case_id,
            sentence_label(words, label, severity, note),
            acknowledge=acknowledge,
        )
        batch = batches.start(self.actor, request, token=token or "")
        return batches.run(self.actor, batch.id, progress)

    def undo_batch(self, batch_id: str, progress: Progress | None = None) -> Batch:
        """Undo the entries of a batch, each by a further entry, and return the batch.

        Raises:
            UnknownRecord: There is no such batch.
            NotAllowed: It is another person's, and you aren't a lead.

        """
        batches = self.workbench.batches
        return batches.run(self.actor, batches.start_undo(self.actor, batch_id).id, progress)

    def list_batches(self, *, limit: int = 50) -> tuple[Batch, ...]:
        """Return the newest batches that this reviewer may see."""
        return self.workbench.batches.newest(self.actor, limit)

    def verify_without_passages(
        self, case_id: str, *, claim: int | None = None, iteration: int = 1
    ) -> tuple[MinimalEvidence, ...]:
        """Verify claims of the newest audit with and without the passages that decide them.

        If the verdict stands without its passages, they weren't the reason for it.

        Args:
            case_id: The case.
            claim: The number of the claim in its answer, from 1; all claims with passages if None.
            iteration: The audited answer: 1 is the original one.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this reviewer.
            InputError: There is no such claim, it has no passages, or the audit used recorded
                replies.
            StepError: The verifier gave no verdict.

        """
        return self.workbench.minimal_evidence.verify(
            self.actor, case_id, claim=claim, iteration=iteration
        )

    def minimal_evidence(self, case_id: str) -> tuple[MinimalEvidence, ...]:
        """Return the stored results of ``verify_without_passages`` that this reviewer may see.

        Raises:
            UnknownRecord: There is no such case.
            ResultsHidden: The policy hides the audit's results from this reviewer.

        """
        return self.workbench.minimal_evidence.results(self.actor, case_id)

    def export(
        self,
        form: str,
        out: str | PathLike[str],
        *,
        encoding: str | None = None,
        split: str | None = None,
        any_state: bool = False,
        **filters: Any,
    ) -> Path:
        """Write an export to a file, or for some formats a folder, with its manifest beside it.

        Args:
            form: The name of the format (``masis export --help``).
            out: The file or folder.
            encoding: ``jsonl``, ``csv`` or ``parquet``; by default that of the file's extension.
            split: The side of the split to write; by default all.
            any_state: Whether to include cases that nobody decided, if no ``states`` are given.
            filters: The queue's filters: ``fields``, ``datasets``, ``states``, ``text`` and so on.

        Returns:
            The path that was written.

        Raises:
            InputError: The format, the encoding, a filter or the path isn't valid.

        """
        selection = select_cases(split, any_state=any_state, **filters)
        path = export_path(out)
        self.workbench.exports.write_file(
            self.actor, path, form, selection, encoding=encoding or encoding_of(path)
        )
        return path

    def decide_all(
        self, rows: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> Iterator[DecisionRowResult]:
        """Record the decisions of rows one by one and yield each result.

        An invalid row doesn't affect the others. A row has ``case``, ``verdict`` and the other
        arguments of ``decide``, and ``reviewer`` if it isn't this desk's. Without
        ``machine_shown``, it is recorded as unknown whether the reviewer saw the audit's verdict.
        Passing the same row again doesn't record it twice.

        A row of an export of decided cases, as ``{"exported": row}``, comes back in as the
        decisions of its reviewers, marked as imported. You need the lead role for it.

        Args:
            rows: The rows.
            dry_run: Record every decision in a transaction that is rolled back at the end, so that
                the results are the same as without it.

        """
        if not dry_run:
            yield from self._decide_each(rows)
            return
        results: list[DecisionRowResult] = []
        try:
            with self.workbench.store.transaction():
                # Collected first: yielding here would leave the transaction, and its lock, open for
                # the caller.
                results += self._decide_each(rows)
                raise _DryRunRollback
        except _DryRunRollback:
            yield from results

    def _decide_each(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[DecisionRowResult]:
        for number, row in enumerate(rows, 1):
            values = row if isinstance(row, Mapping) else {}
            line = values.get("line", number)
            if "exported" in values:
                yield from self._import_row(values, line)
                continue
            case, verdict = (str(values.get(key) or "") for key in ("case", "verdict"))
            try:
                with self.workbench.store.transaction():
                    # Within a dry run this is a savepoint, so an invalid row is rolled back alone.
                    entry = self._decide_row(row)
                yield DecisionRowResult(
                    line, entry.decision.case_id if entry.decision else case, verdict, entry, None
                )
            except MasisError as error:
                case = case or str(values.get("case_id") or "")
                yield DecisionRowResult(line, case, verdict, None, error, "refused")

    def _import_row(self, values: Mapping[str, Any], line: int) -> Iterator[DecisionRowResult]:
        """Import the decisions of a row of an export, and its case if it isn't here."""
        try:
            row = read_exported(values["exported"])
            with self.workbench.store.transaction():
                added = self.workbench.cases.add_one(self.actor, row.case) == "added"
        except MasisError as error:
            yield DecisionRowResult(line, _exported_id(values), "", None, error, "refused")
            return
        for entry in row.entries:
            verdict = (entry.decision.verdict if entry.decision else None) or ""
            try:
                recorded, is_new = self.workbench.reviews.import_entry(
                    self.actor,
                    entry,
                    row,
                    file=str(values.get("file") or "")[:64],
                    keep_unknown=values.get("acknowledge_citations") is True,
                )
                recorded = self._hide_number(recorded)
                outcome: RowOutcome = "imported" if is_new else "unchanged"
                yield DecisionRowResult(line, row.case.id, verdict, recorded, None, outcome, added)
            except MasisError as error:
                yield DecisionRowResult(line, row.case.id, verdict, None, error, "refused", added)
            added = False  # so that a case counts once

    def _decide_row(self, row: Any) -> LogEntry:
        if not isinstance(row, Mapping):
            raise InputError(
                f"is {kind_of(row)}, must be an object",
                hint='Write {"case": "...", "verdict": "..."}.',
            )
        if unknown := [str(key) for key in row if key not in _ROW_FIELDS]:
            raise InputError(
                "isn't a field of a decision",
                hint=_known_field(unknown[0], sorted(_ROW_FIELDS)),
                field=unknown[0],
            )
        case_id = id_text(row.get("case", row.get("case_id")))
        if not isinstance(case_id, str) or not case_id:
            raise InputError("is missing", hint='Name the case as "case": "...".', field="case")
        case_id = self._resolve_case_id(case_id)
        check_verdict(row.get("verdict"))
        arguments = {
            key: value
            for key, value in row.items()
            if key not in ("case", "case_id", "reviewer", "line")
        }
        arguments |= {"machine_shown": row.get("machine_shown", (SHOWN_UNKNOWN,))}
        arguments.setdefault("token", _row_token(row, self.actor.name))
        reviewer = row.get("reviewer")
        desk = self
        if reviewer not in (None, self.actor.name) and self.actor.authenticated:
            raise InputError(
                f"is {str(reviewer)[:40]!r}, and you are {self.actor.name}",
                hint="Leave it out. On a server everyone decides under their own name.",
                field="reviewer",
            )
        if reviewer not in (None, self.actor.name):
            desk = Desk(self.workbench, reviewer=str(reviewer))
        return desk.decide(case_id, **arguments)

    def _resolve_case_id(self, written: str) -> str:
        """Return the case id that a row means: a spreadsheet writes ``2.0`` for the case ``2``."""
        if not re.fullmatch(r"\d+\.0+", written):
            return written
        try:
            # an id may really end with .0
            return self.workbench.store.cases.get(written).id
        except UnknownRecord:
            return written.partition(".")[0]

    def _shown_parts(
        self, case_id: str, view: CaseView, named: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Return the parts of the machine's verdict that were shown, as a decision records them."""
        if named is not None:
            return tuple(named)
        if view.machine_hidden or view.run is None:
            return ()
        return SHOWN if case_id in self._seen else (SHOWN_UNKNOWN,)


def batch_request(action: str, cases: Sequence[str] = (), **values: Any) -> BatchRequest:
    """Return the request of an action on many cases. See ``Desk.apply_batch`` for the arguments.

    Raises:
        InputError: A value doesn't exist, or isn't valid.

    """
    own = {name: values.pop(name) for name in BATCH_FIELDS if name in values}
    if cases and values:
        raise InputError(
            f"{', '.join(values)}: choose by cases or by filters, not both",
            hint="Leave out one of the two.",
            field="cases",
        )
    try:
        named = CaseFilter(queue=own.get("queue", "")).queue
        in_queue = {"queue": named, "waits_in_queue": True} if named else {}
        waiting = {"states": IN_A_QUEUE if in_queue else WAITING}
        matching = None if cases else CaseFilter(**(waiting | in_queue | values))
    except ValidationError as error:
        raise explain_fields(error, (*BATCH_FIELDS, *FILTERS)) from error
    try:
        return BatchRequest(
            action=action, cases=tuple(as_names(cases, "cases")), matching=matching, **own
        )
    except ValidationError as error:
        raise explain(error) from error


BATCH_FIELDS = ("reason", "note", "names", "acknowledge", "queue")
"""The arguments of an action on many cases that aren't filters."""


def sentence_label(words: str, label: str, severity: Severity | None, note: str) -> SentenceLabel:
    """Return the label on a sentence. Raises InputError if a value isn't valid."""
    try:
        return SentenceLabel(sentence=words, label=label, severity=severity, note=note)
    except ValidationError as error:
        raise explain(error) from error


def queue_filter(filters: Mapping[str, Any]) -> CaseFilter:
    """Return the filter of a queue. Raises InputError if a filter doesn't exist or isn't valid."""
    try:
        return CaseFilter(**filters)
    except ValidationError as error:
        raise explain_fields(error, FILTERS) from error


def changed_queue(queue: ReviewQueue, changes: Mapping[str, Any]) -> ReviewQueue:
    """Return a queue with other values. Raises InputError if one isn't valid."""
    values = {name: getattr(queue, name) for name in type(queue).model_fields}
    if isinstance(policy := changes.get("policy"), Mapping):
        changes = {**changes, "policy": queue.policy.model_dump() | {**policy}}
    try:
        changed = type(queue).model_validate(
            {**values, **changes, "id": queue.id, "version": queue.version}
        )
    except ValidationError as error:
        raise explain(error) from error
    return changed


def naming_limit(error: InputError) -> InputError:
    """Return an error about the page's size as one about the argument ``limit``."""
    if error.field != "size":
        return error
    return InputError(error.problem, hint="Use 1 to 1,000.", field="limit")


def as_names(values: Sequence[str], field: str) -> Sequence[str]:
    """Return a list of names.

    Raises:
        InputError: It is a single text, whose characters would be taken for names.

    """
    if isinstance(values, str):
        raise InputError(
            f"is the text {values[:40]!r}", hint="Give a list of strings.", field=field
        )
    return values


def check_verdict(verdict: object) -> None:
    """Raise InputError if a value isn't a verdict."""
    if verdict not in get_args(Verdict):
        raise InputError(
            f"is {str(verdict)[:40]!r}, which isn't a verdict",
            hint=f"Use one of {', '.join(get_args(Verdict))}.",
            field="verdict",
        )


def _exported_id(values: Mapping[str, Any]) -> str:
    exported = values.get("exported")
    case = exported.get("case") if isinstance(exported, Mapping) else None
    return str(case.get("id") or "")[:200] if isinstance(case, Mapping) else ""


class _DryRunRollback(Exception):
    """Raised at the end of a dry run, so that its transaction is rolled back."""


def _row_token(row: Mapping[str, Any], reviewer: str) -> str:
    # The line isn't part of the content, so that a row can move within its file.
    content = json.dumps(
        {**row, "reviewer": row.get("reviewer", reviewer), "line": 0}, sort_keys=True, default=str
    )
    # surrogatepass, because JSON can hold half of a surrogate pair, which UTF-8 can't encode
    return f"row:{hashlib.sha256(content.encode(errors='surrogatepass')).hexdigest()[:40]}"


def _decided_text(view: CaseView, run: Run | None, iteration: int) -> str:
    if run is None or view.machine_hidden:
        if iteration != 1:
            raise InputError(
                f"is {iteration}, and only the original answer is shown",
                hint="Use 1.",
                field="iteration",
            )
        return view.case.answer or ""
    if not 1 <= iteration <= len(run.iterations):
        hint = f"The audit has answers 1 to {len(run.iterations)}; 1 is the original one."
        raise InputError(f"is {iteration}", hint=hint, field="iteration")
    return run.iterations[iteration - 1].answer


def _argument_hint(problem: DecisionProblem, verdict: Verdict, run: Run | None) -> str:
    """Return a hint about a problem that names the arguments and the command's options."""
    if problem.code in ("correction_missing", "correction_changes_nothing"):
        hint = "Give the corrected answer (--corrected-answer), or approve it as it is."
        if run is not None and len(run.iterations) > 1:
            hint += " To use a revision without changes, approve it: iteration=2 (--iteration 2)."
        return hint
    if problem.code == "reason_missing":
        return f"Use one of {reason_codes(verdict)}, or your own words, or write a note."
    if problem.code == "serious_issues_open":
        return f"Read them, then set acknowledge=True (--acknowledge; {_in_a_row('acknowledge')})."
    if problem.code == "citations_unknown":
        return (
            "Correct the citation, or set acknowledge_citations=True (--acknowledge-citations;"
            f" {_in_a_row('acknowledge_citations')}) to keep it."
        )
    return problem.hint


def _in_a_row(field: str) -> str:
    return f'in a row of a file "{field}": true'


def _known_field(written: str, known: Sequence[str]) -> str:
    """Return a hint that suggests the known field with the nearest name, or lists all."""
    near = difflib.get_close_matches(written[:200], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Fields: {', '.join(known)}."
