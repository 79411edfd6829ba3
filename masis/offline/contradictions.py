"""Signals of contradiction: the evidence speaks of the same thing and has another number, date, name, sign or
direction.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal
from masis.offline.comparisons import comparison_signals
from masis.offline.evidence import FactTable
from masis.offline.exchanges import exchange_signals
from masis.offline.fact_conflicts import fact_signals
from masis.offline.facts import Fact
from masis.offline.matching import Match
from masis.offline.sign_conflicts import sign_signals

_SURE = 0.8
_NEAR = 120
"""Characters within which two turns in the evidence belong together."""


def signals(text: str, found: Match, facts: Sequence[Fact], clauses: Sequence[int], table: FactTable) -> list[Signal]:
    """Every contradiction signal of a sentence, the strongest first."""
    if not found.top:
        return []
    result = [
        *fact_signals(found, facts, clauses, table),
        *exchange_signals(text, found, facts),
        *comparison_signals(text, found, facts),
        *sign_signals(text, found, clauses),
    ]
    strongest: dict[tuple[str, tuple[int, int]], Signal] = {}
    for signal in sorted(result, key=lambda signal: -signal.strength):
        strongest.setdefault((signal.kind, signal.claim_span), signal)
    return _without_double(list(strongest.values()))


def _without_double(found: list[Signal]) -> list[Signal]:
    """Without a negation and a direction that answer each other: "larger ones may not open", "smaller ones may"."""
    turned = [
        (one, other)
        for one in found
        for other in found
        if (one.kind, other.kind) == ("negation", "direction")
        and min(one.strength, other.strength) >= _SURE
        and one.evidence_id == other.evidence_id
        and abs(one.evidence_start - other.evidence_start) <= _NEAR
        and one.claim_span[0] != other.claim_span[0]
    ]
    dropped = {id(signal) for pair in turned for signal in pair}
    return [signal for signal in found if id(signal) not in dropped]
