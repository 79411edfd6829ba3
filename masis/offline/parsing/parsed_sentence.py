"""A sentence of a claim or of the evidence: tokens at once, everything derived from them on first use.

Parsing is the expensive part; a claim compared with many chunks is parsed once.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from operator import attrgetter

from masis.offline.parsing.facts import Fact, extract
from masis.offline.parsing.polarity import negated, negation_cues, universal
from masis.offline.parsing.predicates import Clause, split_clauses
from masis.offline.text.lexicon import antonyms, loose_keys, phrases
from masis.offline.text.tokens import Token

# The clauses of a sentence, as bit masks over its content words: what is asserted together is compared together.

_MARKS = frozenset(",;:()–—")
_WORDS = frozenset("and but which who while whereas because although that including with whose where since".split())
LEAST = 2.0
"""The least weight of a clause of its own."""


def clause_masks(text: str, words: Sequence[Token]) -> list[int]:
    """Return the masks of the clauses of a sentence in order; one that is too light joins its neighbour."""
    masks: list[int] = []
    mask, weight, b, last = 0, 0.0, 0, -1
    for i, word in enumerate(words):
        if word.weight <= 0:
            continue
        if weight >= LEAST and _breaks(text, words, last, i):
            masks.append(mask)
            mask, weight = 0, 0.0
        mask |= 1 << b
        weight += word.weight
        b, last = b + 1, i
    if mask and weight < 1.0 and masks:
        masks[-1] |= mask
    elif mask:
        masks.append(mask)
    return masks


def _breaks(text: str, words: Sequence[Token], left: int, right: int) -> bool:
    between = text[words[left].end : words[right].start]
    if not between.isspace() and any(mark in _MARKS for mark in between):
        return True
    return right - left > 1 and any(words[k].text in _WORDS for k in range(left + 1, right))


_START, _END = attrgetter("start"), attrgetter("end")


class ParsedSentence:
    """A sentence, or a piece of one that runs on; `words` have offsets into `text`.

    `known_names` are words that are names even where a sentence starts.
    """

    def __init__(self, text: str, words: Sequence[Token], known_names: Collection[str] = ()) -> None:
        self.text, self.words, self.known_names = text, words, known_names
        self.content = frozenset(word.stem for word in words if word.weight > 0)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The looser keys of its content words."""
        return frozenset(key for root in self.content for key in loose_keys(root))

    @cached_property
    def facts(self) -> list[Fact]:
        """Its numbers, dates and names, with offsets into the text."""
        return extract(self.text, self.known_names, self.words)

    @cached_property
    def names(self) -> list[Fact]:
        """Its names alone."""
        return [fact for fact in self.facts if fact.kind == "name"]

    @cached_property
    def lowers(self) -> list[str]:
        """Its words in lower case."""
        return [word.text.lower() for word in self.words]

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """The positions of each stem, as word indices."""
        found: dict[str, list[int]] = {}
        for i, word in enumerate(self.words):
            found.setdefault(word.stem, []).append(i)
        return found

    @cached_property
    def cues(self) -> list[int]:
        """Word indices of the negations themselves."""
        return negation_cues(self.words)

    @cached_property
    def negated(self) -> dict[int, int]:
        """Word indices in the scope of a negation, each with its cue."""
        return negated(self.text, self.words, self.cues)

    @cached_property
    def universal(self) -> list[int]:
        """Word indices of what leaves no exception."""
        return universal(self.words)

    def before(self, start: int, near: int) -> Sequence[Token]:
        """Return the last words that end before the offset, at most `near`."""
        i = bisect_right(self.words, start, key=_END)
        return self.words[max(0, i - near) : i]

    def after(self, end: int, near: int) -> Sequence[Token]:
        """Return the first words that begin at the offset or behind it, at most `near`."""
        i = bisect_left(self.words, end, key=_START)
        return self.words[i : i + near]

    @cached_property
    def content_words(self) -> list[Token]:
        """Its content words."""
        return [word for word in self.words if word.weight > 0]

    def content_before(self, start: int, near: int) -> list[Token]:
        """Return the last content words that end before the offset, at most `near`."""
        i = bisect_right(self.content_words, start, key=_END)
        return self.content_words[max(0, i - near) : i]

    def content_after(self, end: int, near: int) -> list[Token]:
        """Return the first content words that begin at the offset or behind it, at most `near`."""
        i = bisect_left(self.content_words, end, key=_START)
        return self.content_words[i : i + near]

    @cached_property
    def clause_masks(self) -> list[int]:
        """Its clauses, as masks over its content words."""
        return clause_masks(self.text, self.words)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Its clauses: what it says of one subject after the other."""
        return split_clauses(self.text, self.words)

    @cached_property
    def phrases(self) -> dict[int, str]:
        """Verbs with a particle, as indices of the verb, and the stem of the word they stand for."""
        return phrases(self.words)

    @cached_property
    def polar(self) -> frozenset[str]:
        """The stems in it that have an opposite."""
        opposed = antonyms()
        return frozenset(root for root in (*self.positions, *self.phrases.values()) if root in opposed)
