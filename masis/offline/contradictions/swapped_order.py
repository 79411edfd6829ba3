"""Two things of a claim that stand in each other's place, while everything else stands where the evidence has it.

"Mrs Ferrer was ordered to pay Tilmann" for "Tilmann was ordered to pay Mrs Ferrer"; "men more often than women" for
"women more often than men". The words that claim and passage share are laid side by side: if exchanging two of them
brings the rest into one order, they have changed places.
"""

from collections.abc import Collection, Sequence

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact
from masis.offline.text.lexicon import antonyms
from masis.offline.text.tokens import Token

_COVERED = 0.7
_LEAST = 4
"""Words that claim and passage must share, the two included."""
_EVEN = frozenset("and or both with between as like".split())
"""What stands between things whose order says nothing."""
_SYMMETRIC = frozenset("meet met marry married merge merged join joined agree differ equal share".split())
_STRENGTH = 0.55


def order_signals(found: Match) -> list[Signal]:
    """A signal for each of two things that have changed places."""
    facts = found.sentence.facts
    for i in found.top[:2]:
        if found.coverage((i,)) < _COVERED:
            continue
        pair = _exchanged(found, facts, found.passages[i])
        if pair is not None:
            return _signals(found, found.passages[i], pair, found.coverage((i,)))
    return []


def _exchanged(found: Match, facts: Sequence[Fact], passage: Passage) -> tuple[int, int] | None:
    """The places in the claim of two words whose exchange would bring it into the order of the passage."""
    inside = _within_names(found.words, facts)
    shared = [
        (i, passage.positions[word.stem][0])
        for i, word in enumerate(found.words)
        if word.weight > 0 and i not in inside and len(passage.positions.get(word.stem, ())) == 1
    ]
    if len({found.words[i].stem for i, _ in shared}) != len(shared) or len(shared) < _LEAST:
        return None
    order = [there for _, there in shared]
    wrong = [k for k, (a, b) in enumerate(zip(order, sorted(order), strict=True)) if a != b]
    if len(wrong) != 2:
        return None
    one, other = (shared[k][0] for k in wrong)
    there = sorted(shared[k][1] for k in wrong)
    if not _alike(found.words, one, other, passage.known_names, facts) or not _directed(
        found.words, one, other, passage, there
    ):
        return None
    return one, other


def _within_names(words: Sequence[Token], facts: Sequence[Fact]) -> set[int]:
    """The words of names but for the last of each, which stands for the whole."""
    names = [fact for fact in facts if fact.kind == "name"]
    return {i for i, word in enumerate(words) for name in names if name.start <= word.start and word.end < name.end}


def _alike(words: Sequence[Token], one: int, other: int, known: Collection[str], facts: Sequence[Fact]) -> bool:
    """Whether the two could stand for each other: two names, or two plain words behind the same word or compared."""
    left, right = words[one], words[other]
    if min(left.weight, right.weight) < 1.0 or left.text[0].isdigit() != right.text[0].isdigit():
        return False
    if left.text[0].isdigit():
        return True
    if right.text[0].isupper():
        return left.text[0].isupper() and (
            one > 0 or (left.text in known and left.weight >= 1.0 and _named(facts, left))
        )
    if left.text[0].isupper() and one > 0:
        return False
    compared = any(word.text.lower() == "than" for word in words[one:other])
    return compared or (one > 0 and words[one - 1].stem == words[other - 1].stem)


def _named(facts: Sequence[Fact], word: Token) -> bool:
    return any(fact.kind == "name" and fact.start <= word.start < fact.end and " " in fact.text for fact in facts)


def _directed(words: Sequence[Token], one: int, other: int, passage: Passage, there: Sequence[int]) -> bool:
    # What stands between the two says who is who, and says so on both sides.
    mine = [word.text.lower() for word in words[one + 1 : other]]
    theirs = [word.text.lower() for word in passage.words[there[0] + 1 : there[1]]]
    if not mine or all(word in _EVEN for word in mine) or _SYMMETRIC.intersection(mine):
        return False
    if ("by" in mine) != ("by" in theirs):
        return False
    opposed, stems = antonyms(), {word.stem for word in passage.words}
    if any(word.stem not in stems and opposed.get(word.stem, frozenset()) & stems for word in words):
        return False
    return bool(set(mine) & set(theirs) - _EVEN)


def _signals(found: Match, passage: Passage, pair: tuple[int, int], covered: float) -> list[Signal]:
    made = []
    for i, k in (pair, pair[::-1]):
        word, rival = found.words[i], passage.words[passage.positions[found.words[k].stem][0]]
        reason = f"the evidence has {rival.text!r} in the place of {word.text!r}, and the other way round"
        strength = _STRENGTH + 0.35 * covered
        span = (word.start, word.end, word.text)
        made.append(signal("name", span, passage, (rival.start, rival.end), reason, strength))
    return made
