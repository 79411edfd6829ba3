"""The requests and answers of the API that aren't records of the product already."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, Field, JsonValue, field_serializer

from masis.datasets.exports.export import Selection
from masis.schema import limits
from masis.schema.actor import Permission, Role
from masis.schema.base import Record
from masis.schema.batches import SentenceLabel
from masis.schema.case import Case, Severity
from masis.schema.codebook import MOST_CODES, MOST_MODES, Codebook
from masis.schema.faults import PlantedFault
from masis.schema.judge import JudgeContent, JudgeName
from masis.schema.judge_trials import DecidedFilter, Half
from masis.schema.labels import LabelTarget, Stance, SupportKind
from masis.schema.preference import LONGEST_REASON, PreferenceVerdict
from masis.schema.review import LONGEST_SENTENCE, AdjudicationCause, LogEntry, Verdict
from masis.schema.run import Run
from masis.schema.team import MachineShown, Rubric
from masis.schema.tokens import ApiToken
from masis.services.batch_actions import BatchRequest
from masis.services.cases import CaseView
from masis.services.desk import RowOutcome, select_cases
from masis.services.modes.service import MOST_APPLIED, ModeAgreement
from masis.services.preferences import PreferenceProgress, PreferenceResults, PreferenceTask
from masis.services.queue_rules import member_filter
from masis.services.records import (
    VIEWER_FIELDS,
    CaseFilter,
    CaseSummary,
    Facet,
    ObservationFilter,
    RunSummary,
)
from masis.services.team import MOST_AT_ONCE
from masis.services.tokens import DEFAULT_DAYS
from masis.trust.agreement import AgreementEstimate

MOST_CASES = 1_000
"""Maximum number of cases that a request can add."""


class Me(Record):
    """Who a request acts for, and what they may do here."""

    name: str
    roles: tuple[Role, ...]
    permissions: tuple[Permission, ...]
    sign_in: bool
    machine_shown: MachineShown
    app_version: str


def settable_fields(model: type[BaseModel]) -> list[str]:
    """Return the names of the fields that a request can set."""
    return [name for name in model.model_fields if name not in VIEWER_FIELDS]


class CaseQuery(CaseFilter):
    """The queue's filters, order and page; a field with several values is repeated.

    ``waiting`` lists only the cases that this person can decide now, as the queue does.
    """

    waiting: bool = False

    def case_filter(self) -> CaseFilter:
        """Return the filter. Who looks at it is added by the server, never by the request."""
        return CaseFilter(**self.model_dump(exclude={"waiting", *VIEWER_FIELDS}))


class CaseDetail(Record):
    """A case with its newest audit and its log, limited to what the person may see."""

    case: Case
    summary: CaseSummary
    runs: tuple[RunSummary, ...]
    run: Run | None
    decision: LogEntry | None
    history: tuple[LogEntry, ...]
    machine_hidden: bool
    planted: PlantedFault | None

    @field_serializer("case")
    def _with_unknown_keys(self, case: Case) -> dict[str, Any]:
        return case.to_json_dict()

    @classmethod
    def of(cls, view: CaseView) -> Self:
        """Return the detail of an opened case."""
        return cls(**view._asdict())

    def view(self) -> CaseView:
        """Return the case as ``Desk.show`` does."""
        return CaseView(**{name: getattr(self, name) for name in CaseView._fields})


class NewCases(Record):
    """Cases to add, in the format of JSON Lines files.

    ``system`` names the system that gave the answers, of cases that don't name one. Their ids are
    then those of the questions.
    """

    system: str | None = None
    cases: tuple[dict[str, JsonValue], ...] = Field(min_length=1, max_length=MOST_CASES)


class ComparedSystems(Record):
    """The systems to compare, the one to compare with first; the field is repeated."""

    systems: tuple[str, ...] = Field(min_length=2)


class CaseProblem(Record):
    """Why a case wasn't added."""

    case: str
    message: str


