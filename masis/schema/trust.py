"""Results learned from a team's decisions: fault probability, test sample and tested threshold."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from masis.schema.base import Record, Share
from masis.schema.team import TeamRecord


class FaultScore(TeamRecord):
    """A fault probability fitted on a team's decisions, with its parameters and its performance.

    Attributes:
        weights: Weights of a logistic regression on standardised features
            (``masis/trust/score.py``).
        means: Feature means for standardisation.
        scales: Feature scales for standardisation.
        case_ids: The cases that it was fitted on. A threshold is tested on other cases.
        baseline: The log loss of the same constant probability for every answer. All metrics are of
            held-out questions.

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
    """A random sample of answers for blind decisions, fixed before the first decision is made.

    Attributes:
        thresholds: Tested in this order, strictest first.
        pool: The number of answers that the loosest threshold would accept. ``case_ids`` were drawn
            from them with equal probability.
        pools: The number of answers that each threshold would accept.
        review: The settings of the acceptance rule.
        error: The probability that this plan gives a wrong guarantee.
        spent: The same for earlier plans with this auditor and rule.

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
    """The fault probability of each drawn answer, which decides the thresholds it counts for."""

    @property
    def certainty(self) -> float:
        """The certainty of a guarantee from this plan.

        It accounts for earlier plans for the same auditor and rule.
        """
        return 1.0 - self.error - self.spent


class Guarantee(Record):
    """A threshold on the fault probability for auto-acceptance, with its tested bound.

    With probability ``certainty``, at most ``tolerance`` of the accepted answers are faulty. A
    guarantee is valid for one auditor, one rule with its settings and one score, and ends if any of
    them changes.
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
        """Return whether the guarantee covers runs of this auditor, rule and settings."""
        return (self.auditor, self.rule, self.review) == (auditor, rule, review)


GuaranteeMethod = Literal["hypergeometric", "binomial"]
"""The distribution that the bound of a data set's guarantee is computed from."""


class RelabelPlan(TeamRecord):
    """A random sample of a dataset version, drawn to be labeled again by other people.

    Attributes:
        dataset: The name of the version.
        frozen_at: When the version was frozen. A later version of the same name is another one.
        labels_digest: The SHA-256 of the labels that the sample was drawn from.
        rate: The largest tolerated share of wrong labels.
        error: The probability that this plan gives a wrong guarantee.
        spent: The same for earlier plans about the same labels.
        labels: The number of labels that the sample was drawn from.
        left_out: The number of the version's cases without a person's label.
        case_ids: The drawn cases.

    """

    kind = "relabel_plan"
    at: str = ""
    by: str = ""
    dataset: str = ""
    frozen_at: str = ""
    labels_digest: str = ""
    rate: Share = 0.03
    error: Share = 0.05
    spent: Share = 0.0
    labels: int = 0
    left_out: int = 0
    method: GuaranteeMethod = "hypergeometric"
    seed: int = 0
    case_ids: tuple[str, ...] = ()

    @property
    def level(self) -> float:
        """The confidence level of a guarantee from this plan, with earlier plans accounted for."""
        return round(1.0 - self.error - self.spent, 9)


class DatasetGuarantee(Record):
    """A guarantee for a dataset version, as its manifest states it.

    At the confidence level ``level``, at most the share ``rate`` of the version's ``labels`` is
    wrong: ``wrong`` of ``n`` relabelled ones were, which bounds the share by ``bound``.
    """

    rate: Share
    level: Share
    labels: int
    n: int
    wrong: int
    bound: Share
    method: GuaranteeMethod
    seed: int
    relabelled_by: tuple[str, ...]
