"""Directions that the evidence has otherwise: "rose" where a passage about the same thing says "fell".

The rule: a clause of the claim is in a passage, and one of its words stands in the place of its antonym. A passage that
covers the clause as well and agrees takes the signal back.
"""

from collections.abc import Sequence
from functools import cache

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.polarity import ended, tentative
from masis.offline.parsing.units import UNITS
from masis.offline.text.lexicon import antonyms, loose_keys
from masis.offline.text.tokens import Token

_SAME_THING = 0.5
_MARGIN = 0.1
_NEAR = 4
_LEAST_NEAR = 2.5
_FARTHER = 0.8
_ALLIED = 0.2
"""The share of their opposites that two words must have in common to stand on one side."""
_NO_DIRECTION = frozenset(
    """
    including excluding objective objectives like free kind present presently all no none non each every few many most
    major positive negative
    """.split()
)
"""Forms that share a stem with a direction and have none, quantifiers, and what mostly tells groups apart."""


def direction_signals(found: Match) -> list[Signal]:
    """Return a signal for each word of the claim in whose place the evidence has its antonym."""
    opposed, meant, clauses, mine = (
        antonyms(),
        found.sentence.phrases,
        found.sentence.clause_masks,
        found.sentence.negated,
    )
    claim_stems = found.sentence.positions.keys() | set(meant.values())
    result: list[Signal] = []
    for i, word in enumerate(found.words):
        root = meant.get(i, word.stem)
        others = opposed.get(root, frozenset()) - claim_stems
        if found.polar.isdisjoint(others) or word.text.lower() in _NO_DIRECTION or _in_no_longer(found.words, i):
            continue
        made = [
            flipped
            for context in _contexts(found, word, clauses)
            if (flipped := _direction(found, i, root, others, context, mine)) is not None
        ]
        if made:
            result.append(max(made, key=lambda one: one.strength))
    return result


def _in_no_longer(words: Sequence[Token], i: int) -> bool:
    if words[i].text.lower() in ("later", "earlier") and i > 0:
        return UNITS.get(words[i - 1].text.lower(), ("",))[0] in ("duration", "months")  # "nine weeks later"
    return words[i].text.lower() in ("longer", "more") and i > 0 and words[i - 1].text.lower() in ("no", "any")


def _direction(
    found: Match, i: int, root: str, others: frozenset[str], context: int, mine: dict[int, int]
) -> Signal | None:
    candidates, word, friends = found.best_passages(context), found.words[i], _friends(root)
    if all(found.passages[p].polar.isdisjoint(others) for _, p in candidates):
        return None
    targets = {p: _places(found.passages[p], others) for _, p in candidates}
    own = {p: _agreement(found, i, found.passages[p], root) for _, p in candidates}
    held = max((covered * min(1.0, 2 * own[p]) for covered, p in candidates), default=0.0)
    best: Signal | None = None
    for covered, p in candidates:
        passage = found.passages[p]
        if not targets[p] or covered < _SAME_THING or covered < held + _MARGIN or tentative(passage.text):
            continue
        if _dated_elsewhere(found, passage, root):
            continue
        agreeing = max((_shared_neighbours(found.words, i, passage, q) for q in _places(passage, friends)), default=0.0)
        agreeing = max(agreeing, own[p] + 0.2 if root in passage.positions else 0.0)
        for place in targets[p]:
            slot, there = _shared_neighbours(found.words, i, passage, place), passage.words[place]
            denied = (_denied(found.words, i, mine), _denied(passage.words, place, passage.negated))
            if denied[0] != denied[1] or slot <= agreeing or ended(passage.words, place, 4) != ended(found.words, i, 4):
                continue  # "not low" and "high" agree
            if there.text.lower() in _NO_DIRECTION or _in_no_longer(passage.words, place):
                continue
            if _accounted(found.words, i, there) or _own_stretch(found, i, passage, root, place):
                continue
            if word.weight == 0 and not _leads_to_the_same(found.words, i, passage, place):
                continue
            reason = f"the evidence says {there.text!r} where the claim says {word.text!r}"
            span = (word.start, word.end, word.text)
            strength = 0.34 + 0.4 * covered + 0.4 * slot
            made = signal("direction", span, passage, (there.start, there.end), reason, strength)
            best = made if best is None or made.strength > best.strength else best
    return best


