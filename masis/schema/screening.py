"""Records of a screening: abstracts, grades, rounds, the result and what people decide about it.

The rules AESOP-GRADING to AESOP-ROUNDS define them. Offsets are character positions in
``Abstract.text``, or in the title if a record says so; the start is included and the end excluded.
Scores run from 0 to 1. None means unscored, which is never the same as zero.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, StrictStr, model_validator

from masis.schema.audit import JudgedBy
from masis.schema.base import InputRecord, Record, Share, Unscored
from masis.schema.calls import Usage
from masis.schema.case import ScreeningOutcome
from masis.schema.display import HtmlDisplay
from masis.schema.review import ChainedEntry
from masis.schema.storable import refuse_unstorable

StudyType = Literal[
    "human_systematic_review",
    "human_rct_drug_intervention",
    "human_rct_non_drug_intervention",
    "human_rct_non_intervention",
    "human_non_rct_drug_intervention",
    "human_non_rct_non_drug_intervention",
    "human_case_report",
    "non_systematic_review",
    "clinical_study_protocol",
    "animal_drug_intervention",
    "animal_non_drug_intervention",
    "animal_other",
    "in_vitro_study",
    "remaining",
]
"""The 14 types of the labelled abstracts, in lower case with underscores."""

STUDY_TYPES: tuple[StudyType, ...] = get_args(StudyType)

Design = Literal[
    "meta_analysis",
    "systematic_review",
    "randomised_trial",
    "non_randomised_study",
    "cohort_study",
    "case_control_study",
    "cross_sectional_study",
    "diagnostic_accuracy_study",
    "prognostic_study",
    "interrupted_time_series",
    "target_trial_emulation",
    "mendelian_randomisation",
    "economic_evaluation",
    "qualitative_study",
    "case_series",
    "case_report",
    "narrative_review",
    "protocol",
    "animal_study",
    "in_vitro_study",
    "notice",
    "other",
]
"""A place in the evidence hierarchy, which sets the prior of the methodology score.

It is finer than a study type if the abstract says enough.
"""

DESIGNS: tuple[Design, ...] = get_args(Design)

PublicationStatus = Literal[
    "retracted",
    "retraction_notice",
    "withdrawn",
    "erratum",
    "expression_of_concern",
    "of_concern",
    "protocol",
    "comment",
]
"""Why a record doesn't count as a study (``screening/sources/publication.py``).

``of_concern`` is the study itself; ``expression_of_concern`` is the notice about it.
"""

Recommendation = Literal["keep", "discard", "needs_more"]
Sufficiency = Literal["sufficient", "retrieve_more"]
GradeField = Literal[
    "relevance_score",
    "methodology_score",
    "sample_size_adequate",
    "study_type",
    "design",
    "recommendation",
]
"""A field of a grade that carries a reason and that a person may override."""

AppraisalItem = Literal[
    "randomisation",
    "allocation",
    "blinding",
    "control",
    "outcome",
    "registration",
    "interval",
    "test",
    "effect",
    "model",
    "follow_up",
    "harms",
    "prospective",
    "consecutive",
    "eligibility",
    "search",
    "selection",
    "bias",
    "reference",
    "accuracy",
    "collection",
    "analysis",
    "sampling",
    "guideline",
    "size",
]
"""An aspect of its method that an abstract may report (``screening/grading/methodology.py``).

Each design is checked for some of these items.
"""

APPRAISAL_ITEMS: tuple[AppraisalItem, ...] = get_args(AppraisalItem)

ItemState = Literal["stated", "denied", "planned", "not_stated"]
"""What an abstract says about an item. Only ``stated`` earns points."""

ITEM_STATES: tuple[ItemState, ...] = get_args(ItemState)

Direction = Literal["effect", "no_clear_effect", "opposite", "comparable", "unclear"]
"""The direction of a finding, read as an answer to the question."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

