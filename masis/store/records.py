"""The inputs and outputs of the store: filters, pages and summaries."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, field_serializer, field_validator, model_validator

from masis.errors import CaseConflict
from masis.schema.audit import Draft
from masis.schema.base import Page, Record, Share
from masis.schema.case import Severity
from masis.schema.causes import Cause
from masis.schema.codebook import CaseObservation, ObservationKind
from masis.schema.display import OneLine
from masis.schema.review import (
    CaseState,
    EntryKind,
    EntrySource,
    LogCheck,
    LogEntry,
    Standing,
    Verdict,
)
from masis.schema.rules import ReviewTier
from masis.schema.run import Iteration, StepsDone, TerminationReason
from masis.schema.screening import ScreeningEntryKind
from masis.schema.team import Name, QueuePolicy, Rubric, TeamRecord
from masis.schema.wording import count_noun
from masis.store.orders import DEFAULT_ORDER, OrderName

FIRST_QUEUE_NAME = "All cases"
"""The name of the first queue, which has every case and can't be archived. Its id is empty."""


def clean_queue_name(name: str) -> str:
    """Return a queue's name or id without needless blanks, or "" for the first queue."""
    words = " ".join(name.split())
    return "" if words.casefold() == FIRST_QUEUE_NAME.casefold() else words


RunState = Literal["running", "finished", "interrupted"]
PageSize = Annotated[int, Field(ge=1, le=1000)]


class CaseFilter(Record):
    """A filter of cases, with the order and the page of the list.

    A case must meet every field that isn't empty. The values within a field are alternatives.

    Attributes:
        text: Words that must all occur in id, question, answer or evidence, or in one note, reason
            or label that a person wrote about the case. If no case has them all, the last word is
            the beginning of a word, if it has three letters or more.
        standings: The statuses of the cases.
        viewer: The reviewer who sees these statuses. A shared case that this reviewer has decided
            ``waits`` for the others, but only for this reviewer.
        flags: Issues in the original answer.
        reasons: Why the run needs review.
        tiers: How urgent the most urgent of these reasons is.
        severities: The severity of the worst issue; ``none`` if an audit found no issue.
        similar_to: Ids of cases; the other cases with nearly the same answer match (at most 1,000).
        modes: Codes of failure modes that people applied to the case or to something in it. Codes
            that the viewer can't see yet don't count.
        causes: The causes shown by what these modes (or any, if none is named) were applied to.
        systems: The systems that answered (``Case.system``).
        months: The months of import, such as ``2026-11``.
        imports: Imports of files, by the ids that the imports print and link to.
        open_to: A reviewer who may decide the case now. That excludes cases that they have decided
            or skipped (unless ``skipped_too``), that others have taken, and that are assigned to as
            many others as the case needs.
        undecided_by: A person who hasn't decided the case.
        seed: The seed of the order ``random``.
        queue: The id of a named queue (``ReviewQueue``), whose filter its cases also meet. Empty
            for the first queue, which has all cases.
        waits_in_queue: Only the cases that still need a decision in this queue.

    """

    text: str = ""
    standings: tuple[Standing, ...] = ()
    viewer: str | None = None
    states: tuple[CaseState, ...] = ()
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    tiers: tuple[ReviewTier, ...] = ()
    severities: tuple[Severity | Literal["none"], ...] = ()
    fields: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    similar_to: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    systems: tuple[str, ...] = ()
    months: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    open_to: str | None = None
    skipped_too: bool = False
    undecided_by: str | None = None
    quality_from: Share | None = None
    quality_to: Share | None = None
    confidence_from: Share | None = None
    confidence_to: Share | None = None
    order: OrderName = DEFAULT_ORDER
    seed: int = 0
    queue: str = ""
    waits_in_queue: bool = False
    page: int = Field(default=1, ge=1)
    size: PageSize = 50

    @field_validator("queue")
    @classmethod
    def _first_is_empty(cls, queue: str) -> str:
        return clean_queue_name(queue)


