"""Grades abstracts without a language model, so without a key, a network or randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from masis.schema.audit import JudgedBy
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, GradeReason
from masis.schema.wording import with_article
from masis.screening.grading import designs
from masis.screening.grading.grader import grade_of
from masis.screening.grading.hierarchy import designs_asked_about, place_design
from masis.screening.grading.methodology import methodology
from masis.screening.grading.question import Question, read_question
from masis.screening.grading.relevance import relevance_by_meaning
from masis.settings import OFFLINE
from masis.views.screening import STUDY_TYPE

VERSION = "12"
"""Increased whenever the rules of offline grading change; recorded with every grade."""


@dataclass(frozen=True)
class OfflineGrader:
    """Grades abstracts by rules and by the classifier of study types."""

    judged_by: JudgedBy
    usage: Usage = field(default=Usage())

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order."""
        parsed, about = read_question(question), designs_asked_about(question)
        return tuple(self._grade(parsed, about, abstract) for abstract in abstracts)

    def _grade(self, question: Question, about: frozenset[Design], abstract: Abstract) -> Grade:
        found, why = designs.recognise(abstract), "No study type was recognized."
        if found.study_type is not None:
            named = with_article(STUDY_TYPE[found.study_type])
            why = f"Reads like {named} (probability {found.confidence:.2f} among 14 types)."
        place = place_design(found.study_type, abstract, found.confidence)
        match = relevance_by_meaning(question, abstract)
        method = methodology(abstract, place.design)
        return grade_of(
            abstract,
            self.judged_by,
            about,
            relevance=match.score,
            methodology=method.score,
            design=place.design,
            reasons={
                "relevance_score": match.reason,
                "methodology_score": method.reason,
                "study_type": GradeReason(text=why, words=found.words),
                "design": GradeReason(text=place.why, words=place.words),
            },
            study_type=found.study_type,
            confidence=found.confidence if found.study_type else None,
            unmatched=match.unmatched,
        )


def offline_grader() -> OfflineGrader:
    """Return the grader without a model, with the versions of its rules and its classifier."""
    return OfflineGrader(
        JudgedBy(model=OFFLINE, version=f"{VERSION}, study types {designs.version()}")
    )
