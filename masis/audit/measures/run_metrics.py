"""The figures of a run, an iteration or a draft, for telemetry, the store and the metrics page.

They are numbers only, never texts, so that they may be sent and may outlive the texts. A value that
was not measured or scored is None and isn't counted at all, neither as 0 nor as "no" in a rate.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from masis.schema.drafts import CritiqueResult
from masis.schema.run import Iteration, Run

UNSUPPORTED_TYPES = ("hallucination", "unsupported", "contradiction")
"""Types of draft issues about missing support in the sources. One of severity high counts as a
hallucination.
"""


class IterationMeasures(NamedTuple):
    """The figures of one audited answer.

    ``critic_ms``, ``reviser_ms`` and ``evaluator_ms`` are the milliseconds of those steps without
    time in a queue, and ``iteration_ms`` those of all steps. Scores are 0 to 1.
    """

    number: int
    critic_ms: float | None
    reviser_ms: float | None
    evaluator_ms: float | None
    iteration_ms: float
    quality: float | None
    improvement_delta: float | None
    issues: int
    major_issues: int
    confidence: float | None
    conflicts: int
    invalid_citations: int
    uncited_claims: int
    overall: float | None
    faithfulness: float | None
    relevance: float | None
    completeness: float | None
    reasoning: float | None


class CritiqueMeasures(NamedTuple):
    """The metrics of an original answer (DRAFT-CRITIQUE-METRICS)."""

    hallucination: bool | None
    revision: bool | None
    latency_ms: float
    confidence: float | None
    claims: int | None


class RunMeasures(NamedTuple):
    """The figures of one run of the loop (REQ-CRITIC-OBS-001).

    All but wall time and iterations are about the original answer.
    """

    run: Run
    loop_ms: float
    iterations: tuple[IterationMeasures, ...]
    confidence: float | None
    overall: float | None
    critique: CritiqueMeasures


def of_run(run: Run) -> RunMeasures:
    """Return the figures of a finished run."""
    iterations = tuple(of_iteration(iteration) for iteration in run.iterations)
    first = run.original
    hallucinated = first is not None and (
        first.critique.hallucination_detected or first.citation_audit.hallucination_detected
    )
    duration = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)
    loop_ms = max(
        duration.total_seconds() * 1000, sum(iteration.iteration_ms for iteration in iterations)
    )
    return RunMeasures(
        run=run,
        loop_ms=loop_ms,
        iterations=iterations,
        confidence=first.critique.confidence if first else None,
        overall=first.evaluation.overall_score if first and first.evaluation else None,
        critique=CritiqueMeasures(
            hallucination=_unless_failed(first, hallucinated) if first else None,
            # Whether the loop had something to revise, even if it could not (REQ-CRITIC-017).
            revision=(
                _unless_failed(first, first.critique.has_major_issues or first.critique.needs_retry)
                if first
                else None
            ),
            latency_ms=loop_ms,
            confidence=first.claim_report.confidence if first else None,
            claims=(
                None
                if first is None or first.claim_report.unscored
                else first.claim_report.facts_checked
            ),
        ),
    )


def of_iteration(iteration: Iteration) -> IterationMeasures:
    """Return the figures of a finished iteration."""
    ms, evaluation = iteration.step_ms, iteration.evaluation
    return IterationMeasures(
        number=iteration.iteration_number,
        critic_ms=ms.get("critique"),
        reviser_ms=ms.get("revision"),
        evaluator_ms=ms.get("evaluation"),
        iteration_ms=sum(ms.values()),
        quality=iteration.quality_score,
        improvement_delta=iteration.improvement_delta,
        issues=len(iteration.issues),
        major_issues=sum(issue.major for issue in iteration.issues),
        confidence=iteration.critique.confidence,
        conflicts=len(iteration.critique.conflicting_evidence),
        invalid_citations=len(iteration.citation_audit.invalid_citations),
        uncited_claims=len(iteration.citation_audit.uncited_claims),
        overall=evaluation.overall_score if evaluation else None,
        faithfulness=evaluation.faithfulness if evaluation else None,
        relevance=evaluation.relevance if evaluation else None,
        completeness=evaluation.completeness if evaluation else None,
        reasoning=evaluation.reasoning_quality if evaluation else None,
    )


def of_draft(result: CritiqueResult) -> CritiqueMeasures:
    """Return the figures of a draft critique.

    ``masis.api.draft_critique.metrics`` returns their means.
    """
    return CritiqueMeasures(
        hallucination=any(
            issue.type in UNSUPPORTED_TYPES and issue.severity == "high" for issue in result.issues
        ),
        revision=bool(result.issues),
        latency_ms=result.metadata.critique_time_ms,
        confidence=result.confidence,
        claims=result.metadata.facts_checked,
    )


def _unless_failed(iteration: Iteration, flag: bool) -> bool | None:
    """Return the flag, or None if it is unset only because the critic failed."""
    failed = (
        iteration.critique.unscored is not None and iteration.critique.unscored.code is not None
    )
    return None if failed and not flag else flag