VIEWER_FIELDS = ("viewer", "open_to", "undecided_by")
"""Fields of a filter that say who looks at the cases. Services set them, callers never."""

MEMBER_FIELDS = (
    *("text", "fields", "datasets", "systems", "months", "assignees", "tags"),
    *("flags", "reasons", "tiers", "severities", "models"),
    *("quality_from", "quality_to", "confidence_from", "confidence_to"),
)
"""The fields of a filter that can fill a named queue.

A queue has its own status for each case, so the statuses that decisions change can't fill it.
"""


class ReviewQueue(TeamRecord):
    """A named queue: the cases that a filter holds, and how its people review them.

    Which cases it has is computed from the filter whenever it's needed.

    Attributes:
        id: Its id in addresses and in the log. It stays when the queue is renamed.
        cases: The filter, with the order of the list. Only ``MEMBER_FIELDS`` can be set.
        policy: How many people decide each case in this queue, and when they see the audit.
        rubric: The queue's own rubric; None for the team's.
        label_types: The names of the team's label types that it offers; empty for all.
        instructions: A text for its reviewers. It's never part of a prompt.
        people: The names of its reviewers; empty for everybody.
        archived: Whether it's closed. Its decisions and labels stay.

    """

    kind = "queue"
    id: str = Field(min_length=1, max_length=60, pattern=r"^[a-z0-9][a-z0-9-]*$")
    name: Annotated[str, Field(min_length=1, max_length=60)]
    cases: CaseFilter = CaseFilter()
    policy: QueuePolicy = QueuePolicy()
    rubric: Rubric | None = None
    label_types: tuple[Name, ...] = Field(default=(), max_length=30)
    instructions: str = Field(default="", max_length=20_000)
    people: tuple[Name, ...] = Field(default=(), max_length=200)
    archived: bool = False

    @model_validator(mode="after")
    def _can_be_filled(self) -> Self:
        given = self.cases.model_dump(exclude_defaults=True)
        if unknown := given.keys() - {*MEMBER_FIELDS, "order", "seed"}:
            raise ValueError(
                f"a queue can't be filled by {', '.join(sorted(unknown))}, because its reviewers'"
                " own decisions would change it"
            )
        if self.policy.share < 1:
            raise ValueError("all cases of a queue need the same number of reviewers")
        return self

    @field_serializer("cases")
    def _only_what_is_set(self, cases: CaseFilter) -> dict[str, Any]:
        # so that a stored queue can be read when a filter has gained or lost a field
        return cases.model_dump(mode="json", exclude_defaults=True)

    @property
    def is_strict(self) -> bool:
        """Whether its reviewers must not know what others decided, or what the audit found."""
        return self.policy.reviewers > 1 or self.policy.machine != "first"

    def admits(self, reviewer: str) -> bool:
        """Return whether this person may decide its cases."""
        return not self.people or reviewer in self.people


class CaseSummary(OneLine, Record):
    """A case in a list. Its scores are those of the original answer in the newest finished run.

    Attributes:
        revised_quality: The quality of the best revision, if there is one.
        headline: The worst issue in one line, which may quote the answer or the evidence. A second
            line counts the other issues by kind.
        severity: The severity of the worst issue.
        fault_probability: The estimated probability that the answer is faulty. The order ``risk``
            sorts by it within a tier and a severity.
        disagreement: How far citation engine, critic and evaluator differ, from 0 to 1.
        version: Changes with state, run and decision. A decision that names another version is
            refused.

    """

    id: str
    query: str
    standing: Standing
    state: CaseState
    field: str | None
    dataset: str | None
    run_id: str | None
    quality: float | None
    revised_quality: float | None
    confidence: float | None
    overall: float | None
    invalid: int | None
    uncited: int | None
    iterations: int | None
    models: tuple[str, ...]
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    headline: str | None
    tier: ReviewTier | None
    reviewer: str | None
    imported_at: str
    updated_at: str
    version: int
    fault_probability: float | None = None
    severity: Severity | None = None
    disagreement: float | None = None

    @property
    def minor(self) -> bool:
        """Whether no serious issue was found although there are less serious ones."""
        return self.standing == "nothing_found" and self.severity is not None

    def __repr__(self) -> str:
        quality = "no quality" if self.quality is None else f"quality {self.quality:.2f}"
        worst = f": {self.headline.splitlines()[0]}" if self.headline else ""
        return (
            f"<CaseSummary of {self.id[:80]!r}: {self.standing.replace('_', ' ')},"
            f" {quality}{worst}>"
        )


