"""The results of the tools.

Fields are named as in the records (``masis audit --out``); ``critique_answer`` follows the names of
its spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import Field

from masis.schema.audit import CitationAudit, ClaimCheck
from masis.schema.base import Record, Share
from masis.schema.calls import Usage
from masis.schema.case import ClaimVerdict, Severity
from masis.schema.run import Iteration, ReviewReason, Run, RunWarning, TerminationReason
from masis.services.records import CaseSummary, RunProgress, RunState

MOST_ISSUES = 200


class UsedSource(Record):
    """The stored chunk behind an evidence id of this result. ``source_id`` identifies it in the
    database.
    """

    evidence_id: str
    source_id: str | None = None


class CitationReport(Record):
    """The citations of an answer."""

    audit: CitationAudit
    sources: tuple[UsedSource, ...]


class ClaimsReport(Record):
    """The checks, one per claim, in the order of the claims."""

    checks: tuple[ClaimCheck, ...]
    sources: tuple[UsedSource, ...]


class IssueReport(Record):
    """One issue of an audited answer; ``start`` and ``end`` are offsets in it."""

    source: str
    type: str
    rule: str
    severity: Severity
    description: str
    suggestion: str
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    evidence_ids: tuple[str, ...] = ()


class Scores(Record):
    """The judge's scores after the rules in code."""

    faithfulness: Share | None
    relevance: Share | None
    completeness: Share | None
    reasoning_quality: Share | None
    overall_score: Share | None


class IterationReport(Record):
    """One audited answer in numbers."""

    iteration_number: int
    quality_score: Share | None
    confidence: Share | None
    improvement_delta: float | None
    hallucination_detected: bool
    invalid_citations: tuple[str, ...]
    uncited_claims: int
    claims: dict[ClaimVerdict, int]
    issues: dict[Severity, int]
    scores: Scores | None
    changes_made: str


class RunReport(Record):
    """A run with its issues, and with ``detail`` whole also every record of it in ``run``.

    ``quality`` and ``issues`` belong to the original answer, ``revised_quality`` and
    ``revised_issues`` to the best revision, if there is one. ``best_iteration`` is the number of
    the iteration that produced the final answer. Values that are unknown or not scored are null.
    ``reused`` is true if a run of the same content and settings existed, so that nothing was
    audited.
    """

    run_id: str
    case_id: str
    state: RunState
    uri: str
    started_at: str
    finished_at: str | None = None
    models: dict[str, str]
    termination_reason: TerminationReason | None = None
    converged: bool | None = None
    quality: Share | None = None
    revised_quality: Share | None = None
    best_iteration: int | None = None
    final_answer: str | None = None
    final_quality_score: Share | None = None
    improvement_percentage: float | None = None
    needs_review: bool | None = None
    review_reasons: tuple[ReviewReason, ...] = ()
    warnings: tuple[RunWarning, ...] = ()
    iterations: tuple[IterationReport, ...]
    issues: tuple[IssueReport, ...] = ()
    revised_issues: tuple[IssueReport, ...] = ()
    issues_left_out: int = Field(
        default=0, description="Beyond the limit of a report; detail whole has them"
    )
    usage: Usage | None = None
    why: str = Field(default="", description="Why the run was interrupted")
    reused: bool | None = None
    run: dict[str, Any] | None = None


class CaseReport(Record):
    """A case with its state, and its runs, newest first. ``evidence_ids`` identify its chunks in
    the database.
    """

    case: dict[str, Any]
    uri: str
    state: str
    evidence_ids: tuple[str, ...]
    runs: tuple[dict[str, Any], ...]


class QueuePage(Record):
    """One page of the queue. ``notes`` names filter values that no stored case has."""

    cases: tuple[CaseSummary, ...]
    total: int
    next_cursor: str | None = None
    notes: tuple[str, ...] = ()


class FoundEvidence(Record):
    """A stored chunk that contains some of the words.

    ``source_id`` is its id for the other tools, ``excerpt`` a part of its text.
    """

    source_id: str
    case_id: str
    evidence_id: str
    source: str | None
    excerpt: str
    characters: int


class EvidencePage(Record):
    """Chunks of the cases on this page. ``total_cases`` is the number of cases that contain the
    words.
    """

    evidence: tuple[FoundEvidence, ...]
    total_cases: int
    next_cursor: str | None = None


def uri(kind: str, identifier: str) -> str:
    """Return the resource URI of a run or a case."""
    return f"masis://{kind}/{quote(identifier, safe='')}"


def address(case_id: str, evidence_id: str) -> str:
    """Return the id of a chunk in the whole store, for example ``case%2F1/chunk_2``."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in (case_id, evidence_id))


def used_sources(sources: Sequence[Any]) -> tuple[UsedSource, ...]:
    """List the chunks behind the evidence ids of a result. ``source_id`` is None for evidence given
    in full.
    """
    return tuple(
        UsedSource(evidence_id=source.chunk.id, source_id=source.address) for source in sources
    )


def of_run(run: Run | RunProgress, *, whole: bool = False, reused: bool | None = None) -> RunReport:
    """Return the report on a run. A run that is still going or was interrupted is reported as far
    as it got.
    """
    copied = {name: getattr(run, name) for name in RunReport.model_fields if hasattr(run, name)}
    if isinstance(run, Run):
        best, answers = run.best_iteration, (run.original, run.revised)
        number = best.iteration_number if best else None
        copied |= {"run_id": run.id, "state": "finished", "best_iteration": number}
    else:
        answers = (run.iterations[-1] if run.iterations else None, None)
    issues, revised = (_issue_reports(answer) if answer else () for answer in answers)
    computed = {
        "uri": uri("run", copied["run_id"]),
        "iterations": tuple(map(_iteration_report, run.iterations)),
        "issues": issues[:MOST_ISSUES],
        "revised_issues": revised[:MOST_ISSUES],
        "issues_left_out": max(0, len(issues) - MOST_ISSUES) + max(0, len(revised) - MOST_ISSUES),
        "reused": reused,
        "run": run.model_dump(mode="json") if whole else None,
    }
    return RunReport(**(copied | computed))


def _iteration_report(iteration: Iteration) -> IterationReport:
    judged = iteration.evaluation
    return IterationReport(
        iteration_number=iteration.iteration_number,
        quality_score=iteration.quality_score,
        confidence=iteration.critique.confidence,
        improvement_delta=iteration.improvement_delta,
        hallucination_detected=iteration.critique.hallucination_detected,
        invalid_citations=iteration.citation_audit.invalid_citations,
        uncited_claims=len(iteration.citation_audit.uncited_claims),
        claims=dict(Counter(check.verdict for check in iteration.claims)),
        issues=dict(Counter(issue.severity for issue in iteration.issues)),
        scores=Scores.model_validate(judged, from_attributes=True) if judged else None,
        changes_made=iteration.changes_made,
    )


def _issue_reports(iteration: Iteration) -> tuple[IssueReport, ...]:
    return tuple(
        IssueReport.model_validate(issue, from_attributes=True) for issue in iteration.issues
    )