class AddedCases(Record):
    """What became of added cases. ``conflicts`` are those that are stored with other content."""

    added: int
    unchanged: int
    conflicts: tuple[CaseProblem, ...]


class NewPassage(Record):
    """Words of a chunk that support or contradict the labelled words.

    ``start`` is needed if the words occur in the chunk more than once.
    """

    evidence_id: str
    text: str
    start: int | None = None
    stance: Stance = "supports"


class NewLabel(Record):
    """A label, or with a ``severity`` an issue that the audit missed.

    It is about words of the answer, which need ``start`` if they occur more than once. Without
    ``text``, an issue is about the whole answer. With ``evidence_id`` the label is about that
    chunk, and ``passage_missing`` is about the case.
    """

    label: str
    text: str = ""
    start: int | None = None
    severity: Severity | None = None
    note: str = ""
    target: LabelTarget | None = None
    evidence: tuple[NewPassage, ...] = ()
    right_reference: str | None = None
    kind: SupportKind | None = None
    evidence_id: str | None = None
    conflicts_with: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the label as ``Desk.label`` takes it."""
        return self.model_dump(exclude_unset=True)


class NewDecision(Record):
    """A decision. See ``masis.Desk.decide`` for the fields.

    ``token`` makes a repeated request harmless: the same token makes no second decision.
    """

    verdict: Verdict
    reason: str = ""
    note: str = ""
    corrected_answer: str | None = Field(default=None, max_length=limits.ANSWER)
    iteration: int = Field(default=1, ge=1)
    labels: tuple[NewLabel, ...] = ()
    machine_shown: tuple[str, ...] | None = None
    acknowledge: bool = False
    acknowledge_citations: bool = False
    version: int | None = None
    token: str | None = Field(default=None, max_length=200)
    queue: str = Field(default="", max_length=200)


class DecisionRows(Record):
    """Decisions to make one after another. See ``masis.Desk.decide_all`` for a row."""

    rows: tuple[Any, ...] = Field(max_length=MOST_CASES)
    dry_run: bool = False


class RowResult(Record):
    """What became of one row of decisions: the log entry, or the error object.

    ``case_added`` says that an exported row brought its case.
    """

    line: int
    case: str
    verdict: str
    entry: LogEntry | None
    error: dict[str, Any] | None
    outcome: RowOutcome = "recorded"
    case_added: bool = False


class NewVerdict(NewDecision):
    """A final verdict on a case whose reviewers differ, with the fields of a decision.

    ``cause`` says why they differed. With the cause ``gap``, ``rubric_sentence`` proposes a
    sentence for the rubric.
    """

    cause: AdjudicationCause | None = None
    rubric_sentence: str = Field(default="", max_length=LONGEST_SENTENCE)


class NewLabels(Record):
    """Labels to add to the person's decision on a case. See ``masis.Desk.label``."""

    labels: tuple[NewLabel, ...]
    acknowledge: bool = False
    acknowledge_citations: bool = False


class NewComment(Record):
    """A comment on a case."""

    text: str


class Names(Record):
    """Tags or reviewers to add to cases, or with ``remove`` to remove from them."""

    cases: tuple[str, ...] = Field(min_length=1, max_length=MOST_AT_ONCE)
    names: tuple[str, ...] = Field(min_length=1, max_length=100)
    remove: bool = False


class Changed(Record):
    """How many cases a request changed."""

    cases: int


class NextCase(CaseQuery):
    """A queue to take the next case of, after the case ``after``."""

    after: str | None = None


class DraftValues(Record):
    """Fields of a draft. Fields that aren't named stay as they are."""

    values: dict[str, JsonValue] = Field(max_length=50)


class QueuesQuery(Record):
    """Which named queues to list; ``archived`` includes closed ones."""

    archived: bool = False


class QueueCases(Record):
    """The filters that would fill a queue."""

    cases: CaseQuery = CaseQuery()

    def filters(self) -> dict[str, Any]:
        """Return the filters that were given."""
        return self.cases.model_dump(exclude={"waiting", *VIEWER_FIELDS}, exclude_unset=True)


