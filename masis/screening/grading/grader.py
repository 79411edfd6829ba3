"""The protocol of graders, the function that turns a judgement into a grade, and a grade cache.

All graders use ``grade_of``. It applies the prior as a floor (``max(score, prior)``) and derives
the recommendation from the written rules alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import (
    Abstract,
    AbstractWords,
    Design,
    Grade,
    GradeField,
    GradeReason,
    OverrideField,
    SampleSize,
    StudyType,
)
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.screening.grading.hierarchy import sure_design, variant_of
from masis.screening.grading.recommendation import (
    RuleResult,
    recommend,
    scored_fields,
    with_prior_floor,
)
from masis.screening.grading.sample_size import sample_sizes, study_size
from masis.screening.grading.study_identity import registrations_of
from masis.screening.sources.publication import publication_of
from masis.screening.views.words import DESIGN


class Grader(Protocol):
    """Judges abstracts against a question."""

    @property
    def judged_by(self) -> JudgedBy:
        """The grader, with the version of its rules or prompt."""
        ...

    @property
    def usage(self) -> Usage:
        """Calls and tokens spent so far; all zero without a language model."""
        ...

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order.

        An abstract that can't be graded has an unscored grade.
        """
        ...


def grade_of(
    abstract: Abstract,
    judged_by: JudgedBy,
    about: frozenset[Design] = frozenset(),
    *,
    relevance: float | None,
    methodology: float | None,
    design: Design | None,
    reasons: Mapping[OverrideField, GradeReason],
    study_type: StudyType | None = None,
    confidence: float | None = None,
    unmatched: bool = False,
) -> Grade:
    """Return the grade that follows from a grader's judgement of one abstract.

    The sample sizes are extracted from the text here.

    Args:
        abstract: The graded abstract.
        judged_by: The grader.
        about: Designs that the question itself asks about.
        relevance: From 0 to 1, or None if unscored.
        methodology: From 0 to 1, before the prior's floor, or None if unscored.
        design: The study design, or None if unknown.
        reasons: The reasons by field.
        study_type: The recognized study type.
        confidence: The probability of the study type.
        unmatched: True if the abstract's language can't be compared with the question's, so that
            its relevance is unknown although nothing failed.

    """
    publication = publication_of(abstract)
    status = None if publication is None else publication.status
    sizes, size = sample_sizes(abstract.text), study_size(abstract.text)
    adequacy = size_adequacy(abstract, design, sizes, size)
    score = with_prior_floor(methodology, design)
    decision = recommend(relevance, score, design, adequacy.value, about, status)
    if unmatched and decision.rule != "not_a_study":
        decision = RuleResult("needs_more", "unmatched", reasons["relevance_score"].text)
    all_reasons = {
        **reasons,
        "sample_size_adequate": adequacy.reason,
        "recommendation": GradeReason(text=decision.why),
    }
    if "methodology_score" in all_reasons:
        all_reasons["methodology_score"] = with_floor_note(
            all_reasons["methodology_score"], methodology, design
        )
    unscored = None
    if decision.rule == "unscored":
        missing: GradeField = "relevance_score" if relevance is None else "methodology_score"
        reason = all_reasons[missing].text if missing in all_reasons else f"it has no {missing}"
        unscored = Unscored(reason=reason)
    return Grade(
        abstract_id=abstract.id,
        **scored_fields(relevance, methodology, score, design, adequacy.value),
        sample_sizes=sizes,
        study_size=size,
        study_type=study_type,
        study_type_confidence=confidence,
        publication=status,
        registrations=registrations_of(abstract, size),
        recommendation=decision.recommendation,
        rule=decision.rule,
        reasons=all_reasons,
        judged_by=judged_by,
        unscored=unscored,
    )


def with_floor_note(reason: GradeReason, raw: float | None, design: Design | None) -> GradeReason:
    """Return the reason of a methodology score, with a note if the design's floor raised it."""
    if raw is None or design is None or raw >= rubric.HIERARCHY[design].prior:
        return reason
    rank = rubric.HIERARCHY[design]
    text = (
        f"{reason.text} Raised from {raw:.2f} to {rank.prior:.2f}, the floor of"
        f" {with_article(DESIGN[design])}."
    )
    return GradeReason(text=text, words=reason.words)


def unscored_grade(abstract: Abstract, judged_by: JudgedBy, unscored: Unscored) -> Grade:
    """Return the grade of an abstract that couldn't be graded: unscored, and needs more.

    Records that aren't studies are recognized without a grader, so they are still discarded.
    """
    certain_design = sure_design(abstract)
    reasons: dict[OverrideField, GradeReason] = (
        {}
        if certain_design is None
        else {"design": GradeReason(text=certain_design.why, words=certain_design.words)}
    )
    design = None if certain_design is None else certain_design.design
    grade = grade_of(
        abstract, judged_by, relevance=None, methodology=None, design=design, reasons=reasons
    )
    if grade.rule == "not_a_study":
        return grade
    reason_text = GradeReason(text=f"It couldn't be graded: {unscored.reason.rstrip('.')}.")
    return grade.model_copy(
        update={"unscored": unscored, "reasons": {**reasons, "recommendation": reason_text}}
    )


