"""Numbers and dates that stand nowhere in the evidence, where the evidence has another in their place.

What is nowhere is suspect by itself: a claim takes its figures from the evidence. The rival is looked for in the
passages that bear the claim and beside them, among the facts that nothing else in the claim accounts for. What follows
from the evidence by rounding, adding, subtracting or counting is no conflict.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal
from masis.offline.evidence import Passage
from masis.offline.facts import Day, Fact, agree, comparable, compared, likeness
from masis.offline.matching import Match
from masis.offline.said import Said
from masis.offline.signals import signal
from masis.offline.text import Token

_NEAR = 4
_LEAST = 0.3
_COUNTED = 12
"""Up to here a bare number may count what the evidence lists."""
_HEDGES = frozenset("about around roughly approximately nearly almost some circa ca close".split())
_BEYOND = frozenset("over than above".split())
_ARITHMETIC = frozenset(
    """
    more less fewer total altogether together sum difference later earlier after before by left remain remains remaining
    gap apart another additional further combined overall between longer shorter larger smaller higher lower both half
    """.split()
)
"""Words without which a number is not taken for a sum or a difference."""
_ROUNDING = 0.1


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


def follows(found: Match, fact: Fact) -> bool:
    """Whether the number follows from those of the evidence: rounded behind a hedge, a sum, a difference.

    So may a year, from another and a span of years; a ratio ("three times as high") is not looked for.
    """
    if fact.kind == "date":
        return _reckoned(found, fact)
    following = [word.text.lower() for word in found.said.after(fact.end, 3)]
    if following[:1] == ["times"] and following[1:] and following[1] in ("as", "more", "higher", "larger", "greater"):
        return True
    if fact.kind != "number" or not isinstance(fact.value, float):
        return False
    values = [
        other.value
        for i in found.region
        for other in found.passages[i].facts
        if other.kind == "number" and isinstance(other.value, float) and fact.dimension in ("", other.dimension)
    ][:40]
    before = {word.text.lower() for word in found.said.before(fact.start, 3)}
    if before & _HEDGES and any(abs(value - fact.value) <= _ROUNDING * abs(value) for value in values):
        return True
    if before & _BEYOND and any(0 < value - fact.value <= _ROUNDING * abs(value) for value in values):
        return True
    if _ARITHMETIC.isdisjoint(found.said.lowers):
        return False
    wanted = fact.value
    return any(
        _equal(a + b, wanted) or _equal(abs(a - b), wanted) for k, a in enumerate(values) for b in values[k + 1 :]
    )


def _equal(made: float, wanted: float) -> bool:
    return abs(made - wanted) < 0.001 and round(made, 4) == round(wanted, 4)


def _reckoned(found: Match, fact: Fact) -> bool:
    # "In 1964, four years before": 1968
    if not isinstance(fact.value, Day) or fact.value.month:
        return False
    facts = [other for i in found.region for other in found.passages[i].facts][:40]
    spans = {other.value / 12 for other in facts if other.dimension == "months" and isinstance(other.value, float)}
    years = {other.value.year for other in facts if isinstance(other.value, Day)}
    return any(abs(abs(fact.value.year - year) - span) < 0.01 for year in years for span in spans)


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
