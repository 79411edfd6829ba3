"""The result of assessing a claim against evidence: values only, nothing that computes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["supported", "contradicted", "unsupported", "unverifiable"]
SignalKind = Literal["number", "unit", "date", "name", "negation", "direction", "quantifier"]


@dataclass(frozen=True, slots=True)
class Signal:
    """A place where the claim contradicts the evidence: both are about the same thing and differ.

    Offsets are into the claim and into the text of the evidence; `evidence_text` is what the evidence has in the place
    of `claim_text`, so that a reviser can put it there (empty where the evidence merely lacks a negation). `strength`
    is 0..1.
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

    `support` is the calibrated probability that it does, None where there is nothing to check against. `confidence` is
    how sure the verdict is, 0..1. `signals` accuse: there are some only where the verdict is contradicted. `vetoes` are
    codes of what kept a likely claim from being confirmed. `supporting` holds at most three passages, the best first.
    `uncovered` are the spans of the claim that no evidence covers. `features` are the measurements the probability came
    from.
    """

    support: float | None
    verdict: Verdict
    confidence: float
    signals: tuple[Signal, ...] = ()
    vetoes: tuple[str, ...] = ()
    supporting: tuple[SupportingPassage, ...] = ()
    uncovered: tuple[tuple[int, int], ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
