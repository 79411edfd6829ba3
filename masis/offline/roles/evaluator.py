"""The evaluator without a model: four scores from measured quantities, each stored with its
measurements.
"""

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
from masis.offline.roles.verifier import COVERED_FROM
from masis.schema.audit import Claim, ClaimCheck, Critique, JudgedBy, Measurement
from masis.schema.base import Unscored

PARTLY = 0.5
UNDECIDED = 0.5
"""How grounded a claim counts that could not be decided: neither confirmed nor wrong."""
_RIGHT = {"supports": 1.0, "redundant": 1.0, "partly_supports": 1.0, "unchecked": UNDECIDED}
RELEVANT_FROM = 0.5
"""A passage is relevant to a claim from this share of its words on."""


class OfflineEvaluator:
    """Scores by measurement; an answer without anything to measure is left unscored."""

    @property
    def judged_by(self) -> JudgedBy:
        """No language model."""
        return JUDGED_BY

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """Score faithfulness from the claims, relevance and completeness from the question,
        reasoning from form.
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
    """Return the mean over the claims: how far the evidence supports each, a half where that could
    not be confirmed.

    A page must not say more than was checked: an answer of which one claim in seven is confirmed is
    not faithful, and not unfaithful either. None where no claim could be checked against text at
    all.
    """
    checked = [check for check in checks if check.support is not None]
    return mean(claim_support(check) for check in checked) if checked else None


def claim_support(check: ClaimCheck) -> float:
    """Return 1 for a supported claim, at least half for a part, half for one that could not be
    decided, at most half for an unsupported one, 0 if contradicted.
    """
    support = check.support or 0.0
    return {
        "supported": 1.0,
        "contradicted": 0.0,
        "unverifiable": UNDECIDED,
        "partial": max(PARTLY, support),
    }.get(check.verdict, min(PARTLY, support))


def faithfulness(context: AuditContext) -> tuple[Measurement, ...] | None:
    """Score faithfulness: 1 where cited evidence supports every claim (MASIS-EVAL-P3). None without
    a claim.
    """
    grounded = groundedness(context.claims)
    if grounded is None:
        return None
    right = mean(
        (_RIGHT.get(r.finding, 0.0) for check in context.claims for r in check.references),
        empty=UNDECIDED,
    )
    return (
        measurement(
            "grounded claims",
            grounded,
            "mean support of the claims, a half where it could not be confirmed",
        ),
        measurement(
            "right references",
            right,
            "share of references whose chunk supports the sentence, a half where it could not be"
            " confirmed",
        ),
        measurement("score", 0.85 * grounded + 0.15 * right, "0.85 x grounded + 0.15 x references"),
    )


def relevance(context: AuditContext) -> tuple[Measurement, ...]:
    """Score whether the answer is about the question, by its words or by the evidence
    it rests on.
    """
    met = share_met(query_terms(context.query), stems(context.answer))
    topic = stems(context.query)
    on_topic = mean(
        bool(topic & stems(check.claim.text))
        or any(quote.score >= RELEVANT_FROM for quote in check.quotes)
        for check in context.claims
    )
    return (
        measurement("question met", met, "share of the question's content words in the answer"),
        measurement("on topic", on_topic, "share of claims that are about the question"),
        measurement("score", 0.3 * met + 0.7 * on_topic, "0.3 x question met + 0.7 x on topic"),
    )


def completeness(context: AuditContext) -> tuple[Measurement, ...]:
    """Score how much of the evidence on the question the answer covers, by half where what covers
    it is unconfirmed.
    """
    points = key_points(context.query, index_of(context.evidence))
    weights = [point.relevance for point in points]

    def covered_by(text: str) -> float:
        own = stems(text)
        parts = [
            min(1.0, share_covered(point.passage, own) / COVERED_FROM) * point.relevance
            for point in points
        ]
        return sum(parts) / sum(weights) if weights else share_met(query_terms(context.query), own)

    confirmed = covered_by(" ".join(check.claim.text for check in context.claims if check.verified))
    covered = confirmed + UNDECIDED * max(0.0, covered_by(context.answer) - confirmed)
    return (
        measurement("key points", float(len(points)), "passages that the question asks for"),
        measurement(
            "score",
            covered,
            "share of the key points covered, by relevance; half where the claims are not"
            " confirmed",
        ),
    )


# How an answer is argued, as far as form shows it: repeats, conclusions without support, run-on
# sentences.

CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|consequently|as a result|it follows that|this"
    r" (?:proves|means|shows) that)\b",
    re.I,
)
LONG_WORDS = 60
REPEATED = 0.85


def reasoning_quality(context: AuditContext) -> tuple[Measurement, ...]:
    """Score reasoning as 1 less its flaws: repeats, unsupported conclusions, run-on sentences,
    self-contradiction.
    """
    texts = [
        sentence.text
        for sentence in context.citation_audit.sentences
        if sentence.status != "exempt"
    ]
    conclusions = [check for check in context.claims if CONCLUDES.search(check.claim.text)]
    flaws = (
        measurement(
            "repeats",
            0.5 * mean(_is_repeated(texts)),
            "half the share of sentences that say the same again",
        ),
        measurement(
            "conclusions without ground",
            0.5
            * mean(not check.verified for check in conclusions if check.verdict != "unverifiable"),
            "half the share of conclusions that the evidence does not support",
        ),
        measurement(
            "run-on sentences",
            0.3 * mean(len(text.split()) > LONG_WORDS for text in texts),
            f"0.3 x the share of sentences over {LONG_WORDS} words",
        ),
        measurement(
            "denied claims",
            0.4 * mean(check.verdict == "contradicted" for check in context.claims),
            "0.4 x the share of claims that the evidence contradicts",
        ),
    )
    lost = sum(flaw.value for flaw in flaws)
    return (*flaws, measurement("score", max(0.0, 1.0 - lost), "1 less the shares above"))


def unsupported_conclusions(checks: tuple[ClaimCheck, ...]) -> tuple[ClaimCheck, ...]:
    """Return the claims that draw a conclusion which the evidence does not support."""
    return tuple(
        check
        for check in checks
        if CONCLUDES.search(check.claim.text) and check.verdict in ("unsupported", "partial")
    )


def _is_repeated(texts: list[str]) -> list[bool]:
    before: list[frozenset[str]] = []
    found = []
    for text in texts:
        own = stems(plain_text(Claim(text=text)))
        found.append(
            any(own and len(own & other) / len(own | other) >= REPEATED for other in before)
        )
        before.append(own)
    return found
