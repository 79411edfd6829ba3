"""The protocol of graders, the rules that turn a judgement into a grade, and a cache so that
nothing is graded twice.

Every judgement goes through ``grade_of``: the prior is a floor (``max(score, prior)``) and the
recommendation follows from the written rules alone.
"""

from __future__ import annotations

import hashlib
import json
import re
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
from masis.screening.grading.hierarchy import sure_design
from masis.screening.grading.recommendation import (
    Advice,
    recommend,
    scored_fields,
    with_prior_floor,
)
from masis.screening.grading.sample_size import sample_sizes, study_size
from masis.screening.grading.wording import LONGEST_READ
from masis.screening.sources.publication import publication_of
from masis.views.screening import DESIGN


class Grader(Protocol):
    """Judges abstracts against a question."""

    @property
    def judged_by(self) -> JudgedBy:
        """The grader, with the version of its rules or prompt."""
        ...

    @property
    def usage(self) -> Usage:
        """Calls and tokens spent so far; all zero where no language model is involved."""
        ...

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order.

        One that can't be graded is unscored, never left out.
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
    """Return the grade that follows from a grader's judgement of one abstract; its sample sizes are
    read here.

    ``relevance`` and ``methodology`` are from 0 to 1, the latter before the prior's floor, None
    where unscored; ``reasons`` say why, by field. ``about`` are designs that the question itself
    asks about. ``unmatched`` says that its language can't be matched with the question's: nothing
    failed, and nothing is known of its relevance.
    """
    published = publication_of(abstract)
    status = None if published is None else published.status
    sizes, size = sample_sizes(abstract.text), study_size(abstract.text)
    enough = size_adequacy(abstract, design, sizes, size)
    score = with_prior_floor(methodology, design)
    advice = recommend(relevance, score, design, enough.value, about, status)
    if unmatched and advice.rule != "not_a_study":
        advice = Advice("needs_more", "unmatched", reasons["relevance_score"].text)
    known = {
        **reasons,
        "sample_size_adequate": enough.reason,
        "recommendation": GradeReason(text=advice.why),
    }
    if "methodology_score" in known:
        known["methodology_score"] = with_floor_note(
            known["methodology_score"], methodology, design
        )
    unscored = None
    if advice.rule == "unscored":
        silent: GradeField = "relevance_score" if relevance is None else "methodology_score"
        unscored = Unscored(reason=known[silent].text if silent in known else f"it has no {silent}")
    return Grade(
        abstract_id=abstract.id,
        **scored_fields(relevance, methodology, score, design, enough.value),
        sample_sizes=sizes,
        study_size=size,
        study_type=study_type,
        study_type_confidence=confidence,
        publication=status,
        registrations=registrations_of(abstract),
        recommendation=advice.recommendation,
        rule=advice.rule,
        reasons=known,
        judged_by=judged_by,
        unscored=unscored,
    )


def with_floor_note(reason: GradeReason, raw: float | None, design: Design | None) -> GradeReason:
    """Return the reason of a methodology, with a note where the design's floor raised it."""
    if raw is None or design is None or raw >= rubric.HIERARCHY[design].prior:
        return reason
    place = rubric.HIERARCHY[design]
    text = (
        f"{reason.text} Raised from {raw:.2f} to {place.prior:.2f}, the floor of"
        f" {with_article(DESIGN[design])}."
    )
    return GradeReason(text=text, words=reason.words)


def unscored_grade(abstract: Abstract, judged_by: JudgedBy, why: Unscored) -> Grade:
    """Return the grade of an abstract that couldn't be graded: no score, and more is needed.

    What is no study to count is none whether or not it could be graded.
    """
    sure = sure_design(abstract)
    reasons: dict[OverrideField, GradeReason] = (
        {} if sure is None else {"design": GradeReason(text=sure.why, words=sure.words)}
    )
    design = None if sure is None else sure.design
    grade = grade_of(
        abstract, judged_by, relevance=None, methodology=None, design=design, reasons=reasons
    )
    if grade.rule == "not_a_study":
        return grade
    said = GradeReason(text=f"It could not be graded: {why.reason.rstrip('.')}.")
    return grade.model_copy(
        update={"unscored": why, "reasons": {**reasons, "recommendation": said}}
    )


# Is the study large enough to be plausible? The sizes are ``rubric.ADEQUATE_SIZE``. None where size
# says nothing (one case, a review without a search), where none is stated, or where the design is
# unknown: a number that is not stated is not a small one.

