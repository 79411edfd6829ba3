"""Evaluation: four scores, capped by citation problems (MASIS-EVAL-P5, MASIS-EVAL-LOWEST).

Scores are normalized (Problem 6) and capped (Problem 5); then the weighted mean is recomputed and
rounded to 3 decimals. Uncited sentences cap faithfulness whether or not the answer cites, and the
lowest cap wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from masis.audit.context import AuditContext
from masis.audit.measures.scores import cap_score, normalize_score, score_of
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
from masis.schema.wording import count_noun
from masis.settings import Settings

DIMENSIONS = ("faithfulness", "relevance", "completeness", "reasoning_quality")


class EvaluationJudgement(NamedTuple):
    """The judge's judgement before any rule in code, with unchanged numbers."""

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
    """Scores an answer on four dimensions; a failure is returned, not raised."""

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of its prompt or rules."""

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """Return a judgement, or the reason why there is none."""


def apply_evaluation_rules(
    judgement: EvaluationJudgement | Unscored,
    audit: CitationAudit,
    critique: Critique,
    settings: Settings,
    judged_by: JudgedBy,
) -> Evaluation:
    """Apply the rules to the judge's judgement.

    If one dimension is missing, the overall score is unscored.
    """
    if isinstance(judgement, Unscored):
        no_scores: dict[str, Any] = dict.fromkeys((*DIMENSIONS, "overall_score"))
        return Evaluation(**no_scores, judged_by=judged_by, unscored=judgement)
    scores = {name: score_of(name, judgement) for name in DIMENSIONS}
    for bound, rule, reason in faithfulness_bounds(audit, critique, settings):
        scores["faithfulness"] = cap_score(scores["faithfulness"], bound, rule=rule, why=reason)
    overall = _overall(judgement, scores, settings)
    missing = [name for name in DIMENSIONS if scores[name].value is None]
    values: dict[str, Any] = {name: score.value for name, score in scores.items()}
    return Evaluation(
        **values,
        overall_score=overall.value,
        improvement_suggestions=judgement.improvement_suggestions,
        scores=(*scores.values(), overall),
        notes=judgement.notes,
        judged_by=judged_by,
        unscored=(
            Unscored(reason=f"the judge gave no number for {', '.join(missing)}")
            if missing
            else None
        ),
    )


def faithfulness_bounds(
    audit: CitationAudit, critique: Critique, settings: Settings
) -> Iterator[tuple[float, str, str]]:
    """Yield the upper bounds of faithfulness with their rule and reason; the lowest wins."""
    has_fabricated_reference = audit.invalid_citations or audit.carried_references
    uncited_count = len(audit.uncited_claims)
    if audit.invalid_citations or audit.hallucination_detected or critique.hallucination_detected:
        reason = (
            "fabricated reference"
            if has_fabricated_reference
            else "the critique found a hallucination"
        )
        yield settings.hallucination_faithfulness_cap, "hallucination_cap", reason
    reason = count_noun(uncited_count, "uncited sentence")
    if uncited_count >= settings.many_uncited_cap_from:
        yield settings.many_uncited_faithfulness_cap, "many_uncited_cap", reason
    elif uncited_count >= settings.uncited_cap_from:
        yield settings.uncited_faithfulness_cap, "uncited_cap", reason


def _overall(judgement: EvaluationJudgement, scores: dict[str, Score], settings: Settings) -> Score:
    weights = {
        "faithfulness": settings.faithfulness_weight,
        "relevance": settings.relevance_weight,
        "completeness": settings.completeness_weight,
        "reasoning_quality": settings.reasoning_weight,
    }
    normalized = normalize_score("overall_score", judgement.overall_score)
    if any(score.value is None for score in scores.values()):
        return Score(name="overall_score", raw=normalized.raw, value=None)
    mean = round(sum(weights[name] * (scores[name].value or 0.0) for name in DIMENSIONS), 3)
    rule = FiredRule(
        rule="weighted_mean",
        before=normalized.raw,
        after=mean,
        why="recomputed from the four scores",
    )
    return Score(name="overall_score", raw=normalized.raw, value=min(mean, 1.0), rules=(rule,))
