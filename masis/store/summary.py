"""The figures of a run that lists show, filter and sort by: pure, from the run alone."""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.audit import Score
from masis.schema.run import Iteration, Run


class RunFigures(NamedTuple):
    """Columns of a finished run. ``telling`` and ``doubt`` sort the queue, higher first; unscored counts as 1."""

    quality: float | None
    confidence: float | None
    overall: float | None
    invalid: int | None
    uncited: int | None
    iterations: int
    improvement: float | None
    termination: str
    needs_review: bool
    spot_check: bool
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    telling: float
    doubt: float


def figures(run: Run) -> RunFigures:
    """Scores of the best iteration, faults of the answer as it came."""
    first = run.iterations[0] if run.iterations else None
    best = run.best_iteration
    confidence = best.critique.confidence if best else None
    reasons = tuple(dict.fromkeys(reason.code for reason in run.review_reasons))
    return RunFigures(
        quality=run.final_quality_score,
        confidence=confidence,
        overall=best.evaluation.overall_score if best and best.evaluation else None,
        invalid=len(first.citation_audit.invalid_citations) if first else None,
        uncited=len(first.citation_audit.uncited_claims) if first else None,
        iterations=len(run.iterations),
        improvement=run.improvement_percentage,
        termination=run.termination_reason,
        needs_review=run.needs_review,
        spot_check=run.spot_check,
        flags=flags(run),
        reasons=reasons,
        telling=max((disagreement(each) for each in (first, best) if each), default=1.0),
        doubt=1.0 if confidence is None else 1.0 - confidence,
    )


def flags(run: Run) -> tuple[str, ...]:
    """What is wrong with the answer as it came, in fixed words, and how the run went."""
    found: list[str] = []
    if run.iterations:
        found += _faults(run.iterations[0])
    if run.draft is not None:
        found.append("drafted")
    if run.spot_check:
        found.append("spot_check")
    if run.termination_reason in ("error", "cancelled"):
        found.append(run.termination_reason)
    return tuple(found)


def _faults(iteration: Iteration) -> list[str]:
    audit, verdicts = iteration.citation_audit, {check.verdict for check in iteration.claims}
    references = {reference.finding for check in iteration.claims for reference in check.references}
    unscored = iteration.quality_score is None or "unscored" in verdicts
    signs = (
        ("invalid_reference", bool(audit.invalid_citations)),
        ("uncited", bool(audit.uncited_claims)),
        ("misattributed", "misattributed" in references),
        ("needless", "needless" in references),
        ("contradicted", "contradicted" in verdicts),
        ("unsupported", "unsupported" in verdicts),
        ("partial", "partial" in verdicts),
        ("hallucination", iteration.critique.hallucination_detected or audit.hallucination_detected),
        ("conflicting_evidence", bool(iteration.critique.conflicting_evidence)),
        ("unscored", unscored),
    )
    return [name for name, present in signs if present]


def disagreement(iteration: Iteration) -> float:
    """How far citation engine, critic and judge are apart, 0 to 1.

    Each says how good the answer is: the penalty factor of the citations, the critic's confidence and the judge's
    faithfulness, the last two as they were before the citations tempered them, else the three could hardly disagree.
    With fewer than two opinions nothing confirms anything: 1.
    """
    opinions = [iteration.citation_audit.penalty_factor]
    confidence = _raw(iteration.critique.scores, "confidence", iteration.critique.confidence)
    if confidence is not None:
        opinions.append(confidence)
    if iteration.evaluation is not None:
        faithfulness = _raw(iteration.evaluation.scores, "faithfulness", iteration.evaluation.faithfulness)
        if faithfulness is not None:
            opinions.append(faithfulness)
    return max(opinions) - min(opinions) if len(opinions) > 1 else 1.0


def _raw(scores: tuple[Score, ...], name: str, final: float | None) -> float | None:
    """The score before any rule, brought to 0..1 as the rules do (DESIGN.md, 4.2)."""
    raw = next((score.raw for score in scores if score.name == name), None)
    if raw is None:
        return final
    return min(max(raw / 100 if raw > 1 else raw, 0.0), 1.0)
