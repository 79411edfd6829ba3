"""The event data of each step (the specs' "Telemetry Emitted").

The data has counts, scores and times but no texts. MASIS-CRITIC-TELEMETRY and MASIS-EVAL-TELEMETRY
name the fields of the critic's and the evaluator's entries; REQ-CRITIC-OBS-002 names the logged
fields of an iteration and of the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from masis.audit.evaluation import DIMENSIONS
from masis.schema.audit import (
    CitationAudit,
    ClaimCheck,
    Critique,
    Evaluation,
    Issue,
    MissingPoint,
    Revision,
)
from masis.schema.run import Iteration, Run

Fields = dict[str, Any]


def of_citations(audit: CitationAudit) -> Fields:
    """Return the counts of references and uncited sentences, and the penalty."""
    return {
        "references": len(audit.citations),
        "invalid_citations": len(audit.invalid_citations),
        "uncited_claims": len(audit.uncited_claims),
        "penalty_factor": audit.penalty_factor,
    }


def of_claims(checks: Sequence[ClaimCheck], missing: Sequence[MissingPoint]) -> Fields:
    """Return the claims by verdict, and the number of missing points."""
    return {
        "claims": len(checks),
        "verdicts": dict(Counter(check.verdict for check in checks)),
        "missing": len(missing),
    }


def of_critique(
    verdict: Critique, audit: CitationAudit, issues: Sequence[Issue], milliseconds: float
) -> Fields:
    """Return the critic's entry (MASIS-CRITIC-TELEMETRY)."""
    return {
        "node": "critic",
        "confidence": verdict.confidence,
        "hallucination": verdict.hallucination_detected,
        "needs_retry": verdict.needs_retry,
        "conflicts": len(verdict.conflicting_evidence),
        "invalid_citations": len(audit.invalid_citations),
        "uncited_claims": len(audit.uncited_claims),
        "issues": len(issues),
        "duration_ms": round(milliseconds, 3),
    }


def of_evaluation(evaluation: Evaluation, milliseconds: float) -> Fields:
    """Return the evaluator's entry (MASIS-EVAL-TELEMETRY)."""
    scores = {name: getattr(evaluation, name) for name in ("overall_score", *DIMENSIONS)}
    return {"node": "evaluator", **scores, "duration_ms": round(milliseconds, 3)}


def of_revision(revision: Revision, milliseconds: float) -> Fields:
    """Return the number of edits and addressed issues, and the reviser's time."""
    return {
        "node": "reviser",
        "changes": len(revision.changes),
        "issues_addressed": len(revision.issues_addressed),
        "duration_ms": round(milliseconds, 3),
    }


def of_iteration(iteration: Iteration) -> Fields:
    """Return the scores of a finished iteration and their change."""
    return {
        "quality_score": iteration.quality_score,
        "improvement_delta": iteration.improvement_delta,
        "confidence": iteration.critique.confidence,
        "overall_score": iteration.evaluation.overall_score if iteration.evaluation else None,
        "issues": len(iteration.issues),
        "major_issues": sum(issue.major for issue in iteration.issues),
    }


def of_run(run: Run) -> Fields:
    """Return how the loop ended (REQ-CRITIC-COMP-001)."""
    return {
        "termination_reason": run.termination_reason,
        "total_iterations": run.total_iterations,
        "best": run.best,
        "final_quality_score": run.final_quality_score,
        "improvement_percentage": run.improvement_percentage,
        "needs_review": run.needs_review,
        "review_reasons": [reason.code for reason in run.review_reasons],
    }
