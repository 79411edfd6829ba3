"""Names the evidence has otherwise: a passage tells what the claim tells, of somebody else.

The claim's name stands elsewhere in the evidence or nowhere; the passage that covers the words around it, and its
neighbours, don't have it, and have one written alike in its place that the claim doesn't speak of.
"""

from collections.abc import Sequence

from masis.offline.absent_facts import surroundings
from masis.offline.assessment import Signal
from masis.offline.clauses import around, best_passages, share
from masis.offline.evidence import Passage
from masis.offline.facts import Fact, agree
from masis.offline.matching import Match
from masis.offline.signals import signal
from masis.offline.text import Token

_SAME_THING = 0.55
_MARGIN = 0.25
_SLOT, _SLOT_ACRONYM = 0.45, 0.7
_NEAR = 4
_PREPOSITIONS = frozenset("in at of by from to with for under against on into near above below via through".split())


def name_signal(found: Match, fact: Fact, facts: Sequence[Fact], clauses: Sequence[int]) -> Signal | None:
    """The strongest name in whose place the claim has this one, if any."""
    bits = found.mask(fact.start, fact.end)
    if fact.kind != "name" or not bits:
        return None
    own = 0
    for mask in clauses:
        if mask & bits:
            own |= mask
    mine = {word.stem for word in found.words if word.weight > 0}
    best: tuple[float, Passage, Fact] | None = None
    for context in dict.fromkeys((own & ~bits, around(found, fact.start, fact.end, _NEAR) & ~bits)):
        if found.value(context) < 2.0:
            continue
        holders = [i for i in found.score if _has(found, i, fact, bits)]
        held = max((share(found, i, context) for i in holders), default=0.0)
        for covered, i in best_passages(found, context):
            if covered < max(_SAME_THING, held + _MARGIN) or any(_beside(found, i, k) for k in holders):
                continue
            passage = found.passages[i]
            rivals = [other for other in passage.facts if _rival(fact, other, facts, mine)]
            for other in rivals:
                slot = surroundings(found.words, fact, passage, other)
                lead, their_lead = _lead(found.words, fact.start), _lead(passage.words, other.start)
                led = lead == their_lead
                if (lead in _PREPOSITIONS) != (their_lead in _PREPOSITIONS):
                    continue
                if slot < (_SLOT if led or not fact.text.isupper() else _SLOT_ACRONYM):
                    continue
                strength = 0.27 + 0.3 * covered + 0.3 * slot + 0.08 * led + 0.08 * (len(rivals) == 1)
                if best is None or strength > best[0]:
                    best = (strength, passage, other)
    if best is None:
        return None
    strength, passage, other = best
    reason = f"the evidence says this of {other.text!r}, not of {fact.text!r}"
    return signal("name", (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength)


def _has(found: Match, i: int, fact: Fact, bits: int) -> bool:
    held = (found.exact.get(i, 0) | found.loose.get(i, 0)) & bits
    joined = fact.text.replace(" ", "").casefold()
    return bool(held) or (len(joined) > 5 and joined in found.passages[i].text.replace(" ", "").casefold())


def _beside(found: Match, i: int, k: int) -> bool:
    return abs(i - k) <= 1 and found.passages[i].document == found.passages[k].document


def _rival(fact: Fact, other: Fact, facts: Sequence[Fact], mine: set[str]) -> bool:
    if other.kind != "name" or not isinstance(other.value, tuple) or any(part in mine for part in other.value):
        return False
    if any(mate is not fact and agree(mate, other) for mate in facts) or agree(fact, other):
        return False
    return _form(fact) == _form(other)


def _form(fact: Fact) -> tuple[bool, bool]:
    letters = [c for c in fact.text if c.isalpha()]
    return all(c.isupper() for c in letters), len(fact.text.split()) > 1


def _lead(words: Sequence[Token], start: int) -> str:
    before = (word.text.lower() for word in reversed(words) if word.end <= start)
    return next((word for word in before if word not in ("the", "a", "an")), "")
