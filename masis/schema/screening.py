"""What the evidence critic reads and leaves behind: abstracts, grades, rounds, a screening.

Rules AESOP-GRADING to AESOP-ROUNDS. Offsets are character positions in ``Abstract.text``, or in its
title where a record says so: start included, end excluded. Scores run from 0 to 1; None means
unscored, never zero.
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
"""The 14 types of the labelled abstracts, their labels in lower case with underscores."""

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
"""A place in the evidence hierarchy, on which the prior rests; finer than a study type where the
words say more.
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
"""What a record is where it is no study to count (``screening/sources/publication.py``).
``of_concern`` is a study, ``expression_of_concern`` the notice about it."""

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
"""What an abstract may report of its method (``screening/grading/methodology.py``); each design
asks for some.
"""

APPRAISAL_ITEMS: tuple[AppraisalItem, ...] = get_args(AppraisalItem)

ItemState = Literal["stated", "denied", "planned", "not_stated"]
"""How an abstract speaks of an item. Only what is stated earns points."""

ITEM_STATES: tuple[ItemState, ...] = get_args(ItemState)

Direction = Literal["effect", "no_clear_effect", "opposite", "unclear"]
"""Which way a finding goes, as an answer to the question."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

OverrideField = Literal[GradeField, AppraisalItem, "direction"]
"""What a person may set: a field of the grade, an item of the appraisal, the direction of what the
study found.
"""

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
"""The written rule a recommendation follows from (``recommendation.py``); ``disagreement`` where
the graders of an ensemble don't agree, ``person`` after an override.
"""


class Abstract(InputRecord):
    """One record a retriever found. ``source`` says where it came from; what else the record holds
    is kept.

    ``publication_types`` are the types that its database gives it ("Retracted Publication",
    "Published Erratum"); ``notice_about`` identifies (PubMed id, DOI) the records that it is a
    notice about.
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
    """Words of an abstract that a grade rests on: ``abstract.text[start:end] == text``, or of its
    title.
    """

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str
    place: Literal["text", "title"] = "text"


