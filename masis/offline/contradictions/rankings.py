"""Comparisons that the figures of the evidence belie: "went further than the S" where 287 km stand beside 301 km.

What is compared stands on both sides of "than", or of a verb such as "exceed". In one passage each side has a figure of
its own, the nearest; the larger of the two must be the one that the claim says is more. A passage that
compares the two itself is compared with the claim as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.extraction import Day
from masis.offline.parsing.facts import Fact
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token, stem

_MORE = frozenset(
    """
    more further farther larger bigger higher greater longer heavier wider taller older deeper warmer hotter
    """.split()
)
_LESS = frozenset("fewer less smaller lower shorter lighter narrower cheaper younger shallower colder cooler".split())
_SOON, _LATE = frozenset("faster quicker sooner earlier".split()), frozenset("slower later".split())
_EXCEEDS = frozenset(map(stem, "exceed exceeded exceeds outnumber outweigh surpass outstrip outsell outsold".split()))
_QUANTITIES = frozenset("than people men women water energy money time power heavily often frequently".split())
"""Words behind "more" whose comparison a figure can decide; no figure alone decides "more reliable"."""
_TIMES = frozenset({"duration", "months", "clock"})
_BOUNDARY = 3
"""How many words a comma or an "and" between a word and a figure counts as."""
_BREAKS = frozenset("and while whereas but against versus".split())
_FAR = 8
_STRENGTH = 0.8
_AUXILIARIES = frozenset("is are was were be been being".split())
_DIFFERENCE = frozenset(
    """
    more less fewer below above under over faster slower longer shorter higher lower later earlier larger smaller after
    before
    """.split()
)
"""Behind a figure these make it what two things are apart."""
_NEGATING = frozenset("no not never nothing".split())


class _Ranking(NamedTuple):
    """What is said to be more (`sign` 1) or less (-1) than what; `at` is the index of the word that says so.

    `soon`: it speaks of time, where less is earlier.
    """

    at: int
    sign: int
    soon: bool
    left: Sequence[Token]
    right: Sequence[Token]


def ranking_signals(found: Match) -> list[Signal]:
    """A signal where the claim ranks two things against the evidence."""
    mine = _ranking(found.sentence)
    if mine is None:
        return []
    for i in found.top:
        passage = found.passages[i]
        rival = _told_otherwise(mine, passage) or _figures_otherwise(mine, passage)
        if rival is not None:
            word = found.words[mine.at]
            span = (word.start, word.end, word.text)
            reason = f"by {passage.text[rival[0] : rival[1]]!r} it is the other way round"
            return [signal("direction", span, passage, rival, reason, _STRENGTH)]
    return []


def _ranking(sentence: ParsedSentence) -> _Ranking | None:
    words, lowers = sentence.words, sentence.lowers
    for i, lower in enumerate(lowers):
        if sentence.words[i].stem in _EXCEEDS:
            left, right = _side(words[:i]), _side(words[i + 1 :])
            passive = i and lowers[i - 1] in _AUXILIARIES
            return _told_apart(i, 1, False, left, right) if i and not passive and not _denied(lowers, i) else None
        sign = 1 if lower in _MORE | _LATE else -1 if lower in _LESS | _SOON else 0
        if not sign or "than" not in lowers[i + 1 : i + 7] or _denied(lowers, i):
            continue
        if lower in ("more", "less") and not _of_quantity(lowers[i + 1]):
            continue
        than = lowers.index("than", i)
        left, right = _side([*words[:i], *words[i + 1 : than]]), _side(words[than + 1 :])
        return _told_apart(i, sign, lower in _SOON | _LATE, left, right)
    return None


def _of_quantity(lower: str) -> bool:
    return lower in _QUANTITIES or (lower.endswith("s") and not lower.endswith(("ss", "ous")))


def _denied(lowers: Sequence[str], i: int) -> bool:
    return any(lower in _NEGATING or lower.endswith(("n't", "n’t")) for lower in lowers[max(0, i - 3) : i])


def _side(words: Sequence[Token]) -> list[Token]:
    return [word for word in words if word.weight >= 1.0 or word.text[0].isdigit()]


def _told_apart(at: int, sign: int, soon: bool, left: Sequence[Token], right: Sequence[Token]) -> _Ranking | None:
    """With what tells the two sides apart; None where a side has nothing of its own."""
    here, there = {word.stem for word in left}, {word.stem for word in right}
    left = [word for word in left if word.stem not in there]
    right = [word for word in right if word.stem not in here]
    return _Ranking(at, sign, soon, left, right) if left and right else None


def _told_otherwise(mine: _Ranking, passage: Passage) -> tuple[int, int] | None:
    """Where the passage ranks the same two by the same kind of word, the other way round."""
    theirs = _ranking(passage)
    if theirs is None or (theirs.soon, passage.words[theirs.at].stem in _EXCEEDS) != (mine.soon, True) or mine.soon:
        return None
    same = _meet(mine.left, theirs.left) and _meet(mine.right, theirs.right)
    crossed = _meet(mine.left, theirs.right) and _meet(mine.right, theirs.left)
    if same == crossed or (mine.sign == theirs.sign) == same:
        return None
    word = passage.words[theirs.at]
    return word.start, word.end


def _meet(mine: Sequence[Token], theirs: Sequence[Token]) -> bool:
    stems = {word.stem for word in theirs}
    return any(word.stem in stems for word in mine)


def _figures_otherwise(mine: _Ranking, passage: Passage) -> tuple[int, int] | None:
    left, right = _places(mine.left, passage), _places(mine.right, passage)
    if not left or not right:
        return None
    figures = [
        fact
        for fact in passage.facts
        if fact.kind != "name"
        and fact.dimension != "ordinal"
        and not any(word.text.lower() in _DIFFERENCE for word in passage.after(fact.end, 1))
    ]
    figures = [fact for fact in figures if {*left, *right}.isdisjoint(passage.within(fact.start, fact.end))]
    one, other = _nearest(left, right, passage, figures)
    if one is None or other is None:
        return None
    order = _order(one, other)
    if not order or (mine.soon and one.kind == "number" and one.dimension not in _TIMES):
        return None
    if one.kind == "date" and not mine.soon:
        return None
    if order == mine.sign:
        return None
    return min(one.start, other.start), max(one.end, other.end)


def _order(one: Fact, other: Fact) -> int:
    """1 where the first figure is larger or later, -1 where the second is, 0 where they can't be compared."""
    a, b = one.value, other.value
    if isinstance(a, Day) and isinstance(b, Day):
        given = sum(map(bool, a)), sum(map(bool, b))
        return (a > b) - (a < b) if given[0] == given[1] and a.year and b.year else 0
    if isinstance(a, float) and isinstance(b, float) and one.dimension == other.dimension:
        return (a > b) - (a < b)
    return 0