class NewQueue(QueueCases):
    """A queue to create: its name, and the filters that fill it."""

    name: str = Field(max_length=200)


class QueueChange(Record):
    """Changes of a queue. See ``masis.Desk.change_queue``; values left out stay as they are."""

    name: str | None = Field(default=None, max_length=200)
    cases: CaseQuery | None = None
    policy: dict[str, JsonValue] | None = None
    rubric: Rubric | None = None
    label_types: tuple[str, ...] | None = None
    instructions: str | None = Field(default=None, max_length=20_000)
    people: tuple[str, ...] | None = None
    archived: bool | None = None

    def changes(self) -> dict[str, Any]:
        """Return the values that were given."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        if self.cases is not None:
            given["cases"] = member_filter(self.cases.case_filter())
        return given


class LogQuery(Record):
    """Which entries of the decision log to list: the newest ones, of one case or of all.

    ``text`` has words that must all occur in what a person wrote in the entry.
    """

    case: str | None = None
    limit: int = Field(default=50, ge=1, le=1000)
    text: str = ""


class BatchQuestion(BatchRequest):
    """An action and its cases: chosen ones, or all that match filters of the queue.

    ``action`` is one of the actions that ``masis batch apply --help`` lists, or ``label``.
    """

    matching: CaseQuery | None = None


class NewBatch(BatchQuestion):
    """An action to apply to many cases.

    ``token`` makes a repeated request harmless: it returns the same batch. ``expected`` is the
    ``digest`` of the preview; without it, the cases may have changed since then.
    """

    token: str = Field(default="", max_length=200)
    expected: str = Field(default="", max_length=64)


class NewSentenceLabel(SentenceLabel):
    """A label on a sentence, in every answer with the sentence that the person decided.

    ``sentence`` is words of the decided answer of the case. The sentence around them is labeled.
    """

    acknowledge: bool = False
    token: str = Field(default="", max_length=200)

    def label_record(self) -> SentenceLabel:
        """Return the label without what belongs to the request."""
        return SentenceLabel(**self.model_dump(exclude={"acknowledge", "token"}))


class BatchesQuery(Record):
    """How many batches to list, newest first."""

    limit: int = Field(default=50, ge=1, le=1000)


class NewAudits(Record):
    """Cases to audit, or none to audit every case without an audit, up to ``max_cost`` dollars.

    A case with a finished audit of the same text and settings isn't audited again, unless
    ``again``.
    """

    cases: tuple[str, ...] = Field(default=(), max_length=MOST_CASES)
    again: bool = False
    max_cost: float | None = Field(default=None, gt=0)


class AuditJob(Record):
    """An audit as a job. It doesn't name a result, which the policy may hide from the person."""

    run: str
    case: str
    state: Literal["waiting", "running", "finished", "interrupted"]
    ahead: int | None = None
    why: str = ""


class ExportQuery(CaseFilter):
    """Which cases to export, in which encoding, and which side of the split.

    Without ``states``, cases that a person decided are exported; with ``any_state`` all of them.
    ``archive`` asks for a zip file that holds the export under this name, with its manifest. A
    format that is a folder needs it.
    """

    any_state: bool = False

    encoding: str = "jsonl"
    split: str | None = None
    archive: str | None = Field(default=None, pattern=r"^[\w][\w .-]{0,99}$")

    def selection(self) -> Selection:
        """Return the selection of cases."""
        own = {"any_state", "encoding", "split", "archive", *VIEWER_FIELDS}
        filters = self.model_dump(exclude=own, exclude_unset=True)
        return select_cases(self.split, any_state=self.any_state, **filters)


class ExportFormatInfo(Record):
    """An export format."""

    name: str
    description: str