_STUDIES = frozenset(
    """
        study studies trial trials rct rcts article articles paper papers publication publications
        report reports cohort cohorts review reviews
    """.split()
)


class SizeAdequacy(NamedTuple):
    """Whether the size is adequate, None where it can't be said; and why."""

    value: bool | None
    reason: GradeReason


def size_adequacy(
    abstract: Abstract, design: Design | None, sizes: Sequence[SampleSize], size: SampleSize | None
) -> SizeAdequacy:
    """Return whether this many are plausible for this design. ``size`` is the one that the study
    rests on.

    A review is judged by its studies; where it names too few or none, by its participants.
    """
    if design is None:
        return SizeAdequacy(
            None, GradeReason(text="The design is not known, and with it the size it needs.")
        )
    least, of, source = rubric.ADEQUATE_SIZE[design]
    if least is None:
        return SizeAdequacy(None, GradeReason(text=f"Size says nothing here: {source}."))
    missing = f"No number of {of} is stated."
    if design in ("meta_analysis", "systematic_review"):
        stated = sizes if size is None else (size, *sizes)
        studies = [each for each in stated if {*each.unit.lower().split()[-1:]} & _STUDIES]
        most = max(
            (each for each in stated if each not in studies),
            key=lambda each: each.value,
            default=None,
        )
        size, missing = (
            next(iter(studies), None),
            "Neither a number of studies nor of participants is stated.",
        )
        if most is not None and (
            size is None or size.value < least <= rubric.OPTIMAL_INFORMATION <= most.value
        ):
            size, least, of = most, rubric.OPTIMAL_INFORMATION, "participants"
            source = "GRADE, optimal information size"
    if size is None:
        return SizeAdequacy(None, GradeReason(text=missing))
    # at least one other group
    counted = 2 * size.value if size.kind == "arm" and of != "studies" else size.value
    enough = counted >= least
    text = (
        f"{counted:,} {of}, {'at least' if enough else 'fewer than'} the {least:,} that are"
        f" plausible ({source})."
    )
    words = AbstractWords(start=size.start, end=size.end, text=abstract.text[size.start : size.end])
    return SizeAdequacy(enough, GradeReason(text=text, words=(words,)))


_REGISTERED = re.compile(
    r"\b(NCT ?\d{8}|ISRCTN ?\d{6,8}|ChiCTR[-\w]{5,20}|ACTRN ?\d{14}|UMIN ?\d{9}|EudraCT:?"
    r" ?\d{4}-\d{6}-\d\d"
    r"|CTRI/\d{4}/\d+/\d+|DRKS ?\d{8}|NTR ?\d{3,5}|IRCT\w{6,20})\b",
    re.I,
)


def registrations_of(abstract: Abstract) -> tuple[str, ...]:
    """Return the numbers of trial registries that an abstract states: reports of one study share
    them.
    """
    found = _REGISTERED.findall(f"{abstract.title}\n{abstract.text[:LONGEST_READ]}")
    return tuple(dict.fromkeys(re.sub(r"[\s:]", "", each).upper() for each in found))


# Grades that were given before.


class GradeCache(Protocol):
    """Stored grades by key."""

    def get(self, key: str) -> Grade | None:
        """Return the grade under a key; None where there is none."""
        ...

    def store(self, key: str, grade: Grade) -> None:
        """Store a grade under a key."""
        ...


@dataclass(frozen=True)
class CachingGrader:
    """Asks ``grader`` only for grades that ``cache`` lacks. Unscored grades are not cached but
    tried again.
    """

    grader: Grader
    cache: GradeCache

    @property
    def judged_by(self) -> JudgedBy:
        """The grader behind the cache."""
        return self.grader.judged_by

    @property
    def usage(self) -> Usage:
        """What the grader has spent; a cached grade costs nothing."""
        return self.grader.usage

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order."""
        keys = {each.id: key_of(question, each, self.judged_by) for each in abstracts}
        grades = {
            name: grade for name, key in keys.items() if (grade := self.cache.get(key)) is not None
        }
        missing = [each for each in abstracts if each.id not in grades]
        for grade in self.grader.grade(question, missing) if missing else ():
            grades[grade.abstract_id] = grade
            if grade.unscored is None and grade.abstract_id in keys:
                self.cache.store(keys[grade.abstract_id], grade)
        return tuple(grades[each.id] for each in abstracts if each.id in grades)


def key_of(question: str, abstract: Abstract, judged_by: JudgedBy) -> str:
    """Return what a grade depends on: the question, what the grader reads of the abstract, the
    grader and the rubric.
    """
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
