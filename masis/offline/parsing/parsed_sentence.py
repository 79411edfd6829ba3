"""A sentence of a claim or of the evidence: its words at once, its figures when first asked for."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter

from masis.offline.parsing.facts import Fact, extract
from masis.offline.text.tokens import Token

_START, _END = attrgetter("start"), attrgetter("end")


class ParsedSentence:
    """A sentence, or a piece of one that runs on; `words` have offsets into `text`."""

    def __init__(self, text: str, words: Sequence[Token]) -> None:
        self.text, self.words = text, words
        self.content = frozenset(word.stem for word in words if word.weight > 0)

    @cached_property
    def facts(self) -> list[Fact]:
        """Its numbers and dates, with offsets into the text."""
        return extract(self.text, self.words)

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
