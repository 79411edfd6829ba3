"""Signals of contradiction: the evidence speaks of the same thing and has another number, date, name, sign or
direction.
"""

from collections.abc import Sequence

from masis.offline.contradictions.bounds import bound_signals
from masis.offline.contradictions.comparisons import comparison_signals
from masis.offline.contradictions.fact_conflicts import fact_signals
from masis.offline.contradictions.modal_conflicts import modal_signals
from masis.offline.contradictions.pairings import pairing_signals
from masis.offline.contradictions.rankings import ranking_signals
from masis.offline.contradictions.sign_conflicts import sign_signals
from masis.offline.contradictions.signals import signal as built
from masis.offline.contradictions.swapped_facts import exchange_signals
from masis.offline.contradictions.swapped_order import order_signals
from masis.offline.contradictions.swapped_roles import role_signals
from masis.offline.contradictions.variants import misplaced, told_of_its_own
from masis.offline.inference.contradiction_calibration import ContradictionCalibration
from masis.offline.matching.assessment import Signal
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import Match
from masis.offline.parsing.facts import Fact

_SURE = 0.8
_MISPLACED = 0.85
_NEAR = 120
"""Characters within which two turns in the evidence belong together."""


def signals(found: Match, table: FactTable, calibration: ContradictionCalibration | None = None) -> list[Signal]:
    """Every contradiction signal of a sentence; with `sureness`, those that are not sure are held down."""
    if not found.top:
        return []
    facts = found.sentence.facts
    result = [
        *fact_signals(found, table),
        *exchange_signals(found),
        *comparison_signals(found),
        *sign_signals(found),
        *role_signals(found),
        *modal_signals(found),
        *bound_signals(found),
        *order_signals(found),
        *pairing_signals(found),
        *ranking_signals(found),
    ]
    strongest: dict[tuple[str, tuple[int, int]], Signal] = {}
    result += _misplaced(found, facts)
    result = [signal for signal in result if not _under_its_own_condition(signal, found, facts)]
    for signal in sorted(result, key=lambda signal: -signal.strength):
        strongest.setdefault((signal.kind, signal.claim_span), signal)
    made = _without_double(list(strongest.values()))
    return made if calibration is None else [calibration.calibrate(signal, found) for signal in made]


def value_denied(
    found: Match, table: FactTable, least: float, calibration: ContradictionCalibration | None = None
) -> bool:
    """Whether one of the values and names is denied at least this strongly: looks no further than the first that is."""
    facts = found.sentence.facts if found.top else ()
    return bool(facts) and any(
        signal.strength >= least
        and not _under_its_own_condition(signal, found, facts)
        and (calibration is None or calibration.calibrate(signal, found).strength >= least)
        for signal in fact_signals(found, table)
    )


def _misplaced(found: Match, facts: Sequence[Fact]) -> list[Signal]:
    """A signal for each value that the evidence has under another condition than the one the claim names."""
    near = [found.passages[i] for i in sorted(found.top)]
    result = []
    for fact in facts:
        places = misplaced(fact, found.words, near) if fact.kind != "name" else None
        if places is not None:
            other = places[1]
            value = other.value
            reason = f"the evidence has {value.text!r} there; {fact.text!r} is its value in another case"
            span = (fact.start, fact.end, fact.text)
            result.append(built(fact.kind, span, other.passage, (value.start, value.end), reason, _MISPLACED))
    return result


def _under_its_own_condition(signal: Signal, found: Match, facts: Sequence[Fact]) -> bool:
    """Whether the passage has the other value under another condition, and the claim's under the one it names."""
    fact = next((fact for fact in facts if (fact.start, fact.end) == signal.claim_span and fact.kind != "name"), None)
    if fact is None:
        return False
    sentence = {word.stem for word in found.words if word.weight > 0}
    return any(
        told_of_its_own(fact, sentence, found.passages[i], signal.evidence_start - found.passages[i].start)
        for i in found.score
        if found.passages[i].evidence_id == signal.evidence_id
        and found.passages[i].start <= signal.evidence_start < found.passages[i].end
    )


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
        and (one.evidence_end <= other.evidence_start or other.evidence_end <= one.evidence_start)
    ]
    dropped = {id(signal) for pair in turned for signal in pair}
    return [signal for signal in found if id(signal) not in dropped]
