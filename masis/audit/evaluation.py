"""Evaluation: four scores, clamped by what the citations prove (MASIS-EVAL-P5, MASIS-EVAL-LOWEST).

Normalised first (Problem 6), then clamped (Problem 5), then the weighted mean is recomputed and
rounded to 3 decimals. Faithfulness is bounded by uncited sentences whether or not the answer cites;
the lowest bound wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from masis.audit.context import AuditContext
from masis.audit.measures.scores import cap_score, normalise_score, score_of
from masis.schema.audit import (
    CitationAudit,
    Critique,
    Evaluation,
    FiredRule,
    JudgedBy,
    Measurement,
    Score,
)
from masis.schema.base import Unscored
from masis.settings import Settings

DIMENSIONS = ("faithfulness", "relevance", "completeness", "reasoning_quality")


class EvaluationJudgement(NamedTuple):
    """What the judge says, before any rule in code; numbers come as given."""

    faithfulness: Any
    relevance: Any
    completeness: Any
    reasoning_quality: Any
    overall_score: Any = None
    improvement_suggestions: tuple[str, ...] = ()
    measurements: dict[str, tuple[Measurement, ...]] = {}  # noqa: RUF012 - never mutated
    samples: dict[str, tuple[float | None, ...]] = {}  # noqa: RUF012 - never mutated
    notes: tuple[str, ...] = ()


class Evaluator(Protocol):
    """Scores an answer on four dimensions; a failure is a value."""

    @property
    def judged_by(self) -> JudgedBy:
        """Which model, and which version of its prompt or rules."""

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """A judgement, or why there is none."""


def apply_evaluation_rules(
    judgement: EvaluationJudgement | Unscored,
    audit: CitationAudit,
    critique: Critique,
    settings: Settings,
    judged_by: JudgedBy,
) -> Evaluation:
    """The evaluation after the rules. One dimension without a score leaves the overall score
    unscored too.
    """
    if isinstance(judgement, Unscored):
        nothing: dict[str, Any] = dict.fromkeys((*DIMENSIONS, "overall_score"))
        return Evaluation(**nothing, judged_by=judged_by, unscored=judgement)
    scores = {name: score_of(name, judgement) for name in DIMENSIONS}
    scores["faithfulness"] = _bound_faithfulness(scores["faithfulness"], audit, critique, settings)
    overall = _overall(judgement, scores, settings)
    lacking = [name for name in DIMENSIONS if scores[name].value is None]
    values: dict[str, Any] = {name: score.value for name, score in scores.items()}
    return Evaluation(
        **values,
        overall_score=overall.value,
        improvement_suggestions=judgement.improvement_suggestions,
        scores=(*scores.values(), overall),
        notes=judgement.notes,
        judged_by=judged_by,
        unscored=(
            Unscored(reason=f"the judge gave no number for {', '.join(lacking)}")
            if lacking
            else None
        ),
    )


class FaithfulnessBound(NamedTuple):
    """The most that faithfulness may be, by the name of the rule that says so, and why."""

    most: float
    rule: str
    why: str


def faithfulness_bounds(
    audit: CitationAudit, critique: Critique, settings: Settings
) -> Iterator[FaithfulnessBound]:
    """Yield what bounds faithfulness; the lowest wins."""
    fabricated, uncited = (
        audit.invalid_citations or audit.carried_references,
        len(audit.uncited_claims),
    )
    if audit.invalid_citations or audit.hallucination_detected or critique.hallucination_detected:
        why = "fabricated reference" if fabricated else "the critique found a hallucination"
        yield FaithfulnessBound(settings.hallucination_faithfulness_cap, "hallucination_cap", why)
    why = f"{uncited} sentences carry no citation"
    if uncited >= settings.many_uncited_cap_from:
        yield FaithfulnessBound(settings.many_uncited_faithfulness_cap, "many_uncited_cap", why)
    elif uncited >= settings.uncited_cap_from:
        yield FaithfulnessBound(settings.uncited_faithfulness_cap, "uncited_cap", why)


def _bound_faithfulness(
    score: Score, audit: CitationAudit, critique: Critique, settings: Settings
) -> Score:
    for bound in faithfulness_bounds(audit, critique, settings):
        score = cap_score(score, bound.most, rule=bound.rule, why=bound.why)
    return score


def _overall(judgement: EvaluationJudgement, scores: dict[str, Score], settings: Settings) -> Score:
    weights = {
        "faithfulness": settings.faithfulness_weight,
        "relevance": settings.relevance_weight,
        "completeness": settings.completeness_weight,
        "reasoning_quality": settings.reasoning_weight,
    }
    given = normalise_score("overall_score", judgement.overall_score)
    if any(score.value is None for score in scores.values()):
        return Score(name="overall_score", raw=given.raw, value=None)
    mean = round(sum(weights[name] * (scores[name].value or 0.0) for name in DIMENSIONS), 3)
    rule = FiredRule(
        rule="weighted_mean", before=given.raw, after=mean, why="recomputed from the four scores"
    )
    return Score(name="overall_score", raw=given.raw, value=min(mean, 1.0), rules=(rule,))
