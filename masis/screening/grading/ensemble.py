"""Several graders as one: their opinions, their agreement, and the rule that joins them.

- **Scores**: the median of those who scored. One grader far off moves nothing.
- **Study type, design, adequacy of size**: the most frequent value; a tie goes to the design with
  the lower prior, and leaves the adequacy open.
- **Recommendation**: computed by the rules from the joined scores. It applies if more than half of
  those who scored recommend the same and the qualities they give lie within ``MOST_SPREAD`` of each
  other; else the abstract needs more. A single opinion, a tie or a wide spread is uncertainty, and
  uncertainty asks for more evidence.
- A grader who couldn't score an abstract abstains. Where fewer than half scored, the abstract is
  unscored.

Agreement on one abstract is the share of pairs of graders who recommend the same; over many it is
Krippendorff's alpha (``masis.trust.agreement``).
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
"""The widest spread of quality at which graders still count as agreed: twice the way from 0.70 to
0.55, the range of the required averages (AESOP-DECAY).
"""
VERSION = "1"


@dataclass(frozen=True)
class Ensemble:
    """Several graders who judge each abstract independently of each other."""

    graders: tuple[Grader, ...]

    def __post_init__(self) -> None:
        """Refuse an ensemble of nobody."""
        if not self.graders:
            raise SettingsError(
                "an ensemble needs at least one grader. Name one in screening_graders."
            )

    @property
    def judged_by(self) -> JudgedBy:
        """All of them, joined by a plus sign."""
        return JudgedBy(
            model=" + ".join(grader.judged_by.model for grader in self.graders),
            version=" + ".join(
                [*(grader.judged_by.version for grader in self.graders), f"joined by {VERSION}"]
            ),
        )

    @property
    def usage(self) -> Usage:
        """What all of them have spent."""
        spent = [grader.usage for grader in self.graders]
        costs = [each.cost_usd for each in spent if each.cost_usd is not None]
        counts = {
            name: sum(getattr(each, name) for each in spent)
            for name in Usage.model_fields
            if name != "cost_usd"
        }
        return Usage(**counts, cost_usd=sum(costs) if costs else None)

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """Return one joined grade for each abstract, in the same order."""
        about = designs_asked_about(question)
        by_grader = [
            {g.abstract_id: g for g in grader.grade(question, abstracts)} for grader in self.graders
        ]
        graders, by = len(self.graders), self.judged_by
        return tuple(
            join_grades(
                [grades[each.id] for grades in by_grader if each.id in grades],
                each,
                graders,
                by,
                about,
            )
            for each in abstracts
        )


def join_grades(
    grades: Sequence[Grade],
    abstract: Abstract,
    graders: int,
    judged_by: JudgedBy,
    about: frozenset[Design] = frozenset(),
) -> Grade:
    """Return the opinions of ``graders`` graders on one abstract as one grade."""
    scored = [grade for grade in grades if grade.unscored is None and grade.quality is not None]
    opinions = tuple(
        Opinion(**{name: getattr(grade, name) for name in Opinion.model_fields}) for grade in grades
    )
    if 2 * len(scored) < graders or not scored:
        why = Unscored(reason=f"only {len(scored)} of {graders} graders scored it")
        return unscored_grade(abstract, judged_by, why).model_copy(update={"opinions": opinions})
    scores = ("relevance_score", "methodology_score", "methodology_raw")
    relevance, method, raw = (median(getattr(grade, name) for grade in scored) for name in scores)
    qualities = [grade.quality or 0.0 for grade in scored]
    closest = min(scored, key=lambda grade: abs((grade.quality or 0.0) - median(qualities)))
    designs = multimode(grade.design for grade in scored)
    design = min(
        designs, key=lambda each: (rubric.HIERARCHY[each].prior, each) if each else (-1.0, "")
    )
    adequate = multimode(grade.sample_size_adequate for grade in scored)
    enough = adequate[0] if len(adequate) == 1 else None
    advice = recommend(relevance, method, design, enough, about, closest.publication)
    agreeing = sum(grade.recommendation == advice.recommendation for grade in scored)
    doubt, spread = "", max(qualities) - min(qualities)
    if design not in NO_STUDY and 2 * agreeing <= len(scored):
        doubt = "The graders don't agree: no more than half recommend what the joined scores say."
    elif design not in NO_STUDY and spread > MOST_SPREAD + 1e-9:
        doubt = f"The graders' qualities lie {spread:.2f} apart, more than {MOST_SPREAD:.2f}."
    by_grader = ", ".join(f"{grade.judged_by.model} {grade.recommendation}" for grade in scored)
    reasons: dict[OverrideField, GradeReason] = {
        **closest.reasons,
        "recommendation": GradeReason(text=f"{doubt or advice.why} Said: {by_grader}."),
    }
    return closest.model_copy(
        update={
            **scored_fields(relevance, raw, method, design, enough),
            "study_type": next(
                (g.study_type for g in scored if g.design == design), closest.study_type
            ),
            "recommendation": "needs_more" if doubt else advice.recommendation,
            "rule": "disagreement" if doubt else advice.rule,
            "reasons": reasons,
            "judged_by": judged_by,
            "opinions": opinions,
            "agreement": pair_agreement([grade.recommendation for grade in scored]),
        }
    )


def pair_agreement(opinions: Sequence[object]) -> float | None:
    """Return the share of pairs that say the same; None where there is no pair."""
    pairs = list(combinations(opinions, 2))
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else None