CasePage = Page[CaseSummary]


class Facets(Record):
    """The number of cases in the store by value.

    ``minor`` counts the cases with the status ``nothing_found`` that have less serious issues.
    """

    standings: dict[str, int]
    minor: int
    states: dict[str, int]
    flags: dict[str, int]
    reviewers: dict[str, int]


class AssessedCase(NamedTuple):
    """A case whose state follows from a finished run, and not from a person's decision.

    Attributes:
        accepted: Whether the policy accepts it, by the entry ``entry_id``.
        touched: Whether a person has an entry on it.

    """

    case_seq: int
    case_id: str
    run_id: str
    version: int
    accepted: bool
    entry_id: str | None
    touched: bool


class AddResult(NamedTuple):
    """The result of adding several cases."""

    added: int
    unchanged: int
    conflicts: tuple[CaseConflict, ...]


class FoundCases(NamedTuple):
    """The first ids of the cases that matched, and the total number of matches."""

    ids: tuple[str, ...]
    total: int


class RunSummary(Record):
    """A run in a list. Its figures are those of the original answer, and None until it is finished.

    Attributes:
        revised_quality: The quality of the best revision.
        why: Why the run was interrupted.
        asked_by: The name of the person who started it, or "" if it isn't known.
        removed_at: When retention removed its content and settings; its figures are kept.

    """

    id: str
    case_id: str
    state: RunState
    started_at: str
    ended_at: str | None
    models: dict[str, str]
    settings: dict[str, Any]
    quality: float | None
    revised_quality: float | None
    confidence: float | None
    overall: float | None
    invalid: int | None
    uncited: int | None
    iterations: int | None
    improvement: float | None
    termination: TerminationReason | None
    needs_review: bool | None
    spot_check: bool | None
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    why: str
    asked_by: str = ""
    removed_at: str | None = None

    @property
    def readable(self) -> bool:
        """Whether the run is finished and its content still exists."""
        return self.state == "finished" and self.removed_at is None


class RunProgress(Record):
    """The progress of a run, with everything that is needed to resume it."""

    run_id: str
    case_id: str
    case_digest: str
    state: RunState
    models: dict[str, str]
    settings: dict[str, Any]
    started_at: str
    draft: Draft | None
    iterations: tuple[Iteration, ...]
    steps: StepsDone | None
    last_event: int
    cancel_requested: bool
    why: str


class LogFilter(Record):
    """A filter and page of log entries, newest first by default. Empty fields don't filter."""

    reviewers: tuple[str, ...] = ()
    newest_first: bool = True
    page: int = Field(default=1, ge=1)
    size: PageSize = 50


