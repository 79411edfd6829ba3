"""Numbers and dates that stand nowhere in the evidence, where the evidence has another in their place.

What is nowhere is suspect by itself: a claim takes its figures from the evidence. The rival is looked for in the
passages that bear the claim and beside them, among the facts that nothing else in the claim accounts for. What follows
from the evidence by counting or reckoning (`derivations`) is no conflict.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal
from masis.offline.evidence import Passage
from masis.offline.facts import Fact, agree, comparable, compared, likeness
from masis.offline.matching import Match
from masis.offline.said import Said
from masis.offline.signals import signal
from masis.offline.text import Token

_NEAR = 4
_LEAST = 0.3
_COUNTED = 12
"""Up to here a bare number may count what the evidence lists."""


def absent_signal(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """The fact of the evidence in whose place the claim has one that no evidence holds, and that follows from none."""
    near = found.around(fact.start, fact.end, _NEAR) & ~found.mask(fact.start, fact.end)
    best: tuple[float, Passage, Fact] | None = None
    rivals = [(i, other) for i in found.region for other in _rivals(found, fact, facts, i)]
    sole = len({(other.value, other.dimension) for _, other in rivals}) == 1
    for i, other in rivals:
        passage = found.passages[i]
        alike, covered = likeness(fact, other), found.share(i, near)
        slot = surroundings(found.said, fact, passage, other)
        counts = _counts_the_same(found.said, fact, passage, other)
        alone = sole and fact.kind == "date" and alike >= 0.4 and found.share(found.top[0], near) >= 0.4
        if alike < 0.8 and covered < _LEAST and slot < _LEAST and not alone:
            continue
        if not comparable(fact, other) and not counts and not (sole and slot >= 0.5):
            continue
        if _may_count(fact) and not counts and slot < 0.6:
            continue
        strength = 0.4 + 0.3 * covered + 0.25 * slot + 0.35 * alike + (0.08 if sole else 0.0) + (0.08 if counts else 0)
        strength += 0.15 if alone else 0.0
        if best is None or strength > best[0]:
            best = (strength, passage, other)
    if best is None:
        return None
    strength, passage, other = best
    reason = f"the evidence has {other.text!r} where the claim has {fact.text!r}, which stands nowhere in it"
    return signal(fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength)


def holds(passage: Passage, fact: Fact) -> bool:
    """Whether the passage has a fact saying the same, and in earnest: "three roads" doesn't hold "3%"."""
    return any(
        agree(fact, other) and not (fact.dimension and not other.dimension and _may_count(other))
        for other in passage.facts
        if other.kind == fact.kind
    )


def _rivals(found: Match, fact: Fact, facts: Sequence[Fact], i: int) -> list[Fact]:
    return [
        other
        for other in found.passages[i].facts
        if other.kind == fact.kind
        and other.dimension == fact.dimension
        and not compared(found.passages[i].text, other)
        and not any(mate is not fact and agree(mate, other) for mate in facts)
    ]


def _may_count(fact: Fact) -> bool:
    return fact.kind == "number" and not fact.dimension and not fact.digits and float(fact.value) <= _COUNTED  # type: ignore[arg-type]


def surroundings(said: Said, fact: Fact, passage: Passage, other: Fact) -> float:
    """The share of the three content words on either side of the claim's fact that stand near the other, 0..1."""
    mine = _beside(said, fact.start, fact.end, 3)
    theirs = {word.stem for word in _beside(passage, other.start, other.end, 4)}
    weight = sum(word.weight for word in mine)
    return sum(word.weight for word in mine if word.stem in theirs) / weight if weight else 0.0


def _beside(said: Said, start: int, end: int, near: int) -> list[Token]:
    return [*said.content_before(start, near), *said.content_after(end, near)]


def _counts_the_same(said: Said, fact: Fact, passage: Passage, other: Fact) -> bool:
    # "2,000 long-term unemployed people", "two thousand people": one of the next four words is the same noun.
    mine = [word.stem for word in said.content_after(fact.end, 3)]
    theirs = [word.stem for word in passage.content_after(other.end, 3)]
    return bool(set(mine) & set(theirs)) or bool(
        mine and theirs and min(len(mine[0]), len(theirs[0])) >= 4 and mine[0][:5] == theirs[0][:5]
    )
