"""Negations, directions and quantifiers that the evidence has otherwise.

The rule: a clause of the claim is in a passage, and a word they share is negated in one of them alone, or one of its
words
stands in the place of its antonym. A passage that covers the clause as well and agrees takes the signal back.
"""

from collections.abc import Sequence

from masis.offline.assessment import Signal
from masis.offline.clauses import best_passages, share
from masis.offline.evidence import Passage
from masis.offline.lexicon import antonyms
from masis.offline.matching import Match
from masis.offline.polarity import heads, limited, negated, negation_cues, universal
from masis.offline.signals import signal
from masis.offline.text import Token

_SAME_THING = 0.5
_MARGIN = 0.1


def sign_signals(text: str, found: Match, clauses: Sequence[int]) -> list[Signal]:
    """The strongest negation, every flipped direction, and an overstated quantifier."""
    cues = negation_cues(found.words)
    mine = negated(text, found.words, cues)
    return [
        *_negations(text, found, clauses, mine, cues),
        *_directions(found, clauses, mine),
        *_quantifiers(text, found),
    ]


def _negations(
    text: str, found: Match, clauses: Sequence[int], mine: dict[int, int], cues: Sequence[int]
) -> list[Signal]:
    best: Signal | None = None
    for mask in dict.fromkeys((*clauses, (1 << len(found.bits)) - 1)):
        candidates = best_passages(found, mask)
        if not mine and not any(found.passages[i].cues for _, i in candidates):
            continue
        flips, agreeing = [], 0.0
        for covered, i in candidates:
            if covered < _SAME_THING:
                continue
            flip = _flipped(found, mask, mine, cues, found.passages[i])
            if flip is None:
                agreeing = max(agreeing, covered)
            else:
                flips.append((covered, i, flip))
        for covered, i, (word, cue, where) in flips:
            if agreeing >= covered - _MARGIN:
                continue
            enough = min(1.0, found.value(mask) / 3.0)
            strength = (0.25 + 0.7 * covered) * (0.6 + 0.4 * enough) - (0.2 if mine and found.passages[i].cues else 0.0)
            claim = (
                (word.start, word.end, word.text) if cue is None else (cue.start, word.end, text[cue.start : word.end])
            )
            side = "claim denies" if cue else "evidence denies"
            made = signal(
                "negation", claim, found.passages[i], where, f"the {side} {word.text!r}, the other asserts it", strength
            )
            best = made if best is None or made.strength > best.strength else best
    return [best] if best else []


def _flipped(
    found: Match, mask: int, mine: dict[int, int], cues: Sequence[int], passage: Passage
) -> tuple[Token, Token | None, tuple[int, int]] | None:
    """A shared head negated on one side alone: the claim's word, the claim's cue if it is the one, the place in the
    passage.
    """
    bit_of = {i: b for b, i in enumerate(found.bits)}
    for i, cue in heads(mine).items():
        word = found.words[i]
        if not mask >> bit_of[i] & 1:
            continue
        places = passage.positions.get(word.stem)
        if places and word.weight >= 0.4 and not _near(passage.cues, places):
            there = passage.words[places[0]]
            return word, found.words[cue], (there.start, there.end)
        plainly = found.words[cue].text.lower() not in ("without", "no", "nothing", "none")
        if not places and plainly and _all_but(found, mask, 1 << bit_of[i], passage) and not _denies(passage, word):
            return word, found.words[cue], (0, len(passage.text))
    theirs = heads(passage.negated)
    for place, cue in theirs.items():
        root = passage.words[place].stem
        for i, b in bit_of.items():
            if found.words[i].stem != root or not mask >> b & 1 or i in mine or _near(cues, (i,)):
                continue
            if all(p in passage.negated for p in passage.positions[root]):
                return found.words[i], None, (passage.words[cue].start, passage.words[place].end)
    return None


def _all_but(found: Match, mask: int, head: int, passage: Passage) -> bool:
    # The negated head is worded otherwise, but everything else of a clause that says enough is there.
    rest = mask & ~head
    held = sum(
        found.weights[b] for b, i in enumerate(found.bits) if rest >> b & 1 and found.words[i].stem in passage.content
    )
    return held >= 2.5 and held >= 0.75 * found.value(rest)


def _denies(passage: Passage, head: Token) -> bool:
    opposites = antonyms().get(head.stem, frozenset())
    return bool(passage.cues) or any(
        word.stem in opposites or word.text[:2].lower() in ("un", "in") for word in passage.words
    )


def _near(cues: Sequence[int], places: Sequence[int]) -> bool:
    return any(abs(cue - place) <= 6 for cue in cues for place in places)


def _directions(found: Match, clauses: Sequence[int], mine: dict[int, int]) -> list[Signal]:
    opposed = antonyms()
    claim_stems = {word.stem for word in found.words}
    result: list[Signal] = []
    for i, word in enumerate(found.words):
        others = opposed.get(word.stem, frozenset()) - claim_stems
        if not others:
            continue
        context = _context(found, word, clauses)
        if found.value(context) < 1.0:
            continue
        candidates = best_passages(found, context)
        held = max((covered for covered, p in candidates if word.stem in found.passages[p].positions), default=0.0)
        best: Signal | None = None
        for covered, p in candidates:
            passage = found.passages[p]
            if word.stem in passage.positions or covered < _SAME_THING or covered < held + _MARGIN:
                continue
            for place in _antonym_places(passage, others):
                slot = _shared_neighbours(found.words, i, passage, place)
                if (i in mine) != (place in passage.negated) or slot <= 0:  # "not low" and "high" agree
                    continue
                there = passage.words[place]
                strength = 0.3 + 0.4 * covered + 0.35 * slot
                reason = f"the evidence says {there.text!r} where the claim says {word.text!r}"
                made = signal(
                    "direction", (word.start, word.end, word.text), passage, (there.start, there.end), reason, strength
                )
                best = made if best is None or made.strength > best.strength else best
        if best is not None:
            result.append(best)
    return result


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


def _antonym_places(passage: Passage, others: frozenset[str]) -> list[int]:
    return [place for other in sorted(others) for place in passage.positions.get(other, ())]


def _shared_neighbours(words: Sequence[Token], i: int, passage: Passage, place: int) -> float:
    near = [*words[max(0, i - 3) : i], *words[i + 1 : i + 4]]
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
    coverage = share(found, found.top[0], (1 << len(found.bits)) - 1)
    theirs = limited(passage.words)
    if coverage < _SAME_THING or universal(passage.words) or not theirs:
        return []
    word, there = found.words[mine[0]], passage.words[theirs[0]]
    reason = f"the claim says {word.text!r}, the evidence only {there.text!r}"
    claim = (word.start, word.end, text[word.start : word.end])
    return [signal("quantifier", claim, passage, (there.start, there.end), reason, 0.5 * coverage)]
