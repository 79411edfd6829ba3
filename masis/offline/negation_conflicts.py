"""Negations that stand on one side alone.

The rule: a passage covers a clause of the claim, and a word they share is negated in one of them only. A passage that
covers the clause as well and has no such word takes the signal back. Passages that ask, suppose or state a purpose deny
nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from masis.offline.assessment import Signal
from masis.offline.clauses import around, best_passages
from masis.offline.evidence import Passage, loose_keys
from masis.offline.lexicon import antonyms
from masis.offline.matching import Match
from masis.offline.polarity import ended, heads, tentative, topics
from masis.offline.signals import signal
from masis.offline.text import Token

_SAME_THING = 0.5
_MARGIN = 0.1
_NEAR = 4
_SHARED = 1.06
"""How much surer a flip is where both sides have the very word."""
_CONDITIONS = frozenset("that which who if unless when where whose while".split())
_IFS = frozenset("if unless when whose that".split())
_LIMITS = frozenset("limited similar omitted only restricted reserved alone solely instead unless until except".split())
_PREFIXES = ("un", "in", "im")
_DENYING = frozenset("without no nothing none neither".split())


class _Flip(NamedTuple):
    """A word of the claim negated on one side alone: in the claim by `cue`, or in the passage at `where`."""

    word: Token
    cue: Token | None
    where: tuple[int, int]
    sure: float


def negation_signals(
    text: str, found: Match, clauses: Sequence[int], mine: dict[int, int], cues: Sequence[int]
) -> list[Signal]:
    """The strongest negation that the evidence has otherwise, if any. `mine` are the claim's negated words."""
    best: Signal | None = None
    near = [
        around(found, found.words[i].start, found.words[i].end, _NEAR)
        for i in heads(mine)
        if found.mask(found.words[i].start, found.words[i].end)
    ]
    for mask in dict.fromkeys((*clauses, *near, (1 << len(found.bits)) - 1)):
        candidates = best_passages(found, mask)
        if not mine and not any(found.passages[i].cues for _, i in candidates):
            continue
        for made in _clause(text, found, mask, mine, cues, candidates):
            best = made if best is None or made.strength > best.strength else best
    return [best] if best else []


def _clause(
    text: str,
    found: Match,
    mask: int,
    mine: dict[int, int],
    cues: Sequence[int],
    candidates: Sequence[tuple[float, int]],
) -> list[Signal]:
    flips, agreeing = [], 0.0
    for covered, i in candidates:
        if covered < _SAME_THING:
            continue
        flip = _flipped(found, mask, mine, cues, found.passages[i])
        if flip is None:
            agreeing = max(agreeing, covered)
        elif not tentative(found.passages[i].text):
            flips.append((covered, i, flip))
    made = []
    for covered, i, flip in flips:
        if agreeing >= covered - _MARGIN:
            continue
        passage = found.passages[i]
        enough = min(1.0, found.value(mask) / 3.0)
        strength = (0.33 + 0.65 * covered) * (0.65 + 0.35 * enough) * flip.sure - (
            0.2 if cues and passage.cues else 0.0
        )
        word, cue = flip.word, flip.cue
        span = (word.start, word.end, word.text)
        if cue is not None:
            span = (cue.start, word.end, text[cue.start : word.end])
        reason = f"the {'claim' if cue else 'evidence'} denies {word.text!r}, the other asserts it"
        made.append(signal("negation", span, passage, flip.where, reason, strength))
    return made


def _flipped(found: Match, mask: int, mine: dict[int, int], cues: Sequence[int], passage: Passage) -> _Flip | None:
    bit_of = {i: b for b, i in enumerate(found.bits)}
    for i, cue in heads(mine).items():
        if i not in bit_of or not mask >> bit_of[i] & 1 or _conditional(found.words, cue):
            continue
        flip = _denied_by_claim(found, mask, i, bit_of[i], cue, passage, cues)
        if flip is not None:
            return flip
    denied = heads(passage.negated)
    if _changes(found):
        denied |= topics(passage.negated, passage.words)
    for place, cue in denied.items():
        flip = _denied_by_passage(found, mask, mine, cues, passage, place, cue)
        if flip is not None:
            return flip
    return None


def _denied_by_claim(
    found: Match, mask: int, i: int, b: int, cue: int, passage: Passage, cues: Sequence[int]
) -> _Flip | None:
    word = found.words[i]
    places = passage.positions.get(word.stem) or _kin_places(passage, word)
    if places and word.weight >= 0.4:
        if _near([other for other in passage.cues if i not in cues or other not in places], places):
            return None
        if any(ended(passage.words, place, 8) for place in places):
            return None
        there = passage.words[places[0]]
        return _Flip(word, found.words[cue], (there.start, there.end), _SHARED if word.stem == there.stem else 1.0)
    plainly = found.words[cue].text.lower() not in _DENYING
    if not places and plainly and _all_but(found, mask, 1 << b, passage) and not _denies(passage, word):
        return _Flip(word, found.words[cue], (0, len(passage.text)), 1.0)
    return None


def _denied_by_passage(
    found: Match, mask: int, mine: dict[int, int], cues: Sequence[int], passage: Passage, place: int, cue: int
) -> _Flip | None:
    there = passage.words[place]
    if there.weight < 0.4 or _conditional(passage.words, cue, _IFS):
        return None
    for b, i in enumerate(found.bits):
        word = found.words[i]
        if not mask >> b & 1 or i in mine or _near(cues, (i,)):
            continue
        if word.stem != there.stem and not _kin(word, there):
            continue
        if all(p in passage.negated for p in passage.positions[there.stem]):
            return _Flip(word, None, (passage.words[cue].start, there.end), _SHARED if word.stem == there.stem else 1.0)
    return None


def _changes(found: Match) -> bool:
    # The claim says that something rises or falls: "no effect on deaths" denies it.
    return any(word.stem in antonyms()["unchang"] for word in found.words)


def _conditional(words: Sequence[Token], cue: int, opened: frozenset[str] = _CONDITIONS) -> bool:
    # "columns that you do not ask for", "if it is not dry": the negation restricts, it doesn't assert.
    return any(word.text.lower() in opened for word in words[max(0, cue - 3) : cue])


def _kin(one: Token, other: Token) -> bool:
    return one.weight >= 0.4 and other.weight >= 0.4 and bool(set(loose_keys(one.stem)) & set(loose_keys(other.stem)))


def _kin_places(passage: Passage, word: Token) -> list[int]:
    keys = set(loose_keys(word.stem))
    if not keys or word.weight < 0.4:
        return []
    return [i for i, other in enumerate(passage.words) if other.weight >= 0.4 and keys & set(loose_keys(other.stem))]


def _all_but(found: Match, mask: int, head: int, passage: Passage) -> bool:
    # The negated head is worded otherwise, but everything else of a clause that says enough is there.
    rest = mask & ~head
    held = sum(
        found.weights[b] for b, i in enumerate(found.bits) if rest >> b & 1 and found.words[i].stem in passage.content
    )
    return held >= 2.5 and held >= 0.7 * found.value(rest)


def _denies(passage: Passage, head: Token) -> bool:
    opposites = antonyms().get(head.stem, frozenset())
    return (
        bool(passage.cues)
        or ended(passage.words, 0, len(passage.words))
        or any(
            word.stem in opposites
            or word.text.lower() in _LIMITS
            or (word.weight and word.text[:2].lower() in _PREFIXES)
            for word in passage.words
        )
    )


def _near(cues: Sequence[int], places: Sequence[int]) -> bool:
    return any(abs(cue - place) <= 6 for cue in cues for place in places)
