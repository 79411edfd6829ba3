"""The protocol of graders, the rules that turn a judgement into a grade, and a cache so that nothing is graded twice.

Every judgement goes through ``grade_from_judgement``: the prior is a floor (``max(score, prior)``) and the
recommendation follows from the written rules alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, GradeField, OverrideField, Reason, SampleSize, StudyType
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.screening.grading.hierarchy import sure_design
from masis.screening.grading.recommendation import Advice, recommend, scored_fields, with_prior_floor
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


class Judgement(NamedTuple):
    """A grader's judgement of one abstract, before the rules: raw scores (0 to 1, None for unscored), and reasons."""

    relevance: float | None
    methodology: float | None
    study_type: StudyType | None
    study_type_confidence: float | None
    design: Design | None
    adequate: bool | None
    sizes: tuple[SampleSize, ...]
    study_size: SampleSize | None
    reasons: dict[OverrideField, Reason]
    unmatched: bool = False
    """Its language can't be matched with the question's: nothing failed, and nothing is known of its relevance."""


def grade_from_judgement(
    abstract: Abstract, found: Judgement, judged_by: JudgedBy, about: frozenset[Design] = frozenset(), note: str = ""
) -> Grade:
    """Return the grade that follows from a judgement.

    ``about`` are designs that the question itself asks about; ``note`` is added to the reason of the recommendation.
    """
    published = publication_of(abstract)
    status = None if published is None else published.status
    score = with_prior_floor(found.methodology, found.design)
    advice = recommend(found.relevance, score, found.design, found.adequate, about, status)
    if found.unmatched and advice.rule != "not_a_study":
        advice = Advice("needs_more", "unmatched", found.reasons["relevance_score"].text)
    reasons: dict[OverrideField, Reason] = {
        **found.reasons,
        "recommendation": Reason(text=f"{advice.why} {note}".strip()),
    }
    if "methodology_score" in reasons:
        reasons["methodology_score"] = with_floor_note(reasons["methodology_score"], found.methodology, found.design)
    unscored = None
    if advice.rule == "unscored":
        silent: GradeField = "relevance_score" if found.relevance is None else "methodology_score"
        unscored = Unscored(reason=reasons[silent].text if silent in reasons else f"it has no {silent}")
    return Grade(
        abstract_id=abstract.id,
        **scored_fields(found.relevance, found.methodology, score, found.design, found.adequate),
        sample_sizes=found.sizes,
        study_size=found.study_size,
        study_type=found.study_type,
        study_type_confidence=found.study_type_confidence,
        publication=status,
        registrations=registrations_of(abstract),
        recommendation=advice.recommendation,
        rule=advice.rule,
        reasons=reasons,
        judged_by=judged_by,
        unscored=unscored,
    )


def with_floor_note(reason: Reason, raw: float | None, design: Design | None) -> Reason:
    """Return the reason of a methodology, with a note where the design's floor raised it."""
    if raw is None or design is None or raw >= rubric.HIERARCHY[design].prior:
        return reason
    place = rubric.HIERARCHY[design]
    text = f"{reason.text} Raised from {raw:.2f} to {place.prior:.2f}, the floor of {with_article(DESIGN[design])}."
    return Reason(text=text, words=reason.words)


def unscored_grade(abstract: Abstract, judged_by: JudgedBy, why: Unscored) -> Grade:
    """Return the grade of an abstract that couldn't be graded: no score, and more is needed.

    What is no study to count is none whether or not it could be graded.
    """
    sure = sure_design(abstract)
    reasons: dict[OverrideField, Reason] = {} if sure is None else {"design": Reason(text=sure.why, words=sure.words)}
    nothing = Judgement(None, None, None, None, None if sure is None else sure.design, None, (), None, reasons)
    grade = grade_from_judgement(abstract, nothing, judged_by)
    if grade.rule == "not_a_study":
        return grade
    said = Reason(text=f"It could not be graded: {why.reason.rstrip('.')}.")
    return grade.model_copy(update={"unscored": why, "reasons": {**reasons, "recommendation": said}})


_REGISTERED = re.compile(
    r"\b(NCT ?\d{8}|ISRCTN ?\d{6,8}|ChiCTR[-\w]{5,20}|ACTRN ?\d{14}|UMIN ?\d{9}|EudraCT:? ?\d{4}-\d{6}-\d\d"
    r"|CTRI/\d{4}/\d+/\d+|DRKS ?\d{8}|NTR ?\d{3,5}|IRCT\w{6,20})\b",
    re.I,
)


def registrations_of(abstract: Abstract) -> tuple[str, ...]:
    """Return the numbers of trial registries that an abstract states: reports of one study share them."""
    found = _REGISTERED.findall(f"{abstract.title}\n{abstract.text[:LONGEST_READ]}")
    return tuple(dict.fromkeys(re.sub(r"[\s:]", "", each).upper() for each in found))


# Grades that were given before.


class GradeCache(Protocol):
    """Stored grades by key."""

    def get(self, key: str) -> Grade | None:
        """Return the grade under a key; None where there is none."""
        ...

    def put(self, key: str, grade: Grade) -> None:
        """Store a grade under a key."""
        ...


@dataclass(frozen=True)
class CachingGrader:
    """Asks ``grader`` only for grades that ``cache`` lacks. Unscored grades are not cached but tried again."""

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
        keys = [key_of(question, abstract, self.judged_by) for abstract in abstracts]
        grades = {key: grade for key in keys if (grade := self.cache.get(key)) is not None}
        missing = [(key, abstract) for key, abstract in zip(keys, abstracts, strict=True) if key not in grades]
        if missing:
            new_grades = {g.abstract_id: g for g in self.grader.grade(question, [abstract for _, abstract in missing])}
            for key, abstract in missing:
                grade = new_grades.get(abstract.id)
                if grade is not None:
                    grades[key] = grade
                    if grade.unscored is None:
                        self.cache.put(key, grade)
        return tuple(grades[key] for key in keys if key in grades)


def key_of(question: str, abstract: Abstract, judged_by: JudgedBy) -> str:
    """Return what a grade depends on: the question, what the grader reads of the abstract, the grader and the
    rubric.
    """
    content = [question, abstract.id, abstract.title, abstract.text, judged_by.model, judged_by.version, rubric.VERSION]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
