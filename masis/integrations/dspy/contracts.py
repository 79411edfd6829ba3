"""What goes into the critic loop and what comes out, by the names of rules REQ-CRITIC-002 to -020.

Needs no library. A score is None where nothing could be scored (``unscored`` says why): the specs' fallback of 0.5
would pass for a judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from masis import schema
from masis.audit.issues import CRITIC_LOOP_TYPE
from masis.schema import case
from masis.schema.audit import Critique, Revision
from masis.schema.base import Record, Share
from masis.schema.case import Evidence, Severity
from masis.schema.run import Iteration, Run, TerminationReason

LoopIssueType = Literal["logical", "factual", "safety", "ambiguity", "missing_info", "incomplete_reasoning"]

EvidenceChunk = Evidence
"""A chunk of evidence: ``id``, ``text``, ``source``; further keys are stored."""


class Issue(Record):
    """One issue of an answer; ``location`` is the answer's words, ``reasoning`` why it is one (REQ-CRITIC-005)."""

    id: str
    issue_type: LoopIssueType
    severity: Severity
    description: str
    reasoning: str
    location: str | None
    suggestion: str


class CriticAgentInput(Record):
    """What a critic judges; ``reasoning_steps`` may be missing (REQ-CRITIC-002)."""

    answer: str
    original_query: str
    evidence_chunks: tuple[EvidenceChunk, ...]
    reasoning_steps: tuple[str, ...] | None = None
    iteration_number: int = Field(default=1, ge=1)


class CriticAgentOutput(Record):
    """A critique (REQ-CRITIC-004), with confidence in the answer and flags as MASIS-CRITIC-STATE has them."""

    issues: tuple[Issue, ...]
    overall_quality_score: Share | None
    critique_confidence: Share | None
    critique_reasoning: str
    has_major_issues: bool
    confidence: Share | None
    hallucination_detected: bool
    needs_retry: bool
    unscored: str | None = None


class RevisionAgentInput(Record):
    """What a reviser improves."""

    original_answer: str
    critique: CriticAgentOutput
    original_query: str
    evidence_chunks: tuple[EvidenceChunk, ...]
    iteration_number: int = Field(default=1, ge=1)


class RevisionAgentOutput(Record):
    """A revision (REQ-CRITIC-011)."""

    revised_answer: str
    changes_explanation: str
    updated_confidence: Share | None
    issues_addressed: tuple[str, ...]
    preserved_content: tuple[str, ...]


class CriticLoopInput(Record):
    """What goes into the loop."""

    initial_answer: str
    original_query: str
    evidence_chunks: tuple[EvidenceChunk, ...]
    reasoning_steps: tuple[str, ...] | None = None
    max_iterations: int = Field(default=3, ge=1, le=5)
    improvement_threshold: Share = 0.05


class IterationResult(Record):
    """One iteration of the loop (REQ-CRITIC-020)."""

    iteration_number: int
    answer: str
    quality_score: Share | None
    issues_identified: tuple[Issue, ...]
    changes_made: str
    improvement_delta: float | None


class CriticLoopOutput(Record):
    """What comes out of the loop; ``termination_reason`` may also be ``cancelled``."""

    final_answer: str
    final_quality_score: Share | None
    iterations: tuple[IterationResult, ...]
    total_iterations: int
    improvement_percentage: float | None
    converged: bool
    termination_reason: TerminationReason


def evidence_of(chunks: Iterable[EvidenceChunk | Mapping[str, Any] | str]) -> tuple[Evidence, ...]:
    """Return evidence from chunks, mappings with ``id`` and ``text``, or bare texts, named ``chunk_1``, ``chunk_2``...

    Raises InputError where a chunk is none of these, and for one text alone.
    """
    return case.evidence_of(chunks, "evidence_chunks")


def issue_of(found: schema.audit.Issue) -> Issue:
    """Return an issue under these names."""
    kind: Any = CRITIC_LOOP_TYPE[found.type]
    return Issue(
        id=found.id,
        issue_type=kind,
        severity=found.severity,
        description=found.description,
        reasoning=found.reason,
        location=found.quote,
        suggestion=found.suggestion,
    )


def critique_of(verdict: Critique, found: Iterable[schema.audit.Issue]) -> CriticAgentOutput:
    """Return a critique after the rules in code, under these names."""
    return CriticAgentOutput(
        issues=tuple(issue_of(each) for each in found),
        overall_quality_score=verdict.overall_quality_score,
        critique_confidence=verdict.critique_confidence,
        critique_reasoning=verdict.critique_reasoning,
        has_major_issues=verdict.has_major_issues,
        confidence=verdict.confidence,
        hallucination_detected=verdict.hallucination_detected,
        needs_retry=verdict.needs_retry,
        unscored=verdict.unscored.reason if verdict.unscored else None,
    )


def revision_of(revision: Revision) -> RevisionAgentOutput:
    """Return a revision under these names."""
    return RevisionAgentOutput(
        revised_answer=revision.revised_answer,
        changes_explanation=revision.changes_explanation,
        updated_confidence=revision.updated_confidence,
        issues_addressed=revision.issues_addressed,
        preserved_content=revision.preserved_content,
    )


def loop_output_of(run: Run) -> CriticLoopOutput:
    """Return a run under these names."""
    return CriticLoopOutput(
        final_answer=run.final_answer,
        final_quality_score=run.final_quality_score,
        iterations=tuple(_iteration(each) for each in run.iterations),
        total_iterations=run.total_iterations,
        improvement_percentage=run.improvement_percentage,
        converged=run.converged,
        termination_reason=run.termination_reason,
    )


def _iteration(iteration: Iteration) -> IterationResult:
    return IterationResult(
        iteration_number=iteration.iteration_number,
        answer=iteration.answer,
        quality_score=iteration.quality_score,
        issues_identified=tuple(issue_of(each) for each in iteration.issues),
        changes_made=iteration.changes_made,
        improvement_delta=iteration.improvement_delta,
    )
