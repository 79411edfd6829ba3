"""Splits evidence into passages, the unit that claims are compared with.

A passage is a sentence, or a piece of a very long one (a table, a transcript), so that no text is
truncated. The words of a passage are known from the start; its facts are extracted on first use.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import attrgetter

from masis.audit.sentences import split_sentences
from masis.offline.parsing.facts import Fact, extract
from masis.offline.text.tokens import Token, tokens

LONGEST_PASSAGE = 80
"""Maximum number of words per passage. A longer sentence is split, and `Match.window` rejoins the
pieces.
"""
_START, _END = attrgetter("start"), attrgetter("end")


class ParsedSentence:
    """A sentence, or a piece of a very long one. `words` have offsets into `text`."""

    def __init__(self, text: str, words: Sequence[Token]) -> None:
        self.text, self.words = text, words
        self.content = frozenset(word.stem for word in words if word.weight > 0)

    @cached_property
    def facts(self) -> list[Fact]:
        """The numbers and dates, with offsets into the text."""
        return extract(self.text, self.words)

    @cached_property
    def content_words(self) -> list[Token]:
        """The words that carry content, without function words."""
        return [word for word in self.words if word.weight > 0]

    def content_before(self, start: int, near: int) -> list[Token]:
        """Return the last content words that end before the offset, at most `near`."""
        i = bisect_right(self.content_words, start, key=_END)
        return self.content_words[max(0, i - near) : i]

    def content_after(self, end: int, near: int) -> list[Token]:
        """Return the first content words that start at or after the offset, at most `near`."""
        i = bisect_left(self.content_words, end, key=_START)
        return self.content_words[i : i + near]


class EvidencePassage(ParsedSentence):
    """A passage of one chunk. `start` and `end` are offsets into the text of the chunk."""

    def __init__(
        self, document: int, evidence_id: str, text: str, start: int, words: list[Token]
    ) -> None:
        """Create a passage.

        Args:
            document: The index of the chunk in the case.
            evidence_id: The id of the chunk.
            text: The text of the passage.
            start: The offset of the passage in the text of the chunk.
            words: The tokens of the passage, with offsets into `text`.

        """
        super().__init__(text, words)
        self.document, self.evidence_id = document, evidence_id
        self.start, self.end = start, start + len(text)


def passages(document: int, evidence_id: str, text: str) -> Iterable[EvidencePassage]:
    """Yield the passages of a chunk's text, in order."""
    for span in split_sentences(text):
        sentence = text[span.start : span.end]
        words = tokens(sentence)
        if len(words) <= LONGEST_PASSAGE:
            if words:
                yield EvidencePassage(document, evidence_id, sentence, span.start, words)
            continue
        for first in range(0, len(words), LONGEST_PASSAGE):
            part = words[first : first + LONGEST_PASSAGE]
            begin, end = part[0].start, part[-1].end
            shifted = [
                word._replace(start=word.start - begin, end=word.end - begin) for word in part
            ]
            yield EvidencePassage(
                document, evidence_id, sentence[begin:end], span.start + begin, shifted
            )