# Whether a study is large enough to be plausible, by ``rubric.ADEQUATE_SIZE``. The result
# is None if size doesn't matter (one case, a review without a search), if no size is stated, or if
# the design is unknown. A size that isn't stated doesn't count as too small.

_STUDIES = frozenset(
    """
        study studies trial trials rct rcts article articles paper papers publication publications
        report reports cohort cohorts review reviews
    """.split()
)

_CLUSTERS = frozenset(
    "practices schools villages wards pharmacies classrooms families households".split()
)


class SizeAdequacy(NamedTuple):
    """Whether the size is adequate (None if unknown), and the reason."""

    value: bool | None
    reason: GradeReason


def size_adequacy(
    abstract: Abstract, design: Design | None, sizes: Sequence[SampleSize], size: SampleSize | None
) -> SizeAdequacy:
    """Return whether the size of a study is plausible for its design.

    ``sizes`` are all sizes in the abstract, and ``size`` is the one of the whole study. A review is
    judged by its number of studies or, with too few or none stated, by its participants.
    """
    if design is None:
        return SizeAdequacy(
            None, GradeReason(text="The design is unknown, and so is the size that it needs.")
        )
    minimum, unit, source = rubric.ADEQUATE_SIZE[design]
    if design in ("randomised_trial", "non_randomised_study") and (variant := variant_of(abstract)):
        clusters = [other for other in sizes if other.unit in _CLUSTERS]
        if variant == "crossover":
            minimum, unit, source = rubric.CROSSOVER
        elif clusters:
            size = max(clusters, key=lambda other: other.value)
            minimum, unit, source = rubric.CLUSTERS
        else:
            minimum, unit, source = rubric.CLUSTER_PARTICIPANTS
    if minimum is None:
        return SizeAdequacy(None, GradeReason(text=f"Size doesn't matter here: {source}."))
    missing = f"The number of {unit} isn't stated."
    if design in ("meta_analysis", "systematic_review"):
        stated = sizes if size is None else (size, *sizes)
        studies = [other for other in stated if {*other.unit.lower().split()[-1:]} & _STUDIES]
        largest = max(
            (other for other in stated if other not in studies),
            key=lambda other: other.value,
            default=None,
        )
        size = next(iter(studies), None)
        missing = "Neither the number of studies nor that of participants is stated."
        if largest is not None and (
            size is None or size.value < minimum <= rubric.OPTIMAL_INFORMATION <= largest.value
        ):
            size, minimum, unit = largest, rubric.OPTIMAL_INFORMATION, "participants"
            source = "GRADE, optimal information size"
    if size is None:
        return SizeAdequacy(None, GradeReason(text=missing))
    # An arm implies at least one other group, which is assumed to be of the same size.
    counted = 2 * size.value if size.kind == "arm" and unit != "studies" else size.value
    is_enough = counted >= minimum
    text = (
        f"{counted:,} {unit}, {'at least' if is_enough else 'fewer than'} the {minimum:,} that are"
        f" plausible ({source})."
    )
    words = AbstractWords(start=size.start, end=size.end, text=abstract.text[size.start : size.end])
    return SizeAdequacy(is_enough, GradeReason(text=text, words=(words,)))


# The cache of grades.


class GradeCache(Protocol):
    """Stored grades by key."""

    def get(self, key: str) -> Grade | None:
        """Return the grade stored under a key, or None."""
        ...

    def store(self, key: str, grade: Grade) -> None:
        """Store a grade under a key."""
        ...


@dataclass(frozen=True)
class CachingGrader:
    """Calls ``grader`` only for abstracts whose grade isn't in ``cache``.

    Unscored grades aren't cached, so that they are tried again.
    """

    grader: Grader
    cache: GradeCache

    @property
    def judged_by(self) -> JudgedBy:
        """The grader behind the cache."""
        return self.grader.judged_by

    @property
    def usage(self) -> Usage:
        """The usage of the grader; cached grades cost nothing."""
        return self.grader.usage

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order."""
        keys = {abstract.id: key_of(question, abstract, self.judged_by) for abstract in abstracts}
        grades = {
            abstract_id: grade
            for abstract_id, key in keys.items()
            if (grade := self.cache.get(key)) is not None
        }
        missing = [abstract for abstract in abstracts if abstract.id not in grades]
        for grade in self.grader.grade(question, missing) if missing else ():
            grades[grade.abstract_id] = grade
            if grade.unscored is None and grade.abstract_id in keys:
                self.cache.store(keys[grade.abstract_id], grade)
        return tuple(grades[abstract.id] for abstract in abstracts if abstract.id in grades)


def key_of(question: str, abstract: Abstract, judged_by: JudgedBy) -> str:
    """Return the cache key of a grade: a digest of question, abstract, grader and rubric."""
    content = [
        question,
        abstract.id,
        abstract.title,
        abstract.text,
        judged_by.model,
        judged_by.version,
        rubric.VERSION,
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
