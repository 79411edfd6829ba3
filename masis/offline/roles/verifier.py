"""The offline verifier, which checks each claim against all evidence and the chunks it cites."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Protocol

from masis.audit.claims import ClaimResults, one_check_each
from masis.audit.control.run_control import CancelToken
from masis.audit.markers import bracketed_numbers, without_brackets
from masis.audit.text.assertions import sentence_claims
from masis.offline.matching.evidence_index import TOO_LONG, ClaimAssessment
from masis.offline.matching.key_points import (
    OFFLINE,
    aspects,
    index_of,
    key_points,
    plain_text,
    share_covered,
    stems,
)
from masis.schema.audit import (
    AbsentFigure,
    CitationAudit,
    Claim,
    ClaimCheck,
    Contradiction,
    MissingPoint,
    Quote,
    ReferenceCheck,
    ReferenceFinding,
)
from masis.schema.case import Evidence
from masis.schema.wording import describe_absent_figures

COVERED_SHARE = 0.45
"""Minimum share of a passage's words in the answer that makes the passage covered."""
MISSING_SHARE = 0.35
"""A key point is missing if the answer has less than this share of its words."""
MAX_MISSING_POINTS = 3
"""Maximum number of missing points of an answer."""


class OfflineVerifier:
    """Confirms copies of the evidence, flags wrong figures and quotations, and otherwise abstains.

    See docs/models.md. A long answer takes seconds, so it checks for cancellation between claims.
    """

    languages: ClassVar[frozenset[str] | None] = frozenset({"en"})

    def __init__(self, cancellation: CancelToken | None = None) -> None:
        self.cancellation = cancellation or CancelToken()

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return a claim for each sentence that asserts something."""
        return sentence_claims(audit)

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order.

        Args:
            claims: The claims.
            evidence: The chunks to check against.
            question: The question, if the claims are consecutive sentences of an answer to it.
                Without a question, the claims are independent of each other.

        Raises:
            Cancelled: The run was cancelled.

        """
        index = index_of(evidence)
        texts = {chunk.id: chunk.text for chunk in evidence}
        checks, previous_text = [], ""
        for claim in claims:
            self.cancellation.check()
            assess = partial(index.assess, question=question, before=previous_text)
            checks.append(_check_claim(claim, assess, texts))
            previous_text = plain_text(claim) if question else ""
        return tuple(checks)

    def absent_figures(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> list[tuple[AbsentFigure, ...]]:
        """Return the figures of each claim that the evidence lacks: those of ``verify``, which
        takes ten times as long.

        Raises:
            Cancelled: The run was cancelled.

        """
        index = index_of(evidence)
        absent = []
        for claim in claims:
            self.cancellation.check()
            figures = index.absent_figures(plain_text(claim))
            # Brackets that cite no chunk may be a value that the evidence has too (_check_claim).
            if figures and len(claim.markers) > len(claim.cited) and index.has_copy(claim.text):
                figures = ()
            absent.append(figures)
        return absent

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Check every claim as part of an answer.

        If ``completeness`` is set, also list the points that the answer misses.
        """
        checks = one_check_each(claims, self.verify(claims, evidence, query))
        return ClaimResults(
            checks, self.missing(query, answer, checks, evidence) if completeness else ()
        )

    def missing(
        self, query: str, answer: str, claims: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[MissingPoint, ...]:
        """Return the points of the question that the evidence covers and the answer doesn't.

        Names and numbers of the question don't count, because an answer needn't repeat them.
        """
        answer_stems = stems(answer)
        # Passages that claims quote are covered, even if the answer uses other words.
        quoted_positions = {
            (quote.evidence_id, quote.start) for check in claims for quote in check.quotes
        }
        points: dict[tuple[str, int], MissingPoint] = {}
        for aspect in aspects(query):
            if not aspect.isdisjoint(answer_stems):
                continue
            for point in key_points(query, index_of(evidence)):
                passage = point.passage
                position = (passage.evidence_id, passage.start)
                if (
                    not aspect.isdisjoint(stems(passage.text))
                    and position not in quoted_positions
                    and share_covered(passage, answer_stems) < MISSING_SHARE
                ):
                    points[position] = MissingPoint(
                        description=" ".join(passage.text.split()),
                        evidence_id=passage.evidence_id,
                        start=passage.start,
                        end=passage.end,
                        weight=round(point.relevance, 4),
                    )
                    break
        return tuple(points.values())[:MAX_MISSING_POINTS]


class _Assess(Protocol):
    """Checks a claim, given the question and the sentence before it in the answer."""

    def __call__(self, claim: str, only: Collection[str] | None = None) -> ClaimAssessment: ...


def _check_claim(claim: Claim, assess: _Assess, texts: Mapping[str, str]) -> ClaimCheck:
    text = plain_text(claim)
    assessment = assess(text)
    if assessment.verdict != "supported" and len(claim.markers) > len(claim.cited):
        # Brackets that cite no chunk may be a value that the evidence has too: "a CI of [2, 8]".
        literal = assess(claim.text)
        assessment = literal if literal.verdict == "supported" else assessment
    if assessment.verdict == "supported" and _has_other_brackets(claim, assessment):
        assessment = replace(
            assessment, verdict="unverifiable", confidence=0.5, vetoes=("bracketed",)
        )
    sources: Sequence[Contradiction | Quote] = ()
    if assessment.verdict in ("contradicted", "supported"):
        sources = (
            assessment.signals if assessment.verdict == "contradicted" else assessment.supporting
        )
    return ClaimCheck(
        claim=claim,
        verdict=assessment.verdict,
        support=assessment.support,
        confidence=assessment.confidence,
        sources=tuple(dict.fromkeys(source.evidence_id for source in sources)),
        quotes=assessment.supporting,
        contradictions=assessment.signals,
        figures=assessment.figures,
        references=tuple(
            _check_reference(cited, claim.cited, text, assessment, assess, texts)
            for cited in claim.cited
        ),
        uncovered=assessment.uncovered,
        issue=_claim_issue(text, assessment),
        judged_by=OFFLINE,
    )


def _has_other_brackets(claim: Claim, assessment: ClaimAssessment) -> bool:
    """Return whether a claim and its evidence have different numbers in brackets.

    Only brackets that cite no chunk count. Their number may be a value instead of an invalid
    citation: "Turn to verse [12]." Directly after a figure or a letter, as in "10[6]", it's
    probably an exponent or index, so the evidence must have it.
    """
    if len(claim.markers) <= len(claim.cited):
        return False
    claim_numbers = bracketed_numbers(claim.text)
    evidence_numbers = frozenset().union(
        *(bracketed_numbers(quote.text) for quote in assessment.supporting)
    )
    exponents = (
        without_brackets(claim.text[start:end])
        for start, end in claim.markers
        if _FIGURE_OR_LETTER.search(claim.text, max(0, start - 2), start)
    )
    return bool(claim_numbers and evidence_numbers - claim_numbers) or any(
        number not in evidence_numbers for number in exponents
    )


# Matches a digit or a single letter at the end: "10", "see x". It doesn't match "word".
_FIGURE_OR_LETTER = re.compile(r"(?:\d|\b[^\W\d_])$")


def _claim_issue(text: str, assessment: ClaimAssessment) -> str | None:
    if assessment.verdict == "supported":
        return None
    if assessment.verdict in ("contradicted", "unsupported"):
        reasons = "; ".join(
            dict.fromkeys(signal.reason for signal in (*assessment.signals, *assessment.absent)[:3])
        )
        return f"{reasons[:1].upper()}{reasons[1:]}."
    if TOO_LONG in assessment.vetoes:
        return (
            f"This claim has {len(text):,} characters, which is too long to compare with evidence"
            " of this length."
        )
    if assessment.support is None:
        return "There is nothing to check this against."
    if assessment.figures:
        return f"{describe_absent_figures([figure.claim_text for figure in assessment.figures])}."
    if assessment.vetoes:
        return (
            "Not confirmed. The evidence has these words, but"
            f" {'; '.join(_VETO_REASONS[code] for code in assessment.vetoes)}."
        )
    if assessment.change is not None:
        claim_words, evidence_words = (
            f"“{words}”" if words else "nothing" for words in assessment.change
        )
        return (
            f"Not confirmed. The nearest sentence of the evidence has {evidence_words} where the"
            f" claim has {claim_words}."
        )
    return (
        "Not confirmed. The offline checks found no sentence of the evidence in these words. It may"
        " say this in other words, or not at all."
    )


_VETO_REASONS = {
    "cut": "the sentence may be cut off in this chunk",
    "quoted": "they are a quotation there",
    "introduced": "the words before them may mean that they aren't a statement of fact",
    "qualified": "the next sentence limits or retracts them",
    "disputed": "another passage has a different figure or an opposite word",
    "bracketed": "a number in brackets differs",
    "subject": "they may be about another subject",
}


def _check_reference(
    cited: str,
    all_cited: tuple[str, ...],
    text: str,
    assessment: ClaimAssessment,
    assess: _Assess,
    texts: Mapping[str, str],
) -> ReferenceCheck:
    """Check whether the chunk of one reference supports the sentence.

    The chunk may also be redundant, or another chunk may be the source.
    """

    def finding(
        name: ReferenceFinding, support: float | None, reason: str, better: str | None = None
    ) -> ReferenceCheck:
        return ReferenceCheck(
            evidence_id=cited, finding=name, support=support, better=better, reason=reason
        )

    if not texts[cited].strip():
        return finding("unchecked", None, "This chunk has no text to check against.")
    assessment_of_chunk = assess(text, only=(cited,))
    if assessment_of_chunk.verdict == "supported":
        return finding("supports", assessment_of_chunk.support, "It supports this.")
    others = tuple(other for other in all_cited if other != cited)
    if others and assess(text, only=others).verdict == "supported":
        return finding(
            "redundant",
            assessment_of_chunk.support,
            f"{' and '.join(others)} support this without it.",
        )
    copied_ids = [
        passage.evidence_id
        for passage in assessment.supporting
        if passage.evidence_id not in all_cited
    ]
    if assessment.verdict == "supported" and copied_ids:
        return finding(
            "misattributed",
            assessment_of_chunk.support,
            f"It isn't confirmed that {cited} supports this; {copied_ids[0]} does.",
            copied_ids[0],
        )
    if assessment_of_chunk.signals:
        return finding(
            "contradicts", assessment_of_chunk.support, assessment_of_chunk.signals[0].reason
        )
    if assessment.verdict == "unsupported":
        return finding("unsupported", assessment_of_chunk.support, assessment.absent[0].reason)
    # A figure that isn't in this chunk may be in another one that the sentence cites.
    return finding(
        "unchecked", assessment_of_chunk.support, "Whether it supports this could not be confirmed."
    )
