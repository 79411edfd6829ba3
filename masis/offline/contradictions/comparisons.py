"""Directions that the claim's own numbers belie, and two parties of a verb that have changed places.

"Fell from 412 to 1,967" can't be; what the evidence has is the same numbers. "The Marola replaced the Brisa" is
denied by "the Brisa replaced the Marola": the same verb between the same names the other way round.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree
from masis.offline.text.lexicon import antonyms, loose_keys
from masis.offline.text.tokens import IRREGULAR, Token, stem

_UP, _DOWN = stem("rise"), stem("fall")
_SYMMETRIC = frozenset(map(stem, "meet marry merge join agree differ border share share match equal resemble".split()))
_LOOSENING = frozenset("in of to at on for from with than and or as into over under against that which who".split())
_BETWEEN = 9
_MOST = 8
_STRENGTH = 0.85


def comparison_signals(found: Match) -> list[Signal]:
    """Directions against the claim's own numbers, and names on the wrong sides of a verb."""
    text, facts = found.sentence.text, found.sentence.facts
    return [*_belied(text, found, facts), *_reversed(text, found, facts)]


def _belied(text: str, found: Match, facts: Sequence[Fact]) -> list[Signal]:
    numbers = [fact for fact in facts if fact.kind == "number"]
    up, down = antonyms().get(_DOWN, frozenset()), antonyms().get(_UP, frozenset())
    made = []
    for first, second in pairwise(numbers):
        before = [word for word in found.words if word.end <= first.start][-4:]
        between = text[first.end : second.start].split()
        if not before or before[-1].text.lower() != "from" or "to" not in between or len(between) > 4:
            continue
        if first.dimension != second.dimension or first.value == second.value:
            continue
        rises = first.value < second.value  # type: ignore[operator]
        wrong = next((word for word in before if word.stem in (down if rises else up)), None)
        held = next((p for i in found.top for p in [found.passages[i]] if _holds(p.facts, first, second)), None)
        if wrong is not None and held is not None:
            other = next(fact for fact in held.facts if agree(second, fact))
            span, reason = (wrong.start, wrong.end, wrong.text), f"{first.text!r} to {second.text!r} is the other way"
            made.append(signal("direction", span, held, (other.start, other.end), reason, _STRENGTH))
    return made


def _holds(facts: Sequence[Fact], *wanted: Fact) -> bool:
    return all(any(agree(one, fact) for fact in facts) for one in wanted)


def _reversed(text: str, found: Match, facts: Sequence[Fact]) -> list[Signal]:
    names = [fact for fact in facts if fact.kind == "name"]
    for one, other in pairwise(names):
        mine = _verb(found.words, one, other)
        if not mine or agree(one, other) or not _direct(text, found.words, one, other):
            continue
        for i in found.top[:3]:
            theirs = [fact for fact in found.passages[i].facts if fact.kind == "name"][:_MOST]
            for left, right in combinations(theirs, 2):
                made = _turned(found, (one, other), mine, found.passages[i], (left, right))
                if made:
                    return made
    return []


def _turned(
    found: Match, pair: tuple[Fact, Fact], mine: Sequence[Token], passage: Passage, theirs: tuple[Fact, Fact]
) -> list[Signal]:
    (one, other), (left, right) = pair, theirs
    same_order = _is(one, left) and _is(other, right)
    if not same_order and not (_is(one, right) and _is(other, left)):
        return []
    if agree(left, right):
        return []
    there = _verb(passage.words, left, right)[-3:]
    keys = {key for word in there for key in (word.stem, *loose_keys(word.stem))}
    if not any(keys & {word.stem, *loose_keys(word.stem)} for word in mine):
        return []
    same_voice = _passive(found.words, one, other) == _passive(passage.words, left, right)
    if same_order == same_voice:
        return []
    reason = f"the evidence has {left.text!r} and {right.text!r} the other way round"
    spans = ((one, right), (other, left)) if same_order else ((one, left), (other, right))
    return [signal("name", (a.start, a.end, a.text), passage, (b.start, b.end), reason, _STRENGTH) for a, b in spans]


def _is(one: Fact, other: Fact) -> bool:
    mine, theirs = set(one.value), set(other.value)  # type: ignore[arg-type]
    return mine <= theirs or theirs <= mine


def _direct(text: str, words: Sequence[Token], left: Fact, right: Fact) -> bool:
    # Subject, verb, object: nothing between them but the verb, its auxiliaries, and "by".
    between = [word for word in words if left.end <= word.start and word.end <= right.start]
    marked = any(mark in text[left.end : right.start] for mark in ",;:()")
    return not marked and not any(word.text.lower() in _LOOSENING for word in between)


def _verb(words: Sequence[Token], left: Fact, right: Fact) -> list[Token]:
    between = [word for word in words if left.end <= word.start and word.end <= right.start]
    if len(between) > _BETWEEN:
        return []
    return [
        word
        for word in between
        if word.text.islower() and word.stem not in _SYMMETRIC and (word.text.endswith("ed") or word.text in IRREGULAR)
    ]


def _passive(words: Sequence[Token], left: Fact, right: Fact) -> bool:
    return any(word.text.lower() == "by" for word in words if left.end <= word.start and word.end <= right.start)