OverrideField = Literal[GradeField, AppraisalItem, "direction"]
"""Something a person may set: a field of the grade, an item of the appraisal or the direction."""

Rule = Literal[
    "strong",
    "off_topic",
    "not_a_study",
    "of_concern",
    "unknown_design",
    "weak_method",
    "weak_design",
    "underpowered",
    "borderline_relevance",
    "borderline_method",
    "borderline_quality",
    "unmatched",
    "unscored",
    "disagreement",
    "person",
]
"""The written rule that a recommendation follows from (``recommendation.py``).

It is ``disagreement`` if the graders of an ensemble don't agree, and ``person`` after an override.
"""


class Abstract(InputRecord):
    """One record that a retriever found; keys that aren't fields here are kept.

    Attributes:
        source: Where the record came from.
        publication_types: The types that its database assigns ("Retracted Publication", "Published
            Erratum").
        notice_about: PubMed ids or DOIs of the records that this record is a notice about.

    """

    id: StrictStr = Field(min_length=1, max_length=500)
    title: StrictStr = ""
    text: StrictStr = ""
    year: int | None = None
    journal: StrictStr | None = None
    authors: tuple[StrictStr, ...] = ()
    doi: StrictStr | None = None
    pmid: StrictStr | None = None
    url: StrictStr | None = None
    keywords: tuple[StrictStr, ...] = ()
    publication_types: tuple[StrictStr, ...] = ()
    notice_about: tuple[StrictStr, ...] = ()
    source: StrictStr | None = None

    @model_validator(mode="before")
    @classmethod
    def _storable_text(cls, data: Any) -> Any:
        refuse_unstorable(data, "the abstract")
        return data


class AbstractWords(Record):
    """Words of an abstract that support a grade.

    ``abstract.text[start:end] == text``, or the same of the title if ``place`` is ``title``.
    """

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str
    place: Literal["text", "title"] = "text"


