"""The offline evaluator, which computes four scores and stores the measurements behind each."""

from __future__ import annotations

import re
from typing import Any

from masis.audit.context import AuditContext
from masis.audit.evaluation import EvaluationJudgement
from masis.offline.matching.key_points import (
    JUDGED_BY,
    index_of,
    key_points,
    mean,
    measurement,
    plain_text,
    query_terms,
    share_covered,
    share_met,
    stems,
)
from masis.offline.roles.verifier import COVERED_SHARE
from masis.schema.audit import Claim, ClaimCheck, Critique, JudgedBy, Measurement
from masis.schema.base import Unscored

PARTIAL_SUPPORT = 0.5
"""Minimum support of a claim that is partly supported."""
UNDECIDED_SUPPORT = 0.5
"""The support of a claim that is neither confirmed nor shown to be wrong."""
# How much a reference counts by its finding. A finding that isn't listed counts 0.
_REFERENCE_SCORES = {
    "supports": 1.0,
    "redundant": 1.0,
    "partly_supports": 1.0,
    "unchecked": UNDECIDED_SUPPORT,
}
RELEVANT_SHARE = 0.5
"""Minimum share of a claim's words in a passage that makes the passage relevant to it."""


class OfflineEvaluator:
    """Scores an answer by measurements, or leaves it unscored if there is nothing to measure."""

    @property
    def judged_by(self) -> JudgedBy:
        """The offline rules and their version."""
        return JUDGED_BY

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """Return the four scores, or `Unscored` if no claim could be checked.

        Faithfulness is computed from the claims, relevance and completeness from the question, and
        reasoning quality from the form of the answer.
        """
        faithful = faithfulness(context)
        if faithful is None:
            return Unscored(reason="no claim of the answer could be checked against text")
        measurements = {
            "faithfulness": faithful,
            "relevance": relevance(context),
            "completeness": completeness(context),
            "reasoning_quality": reasoning_quality(context),
        }
        scores: dict[str, Any] = {
            name: min(1.0, score[-1].value) for name, score in measurements.items()
        }
        return EvaluationJudgement(
            **scores,
            improvement_suggestions=tuple(
                dict.fromkeys(issue.suggestion for issue in context.issues)
            )[:8],
            measurements=measurements,
        )


def groundedness(checks: tuple[ClaimCheck, ...]) -> float | None:
    """Return the mean support of the claims, or None if no claim could be checked against text.

    A claim that isn't confirmed counts half. If one claim in seven is confirmed, the checks have
    shown neither that the answer is faithful nor that it isn't, so the score is near the middle.
    """
    checked = [check for check in checks if check.support is not None]
    return mean(claim_support(check) for check in checked) if checked else None


def claim_support(check: ClaimCheck) -> float:
    """Return the support of a claim by its verdict, from 0 to 1.

    It's 1 if supported, at least 0.5 if partial, 0.5 if unverifiable, at most 0.5 if unsupported,
    and 0 if contradicted.
    """
    support = check.support or 0.0
    return {
        "supported": 1.0,
        "contradicted": 0.0,
        "unverifiable": UNDECIDED_SUPPORT,
        "partial": max(PARTIAL_SUPPORT, support),
    }.get(check.verdict, min(PARTIAL_SUPPORT, support))


def faithfulness(context: AuditContext) -> tuple[Measurement, ...] | None:
    """Score faithfulness, or return None if no claim could be checked.

    The score is 1 if the cited evidence supports every claim (MASIS-EVAL-P3).
    """
    claim_score = groundedness(context.claims)
    if claim_score is None:
        return None
    reference_score = mean(
        (
            _REFERENCE_SCORES.get(reference.finding, 0.0)
            for check in context.claims
            for reference in check.references
        ),
        empty=UNDECIDED_SUPPORT,
    )
    return (
        measurement(
            "grounded claims",
            claim_score,
            "mean support of the claims; a claim that isn't confirmed counts half",
        ),
        measurement(
            "right references",
            reference_score,
            "share of references whose chunk supports the sentence; a reference that isn't"
            " confirmed counts half",
        ),
        measurement(
            "score",
            0.85 * claim_score + 0.15 * reference_score,
            "0.85 x grounded + 0.15 x references",
        ),
    )


