"""The grader without a model: rules and measurements on what an abstract says. No key, no network, no randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from masis.schema.audit import JudgedBy
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, Reason, SampleSize, Words
from masis.schema.wording import with_article
from masis.screening.grading import designs, rubric, sample_size
from masis.screening.grading.grader import Judgement, grade_from_judgement
from masis.screening.grading.hierarchy import designs_asked_about, place_design
from masis.screening.grading.methodology import methodology
from masis.screening.grading.question import Question, read_question
from masis.screening.grading.relevance import relevance_by_meaning
from masis.settings import OFFLINE
from masis.views.screening import STUDY_TYPE

# Is the study large enough to be plausible? From what was counted and what its design needs.
#
# The sizes are ``rubric.ADEQUATE_SIZE``. None where size says nothing (one case, a review without a search), where none
# is stated, or where the design is unknown: a number that is not stated is not a small one.

_STUDIES = frozenset(
    """study studies trial trials rct rcts article articles paper papers publication publications report reports
    cohort cohorts review reviews""".split()
)
_REVIEWS: frozenset[Design] = frozenset({"meta_analysis", "systematic_review"})


class SizeAdequacy(NamedTuple):
    """Whether the size is adequate, None where it can't be said; and why."""

    value: bool | None
    reason: Reason


def size_adequacy(
    abstract: Abstract, design: Design | None, sizes: Sequence[SampleSize], study_size: SampleSize | None
) -> SizeAdequacy:
    """Return whether this many are plausible for this design. ``study_size`` is the size that the study rests on."""
    if design is None:
        return SizeAdequacy(None, Reason(text="The design is not known, and with it the size it needs."))
    needed = rubric.ADEQUATE_SIZE[design]
    if needed.least is None:
        return SizeAdequacy(None, Reason(text=f"Size says nothing here: {needed.source}."))
    if design in _REVIEWS:
        return _of_review(abstract, sizes, study_size, needed.least, needed.source)
    if study_size is None:
        return SizeAdequacy(None, Reason(text=f"No number of {needed.of} is stated."))
    counted = study_size.value if study_size.kind != "arm" else 2 * study_size.value  # at least one other group
    return _judged(abstract, counted, study_size, needed.least, needed.of, needed.source)


def _of_review(
    abstract: Abstract, sizes: Sequence[SampleSize], study_size: SampleSize | None, least: int, source: str
) -> SizeAdequacy:
    """Return a review by its studies; where it names too few or none, by its participants."""
    stated = sizes if study_size is None else (study_size, *sizes)
    studies = [size for size in stated if {*size.unit.lower().split()[-1:]} & _STUDIES]
    people = [size for size in stated if size not in studies]
    most = max(people, key=lambda size: size.value, default=None)
    enough_people = most is not None and most.value >= rubric.OPTIMAL_INFORMATION
    if studies and (studies[0].value >= least or not enough_people):
        return _judged(abstract, studies[0].value, studies[0], least, "studies", source)
    if most is None:
        return SizeAdequacy(None, Reason(text="Neither a number of studies nor of participants is stated."))
    needed, why = rubric.OPTIMAL_INFORMATION, "GRADE, optimal information size"
    return _judged(abstract, most.value, most, needed, "participants", why)


def _judged(abstract: Abstract, counted: int, size: SampleSize, least: int, of: str, source: str) -> SizeAdequacy:
    enough = counted >= least
    text = f"{counted:,} {of}, {'at least' if enough else 'fewer than'} the {least:,} that are plausible ({source})."
    words = Words(start=size.start, end=size.end, text=abstract.text[size.start : size.end])
    return SizeAdequacy(enough, Reason(text=text, words=(words,)))


VERSION = "12"
"""Raised whenever the rules of offline grading change; recorded with every grade."""


@dataclass(frozen=True)
class OfflineGrader:
    """Grades without a model: rules, and the weights that recognise study types."""

    judged_by: JudgedBy
    usage: Usage = field(default=Usage())

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one grade for each abstract, in the same order."""
        parsed, about = read_question(question), designs_asked_about(question)
        return tuple(self._grade(parsed, about, abstract) for abstract in abstracts)

    def _grade(self, question: Question, about: frozenset[Design], abstract: Abstract) -> Grade:
        found = designs.recognise(abstract)
        sizes, study_size = sample_size.sample_sizes(abstract.text), sample_size.study_size(abstract.text)
        place = place_design(found.study_type, abstract, found.confidence)
        match = relevance_by_meaning(question, abstract)
        method = methodology(abstract, place.design, sizes)
        enough = size_adequacy(abstract, place.design, sizes, study_size)
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
                "study_type": Reason(text=_study_type_reason(found), words=found.words),
                "design": Reason(text=place.why, words=place.words),
            },
            unmatched=match.unmatched,
        )
        return grade_from_judgement(abstract, judgement, self.judged_by, about)


def offline_grader() -> OfflineGrader:
    """Return the grader without a model, with the recogniser of study types and the extractor of sample sizes."""
    return OfflineGrader(JudgedBy(model=OFFLINE, version=f"{VERSION}, study types {designs.version()}"))


def _study_type_reason(found: designs.RecognisedType) -> str:
    if found.study_type is None:
        return "No study type was recognised."
    return f"Reads like {with_article(STUDY_TYPE[found.study_type])} (share {found.confidence:.2f} of 14 types)."
