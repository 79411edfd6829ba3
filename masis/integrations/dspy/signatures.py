"""The two tasks as typed signatures: what goes in, what a model is to hand in, and the instructions that stand.

The instructions are those of ``masis/llm/roles/prompts``, so that a critic which nobody compiled asks what the
built-in one asks; an optimiser puts others in their place, or demonstrations before them.
"""

from __future__ import annotations

from typing import Any

import dspy

from masis.integrations.dspy.contracts import EvidenceChunk
from masis.llm.roles.prompting import load
from masis.llm.roles.replies import ChangeMade, CritiqueReply, RaisedIssue, Rejected, Reply, RevisionReply

CRITIC_PROMPT, REVISER_PROMPT = "critic", "reviser"


class Critique(dspy.Signature):
    """The instructions are those of ``prompts/critic.md``."""

    original_query: str = dspy.InputField()
    evidence_chunks: list[EvidenceChunk] = dspy.InputField()
    answer: str = dspy.InputField()
    reasoning_steps: list[str] = dspy.InputField()

    critique_reasoning: str = dspy.OutputField()
    issues: list[RaisedIssue] = dspy.OutputField()
    conflicting_evidence: list[str] = dspy.OutputField()
    hallucination_detected: bool = dspy.OutputField()
    needs_retry: bool = dspy.OutputField()
    confidence: Any = dspy.OutputField()
    overall_quality_score: Any = dspy.OutputField()
    critique_confidence: Any = dspy.OutputField()


class Revise(dspy.Signature):
    """The instructions are those of ``prompts/reviser.md``."""

    original_query: str = dspy.InputField()
    evidence_chunks: list[EvidenceChunk] = dspy.InputField()
    original_answer: str = dspy.InputField()
    issues: list[dict[str, Any]] = dspy.InputField()
    critique: dict[str, Any] = dspy.InputField()

    rejected: list[Rejected] = dspy.OutputField()
    changes: list[ChangeMade] = dspy.OutputField()
    revised_answer: str = dspy.OutputField()
    updated_confidence: Any = dspy.OutputField()


def shape_of(signature: Any) -> type[Reply]:
    """The record that a reply to a signature is read into. Raises TypeError for a signature that is not ours."""
    for shape in (CritiqueReply, RevisionReply):
        if set(signature.output_fields) == set(shape.model_fields):
            return shape
    raise TypeError(f"{signature.__name__}: asks for other fields than a critique or a revision has")


def critique_task() -> Any:
    """The critic's task with the instructions that stand."""
    return Critique.with_instructions(load(CRITIC_PROMPT).before)


def revision_task() -> Any:
    """The reviser's task with the instructions that stand."""
    return Revise.with_instructions(load(REVISER_PROMPT).before)
