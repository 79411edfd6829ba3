"""Valid model replies, one for each prompt file.

The functions return a new reply each time, so a test can change it.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from masis.llm.roles import replies

PROMPT_OF: dict[type[BaseModel], str] = {
    replies.CheckedClaimsReply: "claims",
    replies.ClaimsReply: "claims_extract",
    replies.VerdictsReply: "claims_verify",
    replies.CompletenessReply: "completeness",
    replies.CritiqueReply: "critic",
    replies.EvaluationReply: "evaluator",
    replies.RevisionReply: "reviser",
    replies.DraftReply: "drafter",
}


def critique(**changes: Any) -> dict[str, Any]:
    """A content critic's reply."""
    return {
        "critique_reasoning": "Every sentence is supported by a chunk.",
        "issues": [],
        "conflicting_evidence": [],
        "confidence": 0.9,
        "overall_quality_score": 0.8,
        "critique_confidence": 0.7,
    } | changes


def critic_issue(**changes: Any) -> dict[str, Any]:
    """One issue in a critic's reply."""
    return {
        "type": "factual",
        "severity": "high",
        "description": "The length is wrong.",
        "reasoning": "chunk_1 says 120 metres.",
        "location": "The bridge is long.",
        "suggestion": "Say 120 metres.",
        "evidence_ids": ["chunk_1"],
    } | changes


def evaluation(**changes: Any) -> dict[str, Any]:
    """A judge's reply."""
    return {
        "faithfulness_reason": "One claim is not supported.",
        "faithfulness": 0.8,
        "relevance_reason": "It answers.",
        "relevance": 0.9,
        "completeness_reason": "The year is left out.",
        "completeness": 0.7,
        "reasoning_quality_reason": "",
        "reasoning_quality": 1.0,
        "improvement_suggestions": ["Name the year."],
    } | changes


def verdict(number: Any = 1, **changes: Any) -> dict[str, Any]:
    """A verdict on the claim with this number."""
    return {
        "number": number,
        "evidence": [chunk_stance(quote="120 metres long")],
        "calculation": "",
        "reasoning": "",
        "verdict": "supported",
        "confidence": 0.9,
    } | changes


def chunk_stance(
    evidence_id: str = "chunk_1", stance: str = "supports", quote: str = "", claim_words: str = ""
) -> dict[str, Any]:
    """The part of a verdict about one chunk."""
    return {
        "evidence_id": evidence_id,
        "stance": stance,
        "quote": quote,
        "claim_words": claim_words,
    }


def listed_claim(sentence: Any = 1, words: str = "", meaning: str = "") -> dict[str, Any]:
    """A claim in a list."""
    return {"sentence": sentence, "words": words, "meaning": meaning}


def judged_claim(
    sentence: Any = 1, words: str = "", meaning: str = "", **changes: Any
) -> dict[str, Any]:
    """A claim in a list with its verdict."""
    claim_verdict = verdict(**changes)
    del claim_verdict["number"]
    return listed_claim(sentence, words, meaning) | claim_verdict


def grade(**changes: Any) -> dict[str, Any]:
    """A grader's reply about a randomized trial."""
    return {
        "relevance_reason": "Meets drug, complaint and people.",
        "relevance_quotes": ["412 adults with headache to aspirin"],
        "relevance_score": 0.9,
        "design_reason": "Allocated at random.",
        "design_quotes": ["randomly assigned"],
        "study_type": "human_rct_drug_intervention",
        "design": "randomised_trial",
        "sample_size_quote": "412 adults",
        "sample_size_reason": "Enough for a trial.",
        "sample_size_adequate": "yes",
        "methodology_reason": "Randomised, with placebo; blinding is not told.",
        "methodology_quotes": ["randomly assigned 412 adults"],
        "methodology_score": 0.75,
        "recommendation": "keep",
    } | changes


def revision(answer: str, **changes: Any) -> dict[str, Any]:
    """A reviser's reply."""
    return {
        "rejected": [],
        "changes": [],
        "revised_answer": answer,
        "updated_confidence": 0.9,
    } | changes


ALL: dict[str, Any] = {
    "claims": {"claims": [judged_claim(1), judged_claim(2)], "missing": []},
    "claims_extract": {"claims": []},
    "claims_verify": {"verdicts": [verdict(1), verdict(2)]},
    "completeness": {"missing": []},
    "critic": critique(),
    "evaluator": evaluation(),
    "reviser": revision("The bridge is 120 metres long."),
    "drafter": {
        "reasoning_steps": ["chunk_1 gives the length."],
        "answer": "It is 120 metres long [chunk_1].",
    },
}
