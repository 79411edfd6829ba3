"""Critique: a critic's judgement of an answer, and the rules in code around it.

Confidence is normalized (MASIS-CRITIC-P5) and multiplied by the penalty factor (MASIS-CRITIC-P6).
Fabricated references (MASIS-CRITIC-P3) and open issues force the flags for hallucination and retry.
The result has the fields of CRITIC-LOOP-CRITIC-OUTPUT: issues, quality score, confidence in the
critique, ``has_major_issues``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from masis.audit.context import AuditContext
from masis.audit.measures.scores import multiply_score, score_of
from masis.schema.audit import CitationAudit, Critique, Issue, JudgedBy, Measurement, Score
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.judge import HouseRuling
from masis.schema.penalties import penalty_causes
from masis.schema.rules import IssueType

NOT_RUN = Unscored(reason="the critic was not run: the depth of the audit is quick")
"""The result if no critique was requested, which is neither a failure nor a score."""


class RawIssue(NamedTuple):
    """One issue from the critic. ``quote`` must be in the answer word for word.

    ``house_rule`` is the id of the team's rule that the critic names (``house_rules.py``).
    """

    type: IssueType
    rule: str
    severity: Severity
    description: str
    reason: str
    suggestion: str
    quote: str | None = None
    evidence_ids: tuple[str, ...] = ()
    house_rule: str = ""


class CritiqueJudgement(NamedTuple):
    """The critic's judgement before any rule in code, with unchanged numbers (0.85, 85 or invalid).

    ``hallucination_detected`` and ``needs_retry`` are the critic's own flags, which can only add to
    those that follow from the issues.
    """

    confidence: Any
    hallucination_detected: bool
    needs_retry: bool
    overall_quality_score: Any
    critique_confidence: Any
    critique_reasoning: str
    raw_issues: tuple[RawIssue, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    logical_gaps: tuple[str, ...] = ()
    conflicting_evidence: tuple[str, ...] = ()
    measurements: dict[str, tuple[Measurement, ...]] = {}  # noqa: RUF012 - never mutated
    notes: tuple[str, ...] = ()
    samples: dict[str, tuple[float | None, ...]] = {}  # noqa: RUF012 - never mutated
    hallucination_votes: tuple[int, int] | None = None


ALWAYS_HALLUCINATION: frozenset[IssueType] = frozenset({"hallucination", "contradiction"})
"""Types of issues that always mean that the evidence lacks or contradicts a statement."""
SOURCE_CONFLICT = "source_conflict"
"""The rule of an issue about chunks that disagree; the answer follows one of them."""


def is_hallucination(type_: IssueType, rule: str, severity: Severity) -> bool:
    """Return whether an issue says that the answer states something that isn't in the evidence.

    Unsupported statements count only if they are serious; a sentence without a citation is one of
    severity medium.
    """
    if type_ == "unsupported":
        return severity in ("critical", "high")
    return type_ in ALWAYS_HALLUCINATION and rule != SOURCE_CONFLICT


def reports_hallucination(judgement: CritiqueJudgement) -> bool:
    """Return whether the critic reports a hallucination, by its flag or by one of its issues."""
    by_issue = (
        is_hallucination(raw_issue.type, raw_issue.rule, raw_issue.severity)
        for raw_issue in judgement.raw_issues
    )
    return judgement.hallucination_detected or any(by_issue)


class Critic(Protocol):
    """Audits an answer strictly by the evidence; a failure is returned, not raised."""

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of its prompt or rules."""

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return a judgement, or the reason why there is none."""


def apply_critique_rules(
    judgement: CritiqueJudgement | Unscored,
    audit: CitationAudit,
    issues: Sequence[Issue],
    judged_by: JudgedBy,
    notes: tuple[str, ...] = (),
    rulings: tuple[HouseRuling, ...] = (),
) -> Critique:
    """Apply the rules to the critic's judgement.

    Penalties lower the confidence, and the issues set the flags. If the critic failed, the flags
    still follow from the other issues.

    Args:
        judgement: The critic's judgement, or the reason why there is none.
        audit: The citation audit of the answer.
        issues: The merged issues of citations, claims and critic, with earlier ones still open.
        judged_by: The critic's model and version.
        notes: Further notes.
        rulings: What house rules changed in the critic's issues.

    """
    has_major_issues = any(issue.major for issue in issues)
    has_hallucination = audit.hallucination_detected or any(
        is_hallucination(issue.type, issue.rule, issue.severity) for issue in issues
    )
    needs_retry = audit.needs_retry or has_major_issues
    if isinstance(judgement, Unscored):
        return Critique(
            confidence=None,
            hallucination_detected=has_hallucination,
            needs_retry=needs_retry,
            overall_quality_score=None,
            critique_confidence=None,
            critique_reasoning="",
            has_major_issues=has_major_issues,
            notes=notes,
            judged_by=judged_by,
            unscored=judgement,
        )
    confidence = _lower_confidence(score_of("confidence", judgement), audit)
    quality, critique_confidence = (
        score_of("overall_quality_score", judgement),
        score_of("critique_confidence", judgement),
    )
    return Critique(
        confidence=confidence.value,
        hallucination_detected=judgement.hallucination_detected or has_hallucination,
        unsupported_claims=judgement.unsupported_claims,
        logical_gaps=judgement.logical_gaps,
        conflicting_evidence=judgement.conflicting_evidence,
        needs_retry=judgement.needs_retry or needs_retry,
        overall_quality_score=quality.value,
        critique_confidence=critique_confidence.value,
        critique_reasoning=judgement.critique_reasoning,
        has_major_issues=has_major_issues,
        notes=(*judgement.notes, *notes),
        rulings=rulings,
        scores=(confidence, quality, critique_confidence),
        hallucination_votes=judgement.hallucination_votes,
        judged_by=judged_by,
    )


def quality_score(critique: Critique, audit: CitationAudit) -> float | None:
    """Return an iteration's quality: the critic's own score times the penalty factor."""
    if critique.overall_quality_score is None:
        return None
    return critique.overall_quality_score * audit.penalty_factor


def _lower_confidence(confidence: Score, audit: CitationAudit) -> Score:
    explanation = f"× {audit.penalty_factor:g} for {' and '.join(penalty_causes(audit))}"
    return multiply_score(
        confidence, audit.penalty_factor, rule="citation_penalty", why=explanation
    )
