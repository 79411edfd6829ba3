"""Outputs of the critic loop, named as in rules REQ-CRITIC-004 to -020.

This module doesn't need DSPy. A score is None if nothing could be scored (``unscored`` says why),
because the specs' fallback of 0.5 would look like a judgement.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from masis import schema
from masis.schema.audit import Critique
from masis.schema.base import Record, Share
from masis.schema.case import Severity
from masis.schema.rules import CRITIC_LOOP_TYPE
from masis.schema.run import TerminationReason

LoopIssueType = Literal[
    "logical", "factual", "safety", "ambiguity", "missing_info", "incomplete_reasoning"
]


class AnswerIssue(Record):
    """One issue of an answer (REQ-CRITIC-005).

    ``location`` quotes the answer, and ``reasoning`` explains the issue. An audit's own issue is
    converted with ``from_attributes``.
    """

    id: str
    issue_type: Annotated[
        LoopIssueType, BeforeValidator(lambda kind: CRITIC_LOOP_TYPE.get(kind, kind))
    ] = Field(validation_alias=AliasChoices("issue_type", "type"))
    severity: Severity
    description: str
    reasoning: str = Field(validation_alias=AliasChoices("reasoning", "reason"))
    location: str | None = Field(validation_alias=AliasChoices("location", "quote"))
    suggestion: str


class CriticAgentOutput(Record):
    """A critique (REQ-CRITIC-004), with the confidence and the flags of MASIS-CRITIC-STATE."""

    issues: tuple[AnswerIssue, ...]
    overall_quality_score: Share | None
    critique_confidence: Share | None
    critique_reasoning: str
    has_major_issues: bool
    confidence: Share | None
    hallucination_detected: bool
    needs_retry: bool
    unscored: str | None = None


class RevisionAgentOutput(Record):
    """A revision (REQ-CRITIC-011)."""

    revised_answer: str
    changes_explanation: str
    updated_confidence: Share | None
    issues_addressed: tuple[str, ...]
    preserved_content: tuple[str, ...]


class IterationResult(Record):
    """One iteration of the loop (REQ-CRITIC-020)."""

    iteration_number: int
    answer: str
    quality_score: Share | None
    issues_identified: tuple[AnswerIssue, ...] = Field(
        validation_alias=AliasChoices("issues_identified", "issues")
    )
    changes_made: str
    improvement_delta: float | None


class CriticLoopOutput(Record):
    """The result of the loop. ``termination_reason`` may also be ``cancelled``."""

    final_answer: str
    final_quality_score: Share | None
    iterations: tuple[IterationResult, ...]
    total_iterations: int
    improvement_percentage: float | None
    converged: bool
    termination_reason: TerminationReason


def critique_of(verdict: Critique, issues: Iterable[schema.audit.Issue]) -> CriticAgentOutput:
    """Convert an audit's critique, to which the rules in code were already applied."""
    shared = CriticAgentOutput.model_fields.keys() - {"issues", "unscored"}
    return CriticAgentOutput(
        issues=tuple(AnswerIssue.model_validate(issue, from_attributes=True) for issue in issues),
        unscored=verdict.unscored.reason if verdict.unscored else None,
        **{name: getattr(verdict, name) for name in shared},
    )
