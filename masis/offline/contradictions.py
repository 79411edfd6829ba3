"""Signals of contradiction: the evidence speaks of the same thing and has another number, date, name, sign or direction.

The rule for facts: the words around the claim's fact are covered by a passage that has a comparable fact of its own,
and no passage covers them as well that has the claim's. The rule for signs: most of the claim is in a passage, and
a word they share is negated in one of them alone, or stands against its antonym.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal, SignalKind
from masis.offline.evidence import Passage
from masis.offline.facts import Fact, agree, comparable
from masis.offline.lexicon import antonyms
from masis.offline.matching import Match
from masis.offline.polarity import limited, negated, negation_cues, universal
from masis.offline.text import Token

_SAME_THING = 0.5
"""Share of the rest of the claim a passage must cover before a difference counts as a contradiction."""
_MARGIN = 0.08
_NEAR = 4


def signals(text: str, found: Match, facts: Sequence[Fact]) -> list[Signal]:
    """Every contradiction signal of a claim (or of a part of it), the strongest first."""
    if not found.top:
        return []
    result = [signal for fact in facts if (signal := _fact_signal(text, found, fact, facts)) is not None]
    result += _negations(text, found)
    result += _directions(text, found)
    result += _quantifiers(text, found)
    return sorted(result, key=lambda signal: -signal.strength)


def _signal(
    kind: SignalKind,
    claim: tuple[int, int, str],
    passage: Passage,
    where: tuple[int, int],
    reason: str,
    strength: float,
) -> Signal:
    start, end = where
    return Signal(
        kind, claim[:2], claim[2], passage.evidence_id, passage.start + start, passage.start + end,
        passage.text[start:end], reason, round(min(1.0, max(0.0, strength)), 3),
    )  # fmt: skip


def _fact_signal(text: str, found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    bits = found.mask(fact.start, fact.end)
    rest = found.total - found.value(bits)
    if rest <= 0:
        return None
    held = _best_with(found, fact, bits)
    best: tuple[float, Passage, Fact, float] | None = None
    for i in found.top[:4]:
        passage = found.passages[i]
        context = found.coverage((i,), without=bits)
        if context < _SAME_THING or context < held + _MARGIN or any(_same(fact, other) for other in passage.facts):
            continue
        for other in passage.facts:
            if not comparable(fact, other) or any(_same(mine, other) for mine in facts):
                continue
            slot = _slot(found, fact, passage, other)
            if fact.kind == "name" and not _may_replace(fact, other, slot, found.words):
                continue
            score = 0.6 * context + 0.4 * slot - 0.3 * held
            if best is None or score > best[0]:
                best = (score, passage, other, context)
    if best is None:
        return None
    score, passage, other, _ = best
    kind: SignalKind = fact.kind
    reason = f"the evidence has {other.text!r} where the claim has {fact.text!r}"
    return _signal(kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, score)


def _same(fact: Fact, other: Fact) -> bool:
    if not agree(fact, other):
        return False
    return fact.kind != "name" or not _forks(fact, other)


def _forks(fact: Fact, other: Fact) -> bool:
    # "Sarah Miller" and "Susan Miller": of equal length, one word shared and one not.
    a, b = set(_stems(fact)), set(_stems(other))
    return len(a) == len(b) >= 2 and bool(a - b) and bool(a & b)


def _stems(fact: Fact) -> tuple[str, ...]:
    assert isinstance(fact.value, tuple)
    return tuple(str(part) for part in fact.value)


def _best_with(found: Match, fact: Fact, bits: int) -> float:
    """The best coverage of the rest of the claim by a passage that has the claim's own fact (or by its neighbourhood)."""
    best = 0.0
    for i in found.score:
        if fact.kind == "name":
            has = bool(
                (found.exact.get(i, 0) & bits) == bits
                or any(_same(fact, other) for other in found.passages[i].facts if i in found.top)
            )
        elif found.score[i] < 0.2 * found.total and not found.exact.get(i, 0) & bits:
            continue
        else:
            has = any(agree(fact, other) for other in found.passages[i].facts)
        if has:
            best = max(best, found.coverage((i,), without=bits))
    return best


def _slot(found: Match, fact: Fact, passage: Passage, other: Fact) -> float:
    """How alike the surroundings of the two facts are: share of the claim's nearest words that stand near the rival, 0..1."""
    near = _around(found.words, fact.start, fact.end)
    theirs = {word.stem for word in _around(passage.words, other.start, other.end)}
    weight = sum(max(word.weight, 0.2) for word in near)
    return sum(max(word.weight, 0.2) for word in near if word.stem in theirs) / weight if weight else 0.0


def _around(words: Sequence[Token], start: int, end: int) -> list[Token]:
    before = [word for word in words if word.end <= start][-_NEAR:]
    after = [word for word in words if word.start >= end][:_NEAR]
    return before + after


def _may_replace(fact: Fact, other: Fact, slot: float, words: Sequence[Token]) -> bool:
    # A name replaces another only in its place, and only if the claim doesn't speak of it elsewhere.
    if _forks(fact, other):
        return True
    mine = {word.stem for word in words}
    return slot >= 0.34 and not any(part in mine for part in _stems(other))