class DecisionFilter(LogFilter):
    """A filter of the decision log. Times are ISO 8601; ``until`` is exclusive.

    ``blind_to`` names a reviewer, for whom entries of others don't match while the case still needs
    decisions. Acceptances by the policy, and undos of them, don't match either if the verdict on
    their cases is hidden from the reviewer. ``batch`` is the id of a batch: its entries match, and
    those that undid them. ``text`` has words that must all occur in the reason, the note or the
    notes of labels of an entry.
    """

    case_id: str | None = None
    run_id: str | None = None
    batch: str | None = None
    kinds: tuple[EntryKind, ...] = ()
    sources: tuple[EntrySource, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    since: str | None = None
    until: str | None = None
    text: str = ""
    blind_to: str | None = None


class ScreeningLogFilter(LogFilter):
    """A filter of the screening log."""

    screening_id: str | None = None
    abstract_id: str | None = None
    kinds: tuple[ScreeningEntryKind, ...] = ()


DecisionPage = Page[LogEntry]


class ObservationFilter(Record):
    """A filter of observations, newest first. Empty fields don't filter.

    Attributes:
        text: Words that must all occur in the text or the quoted words. If no observation has them
            all, the last word is the beginning of a word. The id of a case also finds all
            observations of the case.
        ids: The observations themselves, such as the members of a group.
        patterns: Numbers of patterns, by which groups name their members.
        types: Rules of issues, codes of reasons, names of labels.
        causes: The causes that these types show.
        codes: Codes that were applied to the observation.
        uncoded: Only observations without a code, in cases that have none as a whole.
        faults_only: Only observations that say that something is wrong.
        skip_explained: Leave out reasons chosen from the list whose entry has a note or a label
            on a fault, which say more precisely what is wrong.
        since: The earliest time, ISO 8601.
        until: The time before which, ISO 8601.
        viewer: The reviewer who sees them; services set it, callers never.

    """

    text: str = ""
    case_id: str | None = None
    ids: tuple[str, ...] = ()
    patterns: tuple[int, ...] = ()
    kinds: tuple[ObservationKind, ...] = ()
    types: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    severities: tuple[Severity, ...] = ()
    authors: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    uncoded: bool = False
    faults_only: bool = False
    skip_explained: bool = False
    fields: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    viewer: str | None = None
    page: int = Field(default=1, ge=1)
    size: PageSize = 50


ObservationPage = Page[CaseObservation]


class AppliedCode(NamedTuple):
    """A failure mode that a person applied to a case, or to one observation in it.

    ``place`` is the observation's (``CaseObservation.place``), or "" for the case itself.
    """

    case_id: str
    place: str
    code: str
    reviewer: str
    entry_id: str


class GroupStamp(NamedTuple):
    """What proposed groups depend on.

    Attributes:
        seen_by: Changes if other rows are visible: the viewer, if anything is hidden from anybody,
            and the policies in force.
        content: Changes with every observation and every entry of the log.

    """

    seen_by: str
    content: str


class ModeTally(NamedTuple):
    """The cases and observations of one mode with one value of a facet."""

    mode: str
    value: str
    cases: int
    observations: int


class LogHead(NamedTuple):
    """The length and last digest of a log. Stored elsewhere, they reveal a truncated log."""

    length: int
    digest: str


class DatasetVersion(Record):
    """A frozen, named data set.

    Attributes:
        form: The name of its export format.
        encoding: The encoding of its rows.
        selection: The filter, split and shares, as in the manifest.
        log_length: The length of the decision log when it was frozen.
        log_digest: The last digest of the log then.
        app: The version of MASIS that made it.

    """

    name: str
    at: str
    by: str
    description: str
    form: str
    encoding: str
    selection: dict[str, Any]
    manifest: dict[str, Any]
    log_length: int
    log_digest: str
    app: str

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.manifest["counts"]["rows"])

    @property
    def cases(self) -> int:
        """The number of cases with rows."""
        return int(self.manifest["counts"]["cases"])


class LostFromDataset(NamedTuple):
    """The number of a dataset version's cases that were redacted or lost their audit since."""

    redacted: int
    removed: int

    def __str__(self) -> str:
        parts = [
            *([f"{count_noun(self.redacted, 'case')} redacted"] if self.redacted else []),
            *(
                [f"the audits of {count_noun(self.removed, 'case')} removed by retention"]
                if self.removed
                else []
            ),
        ]
        return f"not rebuildable: {' and '.join(parts)}" if parts else "rebuildable"


class StoreCheck(Record):
    """The health of a database: problems of file, schema and derived states, and logs."""

    path: str
    bytes: int
    app_version: str
    schema_version: str
    sqlite_version: str
    counts: dict[str, int]
    log: LogCheck
    screening_log: LogCheck
    preference_log: LogCheck
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        logs = (self.log, self.screening_log, self.preference_log)
        return not self.problems and all(log.intact for log in logs)
