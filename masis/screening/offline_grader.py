"""The grader without a model: rules and measurements on what an abstract says. No key, no network, no chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from masis.schema.audit import JudgedBy
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, Reason, SampleSize, StudyType, Words
from masis.screening import designs, rubric, sample_size
from masis.screening.adequacy import adequate
from masis.screening.grading import Judgement, ruled
from masis.screening.hierarchy import asked_of, placed
from masis.screening.methodology import methodology
from masis.screening.question import Question, read_question
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
        judgement = Judgement(
            relevance=match.score,
            methodology=method.score,
            study_type=found.study_type,
            study_type_confidence=found.confidence if found.study_type else None,
            design=place.design,
            adequate=enough.value,
            sizes=sizes,
            study_size=study_size,
            reasons={
                "relevance_score": match.reason,
                "methodology_score": method.reason,
                "sample_size_adequate": enough.reason,
                "study_type": Reason(text=_said_type(found), words=found.words),
                "design": Reason(text=place.why, words=place.words),
            },
        )
        return ruled(abstract.id, judgement, self.judged_by, about)


def offline_grader() -> OfflineGrader:
    """The grader without a model, with the recogniser of study types and the extractor of sample sizes."""
    reading = Reading(
        study_type=designs.recognise,
        sizes=sample_size.sample_sizes,
        study_size=sample_size.study_size,
    )
    return OfflineGrader(reading, JudgedBy(model=OFFLINE, version=f"{VERSION}, study types {designs.version()}"))


def study_types_version() -> str:
    """The version of the weights that recognise study types."""
    return designs.version()


def _said_type(found: FoundType) -> str:
    if found.study_type is None:
        return "No study type was recognised."
    return f"Reads like a {rubric.STUDY_TYPE_NAMES[found.study_type]} (share {found.confidence:.2f} of 14 types)."
