"""The inputs and outputs of the store: filters, pages and summaries."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from masis.errors import CaseConflict
from masis.schema.audit import Draft
from masis.schema.base import Page, Record, Share
from masis.schema.case import Severity
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
from masis.schema.team import MachineShown
from masis.schema.wording import count_noun

RunState = Literal["running", "finished", "interrupted"]
QueueOrder = Literal["risk", "disagreement", "least_confident", "oldest", "newest", "random"]
"""``risk``: what must be looked at, then what could not be certified, then the rest, each by the
severity of the worst issue, then by the estimated probability that the answer is faulty;
``disagreement``: where citation engine, critic and judge disagree most; ``least_confident``: lowest
confidence in the answer, unscored ones first; ``oldest``, ``newest``: by import; ``random``: drawn
with a seed. In the first three, cases not yet audited come last, and behind them what the viewer
has decided and others are still to settle."""

PageSize = Annotated[int, Field(ge=1, le=1000)]
RISK_OF_FITTED = 3.0
"""What a fitted probability is multiplied with in ``risk``: cases with and without one are then on
one scale.
"""
TIER_RANK: dict[ReviewTier | None, float] = {"must_look": 2.0, "not_certified": 1.0, None: 0.0}
SEVERITY_RANK: dict[Severity | None, int] = {
    "critical": 4,
    "high": 3,
    "medium": 2,
    "low": 1,
    None: 0,
}


def risk_of(tier: ReviewTier | None, severity: Severity | None, likely: float) -> float:
    """Return what the order ``risk`` goes by: tier, then severity of the worst issue, then
    probability of fault.
    """
    return TIER_RANK[tier] + (SEVERITY_RANK[severity] + likely) / len(SEVERITY_RANK)


class CaseFilter(Record):
    """Which cases, in which order, which page of them. Empty fields don't filter.

    Values within one field are alternatives (any of these states); fields narrow each other.
    ``text`` finds cases that hold all its words in id, question, answer or evidence; if none does,
    the last one, from three letters on, is taken as the beginning of a word. ``flags`` are issues
    found in the original answer, ``reasons`` why its run needs review, ``tiers`` how pressing the
    most pressing of these reasons is, ``severities`` how severe the worst issue is (``none``: an
    audit found none). ``standings`` is where cases stand for people, ``viewer`` who they stand so
    for: a shared case that this reviewer has decided ``waits`` for the others, for nobody else.
    ``open_to`` names a reviewer: cases whose decision they have made or skipped (unless
    ``skipped_too``), that others have taken, or that are assigned to as many others as are wanted,
    don't match. ``undecided_by`` leaves out what one person has decided.
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
    open_to: str | None = None
    skipped_too: bool = False
    undecided_by: str | None = None
    quality_from: Share | None = None
    quality_to: Share | None = None
    confidence_from: Share | None = None
    confidence_to: Share | None = None
    order: QueueOrder = "risk"
    seed: int = 0
    page: int = Field(default=1, ge=1)
    size: PageSize = 50


class CaseSummary(OneLine, Record):
    """A case in a list. Scores, ``invalid`` and ``uncited`` are about the original answer, by the
    newest finished run; ``revised_quality`` is that of its best revision, None where there is none.
    ``headline``: in a line what is worst about the answer, in words from outside; where there are
    more issues, a second line counts them by kind. ``severity`` is that of its worst issue; within
    it the order ``risk`` goes by the estimated ``fault_probability``. ``disagreement`` is how far
    citation engine, critic and evaluator differ, from 0 to 1.

    ``version`` changes whenever state, run or decision changes; hand it in with a decision, which
    is refused if it has.
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
    def lesser(self) -> bool:
        """Whether no serious issue was found although there are minor ones."""
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
    """How many cases have which value, over the whole store; ``lesser`` of those in
    ``nothing_found`` have an issue.
    """

    standings: dict[str, int]
    lesser: int
    states: dict[str, int]
    flags: dict[str, int]
    reviewers: dict[str, int]


class AssessedCase(NamedTuple):
    """A case that stands by a finished run and by no person's decision.

    ``accepted``: the policy accepts it by entry ``entry_id``; ``touched``: a person has an entry on
        it.
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
    """A run in a list; ``why`` says why it was interrupted, ``asked_by`` who asked for it ("" where
    nobody is known).

    Figures are None until it is finished, and the original answer's; ``revised_quality`` is that of
    the best revision. Of a run that retention has removed (``removed_at``) the figures stand; its
    content and its settings are gone.
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

    ``blind_to`` names a reviewer: what others wrote about a case whose decisions are not all made
    does not match. Unless ``machine_shown`` is "first", neither do acceptances by the policy whose
    cases are hidden from them.
    """

    case_id: str | None = None
    run_id: str | None = None
    kinds: tuple[EntryKind, ...] = ()
    sources: tuple[EntrySource, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    since: str | None = None
    until: str | None = None
    blind_to: str | None = None
    machine_shown: MachineShown = "first"


class ScreeningLogFilter(LogFilter):
    """A filter of the screening log."""

    screening_id: str | None = None
    abstract_id: str | None = None
    kinds: tuple[ScreeningEntryKind, ...] = ()


DecisionPage = Page[LogEntry]


class LogHead(NamedTuple):
    """The length and last digest of a log. Stored elsewhere, they reveal a truncated log."""

    length: int
    digest: str


class DatasetVersion(Record):
    """A frozen, named data set: its time, author, selection and manifest.

    ``form`` and ``encoding`` are those of an export, ``selection`` the filter, split and shares as
    the manifest has them; ``log_length`` and ``log_digest`` say where the decision log ended,
    ``app`` which version of MASIS made it.
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
    """How many cases of a dataset version were redacted or lost their audit since it was frozen."""

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
    """The health of a database: the ``problems`` of file, schema and derived states, and the checks
    of both logs.
    """

    path: str
    bytes: int
    app_version: str
    schema_version: str
    sqlite_version: str
    counts: dict[str, int]
    log: LogCheck
    screening_log: LogCheck
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems and self.log.intact and self.screening_log.intact
