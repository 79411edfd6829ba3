"""Factories of small records for tests of the audit's steps."""

from __future__ import annotations

from typing import Any

from masis.audit import claims, critique
from masis.audit.citations import audit_citations
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.text.assertions import citations_by_sentence, claim_within
from masis.schema.audit import (
    CitationAudit,
    Claim,
    ClaimCheck,
    Contradiction,
    Critique,
    Issue,
    JudgedBy,
)
from masis.schema.case import Case, Evidence, Severity
from masis.schema.run import Iteration

JUDGED_BY = JudgedBy(model="test", version="1")
EVIDENCE = (
    Evidence(id="chunk_1", text="The bridge is 120 metres long."),
    Evidence(id="chunk_2", text="It opened in 1931."),
)


def case(
    answer: str = "The bridge is 120 metres long [chunk_1].",
    chunk: str = EVIDENCE[0].text,
    **changes: Any,
) -> Case:
    """Return a case whose only chunk supports its answer."""
    values = {"id": "bridge", "query": "How long is the bridge?", "answer": answer}
    return Case.model_validate(values | {"evidence": [{"id": "chunk_1", "text": chunk}]} | changes)


def citations(
    invalid: int = 0, uncited: int = 0, *, has_citations: bool = True, factor: float | None = None
) -> CitationAudit:
    """Return a citation audit with these numbers of fabricated references and uncited sentences."""
    penalty = (0.5 if invalid else 1.0) * (0.9 if uncited and (has_citations or invalid) else 1.0)
    return CitationAudit(
        mode="standard",
        citations=(),
        sentences=(),
        invalid_citations=tuple(f"chunk_{90 + number}" for number in range(invalid)),
        uncited_claims=tuple(f"Sentence {number}." for number in range(uncited)),
        hallucination_detected=invalid > 0,
        needs_retry=invalid > 0,
        penalty_factor=penalty if factor is None else factor,
    )


def judgement(**changes: Any) -> CritiqueJudgement:
    """Return the judgement of a critic without issues."""
    values: dict[str, Any] = {
        "confidence": 0.8,
        "hallucination_detected": False,
        "needs_retry": False,
        "overall_quality_score": 0.8,
        "critique_confidence": 0.9,
        "critique_reasoning": "It is fine.",
    }
    return CritiqueJudgement(**(values | changes))


def issue(severity: Severity = "high", **changes: Any) -> Issue:
    """Return an issue of this severity."""
    values: dict[str, Any] = {
        "id": "i1",
        "key": "k",
        "source": "critic",
        "type": "factual",
        "rule": "test",
        "severity": severity,
        "description": "It is wrong.",
        "reason": "Because.",
        "suggestion": "Fix it.",
    }
    return Issue(**(values | changes))


def check(verdict: str = "supported", support: float | None = 0.9, **changes: Any) -> ClaimCheck:
    """Return a claim with this verdict and support."""
    values: dict[str, Any] = {
        "claim": Claim(text="The bridge is long.", start=0, end=19),
        "verdict": verdict,
        "support": support,
        "confidence": 0.9,
    }
    return ClaimCheck(**(values | changes))


def conflict(claim_words: str, evidence_words: str, **changes: Any) -> Contradiction:
    """Return a contradiction between words of a claim and words of the evidence."""
    values: dict[str, Any] = {
        "kind": "number",
        "claim_start": 0,
        "claim_end": len(claim_words),
        "claim_text": claim_words,
        "evidence_id": "chunk_1",
        "evidence_start": 0,
        "evidence_end": len(evidence_words),
        "evidence_text": evidence_words,
        "reason": "",
    }
    return Contradiction(**(values | changes))


def verdict(
    audit: CitationAudit | None = None, issues: tuple[Issue, ...] = (), **changes: Any
) -> Critique:
    """Return a critique to which the rules have been applied."""
    return critique.apply_critique_rules(
        judgement(**changes), audit or citations(), issues, JUDGED_BY
    )


def iteration(
    number: int = 1, quality: float | None = 0.8, issues: tuple[Issue, ...] = (), **changes: Any
) -> Iteration:
    """Return an iteration with an audited answer of this quality."""
    audit = changes.pop("citation_audit", citations())
    checks = changes.pop("claims", (check(),))
    values: dict[str, Any] = {
        "iteration_number": number,
        "answer": "The bridge is long.",
        "citation_audit": audit,
        "claims": checks,
        "claim_report": claims.report(checks),
        "issues": issues,
        "critique": verdict(audit, issues),
        "quality_score": quality,
        "improvement_delta": None,
    }
    return Iteration(**(values | changes))


def context(**changes: Any) -> AuditContext:
    """Return the input of a role."""
    values: dict[str, Any] = {
        "query": "How long is the bridge?",
        "answer": "The bridge is long.",
        "evidence": EVIDENCE,
        "citation_audit": citations(),
        "claims": (check(),),
        "missing": (),
        "issues": (),
        "iteration_number": 1,
    }
    return AuditContext(**(values | changes))


def iteration_with_claims(answer: str, verdict: str = "supported", **changes: Any) -> Iteration:
    """Return an iteration of this answer, with a claim of this verdict for each sentence."""
    audit = audit_citations(answer, EVIDENCE)
    citations_of = citations_by_sentence(audit)
    checks = tuple(
        check(
            verdict, claim=claim_within(number, sentence.text, sentence.start, citations_of[number])
        )
        for number, sentence in enumerate(audit.sentences)
    )
    return iteration(answer=answer, claims=checks, citation_audit=audit, **changes)
