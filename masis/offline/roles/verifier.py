"""The verifier without a model: each claim is checked against all evidence and against the chunks
it cites.
"""

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

COVERED_FROM = 0.45
"""An answer covers a passage from this share of its words on."""
MISSING_BELOW = 0.35
MISSING_MOST = 3


class OfflineVerifier:
    """A screen: it confirms copies of the evidence, flags figures and quotations that no evidence
    has, abstains else.

    See docs/models.md. A long answer takes seconds: between claims it looks whether the run was
    cancelled.
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
        """Return one check for each claim, in order. Raises Cancelled once the run was cancelled.

        ``question`` is what the claims answer, where they belong to an answer; else they have
        nothing to do with each other.
        """
        index = index_of(evidence)
        texts = {chunk.id: chunk.text for chunk in evidence}
        checks, before = [], ""
        for claim in claims:
            self.cancellation.check()
            assess = partial(index.assess, question=question, before=before)
            checks.append(_check_claim(claim, assess, texts))
            before = plain_text(claim) if question else ""
        return tuple(checks)

    def check(
        self,
        claims: Sequence[Claim],
        query: str,
        answer: str,
        evidence: Sequence[Evidence],
        *,
        completeness: bool,
    ) -> ClaimResults:
        """Check every claim as part of an answer to the question, and list the points left out
        where asked.
        """
        checks = one_check_each(claims, self.verify(claims, evidence, query))
        return ClaimResults(
            checks, self.missing(query, answer, checks, evidence) if completeness else ()
        )

    def missing(
        self, query: str, answer: str, claims: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[MissingPoint, ...]:
        """Return the points of the question that the evidence covers and the answer does not, each
        with its passage.

        Names and numbers of the question don't count: an answer need not repeat them.
        """
        text = stems(answer)
        bearing = {(quote.evidence_id, quote.start) for check in claims for quote in check.quotes}
        points: dict[tuple[str, int], MissingPoint] = {}
        for aspect in aspects(query):
            if not aspect.isdisjoint(text):
                continue
            for point in key_points(query, index_of(evidence)):
                passage = point.passage
                place = (passage.evidence_id, passage.start)
                if (
                    not aspect.isdisjoint(stems(passage.text))
                    and place not in bearing
                    and share_covered(passage, text) < MISSING_BELOW
                ):
                    points[place] = MissingPoint(
                        description=" ".join(passage.text.split()),
                        evidence_id=passage.evidence_id,
                        start=passage.start,
                        end=passage.end,
                        weight=round(point.relevance, 4),
                    )
                    break
        return tuple(points.values())[:MISSING_MOST]


class _Assess(Protocol):
    """Judges a claim, knowing the question and what the answer says before it."""

    def __call__(self, claim: str, only: Collection[str] | None = None) -> ClaimAssessment: ...


def _check_claim(claim: Claim, assess: _Assess, texts: Mapping[str, str]) -> ClaimCheck:
    text = plain_text(claim)
    whole = assess(text)
    if whole.verdict != "supported" and len(claim.markers) > len(claim.cited):
        # What cites nothing may be a value that the evidence has as well: "a CI of [2, 8] in men".
        literal = assess(claim.text)
        whole = literal if literal.verdict == "supported" else whole
    if whole.verdict == "supported" and _has_other_brackets(claim, whole):
        whole = replace(whole, verdict="unverifiable", confidence=0.5, vetoes=("bracketed",))
    sources: Sequence[Contradiction | Quote] = ()
    if whole.verdict in ("contradicted", "supported"):
        sources = whole.signals if whole.verdict == "contradicted" else whole.supporting
    return ClaimCheck(
        claim=claim,
        verdict=whole.verdict,
        support=whole.support,
        confidence=whole.confidence,
        sources=tuple(dict.fromkeys(source.evidence_id for source in sources)),
        quotes=whole.supporting,
        contradictions=whole.signals,
        figures=whole.figures,
        references=tuple(
            _check_reference(cited, claim.cited, text, whole, assess, texts)
            for cited in claim.cited
        ),
        uncovered=whole.uncovered,
        issue=_claim_issue(text, whole),
        judged_by=OFFLINE,
    )


def _has_other_brackets(claim: Claim, whole: ClaimAssessment) -> bool:
    """Return whether a claim has numbers in brackets that cite nothing, and the evidence others in
    their place.

    Such a number may be a value instead of a citation that names no evidence: "Turn to verse [12]."
    Directly behind a figure or a letter, "10[6]", it surely may, and the evidence has to have it.
    """
    if len(claim.markers) <= len(claim.cited):
        return False
    own = bracketed_numbers(claim.text)
    theirs = frozenset().union(*(bracketed_numbers(quote.text) for quote in whole.supporting))
    exponents = (
        without_brackets(claim.text[start:end])
        for start, end in claim.markers
        if _FIGURE_OR_LETTER.search(claim.text, max(0, start - 2), start)
    )
    return bool(own and theirs - own) or any(number not in theirs for number in exponents)


_FIGURE_OR_LETTER = re.compile(r"(?:\d|\b[^\W\d_])$")


def _claim_issue(text: str, whole: ClaimAssessment) -> str | None:
    if whole.verdict == "supported":
        return None
    if whole.verdict in ("contradicted", "unsupported"):
        reasons = "; ".join(
            dict.fromkeys(signal.reason for signal in (*whole.signals, *whole.absent)[:3])
        )
        return f"{reasons[:1].upper()}{reasons[1:]}."
    if TOO_LONG in whole.vetoes:
        return (
            f"A claim of {len(text):,} characters is too long to be compared with evidence of this"
            " length."
        )
    if whole.support is None:
        return "There is nothing to check this against."
    if whole.figures:
        return f"{describe_absent_figures([figure.claim_text for figure in whole.figures])}."
    if whole.vetoes:
        return (
            "Not confirmed: the evidence has these words, but"
            f" {'; '.join(_VETOES[code] for code in whole.vetoes)}."
        )
    if whole.change is not None:
        here, there = (f"“{words}”" if words else "nothing" for words in whole.change)
        return (
            f"Not confirmed: the nearest sentence of the evidence has {there} where the claim has"
            f" {here}."
        )
    return (
        "Not confirmed by the offline checks: no passage of the evidence says this in the same"
        " words."
    )


_VETOES = {
    "cut": "the sentence may go on, or begin, outside this passage",
    "quoted": "as a quotation",
    "introduced": "under words that may not assert them",
    "qualified": "the next sentence limits or takes them back",
    "disputed": "another passage says it with a different figure or turn",
    "bracketed": "with another number in brackets",
    "subject": "perhaps of something else than the question and the answer speak of",
}


def _check_reference(
    cited: str,
    all_cited: tuple[str, ...],
    text: str,
    whole: ClaimAssessment,
    assess: _Assess,
    texts: Mapping[str, str],
) -> ReferenceCheck:
    """Check one reference: whether its chunk supports the sentence, is redundant, or another chunk
    would do better.
    """

    def finding(
        name: ReferenceFinding, support: float | None, reason: str, better: str | None = None
    ) -> ReferenceCheck:
        return ReferenceCheck(
            evidence_id=cited, finding=name, support=support, better=better, reason=reason
        )

    if not texts[cited].strip():
        return finding("unchecked", None, "This chunk has no text to check against.")
    alone = assess(text, only=(cited,))
    if alone.verdict == "supported":
        return finding("supports", alone.support, "It supports this.")
    others = tuple(other for other in all_cited if other != cited)
    if others and assess(text, only=others).verdict == "supported":
        return finding(
            "redundant", alone.support, f"{' and '.join(others)} support this without it."
        )
    copied = [p.evidence_id for p in whole.supporting if p.evidence_id not in all_cited]
    if whole.verdict == "supported" and copied:
        return finding(
            "misattributed",
            alone.support,
            f"{cited} is not found to support this; {copied[0]} does.",
            copied[0],
        )
    if alone.signals:
        return finding("contradicts", alone.support, alone.signals[0].reason)
    if whole.verdict == "unsupported":
        return finding("unsupported", alone.support, whole.absent[0].reason)
    # A figure that this chunk lacks may stand in another that the sentence cites.
    return finding("unchecked", alone.support, "Whether it supports this could not be confirmed.")
