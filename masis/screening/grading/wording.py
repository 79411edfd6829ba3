"""Looking for wordings in an abstract: patterns with a guard against their denial ("not blinded", "non-randomised")."""

from __future__ import annotations

import re

from masis.schema.screening import Abstract, Words

_DENIED = re.compile(
    r"(?:\b(?:not|no|never|without|neither|nor|lack of|absence of|non|quasi)[- ]?(?:an? |any )?|\bun|\bnon)$", re.I
)
_LOOK_BACK = 20
LONGEST_READ = 20_000
"""Characters of a text or title that are read: a record with more is no abstract."""
_TRIES = 8


class Wording:
    """A pattern, searched without regard to case, whose denied occurrences don't count.

    Every repetition in a pattern is bounded: a search takes time linear in the text. Where lowering a text keeps its
    length, as it nearly always does, the lowered text is searched, which is twice as fast as ignoring case.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern, re.I | re.A)
        self._lowered = re.compile(pattern.lower(), re.A)

    def search(self, text: str) -> tuple[int, int] | None:
        """Return where it first occurs undenied; None where it doesn't."""
        lowered = text.lower()
        pattern, searched = (self._lowered, lowered) if len(lowered) == len(text) else (self._pattern, text)
        for tried, found in enumerate(pattern.finditer(searched, 0, LONGEST_READ)):
            before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
            if not _DENIED.search(before):
                return found.span()
            if tried >= _TRIES:
                return None
        return None


def first(wording: Wording, abstract: Abstract, *, title: bool = True, text: bool = True) -> tuple[Words, ...]:
    """Return the first words of an abstract that a wording matches, those of the text before those of the title; or
    none.
    """
    if text and (span := wording.search(abstract.text)):
        return (Words(start=span[0], end=span[1], text=abstract.text[slice(*span)]),)
    if title and (span := wording.search(abstract.title)):
        return (Words(start=span[0], end=span[1], text=abstract.title[slice(*span)], place="title"),)
    return ()
