"""The figures of a run, an iteration, a draft: what telemetry sends, the store keeps and the
metrics page shows.

Numbers alone, never a text, so that they may be sent and may outlast the texts they are about. What
was not measured or not scored is None, and is counted nowhere: neither as 0 nor as a rate's "no".
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from masis.schema.drafts import CritiqueResult
from masis.schema.run import Iteration, Run

FALSE = ("hallucination", "unsupported", "contradiction")
"""Issues of a draft which say that the sources do not support it; a high one makes the draft a
hallucination.
"""


class IterationMeasures(NamedTuple):
    """One audited answer. ``critic_ms``, ``reviser_ms``, ``evaluator_ms`` are those steps'
    milliseconds without waits in a queue, ``iteration_ms`` that of all its steps; scores are 0..1.
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
    """One run of the loop: REQ-CRITIC-OBS-001. But for wall time and iterations all is about the
    original answer.
    """

    run: Run
    loop_ms: float
    iterations: tuple[IterationMeasures, ...]
    confidence: float | None
    overall: float | None
    critique: CritiqueMeasures


def of_run(run: Run) -> RunMeasures:
    """The figures of a finished run."""
    iterations = tuple(of_iteration(each) for each in run.iterations)
    first = run.original
    hallucinated = first is not None and (
        first.critique.hallucination_detected or first.citation_audit.hallucination_detected
    )
    between = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)
    loop_ms = max(between.total_seconds() * 1000, sum(each.iteration_ms for each in iterations))
    return RunMeasures(
        run=run,
        loop_ms=loop_ms,
        iterations=iterations,
        confidence=first.critique.confidence if first else None,
        overall=first.evaluation.overall_score if first and first.evaluation else None,
        critique=CritiqueMeasures(
            hallucination=_unless_failed(first, hallucinated) if first else None,
            # whether the loop had something to revise, whether or not it could (REQ-CRITIC-017)
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
    """The figures of a finished iteration."""
    ms, judged = iteration.step_ms, iteration.evaluation
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
        overall=judged.overall_score if judged else None,
        faithfulness=judged.faithfulness if judged else None,
        relevance=judged.relevance if judged else None,
        completeness=judged.completeness if judged else None,
        reasoning=judged.reasoning_quality if judged else None,
    )


def of_draft(result: CritiqueResult) -> CritiqueMeasures:
    """The figures of a critique of a draft; the same as ``masis.api.draft_critique.metrics`` takes
    the means of.
    """
    return CritiqueMeasures(
        hallucination=any(
            issue.type in FALSE and issue.severity == "high" for issue in result.issues
        ),
        revision=bool(result.issues),
        latency_ms=result.metadata.critique_time_ms,
        confidence=result.confidence,
        claims=result.metadata.facts_checked,
    )


def _unless_failed(first: Iteration, found: bool) -> bool | None:
    """Return what was found, or None where nothing was and the critic failed, so that what it says
    is not known.
    """
    failed = first.critique.unscored is not None and first.critique.unscored.code is not None
    return None if failed and not found else found
