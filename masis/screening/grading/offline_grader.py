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
from masis.screening.views.words import STUDY_TYPE
from masis.settings import OFFLINE

VERSION = "13"
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

    def _grade(
        self, question: Question, question_designs: frozenset[Design], abstract: Abstract
    ) -> Grade:
        recognized, reason = designs.recognise(abstract), "No study type was recognized."
        if recognized.study_type is not None:
            type_name = with_article(STUDY_TYPE[recognized.study_type])
            reason = (
                f"Reads like {type_name} (probability {recognized.confidence:.2f} among 14 types)."
            )
        placement = place_design(recognized.study_type, abstract, recognized.confidence)
        match = relevance_by_meaning(question, abstract)
        method = methodology(abstract, placement.design)
        return grade_of(
            abstract,
            self.judged_by,
            question_designs,
            relevance=match.score,
            methodology=method.score,
            design=placement.design,
            reasons={
                "relevance_score": match.reason,
                "methodology_score": method.reason,
                "study_type": GradeReason(text=reason, words=recognized.words),
                "design": GradeReason(text=placement.why, words=placement.words),
            },
            study_type=recognized.study_type,
            confidence=recognized.confidence if recognized.study_type else None,
            unmatched=match.unmatched,
        )


def offline_grader() -> OfflineGrader:
    """Return the grader without a model, with the versions of its rules and its classifier."""
    return OfflineGrader(
        JudgedBy(model=OFFLINE, version=f"{VERSION}, study types {designs.version()}")
    )