class SampleSize(Record):
    """A stated number of units: "48 per group", "1,204 patients", "42 of 50".

    ``kind`` is ``total`` for a whole study, ``arm`` for one of its groups, ``of`` for a part out of
    a whole (``value`` is then the whole).
    """

    value: int = Field(ge=0)
    unit: str
    kind: Literal["total", "arm", "of"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class GradeReason(Record):
    """Why a field has its value, in a sentence, and the words of the abstract it rests on.

    ``given`` is the reason that a person gave, without the name that stands before it in ``text``;
    "" for a machine's.
    """

    text: str
    words: tuple[AbstractWords, ...] = ()
    given: str = ""


class Opinion(Record):
    """What one grader of an ensemble said, before the opinions were joined."""

    judged_by: JudgedBy
    relevance_score: Share | None
    methodology_score: Share | None
    study_type: StudyType | None
    recommendation: Recommendation
    unscored: Unscored | None = None


class Grade(Record):
    """The critic's structured evaluation of one abstract against one question.

    ``methodology_raw`` is the score as given, ``methodology_score`` = max(raw, ``prior``): a
    design's prior is a floor. ``quality`` is the mean of relevance and methodology. ``study_size``
    is the size the study rests on. ``overridden`` names the fields a person has set; what the
    machine said stays in the stored grade. ``corrections`` are items of the appraisal and
    ``direction`` the direction of the finding as a person set them: a grader sets neither.
    ``publication`` says what the record is where it is no study to count; it has no vote then.
    ``registrations`` are the trial registry's numbers that it states: reports of one study share
    them.
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
    """A person's word on one field of one grade, on an item of its appraisal or on the direction of
    the study's finding: an entry, never an edit.

    ``value`` None takes back what was set before on this field (an undo is a further entry).
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
    """A person's word that the critic's grade of an abstract is right as it is: an entry, as an
    override is one.

    ``agrees`` False takes back what the same person said before.
    """

    abstract_id: str
    reviewer: str = Field(min_length=1, max_length=200)
    at: str
    agrees: bool = True
    id: str | None = None


class Query(Record):
    """What was searched for and why; ``aims_at`` names what was missing, ``offset`` where the list
    is read on.

    ``design`` and ``since`` (the first year) are what a source with such fields is asked for.
    """

    text: str
    why: str
    aims_at: str | None = None
    offset: int = Field(default=0, ge=0)
    design: Design | None = None
    since: int | None = None


class VoteTally(Record):
    """The votes of a round: every relevant abstract found so far has one; an unscored one asks for
    more.

    ``not_relevant`` counts those that don't vote, since they are not shown to be about the
    question.
    """

    keep: int = Field(ge=0)
    discard: int = Field(ge=0)
    needs_more: int = Field(ge=0)
    unscored: int = Field(
        default=0, ge=0, description="how many of the needs_more could not be graded"
    )
    not_relevant: int = Field(
        default=0, ge=0, description="how many don't vote: not shown to be about the question"
    )

    @property
    def votes(self) -> int:
        """How many abstracts voted."""
        return self.keep + self.discard + self.needs_more

    @property
    def keep_share(self) -> float | None:
        """Share of ``keep``; None where nothing voted."""
        return self.keep / self.votes if self.votes else None

    @property
    def discard_share(self) -> float | None:
        """Share of ``discard``; None where nothing voted."""
        return self.discard / self.votes if self.votes else None


class Ruling(Record):
    """What follows from the votes so far: consensus, average and the least number of studies must
    hold to stop.
    """

    required_average: Share
    average: Share | None
    tally: VoteTally
    consensus: Sufficiency
    decision: Sufficiency
    why: str
    studies: int = Field(default=0, ge=0, description="how many independent studies are kept")
    enough_alone: bool = Field(
        default=False, description="whether one of them needs no other beside it"
    )
    too_few: bool = False


class Round(Record):
    """One round: what was searched, what came, how it voted and what follows. ``number`` counts
    from 0 as in the spec.

    ``retrieved`` are the abstracts its queries brought, ``new`` those of them graded in this round
    for the first time. ``missing`` says what was lacking, from which the next round's queries are
    made.
    """

    number: int = Field(ge=0)
    queries: tuple[Query, ...]
    identified: int = Field(ge=0, description="hits of all its queries, repeats counted")
    retrieved: tuple[str, ...]
    new: tuple[str, ...]
    ruling: Ruling
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Exclusion(Record):
    """How many abstracts one rule discarded."""

    rule: Rule
    label: str
    count: int


class Flow(Record):
    """The counts of a PRISMA 2020 flow diagram, of title-and-abstract screening.

    ``identified`` = ``duplicates`` + ``screened``; ``screened`` = excluded + ``undecided`` +
    ``kept``.
    """

    identified: int
    duplicates: int
    screened: int
    excluded: tuple[Exclusion, ...]
    undecided: int
    unscored: int
    kept: int


class Thresholds(Record):
    """The thresholds a screening used: all of them recorded, with what the acceptance memory
    changed.
    """

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
        """These thresholds without what the acceptance memory changed."""
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
        """The average the kept abstracts of a round must reach; the last one stays."""
        return self.required_average[min(number, len(self.required_average) - 1)]


class ScreeningVersions(Record):
    """What judged: the application, the rubric (rules and constants), the weights of the study
    types.
    """

    app: str
    rubric: str
    study_types: str | None = None


Outcome = ScreeningOutcome


class Screening(HtmlDisplay, Record):
    """One question screened: every round, the latest grade of each abstract, what is kept and why
    it stopped.
    """

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
        """One line: a notebook or a debugger would print every grade."""
        kept = f"{len(self.kept)} of {len(self.grades)} abstracts kept"
        return f"<Screening of {self.question[:80]!r}: {self.outcome.replace('_', ' ')}, {kept}>"

    @property
    def decision(self) -> Sufficiency:
        """The critic's global decision; studies that conflict can suffice to say that the answer is
        uncertain.
        """
        return "sufficient" if self.outcome in ("sufficient", "conflicting") else "retrieve_more"

    @property
    def consensus(self) -> Sufficiency:
        """The consensus of the last round."""
        return self.rounds[-1].ruling.consensus if self.rounds else "retrieve_more"

    def grade(self, abstract_id: str) -> Grade | None:
        """The grade of one abstract; None where it has none."""
        return next((grade for grade in self.grades if grade.abstract_id == abstract_id), None)


class AcceptedStudy(Record):
    """One accepted (kept) study as the memory holds it: which design, at what quality, in which
    round.

    ``required`` is the average that was asked for in that round.
    """

    study_type: StudyType | None
    design: Design | None
    quality: Share
    round: int = Field(ge=0)
    required: Share
    screening_id: str = ""
    at: str = ""


class ScreeningEvent(Record):
    """Something happened in a screening: streamed to whoever watches, kept in the store. ``data``
    is small and JSON-ready.
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


# What people say about screenings: an append-only log whose entries form a hash chain, as decisions
# do.

ScreeningEntryKind = Literal["override", "agreement", "handed_over", "memory_reset", "redaction"]
"""``override``: a person's word on a field of a grade, or the taking back of one; ``agreement``: a
person's word that a grade is right as it is, or the taking back of one; ``handed_over``: the kept
set became the evidence of a case; ``memory_reset``: what was accepted before no longer moves
thresholds."""


class ScreeningSubjectDigests(Record):
    """SHA-256 digests of what an entry is about, as stored when it was made: the result of the
    screening, and of an override the abstract and the machine's grade of it.
    """

    screening: str | None
    abstract: str | None = None
    grade: str | None = None


class ScreeningDecision(Record):
    """What someone decided about a screening or about the acceptance memory, as given in.

    ``machine_shown`` names what of the machine's grade was visible to the person; ``token`` makes a
    repeated submit harmless.
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
            raise ValueError("an override says what is overridden, and nothing else does")
        if self.override is not None and self.override.reviewer != self.reviewer:
            raise ValueError("the override is by another reviewer than the entry")
        if (self.kind == "agreement") != (self.agreement is not None):
            raise ValueError("an agreement says with which grade, and nothing else does")
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
    """One entry of the screening log; ``decision`` is None where it was redacted."""

    decision: ScreeningDecision | None
