"""Combines several graders into one, with their opinions and their agreement.

- **Scores**: the median of the graders that scored, so that one outlier has no effect.
- **Study type, design, adequacy of size**: the most frequent value. In a tie, the design with the
  lower prior is used, and the adequacy is left open.
- **Recommendation**: the rules applied to the combined scores. It holds if more than half of the
  graders that scored recommend the same and their qualities are within ``MOST_SPREAD`` of each
  other. Otherwise the graders are uncertain, and the abstract needs more evidence.
- A grader that couldn't score an abstract abstains. If fewer than half scored it, the abstract is
  unscored.

Agreement on one abstract is the share of pairs of graders with the same recommendation. Agreement
over many is Krippendorff's alpha (``masis.trust.agreement``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median, multimode

from masis.errors import SettingsError
from masis.schema.audit import JudgedBy
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Design, Grade, GradeReason, Opinion, OverrideField
from masis.screening.grading import rubric
from masis.screening.grading.grader import Grader, unscored_grade
from masis.screening.grading.hierarchy import designs_asked_about
from masis.screening.grading.recommendation import NO_STUDY, recommend, scored_fields

MOST_SPREAD = 0.30
"""The widest spread of quality at which graders still agree: twice the range of the required
averages, 0.70 to 0.55 (AESOP-DECAY).
"""
VERSION = "1"


@dataclass(frozen=True)
class Ensemble:
    """Several graders that judge each abstract independently of each other."""

    graders: tuple[Grader, ...]

    def __post_init__(self) -> None:
        """Raise SettingsError if there is no grader."""
        if not self.graders:
            raise SettingsError(
                "an ensemble needs at least one grader. Name one in screening_graders."
            )

    @property
    def judged_by(self) -> JudgedBy:
        """The names and versions of all graders, joined by a plus sign."""
        return JudgedBy(
            model=" + ".join(grader.judged_by.model for grader in self.graders),
            version=" + ".join(
                [*(grader.judged_by.version for grader in self.graders), f"joined by {VERSION}"]
            ),
        )

    @property
    def usage(self) -> Usage:
        """The usage of all graders in total."""
        usages = [grader.usage for grader in self.graders]
        costs = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
        counts = {
            name: sum(getattr(usage, name) for usage in usages)
            for name in Usage.model_fields
            if name != "cost_usd"
        }
        return Usage(**counts, cost_usd=sum(costs) if costs else None)

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one combined grade for each abstract, in the same order."""
        question_designs = designs_asked_about(question)
        by_grader = [
            {grade.abstract_id: grade for grade in grader.grade(question, abstracts)}
            for grader in self.graders
        ]
        count, judged_by = len(self.graders), self.judged_by
        return tuple(
            join_grades(
                [grades[abstract.id] for grades in by_grader if abstract.id in grades],
                abstract,
                count,
                judged_by,
                question_designs,
            )
            for abstract in abstracts
        )


def join_grades(
    grades: Sequence[Grade],
    abstract: Abstract,
    graders: int,
    judged_by: JudgedBy,
    about: frozenset[Design] = frozenset(),
) -> Grade:
    """Combine the grades that ``graders`` graders gave one abstract; some may have given none."""
    scored = [grade for grade in grades if grade.unscored is None and grade.quality is not None]
    opinions = tuple(
        Opinion(**{name: getattr(grade, name) for name in Opinion.model_fields}) for grade in grades
    )
    if 2 * len(scored) < graders or not scored:
        unscored = Unscored(reason=f"only {len(scored)} of {graders} graders scored it")
        return unscored_grade(abstract, judged_by, unscored).model_copy(
            update={"opinions": opinions}
        )
    scores = ("relevance_score", "methodology_score", "methodology_raw")
    relevance, method, raw = (median(getattr(grade, name) for grade in scored) for name in scores)
    qualities = [grade.quality or 0.0 for grade in scored]
    # Texts can't be averaged, so the reasons are those of the grader closest to the median.
    closest = min(scored, key=lambda grade: abs((grade.quality or 0.0) - median(qualities)))
    designs = multimode(grade.design for grade in scored)
    design = min(
        designs, key=lambda name: (rubric.HIERARCHY[name].prior, name) if name else (-1.0, "")
    )
    adequate = multimode(grade.sample_size_adequate for grade in scored)
    is_adequate = adequate[0] if len(adequate) == 1 else None
    decision = recommend(relevance, method, design, is_adequate, about, closest.publication)
    agreeing = sum(grade.recommendation == decision.recommendation for grade in scored)
    doubt, spread = "", max(qualities) - min(qualities)
    if design not in NO_STUDY and 2 * agreeing <= len(scored):
        doubt = "The graders don't agree: at most half recommend the result of the combined scores."
    elif design not in NO_STUDY and spread > MOST_SPREAD + 1e-9:
        doubt = f"The graders' qualities differ by {spread:.2f}, more than {MOST_SPREAD:.2f}."
    by_grader = ", ".join(f"{grade.judged_by.model} {grade.recommendation}" for grade in scored)
    reasons: dict[OverrideField, GradeReason] = {
        **closest.reasons,
        "recommendation": GradeReason(text=f"{doubt or decision.why} Graders: {by_grader}."),
    }
    return closest.model_copy(
        update={
            **scored_fields(relevance, raw, method, design, is_adequate),
            "study_type": next(
                (grade.study_type for grade in scored if grade.design == design),
                closest.study_type,
            ),
            "recommendation": "needs_more" if doubt else decision.recommendation,
            "rule": "disagreement" if doubt else decision.rule,
            "reasons": reasons,
            "judged_by": judged_by,
            "opinions": opinions,
            "agreement": pair_agreement([grade.recommendation for grade in scored]),
        }
    )


def pair_agreement(opinions: Sequence[object]) -> float | None:
    """Return the share of pairs of opinions that are equal; None for fewer than two opinions."""
    pairs = list(combinations(opinions, 2))
    return sum(first == second for first, second in pairs) / len(pairs) if pairs else None
