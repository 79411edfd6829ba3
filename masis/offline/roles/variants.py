"""Stretches of evidence that give a value, and the words that part one from another.

"80 km/h by day and 60 km/h at night" is one passage and two stretches: each has a value of the same kind, and "day" and
"night" part them. What follows from that for an answer that names neither is in ``conditions``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree, comparable
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token, tokens

LABEL_WORDS = 6
MOST_UNITS = 200
"""Stretches with a comparable value that are looked at for one claim."""
_COMPARING = frozenset(
    """under over above below more less least most before after until within without outside inside not other others
    otherwise elsewhere first second only except unless each every all any both no between during through""".split()
)
"""Function words that make a condition."""
OPENERS = frozenset(
    """for in within to under over above below during from at by if when on after before outside inside elsewhere with
    without until through across among per as between since of compared versus vs against""".split()
)
_JOINING = frozenset("compared versus vs against".split())
PRONOUNS = frozenset("it its they their this these those that".split())
_CUTS = (re.compile(r"[;|]|\s[-–—]\s"), re.compile(r","), re.compile(r"\b(?:and|but|while|whereas)\b"))
LABEL = re.compile(r"[\s|>*•+-]*[^:|\n]{1,60}[:|]")
_REACH = 5
"""Words behind an opener that belong to its phrase."""


class Unit:
    """A stretch of a passage with the value it gives and its other words, as far as they tell conditions apart."""

    def __init__(self, passage: Passage, start: int, end: int, value: Fact) -> None:
        self.at, self.passage, self.start, self.end, self.value = passage.at, passage, start, end, value
        self.text = passage.text[start:end].strip(" \t\n,;|")
        self.words = [
            word
            for word in passage.words
            if start <= word.start < end
            and not (value.start <= word.start < value.end)
            and (word.weight > 0 or word.text.lower() in _COMPARING or (_letter(word) and word.start > start))
            and word.text.lower() not in _JOINING
        ]
        self.keys = {word.stem: word for word in self.words}

    @cached_property
    def labelled(self) -> bool:
        """Whether it reads "label: value", with few words beside."""
        return len(self.words) <= LABEL_WORDS and bool(LABEL.match(self.text))

    @cached_property
    def conditional(self) -> frozenset[str]:
        """The words in a label, or in a phrase that a preposition opens."""
        if self.labelled:
            return frozenset(self.keys)
        found, left = set(), 0
        previous_end = self.start
        for word in self.passage.words:
            if not self.start <= word.start < self.end:
                continue
            broken = any(mark in ",;:()" for mark in self.passage.text[previous_end : word.start])
            previous_end = word.end
            lower = word.text.lower()
            if broken or lower in PRONOUNS or self.value.start <= word.start < self.value.end:
                left = 0
            if left or lower in _COMPARING:
                found.add(word.stem)
            left = _REACH if lower in OPENERS else max(0, left - 1)
        return frozenset(found)

    @cached_property
    def leans(self) -> bool:
        """Whether its subject is a pronoun, so that it takes over what was said before."""
        return any(word.text.lower() in PRONOUNS for word in self.passage.words if self.start <= word.start < self.end)


def units(fact: Fact, index: EvidenceIndex) -> tuple[Unit, ...]:
    """Return the stretches of the evidence that give a value of this kind, the first `MOST_UNITS`."""
    return _units(fact._replace(start=0, end=0), index)


@lru_cache(maxsize=256)
def _units(fact: Fact, index: EvidenceIndex) -> tuple[Unit, ...]:
    return tuple(islice(_stretches(fact, index.passages), MOST_UNITS))


def _stretches(fact: Fact, passages: Sequence[Passage]) -> Iterator[Unit]:
    for passage in passages:
        values = [other for other in passage.facts if other.kind == fact.kind and _alike(fact, other, passage)]
        if not values:
            continue
        cuts = (cut for a, b in pairwise(values) if (cut := _cut(passage, a, b)))
        for start, end in pairwise([0, *cuts, len(passage.text)]):
            inside = [value for value in values if start <= value.start < end]
            if inside:
                yield _unit(passage, start, end, _value(fact, inside))


def _unit(passage: Passage, start: int, end: int, value: Fact) -> Unit:
    """The stretch as kept by its passage: many claims ask for it."""
    known = passage.units.get((start, end, value.start))
    if known is None:
        known = passage.units[start, end, value.start] = Unit(passage, start, end, value)
    assert isinstance(known, Unit)
    return known


def _alike(fact: Fact, other: Fact, passage: Passage) -> bool:
    if comparable(fact, other) or says(other, fact):
        return True
    # A bare number may stand behind a label for the same thing: "Free: 10" beside "The limit is 100."
    bare = fact.kind == "number" and not fact.dimension and not other.dimension
    return bare and len(passage.words) <= LABEL_WORDS and bool(LABEL.match(passage.text))


def _value(fact: Fact, inside: Sequence[Fact]) -> Fact:
    """The fact that the stretch gives: the claim's, else the last one written in the claim's unit, else the last."""
    same = [value for value in inside if says(value, fact)]
    unit = [value for value in inside if _written_unit(value) == _written_unit(fact)]
    return (same or unit or list(inside))[-1]


def _written_unit(fact: Fact) -> str:
    return re.sub(r"[\d.,\s]+", "", fact.text).lower()


def says(one: Fact, other: Fact) -> bool:
    """Whether two facts give the same value, as far as both go."""
    return agree(one, other) or agree(other, one)


def _cut(passage: Passage, a: Fact, b: Fact) -> int:
    """Where between two values one stretch ends and the next begins; 0 where nothing parts them."""
    between = passage.text[a.end : b.start]
    for mark in _CUTS:
        if found := mark.search(between):
            return a.end + found.start()
    return 0


def met(words: Iterable[Token], sentence: Collection[str]) -> list[Token]:
    """The words that are said, to the letter or by a relative."""
    return [word for word in words if word.stem in sentence or any(key in sentence for key in loose_keys(word.stem))]


def _letter(word: Token) -> bool:
    return len(word.text) == 1 and word.text.isupper()


@lru_cache(maxsize=1024)
def letters(text: str) -> frozenset[str]:
    """The single capitals that name something ("zone A"), as stems; one that opens the text may be an article."""
    return frozenset(word.stem for word in tokens(text) if _letter(word) and word.start > 0)


def in_place_of(one: Unit, other: Unit) -> frozenset[str]:
    """The words before the same word in both stretches, each in the other's place: "small loaves", "large loaves"."""
    mine, theirs = _before_shared(one, other), _before_shared(other, one)
    both = mine.keys() & theirs.keys()
    return frozenset(root for shared in both for root in (mine[shared], theirs[shared]))


def _before_shared(one: Unit, other: Unit) -> dict[str, str]:
    apart = {word.start: word.stem for word in difference(one, other)}
    words = [word for word in one.passage.words if one.start <= word.start < one.end]
    return {b.stem: a.stem for a, b in pairwise(words) if a.start in apart and b.stem in other.keys}


def difference(one: Unit, other: Unit) -> list[Token]:
    """The words of one stretch that the other lacks."""
    return [word for root, word in one.keys.items() if root not in other.keys]