def _places(words: Sequence[Token], passage: Passage) -> list[int]:
    """Where the passage has one of the words, to the letter if it can be."""
    exact = [i for word in words for i in passage.positions.get(word.stem, ())]
    if exact:
        return exact
    keys = {key for word in words for key in loose_keys(word.stem)}
    return [i for i, word in enumerate(passage.words) if word.weight > 0 and not keys.isdisjoint(loose_keys(word.stem))]


def _nearest(
    left: Sequence[int], right: Sequence[int], passage: Passage, figures: Sequence[Fact]
) -> tuple[Fact | None, Fact | None]:
    """The figure of each side: of two figures of a kind, each nearer to its own side than to the other."""
    best: tuple[int, Fact | None, Fact | None] = (2 * _FAR, None, None)
    for one in figures:
        for other in figures:
            if one is other or (one.kind, one.dimension) != (other.kind, other.dimension):
                continue
            if one.head and other.head and one.head != other.head and not one.dimension:
                continue
            straight = _distance(left, one, passage) + _distance(right, other, passage)
            crossed = _distance(left, other, passage) + _distance(right, one, passage)
            if straight < crossed and straight < best[0]:
                best = (straight, one, other)
    return best[1], best[2]


def _distance(places: Sequence[int], figure: Fact, passage: Passage) -> int:
    inside = passage.within(figure.start, figure.end)
    first, last = inside.start, max(inside.start, inside.stop - 1)
    return min(_steps(i, first if i < first else last, passage) for i in places)


def _steps(i: int, k: int, passage: Passage) -> int:
    low, high = sorted((i, k))
    steps = high - low
    for at in range(low + 1, high + 1):
        gap = passage.text[passage.words[at - 1].end : passage.words[at].start]
        if "," in gap or ";" in gap or passage.lowers[at] in _BREAKS:
            steps += _BOUNDARY
    return steps
