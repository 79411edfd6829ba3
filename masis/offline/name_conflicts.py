"""Names the evidence has otherwise: a stretch of it tells what the claim tells, of somebody else.

Judged by stretches of sentences, since one sentence often speaks of two people. The stretch that covers the words
around the claim's name doesn't have it and has another, written alike, that the claim doesn't speak of.
"""

from collections.abc import Sequence
from typing import NamedTuple

from masis.offline.assessment import Signal
from masis.offline.evidence import Passage, loose_keys
from masis.offline.facts import Fact, agree
from masis.offline.matching import LOOSE, Match
from masis.offline.signals import signal
from masis.offline.text import Token

_SAME_THING = 0.55
_PASSAGE = 0.4
_MARGIN = 0.25
_NEAR = 4
_PLACED = 0.7
"""Of a name that stands nowhere: how much of what is said of it must stand with another behind the same preposition."""
_PREPOSITIONS = frozenset("in at of by from to with for under against on into near above below via through".split())


class _Stretch(NamedTuple):
    """Part of a passage between two clause marks: its words, and the names in it."""

    passage: Passage
    words: Sequence[Token]
    names: Sequence[Fact]


def name_signal(found: Match, fact: Fact, facts: Sequence[Fact], clauses: Sequence[int]) -> Signal | None:
    """The strongest name in whose place the claim has this one, if any."""
    bits = found.mask(fact.start, fact.end)
    if fact.kind != "name" or not bits:
        return None
    own = 0
    for mask in clauses:
        if mask & bits:
            own |= mask
    best: tuple[float, Passage, Fact] | None = None
    for context in dict.fromkeys((own & ~bits, found.around(fact.start, fact.end, _NEAR) & ~bits)):
        if found.value(context) < 2.0:
            continue
        made = _in_context(found, fact, facts, context, bits)
        if made is not None and (best is None or made[0] > best[0]):
            best = made
    if best is None:
        return None
    strength, passage, other = best
    reason = f"the evidence says this of {other.text!r}, not of {fact.text!r}"
    return signal("name", (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength)


def _in_context(
    found: Match, fact: Fact, facts: Sequence[Fact], context: int, bits: int
) -> tuple[float, Passage, Fact] | None:
    wanted = [found.words[i] for b, i in enumerate(found.bits) if context >> b & 1]
    total = sum(word.weight for word in wanted)
    mine = {word.stem for word in found.words if word.weight > 0}
    candidates = [i for covered, i in found.best_passages(context) if covered >= _PASSAGE]
    holders = {i for i in found.score if _has(found.passages[i], fact)} if candidates else set()
    held, judged = 0.0, []
    for i in dict.fromkeys((*candidates, *[k for k in found.top if k in holders])):
        for stretch in _stretches(found.passages[i]):
            covered = _covered(wanted, stretch.words) / total
            if any(agree(fact, other) for other in stretch.names):
                held = max(held, covered)
            elif i in candidates and covered >= _SAME_THING:
                judged.append((covered, i, stretch))
    best: tuple[float, Passage, Fact] | None = None
    for covered, i, stretch in judged:
        rivals = [other for other in stretch.names if _rival(fact, other, facts, mine)]
        beside = any(abs(i - k) <= 1 for k in holders if found.passages[i].document == found.passages[k].document)
        if not rivals or covered < held + _MARGIN:
            continue
        for other in rivals:
            lead, their_lead = _lead(found.words, fact.start), _lead(stretch.passage.words, other.start)
            placed = not holders and lead == their_lead != "" and covered >= _PLACED
            if (lead in _PREPOSITIONS) != (their_lead in _PREPOSITIONS):
                continue
            if not placed and not _next_to_the_same(found, fact, stretch, other):
                continue
            sure = 0.08 * (lead == their_lead) + 0.06 * (len(rivals) == 1) - 0.05 * beside
            sure -= 0.15 * (fact.text.isupper() and covered < 0.8) + 0.08 * (fact.text.split()[0] == fact.text)
            strength = 0.45 + 0.4 * covered + sure
            if best is None or strength > best[0]:
                best = (strength, stretch.passage, other)
    return best


def _next_to_the_same(found: Match, fact: Fact, stretch: _Stretch, other: Fact) -> bool:
    # One of the claim's nearest words on either side stands within three words of the rival.
    before = [word for word in found.words if word.end <= fact.start and word.weight > 0][-1:]
    after = [word for word in found.words if word.start >= fact.end and word.weight > 0][:1]
    theirs = [word for word in stretch.words if word.end <= other.start and word.weight > 0][-3:]
    theirs += [word for word in stretch.words if word.start >= other.end and word.weight > 0][:3]
    return any(_covered([word], theirs) > 0 for word in before + after)


def _stretches(passage: Passage) -> list[_Stretch]:
    numbers = passage.segments
    names = [fact for fact in passage.facts if fact.kind == "name"]
    result = []
    for number in range(numbers[-1] + 1 if numbers else 0):
        words = [word for word, n in zip(passage.words, numbers, strict=True) if n == number]
        inside = [name for name in names if words[0].start <= name.start < words[-1].end]
        result.append(_Stretch(passage, words, inside))
    return result


def _covered(wanted: Sequence[Token], words: Sequence[Token]) -> float:
    stems = {word.stem for word in words if word.weight > 0}
    keys = {key for root in stems for key in loose_keys(root)}
    return sum(
        word.weight if word.stem in stems else LOOSE * word.weight * bool(keys.intersection(loose_keys(word.stem)))
        for word in wanted
    )


def _has(passage: Passage, fact: Fact) -> bool:
    if any(other.kind == "name" and agree(fact, other) for other in passage.facts):
        return True
    joined = fact.text.replace(" ", "").casefold()
    return len(joined) > 5 and joined in passage.text.replace(" ", "").casefold()


def _rival(fact: Fact, other: Fact, facts: Sequence[Fact], mine: set[str]) -> bool:
    if not isinstance(other.value, tuple) or any(part in mine for part in other.value):
        return False
    if any(mate is not fact and agree(mate, other) for mate in facts) or agree(fact, other):
        return False
    return _form(fact) == _form(other)


def _form(fact: Fact) -> tuple[bool, bool]:
    letters = [c for c in fact.text if c.isalpha()]
    return all(c.isupper() for c in letters), len(fact.text.split()) > 1


def _lead(words: Sequence[Token], start: int) -> str:
    # "identified by her colleague Piet van Roon" is led by "by".
    before = [word.text.lower() for word in words if word.end <= start][-3:]
    return next((word for word in reversed(before) if word in _PREPOSITIONS), "")
