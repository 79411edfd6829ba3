"""The verifier without a model: each claim is checked against all evidence and against the chunks it cites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from masis.audit.assertions import sentence_claims
from masis.audit.claims import Checked, one_check_each
from masis.audit.run_control import CancelToken
from masis.offline.matching.evidence_index import TOO_LONG, Assessment, EvidenceIndex
from masis.offline.matching.key_points import (
    OFFLINE,
    KeyPoint,
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

COVERED_FROM = 0.45
"""An answer covers a passage from this share of its words on."""
MISSING_BELOW = 0.35
MISSING_MOST = 3
BETTER_BY = 0.15
"""How much better (in support) another chunk must support a sentence for the cited one to count as misattributed."""


class OfflineVerifier:
    """An honest screen: it confirms where that is safe, accuses where it is precise, and abstains otherwise.

    See docs/offline.md. A long answer takes seconds: between claims it looks whether the run was cancelled.
    """

    languages: ClassVar[frozenset[str] | None] = frozenset({"en"})

    def __init__(self, cancellation: CancelToken | None = None) -> None:
        self.cancellation = cancellation or CancelToken()

    def extract(self, answer: str, audit: CitationAudit, query: str) -> tuple[Claim, ...]:
        """Return a claim for each sentence that asserts something."""
        return sentence_claims(audit)

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        """Return one check for each claim, in order. Raises Cancelled once the run was cancelled."""
        index = index_of(evidence)
        texts = {chunk.id: chunk.text for chunk in evidence}
        checks = []
        for claim in claims:
            self.cancellation.check()
            checks.append(_check(claim, index, texts))
        return tuple(checks)

    def check(
        self, claims: Sequence[Claim], query: str, answer: str, evidence: Sequence[Evidence], *, completeness: bool
    ) -> Checked:
        """Check every claim, and list the points left out where asked."""
        checks = one_check_each(claims, self.verify(claims, evidence))
        return Checked(checks, self.missing(query, answer, checks, evidence) if completeness else ())

    def missing(
        self, query: str, answer: str, claims: Sequence[ClaimCheck], evidence: Sequence[Evidence]
    ) -> tuple[MissingPoint, ...]:
        """Return the points of the question that the evidence covers and the answer does not, each with its passage.

        Names and numbers of the question don't count: an answer need not repeat them.
        """
        text = stems(answer)
        bearing = {(quote.evidence_id, quote.start) for check in claims for quote in check.quotes}
        points: dict[tuple[str, int], MissingPoint] = {}
        for aspect in aspects(query):
            if aspect.met_by(text):
                continue
            for point in key_points(query, index_of(evidence)):
                passage = point.passage
                place = (passage.evidence_id, passage.start)
                if (
                    aspect.met_by(stems(passage.text))
                    and place not in bearing
                    and share_covered(passage, text) < MISSING_BELOW
                ):
                    points.setdefault(place, _missing(point))
                    break
        return tuple(points.values())[:MISSING_MOST]


def _missing(point: KeyPoint) -> MissingPoint:
    passage = point.passage
    return MissingPoint(
        description=" ".join(passage.text.split()),
        evidence_id=passage.evidence_id,
        start=passage.start,
        end=passage.end,
        weight=round(point.relevance, 4),
    )


def _check(claim: Claim, index: EvidenceIndex, texts: dict[str, str]) -> ClaimCheck:
    text = plain_text(claim)
    whole = index.assess(text)
    quotes = tuple(
        Quote(
            evidence_id=bearing.evidence_id,
            start=bearing.start,
            end=bearing.end,
            text=texts[bearing.evidence_id][bearing.start : bearing.end],
            score=bearing.score,
        )
        for bearing in whole.supporting
    )
    contradictions = tuple(
        Contradiction(
            kind=signal.kind,
            claim_start=signal.claim_span[0],
            claim_end=signal.claim_span[1],
            claim_text=signal.claim_text,
            evidence_id=signal.evidence_id,
            evidence_start=signal.evidence_start,
            evidence_end=signal.evidence_end,
            evidence_text=signal.evidence_text,
            reason=signal.reason,
            strength=signal.strength,
        )
        for signal in whole.signals
    )
    return ClaimCheck(
        claim=claim,
        verdict=whole.verdict,
        support=whole.support,
        confidence=whole.confidence,
        sources=_sources(whole),
        quotes=quotes,
        contradictions=contradictions,
        references=tuple(_reference(cited, claim.cited, text, whole, index, texts) for cited in claim.cited),
        uncovered=whole.uncovered,
        issue=_issue(text, whole),
        judged_by=OFFLINE,
    )


def _sources(whole: Assessment) -> tuple[str, ...]:
    if whole.verdict == "contradicted":
        return tuple(dict.fromkeys(signal.evidence_id for signal in whole.signals))
    if whole.verdict == "supported":
        return tuple(dict.fromkeys(bearing.evidence_id for bearing in whole.supporting))
    return ()


def _issue(text: str, whole: Assessment) -> str | None:
    if whole.verdict == "supported":
        return None
    if whole.verdict == "contradicted":
        return "; ".join(dict.fromkeys(signal.reason for signal in whole.signals[:3]))
    lacking = [text[start:end].strip() for start, end in whole.uncovered[:4]]
    if whole.verdict == "unsupported":
        return (
            f"Not found in any evidence: {', '.join(lacking)}."
            if lacking
            else "No single passage of the evidence supports this."
        )
    if TOO_LONG in whole.vetoes:
        return f"A claim of {len(text):,} characters is too long to be compared with evidence of this length."
    if whole.support is None:
        return "There is nothing to check this against."
    reasons = [_VETOES[code] for code in whole.vetoes]
    return f"Not confirmed by the offline checks: {'; '.join(reasons) or 'the evidence says nothing close enough'}."


_VETOES = {
    "number_absent": "a number that no evidence has",
    "date_absent": "a date that no evidence has",
    "name_absent": "a name that no evidence has",
    "antonym": "the evidence has the opposite of a word",
    "negation": "the nearest passage has a negation more or less",
    "strength": "a word that strengthens or weakens the claim is not in the nearest passage",
    "order": "the nearest passage has the words in another order",
    "voice": "the nearest passage has another subject or object",
    "apart": "the nearest passage says the parts of it of different things",
}


def _reference(
    cited: str,
    all_cited: tuple[str, ...],
    text: str,
    whole: Assessment,
    index: EvidenceIndex,
    texts: dict[str, str],
) -> ReferenceCheck:
    """Check one reference: whether its chunk supports the sentence, is redundant, or another chunk would do better."""

    def finding(
        name: ReferenceFinding, support: float | None, reason: str, better: str | None = None
    ) -> ReferenceCheck:
        return ReferenceCheck(evidence_id=cited, finding=name, support=support, better=better, reason=reason)

    if not texts[cited].strip():
        return finding("unchecked", None, "This chunk has no text to check against.")
    alone = index.assess(text, only=(cited,))
    if alone.verdict == "supported":
        return finding("supports", alone.support, "It supports this.")
    others = tuple(other for other in all_cited if other != cited)
    if others and index.assess(text, only=others).verdict == "supported":
        return finding("redundant", alone.support, f"{' and '.join(others)} support this without it.")
    better = _better(alone, text, whole, all_cited, index)
    if better is not None:
        return finding("misattributed", alone.support, f"{cited} is not found to support this; {better} does.", better)
    if alone.verdict == "contradicted":
        return finding("contradicts", alone.support, alone.signals[0].reason)
    if alone.verdict == "unverifiable":
        return finding("unchecked", alone.support, "Whether it supports this could not be confirmed.")
    return finding("unsupported", alone.support, "It does not support this.")


def _better(
    alone: Assessment, text: str, whole: Assessment, cited: tuple[str, ...], index: EvidenceIndex
) -> str | None:
    for candidate in dict.fromkeys(bearing.evidence_id for bearing in whole.supporting):
        if candidate in cited:
            continue
        other = index.assess(text, only=(candidate,))
        if other.verdict == "supported" and (other.support or 0.0) >= (alone.support or 0.0) + BETTER_BY:
            return candidate
    return None
