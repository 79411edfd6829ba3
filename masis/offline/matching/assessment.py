"""The result of assessing a claim against evidence: values only, nothing that computes them."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["supported", "contradicted", "unsupported", "unverifiable"]
SignalKind = Literal["number", "date", "quotation"]


@dataclass(frozen=True, slots=True)
class Signal:
    """An accusation: words of the claim that the evidence has otherwise, or nowhere.

    Offsets are into the claim and into the text of the evidence; `evidence_text` is what the evidence has in the place
    of `claim_text`, so that a reviser can put it there. Where nothing stands in its place, `evidence_id` and
    `evidence_text` are empty. `strength` is 0..1.
    """

    kind: SignalKind
    claim_span: tuple[int, int]
    claim_text: str
    evidence_id: str
    evidence_start: int
    evidence_end: int
    evidence_text: str
    reason: str
    strength: float


@dataclass(frozen=True, slots=True)
class SupportingPassage:
    """A passage of evidence that is relevant to the claim; `score` is the share of the claim's content it
    covers, 0..1.
    """

    evidence_id: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Assessment:
    """How far the evidence supports one claim.

    `support` says how close the evidence comes, 0..1, None where there is nothing to check against: an order for the
    queue, no probability. `confidence` is how sure the verdict is, 0..1. `signals` accuse with what the evidence has
    instead, `absent` with what stands in no evidence. `vetoes` are codes of what kept a copy from being confirmed,
    `change` the words in which a near-copy differs from its sentence: those of the claim, those of the evidence.
    `supporting` holds at most three passages, the best first; of a confirmed claim the ones that it copies.
    `uncovered` are the spans of the claim that no evidence covers, or the accused ones alone.
    """

    support: float | None
    verdict: Verdict
    confidence: float
    signals: tuple[Signal, ...] = ()
    absent: tuple[Signal, ...] = ()
    vetoes: tuple[str, ...] = ()
    change: tuple[str, str] | None = None
    supporting: tuple[SupportingPassage, ...] = ()
    uncovered: tuple[tuple[int, int], ...] = ()