class NewVersion(Record):
    """A dataset version to freeze."""

    name: str
    form: str
    description: str = ""
    encoding: str = "jsonl"
    split: str | None = None
    any_state: bool = False
    cases: CaseQuery = CaseQuery()

    def selection(self) -> Selection:
        """Return the selection of cases; without states, those that a person decided."""
        filters = self.cases.model_dump(exclude={"waiting", *VIEWER_FIELDS}, exclude_unset=True)
        return select_cases(self.split, any_state=self.any_state, **filters)


class ObservationQuery(ObservationFilter):
    """Which observations to list; a field with several values is repeated."""

    def observation_filter(self) -> ObservationFilter:
        """Return the filter. Who looks at it is added by the service, never by the request."""
        return ObservationFilter(**self.model_dump(exclude=set(VIEWER_FIELDS)))


class GroupQuery(Record):
    """Whether to group the observations again, which takes a few seconds."""

    again: bool = False


class CountQuery(Record):
    """What to count failure modes by."""

    facet: Facet = "mode"


class AgreedMode(Record):
    """How far reviewers agree about a failure mode (``ModeAgreement``), with 95% intervals.

    A figure or an interval is ``null`` if there are too few cases for it.
    """

    mode: str
    both: int
    one: int
    pairs: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None

    @classmethod
    def of(cls, row: ModeAgreement) -> Self:
        """Return the record of a row."""
        return cls(
            **{name: getattr(row, name) for name in ("mode", "both", "one", "pairs")},
            agreement=row.agreement.value,
            agreement_low=row.agreement.low,
            agreement_high=row.agreement.high,
            kappa=row.kappa.value,
            kappa_low=row.kappa.low,
            kappa_high=row.kappa.high,
        )


class NewCode(Record):
    """Codes to apply to a case or to one observation in it, or with ``remove`` to remove.

    ``coded_by`` names the person whose codes are removed, if they aren't the caller's.
    """

    codes: tuple[str, ...] = Field(min_length=1, max_length=MOST_CODES)
    observation: str | None = None
    remove: bool = False
    coded_by: str | None = None


class CodesToPreview(Record):
    """Codes, and the observations to which they would be applied."""

    codes: tuple[str, ...] = Field(min_length=1, max_length=MOST_CODES)
    observations: ObservationQuery = ObservationQuery()


class NewCodes(Record):
    """Codes to apply to observations, or to cases.

    ``token`` makes a repeated request harmless. ``DELETE /batches/{batch}`` removes all these codes
    together.
    """

    codes: tuple[str, ...] = Field(min_length=1, max_length=MOST_CODES)
    observations: tuple[str, ...] = Field(default=(), max_length=MOST_APPLIED)
    cases: tuple[str, ...] = Field(default=(), max_length=MOST_APPLIED)
    token: str = Field(default="", max_length=100)


class MovedModes(Record):
    """Failure modes to merge into another one, or to nest under it (``null``: at the top)."""

    codes: tuple[str, ...] = Field(min_length=1, max_length=MOST_MODES)
    into: str | None = None


class NewCodebook(Record):
    """A codebook to add to the team's. With ``replace``, unused modes that it lacks are removed."""

    codebook: Codebook
    replace: bool = False


class NewJudgeVersion(Record):
    """A draft of the judge's guidance. Without ``content``, it is a copy of ``based_on``."""

    name: JudgeName
    content: JudgeContent | None = None
    note: str = Field(default="", max_length=2000)
    based_on: str | None = None


class ChangedJudgeVersion(Record):
    """The changes of a draft. A field that is null stays as it is."""

    name: JudgeName | None = None
    content: JudgeContent | None = None
    note: str | None = Field(default=None, max_length=2000)


class CasesToTry(Record):
    """The cases that a judge version would audit."""

    cases: tuple[str, ...] = Field(min_length=1, max_length=MOST_CASES)


class TrialCost(Record):
    """The most that audits may need; ``cost_usd`` is null if a price isn't known."""

    calls: int
    tokens: int
    cost_usd: float | None


class NewDecidedSplit(Record):
    """Decided cases to choose. ``seed`` gives the halves; a random one is drawn if it's null."""

    filters: DecidedFilter = DecidedFilter()
    seed: int | None = Field(default=None, ge=0, lt=1 << 31)