def _negations(text: str, found: Match) -> list[Signal]:
    mine = negated(text, found.words)
    result: list[Signal] = []
    agreeing = 0.0
    for i in found.top[:3]:
        passage, coverage = found.passages[i], found.coverage((i,))
        if coverage < 0.6:
            continue
        flipped = _flipped(found, mine, passage)
        if flipped is None:
            agreeing = max(agreeing, coverage)
            continue
        word, cue, where = flipped
        strength = coverage - (0.3 if mine and passage.cues else 0.1)
        claim = (word.start, word.end, text[word.start : word.end])
        if cue is not None:
            claim = (cue.start, word.end, text[cue.start : word.end])
        reason = (
            f"the claim denies {word.text!r}, the evidence asserts it"
            if cue
            else f"the evidence denies {word.text!r}, the claim asserts it"
        )
        result.append(_signal("negation", claim, passage, where, reason, strength))
    return [signal for signal in result if agreeing < signal.strength + 0.1][:1]


def _flipped(
    found: Match, mine: dict[int, int], passage: Passage
) -> tuple[Token, Token | None, tuple[int, int]] | None:
    """A shared word negated on one side alone: the claim's word, the claim's cue if it is the one, and the place in the passage."""
    if not mine and not passage.cues:
        return None
    theirs = passage.negated
    for i in found.bits:
        places = passage.positions.get(found.words[i].stem)
        if not places or found.words[i].weight < 0.9:
            continue
        there = [p in theirs for p in places]
        if i in mine and not any(there) and not _cue_near(passage, places):
            word = passage.words[places[0]]
            return found.words[i], found.words[mine[i]], (word.start, word.end)
        if i not in mine and all(there) and not _claim_cue_near(found, i):
            first, last = passage.words[theirs[places[0]]], passage.words[places[0]]
            return found.words[i], None, (first.start, last.end)
    return None


def _cue_near(passage: Passage, places: Sequence[int]) -> bool:
    return any(abs(cue - place) <= 6 for cue in passage.cues for place in places)


def _claim_cue_near(found: Match, i: int) -> bool:
    text = " ".join(word.text for word in found.words)  # gaps don't matter to cues
    return any(abs(cue - i) <= 6 for cue in negation_cues(text, found.words))


def _directions(text: str, found: Match) -> list[Signal]:
    opposed = antonyms()
    claim_stems = {word.stem for word in found.words}
    mine = negated(text, found.words)
    result: list[Signal] = []
    for i, word in enumerate(found.words):
        others = opposed.get(word.stem)
        if not others:
            continue
        bits = found.mask(word.start, word.end)
        best: tuple[float, Passage, int] | None = None
        held = max(
            (found.coverage((p,), without=bits) for p in found.top if word.stem in found.passages[p].positions),
            default=0.0,
        )
        for p in found.top[:3]:
            passage = found.passages[p]
            if word.stem in passage.positions:
                continue
            context = found.coverage((p,), without=bits)
            if context < _SAME_THING or context < held + _MARGIN:
                continue
            for place in _antonym_places(passage, others - claim_stems):
                if (i in mine) != (place in passage.negated):
                    continue  # "not low" and "high" agree
                slot = _shared_neighbours(found.words, i, passage, place)
                score = 0.55 * context + 0.45 * slot
                if slot > 0 and (best is None or score > best[0]):
                    best = (score, passage, place)
        if best is not None:
            there = best[1].words[best[2]]
            reason = f"the evidence says {there.text!r} where the claim says {word.text!r}"
            result.append(
                _signal(
                    "direction", (word.start, word.end, word.text), best[1], (there.start, there.end), reason, best[0]
                )
            )
    return result


def _antonym_places(passage: Passage, others: frozenset[str]) -> list[int]:
    return [place for other in sorted(others) for place in passage.positions.get(other, ())]


def _shared_neighbours(words: Sequence[Token], i: int, passage: Passage, place: int) -> float:
    near = [word for word in (*words[max(0, i - 3) : i], *words[i + 1 : i + 4])]
    theirs = {word.stem for word in passage.words[max(0, place - 4) : place + 5]}
    weight = sum(word.weight + 0.1 for word in near)
    return (
        sum(word.weight + 0.1 for word in near if word.stem in theirs and word.weight > 0) / weight if weight else 0.0
    )


def _quantifiers(text: str, found: Match) -> list[Signal]:
    mine = universal(found.words)
    if not mine:
        return []
    passage = found.passages[found.top[0]]
    coverage = found.coverage(found.top[:1])
    theirs = limited(passage.words)
    if coverage < _SAME_THING or universal(passage.words) or not theirs:
        return []
    word, there = found.words[mine[0]], passage.words[theirs[0]]
    reason = f"the claim says {word.text!r}, the evidence only {there.text!r}"
    claim = (word.start, word.end, text[word.start : word.end])
    return [_signal("quantifier", claim, passage, (there.start, there.end), reason, 0.5 * coverage)]
