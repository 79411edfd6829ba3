"""How a signal is built from a passage and offsets into it."""

from masis.offline.matching.assessment import Signal, SignalKind
from masis.offline.matching.passages import Passage


def signal(
    kind: SignalKind,
    claim: tuple[int, int, str],
    passage: Passage,
    where: tuple[int, int],
    reason: str,
    strength: float,
) -> Signal:
    """A signal from offsets into the claim and into the passage; the strength is kept within 0..1."""
    start, end = where
    return Signal(
        kind, claim[:2], claim[2], passage.evidence_id, passage.start + start, passage.start + end,
        passage.text[start:end], reason, round(min(1.0, max(0.0, strength)), 3),
    )  # fmt: skip
