"""What a team's own decisions taught: a probability of fault, the sample drawn to test it, and a
tested threshold.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from masis.schema.base import Record, Share
from masis.schema.team import TeamRecord


class FaultScore(TeamRecord):
    """A probability that an answer is faulty, fitted on a team's decisions: the parameters and how
    well it did.

    ``weights`` are those of a logistic regression on standardised features
    (``masis/trust/score.py`` names them); ``means`` and ``scales`` standardise. ``case_ids`` are
    the cases it was fitted on: a threshold is tested on others. The figures are of held-out
    questions; ``baseline`` is the log loss of one constant probability for every answer.
    """

    kind = "fault_score"
    at: str = ""
    by: str = ""
    features: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    intercept: float = 0.0
    decisions: int = 0
    faulty: int = 0
    questions: int = 0
    simulated: int = 0
    log_loss: float | None = None
    built_in: float | None = None
    baseline: float | None = None
    auroc: float | None = None
    calibration_error: float | None = None
    case_ids: tuple[str, ...] = ()


class SamplePlan(TeamRecord):
    """A random sample of answers for blind decisions, fixed before the first of them is made.

    ``thresholds`` are tested in this order, strictest first; ``pool`` counts the answers that the
    loosest would accept, of which ``case_ids`` were drawn with equal probability, ``pools`` those
    of each threshold. ``review`` holds the settings of the acceptance rule. ``error`` is the
    probability this plan may give a guarantee that is wrong, and ``spent`` that of earlier plans
    for the same auditor and rule.
    """

    kind = "sample_plan"
    at: str = ""
    by: str = ""
    auditor: str = ""
    rule: str = ""
    review: dict[str, Any] = Field(default_factory=dict)
    score: int = 0
    tolerance: Share = 0.02
    error: Share = 0.05
    spent: Share = 0.0
    thresholds: tuple[Share, ...] = ()
    pools: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    pool: int = 0
    left_out: int = 0
    seed: int = 0
    case_ids: tuple[str, ...] = ()
    probabilities: tuple[Share, ...] = ()
    """The probability of fault of each drawn answer, by which it counts for a threshold."""

    @property
    def certainty(self) -> float:
        """How certain a guarantee from this plan is, earlier plans for the same auditor and rule
        included.
        """
        return 1.0 - self.error - self.spent


class Guarantee(Record):
    """A threshold on the probability of fault under which answers are auto-accepted, and what it
    was shown to hold.

    With probability ``certainty`` at most ``tolerance`` of the answers that it accepts are faulty.
    It holds for one auditor, one rule with its settings and one score, and lapses with any of them.
    """

    plan: int
    auditor: str
    rule: str
    review: dict[str, Any]
    score: FaultScore
    threshold: Share
    tolerance: Share
    certainty: Share
    decisions: int
    faulty: int
    upper: Share
    saved: int
    pool: int

    def is_about(self, auditor: str, rule: str, review: dict[str, Any]) -> bool:
        """Return whether the guarantee is about runs of this auditor, judged by this rule with
        these settings.
        """
        return (self.auditor, self.rule, self.review) == (auditor, rule, review)
