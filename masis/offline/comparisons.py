"""Directions that the claim's own numbers belie, and two parties of a verb that have changed places.

"Fell from 412 to 1,967" can't be; what the evidence has is the same numbers. "The Marola replaced the Brisa" is denied by
"the Brisa replaced the Marola": the same verb between the same names the other way round.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal
from masis.offline.evidence import loose_keys
from masis.offline.facts import Fact, agree
from masis.offline.lexicon import antonyms
from masis.offline.matching import Match
from masis.offline.signals import signal
from masis.offline.text import Token, stem

_UP, _DOWN = stem("rise"), stem("fall")
_SYMMETRIC = frozenset(map(stem, "meet marry merge join agree differ border share share match equal resemble".split()))
_BETWEEN = 7
_STRENGTH = 0.85


def comparison_signals(text: str, found: Match, facts: Sequence[Fact]) -> list[Signal]:
    """Directions against the claim's own numbers, and names on the wrong sides of a verb."""
    return [*_belied(text, found, facts), *_reversed(text, found, facts)]


def _belied(text: str, found: Match, facts: Sequence[Fact]) -> list[Signal]:
    numbers = [fact for fact in facts if fact.kind == "number"]
    up, down = antonyms().get(_DOWN, frozenset()), antonyms().get(_UP, frozenset())
    made = []
    for first, second in zip(numbers, numbers[1:], strict=False):
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
    for one, other in zip(names, names[1:], strict=False):
        mine = _verb(found.words, one, other)
        if not mine or agree(one, other):
            continue
        for i in found.top[:3]:
            passage = found.passages[i]
            theirs = [fact for fact in passage.facts if fact.kind == "name"]
            for left, right in zip(theirs, theirs[1:], strict=False):
                if not (_is(one, right) and _is(other, left)) or agree(one, left) or agree(other, right):
                    continue
                there = _verb(passage.words, left, right)
                keys = {key for word in there for key in (word.stem, *loose_keys(word.stem))}
                same = [word for word in mine if keys & {word.stem, *loose_keys(word.stem)}]
                if not same or _passive(found.words, one, other) != _passive(passage.words, left, right):
                    continue
                reason = f"the evidence has {left.text!r} and {right.text!r} the other way round"
                spans = ((one, left), (other, right))
                return [
                    signal("name", (a.start, a.end, a.text), passage, (b.start, b.end), reason, _STRENGTH)
                    for a, b in spans
                ]
    return []


def _is(one: Fact, other: Fact) -> bool:
    mine, theirs = set(one.value), set(other.value)  # type: ignore[arg-type]
    return mine <= theirs or theirs <= mine


def _verb(words: Sequence[Token], left: Fact, right: Fact) -> list[Token]:
    between = [word for word in words if left.end <= word.start and word.end <= right.start]
    if len(between) > _BETWEEN or any(word.text.lower() in ("and", "or") for word in between):
        return []
    return [word for word in between if word.weight >= 0.4 and word.text.islower() and word.stem not in _SYMMETRIC]


def _passive(words: Sequence[Token], left: Fact, right: Fact) -> bool:
    return any(word.text.lower() == "by" for word in words if left.end <= word.start and word.end <= right.start)