class HalfQuery(Record):
    """The half of the chosen cases to report about."""

    half: Half = "first"


class TrialProgress(Record):
    """How far a trial is. ``problems`` has the numbers of cases that weren't audited, by reason."""

    total: int
    done: int
    running: bool
    failed: str | None
    problems: dict[str, int]


class NewApiToken(Record):
    """A personal token to create."""

    label: str
    role: Role | None = None
    days: int = DEFAULT_DAYS


class CreatedToken(Record):
    """A new token. ``text`` is shown only here."""

    text: str
    token: ApiToken


class ClaimToVerify(Record):
    """A claim to verify without its passages, by its number from 1; all of them if ``null``."""

    claim: int | None = None
    iteration: int = 1


class Done(Record):
    """An answer without content of its own."""

    done: bool = True


class FigureWithInterval(Record):
    """A figure, its 95% interval and the number ``n`` it is computed from.

    ``why`` says why a figure or an interval is ``null``.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    why: str

    @classmethod
    def of(cls, estimate: AgreementEstimate) -> Self:
        """Return the record of an estimate."""
        return cls(**estimate._asdict())


class WinRateRecord(Record):
    """How often people prefer one system to another (``trust.paired.WinRate``)."""

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    rate: FigureWithInterval
    p_exact: float
    too_few_to_tell: bool


class StrengthRecord(Record):
    """A system's log strength against the mean of all systems."""

    system: str
    log_strength: FigureWithInterval


class PreferenceSummary(Record):
    """The results of preferences (``PreferenceResults``)."""

    verdicts: int
    questions: int
    reviewers: dict[str, int]
    win_rates: tuple[WinRateRecord, ...]
    strengths: tuple[StrengthRecord, ...]
    no_strengths_because: str
    agreement: FigureWithInterval | None
    alpha: FigureWithInterval | None
    left: FigureWithInterval
    both_bad: FigureWithInterval
    disputed: int

    @classmethod
    def of(cls, results: PreferenceResults) -> Self:
        """Return the record of results."""
        agreement = results.agreement
        return cls(
            verdicts=results.verdicts,
            questions=results.questions,
            reviewers=results.reviewers,
            win_rates=tuple(
                WinRateRecord(
                    first=rate.first,
                    second=rate.second,
                    wins=rate.wins,
                    losses=rate.losses,
                    ties=rate.ties,
                    rate=FigureWithInterval.of(rate.rate),
                    p_exact=rate.p_exact,
                    too_few_to_tell=rate.is_too_few_to_tell,
                )
                for rate in results.win_rates
            ),
            strengths=tuple(
                StrengthRecord(system=system, log_strength=FigureWithInterval.of(found))
                for system, found in results.strengths.strengths
            ),
            no_strengths_because=results.strengths.why,
            agreement=FigureWithInterval.of(agreement.raw) if agreement else None,
            alpha=FigureWithInterval.of(agreement.alpha) if agreement else None,
            left=FigureWithInterval.of(results.left),
            both_bad=FigureWithInterval.of(results.both_bad),
            disputed=results.disputed,
        )


class PreferenceQuery(Record):
    """Whose preferences to show, and which; a field with several values is repeated."""

    everyone: bool = False
    systems: tuple[str, ...] = ()
    disputed: bool = False
    page: int = Field(default=1, ge=1, le=100_000)


class ResultsQuery(Record):
    """Whether to include preferences on questions that the caller hasn't decided."""

    everyone: bool = False


class PairVerdictRequest(Record):
    """A verdict on a pair. ``token`` makes a repeated request harmless."""

    verdict: PreferenceVerdict
    reason: str = Field(default="", max_length=LONGEST_REASON)
    token: str | None = Field(default=None, max_length=200)


class PairToDecide(Record):
    """The next pair, or ``null`` if none is open, and how many are decided."""

    task: PreferenceTask | None
    progress: PreferenceProgress
