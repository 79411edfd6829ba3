"""The grader without a model: rules and measurements on what an abstract says. No key, no network, no chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, GradeField, Reason, SampleSize, StudyType, Words
from masis.screening import rubric
from masis.screening.adequacy import adequate
from masis.screening.hierarchy import asked_of, placed
from masis.screening.methodology import methodology
from masis.screening.question import Question, read_question
from masis.screening.recommendation import floored, quality_of, recommended
from masis.screening.relevance import relevance
from masis.settings import OFFLINE

VERSION = "1"
"""Raised whenever the rules of offline grading change; recorded with every grade."""


class FoundType(Protocol):
    """A recognised study type: how sure, and the words it rests on."""

    @property
    def study_type(self) -> StudyType | None:
        """The likeliest type; None where the abstract has nothing to recognise one from."""
        ...

    @property
    def confidence(self) -> float:
        """Its share among the 14, 0 to 1."""
        ...

    @property
    def words(self) -> tuple[Words, ...]:
        """The words that told it."""
        ...


@dataclass(frozen=True)
class Reading:
    """What reads an abstract: its study type, its sample sizes, and the size it rests on."""

    study_type: Callable[[Abstract], FoundType]
    sizes: Callable[[str], tuple[SampleSize, ...]]
    study_size: Callable[[str], SampleSize | None]
    version: str | None = None


@dataclass(frozen=True)
class OfflineGrader:
    """Grades without a model; ``reading`` recognises study types and sample sizes."""

    reading: Reading
    judged_by: JudgedBy = field(default=JudgedBy(model=OFFLINE, version=VERSION))
    usage: Usage = field(default=Usage())

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """One grade for each abstract, in the same order."""
        asked, about = read_question(question), asked_of(question)
        return tuple(self._grade(asked, about, abstract) for abstract in abstracts)

    def _grade(self, question: Question, about: frozenset[Design], abstract: Abstract) -> Grade:
        found = self.reading.study_type(abstract)
        sizes = self.reading.sizes(abstract.text)
        study_size = self.reading.study_size(abstract.text)
        place = placed(found.study_type, abstract)
        match = relevance(question, abstract)
        method = methodology(abstract, place.design, sizes)
        enough = adequate(abstract, place.design, sizes, study_size)
        score = floored(method.score, place.design)
        advice = recommended(match.score, score, place.design, enough.value, about)
        unscored = (
            _unscored(match.reason if match.score is None else method.reason) if advice.rule == "unscored" else None
        )
        reasons: dict[GradeField, Reason] = {
            "relevance_score": match.reason,
            "methodology_score": _with_floor(method.reason, method.score, place.design),
            "sample_size_adequate": enough.reason,
            "study_type": Reason(text=_said_type(found), words=found.words),
            "design": Reason(text=place.why, words=place.words),
            "recommendation": Reason(text=advice.why),
        }
        return Grade(
            abstract_id=abstract.id,
            relevance_score=match.score,
            methodology_score=score,
            methodology_raw=method.score,
            prior=rubric.HIERARCHY[place.design].prior,
            quality=quality_of(match.score, score),
            sample_size_adequate=enough.value,
            sample_sizes=sizes,
            study_size=study_size,
            study_type=found.study_type,
            study_type_confidence=found.confidence if found.study_type else None,
            design=place.design,
            recommendation=advice.recommendation,
            rule=advice.rule,
            reasons=reasons,
            judged_by=self.judged_by,
            unscored=unscored,
        )


def _unscored(reason: Reason) -> Unscored:
    return Unscored(reason=reason.text)


def _said_type(found: FoundType) -> str:
    if found.study_type is None:
        return "No study type was recognised."
    return f"Reads like a {rubric.STUDY_TYPE_NAMES[found.study_type]} (share {found.confidence:.2f} of 14 types)."


def _with_floor(reason: Reason, raw: float | None, design: Design) -> Reason:
    place = rubric.HIERARCHY[design]
    if raw is None or raw >= place.prior:
        return reason
    text = f"{reason.text} Raised from {raw:.2f} to {place.prior:.2f}, the floor of a {place.name}."
    return Reason(text=text, words=reason.words)