def relevance(context: AuditContext) -> tuple[Measurement, ...]:
    """Score whether the answer is about the question.

    A claim is about the question if it has one of the question's words, or if a passage of the
    evidence is relevant to it.
    """
    question_share = share_met(query_terms(context.query), stems(context.answer))
    topic = stems(context.query)
    on_topic_share = mean(
        bool(topic & stems(check.claim.text))
        or any(quote.score >= RELEVANT_SHARE for quote in check.quotes)
        for check in context.claims
    )
    return (
        measurement(
            "question met", question_share, "share of the question's content words in the answer"
        ),
        measurement("on topic", on_topic_share, "share of claims that are about the question"),
        measurement(
            "score",
            0.3 * question_share + 0.7 * on_topic_share,
            "0.3 x question met + 0.7 x on topic",
        ),
    )


def completeness(context: AuditContext) -> tuple[Measurement, ...]:
    """Score how much of the question's key points the answer covers.

    Coverage by claims that aren't confirmed counts half.
    """
    points = key_points(context.query, index_of(context.evidence))
    weights = [point.relevance for point in points]

    def covered_by(text: str) -> float:
        text_stems = stems(text)
        parts = [
            min(1.0, share_covered(point.passage, text_stems) / COVERED_SHARE) * point.relevance
            for point in points
        ]
        return (
            sum(parts) / sum(weights)
            if weights
            else share_met(query_terms(context.query), text_stems)
        )

    confirmed = covered_by(" ".join(check.claim.text for check in context.claims if check.verified))
    coverage = confirmed + UNDECIDED_SUPPORT * max(0.0, covered_by(context.answer) - confirmed)
    return (
        measurement(
            "key points", float(len(points)), "number of passages that answer the question"
        ),
        measurement(
            "score",
            coverage,
            "share of the key points that the answer covers, weighted by relevance; coverage by"
            " unconfirmed claims counts half",
        ),
    )


# Reasoning quality is measured by form only: repeats, unsupported conclusions, run-on sentences.

# Matches words that announce a conclusion: "therefore", "it follows that", "this means that". "This
# means war" doesn't match.
CONCLUSION_WORDS = re.compile(
    r"\b(?:therefore|thus|hence|consequently|as a result|it follows that|this"
    r" (?:proves|means|shows) that)\b",
    re.I,
)
MAX_SENTENCE_WORDS = 60
"""A sentence with more words than this is a run-on sentence."""
REPEATED_SHARE = 0.85
"""Minimum share of stems in common (Jaccard index) that makes a sentence a repeat."""


def reasoning_quality(context: AuditContext) -> tuple[Measurement, ...]:
    """Score reasoning as 1 minus its flaws.

    The flaws are repeats, unsupported conclusions, run-on sentences and contradicted claims.
    """
    texts = [
        sentence.text
        for sentence in context.citation_audit.sentences
        if sentence.status != "exempt"
    ]
    conclusions = [check for check in context.claims if CONCLUSION_WORDS.search(check.claim.text)]
    flaws = (
        measurement(
            "repeats",
            0.5 * mean(_find_repeats(texts)),
            "0.5 x the share of sentences that repeat an earlier one",
        ),
        measurement(
            "conclusions without ground",
            0.5
            * mean(not check.verified for check in conclusions if check.verdict != "unverifiable"),
            "0.5 x the share of conclusions that the evidence doesn't support",
        ),
        measurement(
            "run-on sentences",
            0.3 * mean(len(text.split()) > MAX_SENTENCE_WORDS for text in texts),
            f"0.3 x the share of sentences over {MAX_SENTENCE_WORDS} words",
        ),
        measurement(
            "denied claims",
            0.4 * mean(check.verdict == "contradicted" for check in context.claims),
            "0.4 x the share of claims that the evidence contradicts",
        ),
    )
    deduction = sum(flaw.value for flaw in flaws)
    return (
        *flaws,
        measurement("score", max(0.0, 1.0 - deduction), "1 - the sum of the values above"),
    )


def unsupported_conclusions(checks: tuple[ClaimCheck, ...]) -> tuple[ClaimCheck, ...]:
    """Return the claims that draw a conclusion that the evidence doesn't support."""
    return tuple(
        check
        for check in checks
        if CONCLUSION_WORDS.search(check.claim.text) and check.verdict in ("unsupported", "partial")
    )


def _find_repeats(texts: list[str]) -> list[bool]:
    """Return for each sentence whether it repeats an earlier one."""
    earlier_stems: list[frozenset[str]] = []
    is_repeat = []
    for text in texts:
        sentence_stems = stems(plain_text(Claim(text=text)))
        is_repeat.append(
            any(
                sentence_stems
                and len(sentence_stems & other) / len(sentence_stems | other) >= REPEATED_SHARE
                for other in earlier_stems
            )
        )
        earlier_stems.append(sentence_stems)
    return is_repeat