class SampleSize(Record):
    """A stated number of units: "48 per group", "1,204 patients", "42 of 50".

    ``kind`` is ``total`` for a whole study, ``arm`` for one of its groups and ``of`` for a part of
    a whole. For ``of``, ``value`` is the whole.
    """

    value: int = Field(ge=0)
    unit: str
    kind: Literal["total", "arm", "of"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class GradeReason(Record):
    """Why a field has its value, with the words of the abstract that support it.

    ``given`` is a person's reason without the name that precedes it in ``text``; it is empty for a
    machine's reason.
    """

    text: str
    words: tuple[AbstractWords, ...] = ()
    given: str = ""


class Opinion(Record):
    """The verdict of one grader of an ensemble, before the opinions were combined."""

    judged_by: JudgedBy
    relevance_score: Share | None
    methodology_score: Share | None
    study_type: StudyType | None
    recommendation: Recommendation
    unscored: Unscored | None = None


class Grade(Record):
    """The critic's structured evaluation of one abstract against one question.

    Attributes:
        methodology_raw: The score as the grader gave it.
        methodology_score: ``max(methodology_raw, prior)``: the prior of the design is a lower
            bound.
        quality: The mean of relevance and methodology.
        study_size: The sample size that the study's findings are based on.
        overridden: The fields that a person has set. The stored grade keeps the machine's values.
        corrections: Items of the appraisal that a person has set; a grader never sets them.
        direction: The direction of the finding that a person has set; a grader never sets it.
        publication: Why the record doesn't count as a study. Such a record has no vote.
        registrations: Trial registry numbers, names of trials and other marks of a study
            (``screening/grading/study_identity.py``). Reports of one study share one.

    """

    abstract_id: str
    relevance_score: Share | None
    methodology_score: Share | None
    methodology_raw: Share | None
    prior: Share | None
    quality: Share | None
    sample_size_adequate: bool | None
    sample_sizes: tuple[SampleSize, ...] = ()
    study_size: SampleSize | None = None
    study_type: StudyType | None
    study_type_confidence: Share | None
    design: Design | None
    publication: PublicationStatus | None = None
    registrations: tuple[str, ...] = ()
    recommendation: Recommendation
    rule: Rule
    reasons: dict[OverrideField, GradeReason] = Field(default_factory=dict)
    judged_by: JudgedBy
    opinions: tuple[Opinion, ...] = ()
    agreement: Share | None = None
    overridden: tuple[OverrideField, ...] = ()
    corrections: dict[AppraisalItem, ItemState] = Field(default_factory=dict)
    direction: Direction | None = None
    unscored: Unscored | None = None


class Override(Record):
    """A person's value for a part of one grade.

    The part is a field, an item of the appraisal or the finding's direction. Overrides are appended
    to a log and never edited. A ``value`` of None undoes the previous override of the field.
    """

    abstract_id: str
    field: OverrideField
    value: float | bool | str | None
    reason: str
    reviewer: str = Field(min_length=1, max_length=200)
    at: str
    id: str | None = None

    @model_validator(mode="after")
    def _says_why(self) -> Override:
        if self.value is not None and not self.reason.strip():
            raise ValueError("an override needs a reason")
        return self


class GradeAgreement(Record):
    """A person's confirmation that the critic's grade of an abstract is right.

    Agreements are appended to a log as overrides are. ``agrees=False`` withdraws the same person's
    earlier confirmation.
    """

    abstract_id: str
    reviewer: str = Field(min_length=1, max_length=200)
    at: str
    agrees: bool = True
    id: str | None = None


class Query(Record):
    """One search query and the reason for it.

    Attributes:
        aims_at: The missing aspect that the query looks for.
        offset: The number of results to skip, for reading on in a list.
        design: The study design to ask for, if the source has such a field.
        since: The first publication year to ask for, if the source has such a field.

    """

    text: str
    why: str
    aims_at: str | None = None
    offset: int = Field(default=0, ge=0)
    design: Design | None = None
    since: int | None = None


class VoteTally(Record):
    """The votes of a round, one for each relevant abstract found so far.

    An unscored abstract votes ``needs_more``. ``not_relevant``, ``excluded`` and ``limited`` count
    the abstracts without a vote.
    """

    keep: int = Field(ge=0)
    discard: int = Field(ge=0)
    needs_more: int = Field(ge=0)
    unscored: int = Field(
        default=0, ge=0, description="how many of the needs_more couldn't be graded"
    )
    not_relevant: int = Field(
        default=0,
        ge=0,
        description="how many don't vote because they weren't shown to be about the question",
    )
    excluded: int = Field(
        default=0, ge=0, description="how many don't vote because a person discarded them"
    )
    limited: int = Field(
        default=0,
        ge=0,
        description="how many don't vote because they can't conclude alone, beside enough that can",
    )

    @property
    def votes(self) -> int:
        """The number of abstracts that voted."""
        return self.keep + self.discard + self.needs_more

    @property
    def keep_share(self) -> float | None:
        """The share of ``keep`` votes; None if there are no votes."""
        return self.keep / self.votes if self.votes else None

    @property
    def discard_share(self) -> float | None:
        """The share of ``discard`` votes; None if there are no votes."""
        return self.discard / self.votes if self.votes else None


class Ruling(Record):
    """The decision that follows from the votes so far.

    The screening stops only if the consensus, the average and the number of studies all suffice.
    """

    required_average: Share
    average: Share | None
    best_average: Share | None = Field(
        default=None,
        description="the average of the best kept studies that suffice by themselves",
    )
    tally: VoteTally
    consensus: Sufficiency
    decision: Sufficiency
    why: str
    studies: int = Field(default=0, ge=0, description="how many independent studies are kept")
    enough_alone: bool = Field(default=False, description="whether one of them suffices alone")
    too_few: bool = False

    @property
    def decisive_average(self) -> float | None:
        """The average that was compared with the requirement.

        It is that of all kept abstracts, or that of the best ones if only they reach it.
        """
        if self.average is None or self.average >= self.required_average - 1e-9:
            return self.average
        return max(self.average, self.best_average or 0.0)


class Round(Record):
    """One round: its queries, the abstracts they returned, the votes and the ruling.

    Attributes:
        number: Counts from 0, as in the spec.
        retrieved: The abstracts that the queries returned.
        new: The retrieved abstracts that were graded for the first time in this round.
        missing: What the evidence lacked. The next round's queries are built from it.

    """

    number: int = Field(ge=0)
    queries: tuple[Query, ...]
    identified: int = Field(ge=0, description="hits of all its queries, repeats counted")
    retrieved: tuple[str, ...]
    new: tuple[str, ...]
    ruling: Ruling
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: int = Field(default=0, ge=0, description="records of the files that can't be read")


class Exclusion(Record):
    """How many abstracts one rule discarded."""

    rule: Rule
    label: str
    count: int


class Flow(Record):
    """The counts of a flow diagram of title-and-abstract screening.

    ``identified`` = ``duplicates`` + ``unread`` + ``screened``, and ``screened`` = excluded +
    ``undecided`` + ``kept``.
    """

    identified: int
    duplicates: int
    unread: int = 0
    screened: int
    excluded: tuple[Exclusion, ...]
    undecided: int
    unscored: int
    kept: int

    @property
    def is_prisma(self) -> bool:
        """Whether it counts as PRISMA 2020 does, where each record is either excluded or kept."""
        return self.undecided == 0


class Thresholds(Record):
    """The thresholds of a screening, including what the acceptance memory changed."""

    required_average: tuple[Share, ...]
    keep_share: Share
    discard_share: Share
    least_studies: int = Field(
        default=2, ge=1, description="independent studies that a verdict needs"
    )
    adapted_by: float = 0.0
    adapted_why: str = ""
    own_average: tuple[Share, ...] = Field(
        default=(),
        description=(
            "the required averages before the acceptance memory changed them; empty where it"
            " did not"
        ),
    )

    @property
    def before_memory(self) -> Thresholds:
        """The thresholds without the changes by the acceptance memory."""
        own = self.own_average or self.required_average
        return self.model_copy(
            update={
                "required_average": own,
                "own_average": (),
                "adapted_by": 0.0,
                "adapted_why": "",
            }
        )

    def average_required_in(self, number: int) -> float:
        """Return the average quality that the kept abstracts of a round must reach.

        The last configured value applies to all later rounds.
        """
        return self.required_average[min(number, len(self.required_average) - 1)]


class ScreeningVersions(Record):
    """The versions that judged: application, rubric and study type weights.

    ``rubric`` covers rules and constants.
    """

    app: str
    rubric: str
    study_types: str | None = None


Outcome = ScreeningOutcome


class Screening(HtmlDisplay, Record):
    """One screened question: its rounds, the latest grade of each abstract, and the outcome."""

    id: str
    question: str
    started_at: str
    finished_at: str
    retrievers: tuple[str, ...]
    graders: tuple[str, ...]
    rounds: tuple[Round, ...]
    grades: tuple[Grade, ...]
    kept: tuple[str, ...]
    outcome: Outcome
    reasons: tuple[str, ...]
    thresholds: Thresholds
    flow: Flow
    settings: dict[str, Any]
    versions: ScreeningVersions
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return one line, since a notebook or debugger would otherwise print every grade."""
        kept = f"{len(self.kept)} of {len(self.grades)} abstracts kept"
        return f"<Screening of {self.question[:80]!r}: {self.outcome.replace('_', ' ')}, {kept}>"

    @property
    def decision(self) -> Sufficiency:
        """The critic's overall decision.

        Conflicting studies can suffice: they show that the answer is uncertain.
        """
        return "sufficient" if self.outcome in ("sufficient", "conflicting") else "retrieve_more"

    @property
    def consensus(self) -> Sufficiency:
        """The consensus of the last round."""
        return self.rounds[-1].ruling.consensus if self.rounds else "retrieve_more"

    def grade(self, abstract_id: str) -> Grade | None:
        """Return the grade of an abstract, or None if it has none."""
        return next((grade for grade in self.grades if grade.abstract_id == abstract_id), None)


class AcceptedStudy(Record):
    """A kept study as the acceptance memory stores it.

    ``required`` is the average quality that was asked for in its round.
    """

    study_type: StudyType | None
    design: Design | None
    quality: Share
    round: int = Field(ge=0)
    required: Share
    screening_id: str = ""
    at: str = ""


class ScreeningEvent(Record):
    """Something that happened in a screening, streamed to viewers and stored.

    ``data`` is small and JSON-ready.
    """

    screening_id: str
    seq: int
    at: str
    kind: Literal[
        "screening_started",
        "round_started",
        "searched",
        "graded",
        "round_finished",
        "warning",
        "screening_finished",
    ]
    round: int | None = None
    message: str = ""
    data: dict[str, Any] = Field(default_factory=dict)


# People's decisions about screenings: an append-only log with a hash chain, like the decision log.

ScreeningEntryKind = Literal["override", "agreement", "handed_over", "memory_reset", "redaction"]
"""The kind of an entry in the screening log.

``override`` sets a field of a grade or undoes that; ``agreement`` confirms a grade or withdraws
that; ``handed_over`` records that the kept set became the evidence of a case; ``memory_reset``
makes earlier acceptances stop moving the thresholds.
"""


class ScreeningSubjectDigests(Record):
    """SHA-256 digests of an entry's subject, as stored when the entry was made.

    They cover the result of the screening and, for an override, the abstract and the machine's
    grade.
    """

    screening: str | None
    abstract: str | None = None
    grade: str | None = None


class ScreeningDecision(Record):
    """A person's decision about a screening or the acceptance memory, as submitted.

    ``machine_shown`` names the parts of the machine's grade that the person saw; ``token`` makes a
    repeated submission harmless.
    """

    kind: ScreeningEntryKind = "override"
    reviewer: str = Field(min_length=1, max_length=200)
    screening_id: str | None
    override: Override | None = None
    agreement: GradeAgreement | None = None
    reason: str = ""
    machine_shown: tuple[str, ...] = ()
    token: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)
    about: ScreeningSubjectDigests | None = None
    """Set by the store; None in redactions and resets of the memory."""

    @model_validator(mode="after")
    def _complete(self) -> ScreeningDecision:
        if (self.kind == "override") != (self.override is not None):
            raise ValueError("only an entry of the kind override has an override")
        if self.override is not None and self.override.reviewer != self.reviewer:
            raise ValueError("the override is by another reviewer than the entry")
        if (self.kind == "agreement") != (self.agreement is not None):
            raise ValueError("only an entry of the kind agreement names an agreed grade")
        if self.agreement is not None and self.agreement.reviewer != self.reviewer:
            raise ValueError("the agreement is by another reviewer than the entry")
        if self.kind in ("override", "agreement", "handed_over") and self.screening_id is None:
            raise ValueError(f"{self.kind!r} names its screening")
        if self.kind == "memory_reset" and not self.reason.strip():
            raise ValueError("a reset of the memory needs a reason")
        return self

    @property
    def abstract_id(self) -> str | None:
        """The abstract that an override or an agreement is about; None for other entries."""
        about = self.override or self.agreement
        return None if about is None else about.abstract_id

    @property
    def field(self) -> OverrideField | None:
        """The field that an override sets; None for other entries."""
        return self.override.field if self.override else None


class ScreeningEntry(ChainedEntry):
    """One entry of the screening log; ``decision`` is None if it was redacted."""

    decision: ScreeningDecision | None