def _own_stretch(found: Match, i: int, passage: Passage, root: str, place: int) -> bool:
    """Whether the claim speaks of the stretch that has its word, not of the one with the opposite: "Weidach held, Furt
    broke".
    """
    piece = next((piece.words for piece in found.sentence.clauses if i in piece.words), ())
    wanted = {found.words[k].stem: found.words[k].weight for k in piece if k != i and found.words[k].weight > 0}
    opposite: set[str] = set()
    own: set[str] = set()
    for one in passage.clauses:
        stems = {passage.words[k].stem for k in one.words}
        opposite |= stems if place in one.words else set()
        own |= stems if root in stems else set()
    mine = sum(weight for stem, weight in wanted.items() if stem in own - opposite)
    theirs = sum(weight for stem, weight in wanted.items() if stem in opposite - own)
    return mine >= 1.0 and theirs <= 0.5 * mine


def _dated_elsewhere(found: Match, passage: Passage, root: str) -> bool:
    """Whether another passage has the very word beside a figure of the claim that this one lacks."""
    figures = {word.stem for word in found.words if word.text[0].isdigit()}
    lacking = figures - passage.positions.keys()
    return any(
        root in found.passages[k].positions and not lacking.isdisjoint(found.passages[k].positions) for k in found.top
    )


def _denied(words: Sequence[Token], i: int, scope: dict[int, int]) -> bool:
    # A function word ("below") is denied with its neighbours: "never fell below 70%"; "no later" denies "later".
    if i in scope or (i and words[i - 1].text.lower() in ("no", "not")):
        return True
    return words[i].weight == 0 and (i - 1 in scope or i + 1 in scope)


def _agreement(found: Match, i: int, passage: Passage, root: str) -> float:
    """How well the claim's own word stands in the passage where it stands in the claim, 0..1."""
    places = passage.positions.get(root, ())
    return max((_shared_neighbours(found.words, i, passage, place) for place in places), default=0.0)


def _accounted(words: Sequence[Token], i: int, there: Token) -> bool:
    # "delete it where apps are installed", "remove it if apps are there": what is removed is deleted, not installed.
    keys = set(loose_keys(there.stem))
    return any(k != i and word.weight >= 0.4 and keys & set(loose_keys(word.stem)) for k, word in enumerate(words))


@cache
def _friends(root: str) -> frozenset[str]:
    """The stems on the same side as this one: those that deny what it denies."""
    opposed = antonyms()
    mine = opposed.get(root, frozenset())
    return frozenset(
        other
        for other, theirs in opposed.items()
        if len(mine & theirs) >= _ALLIED * len(mine | theirs) and other not in mine
    ) - {root}


def _leads_to_the_same(words: Sequence[Token], i: int, passage: Passage, place: int) -> bool:
    # "before the harvest" denies "after the harvest", not "after the sowing".
    mine = next((word.stem for word in words[i + 1 : i + 6] if word.weight > 0), "")
    return bool(mine) and mine in [word.stem for word in passage.words[place + 1 : place + 6] if word.weight > 0][:2]


def _contexts(found: Match, word: Token, clauses: Sequence[int]) -> list[int]:
    own = _context(found, word, clauses)
    bits = found.mask(word.start, word.end)
    near = found.around(word.start, word.end, _NEAR) & ~bits
    return [own] if near == own or found.value(near) < _LEAST_NEAR else [own, near]


def _context(found: Match, word: Token, clauses: Sequence[int]) -> int:
    whole = (1 << len(found.bits)) - 1
    bits = found.mask(word.start, word.end)
    if not bits:  # a function word ("before"): the clause of the next content word
        following = [b for b, i in enumerate(found.bits) if found.words[i].start > word.end]
        bits = 1 << following[0] if following else 0
        own = next((mask for mask in clauses if mask & bits), whole)
        return own if found.value(own) >= 2.0 else whole
    own = next((mask for mask in clauses if mask & bits), whole) & ~bits
    return own if found.value(own) >= 2.0 else whole & ~bits


def _places(passage: Passage, roots: frozenset[str]) -> list[int]:
    if passage.polar.isdisjoint(roots):
        return []
    spoken = [place for place, meaning in passage.phrases.items() if meaning in roots]
    near = sorted(root for root in passage.polar & roots if root in passage.positions)
    return [place for root in near for place in passage.positions[root]] + spoken


def _shared_neighbours(words: Sequence[Token], i: int, passage: Passage, place: int) -> float:
    near = [*words[max(0, i - 3) : i], *words[i + 1 : i + 4]]
    theirs = {word.stem for word in passage.words[max(0, place - 4) : place + 5] if word.weight > 0}
    return max(_held(near, theirs), _FARTHER * _held(_content(words, i), theirs))


def _content(words: Sequence[Token], i: int) -> list[Token]:
    before = [word for word in words[:i] if word.weight > 0][-2:]
    return before + [word for word in words[i + 1 :] if word.weight > 0][:2]


def _held(near: Sequence[Token], theirs: set[str]) -> float:
    weight = sum(word.weight + 0.1 for word in near)
    return sum(word.weight + 0.1 for word in near if word.stem in theirs) / weight if weight else 0.0
