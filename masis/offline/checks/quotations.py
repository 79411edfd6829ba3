"""Quotations of a claim that stand word for word in no evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from masis.offline.checks.copies import words_of
from masis.offline.matching.assessment import Signal

LEAST_WORDS = 4
"""Words from which words in quotation marks are taken for a quotation; fewer may be a term or a nickname."""
_QUOTED = re.compile(r"“([^“”]*+)”|„([^“”„]*+)[“”]|«([^«»]*+)»|\"([^\"]*+)\"")
_LEFT_OUT = re.compile(r"\[[^\[\]]{0,40}\]|…|\.\.\.")
"""What a quotation leaves out or puts in its own words."""
_CAPITALISED = 0.7
"""Share of longer words with a capital from which the quoted words are a title."""


class Quotable:
    """The words of all evidence, in which quotations are looked for; read when the first one is."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _words(self) -> list[str]:
        return [_spaced(text) for text in self._texts]

    def accused(self, claim: str, question: str) -> Iterator[Signal]:
        """Yield a signal without evidence for each quotation of the claim that neither evidence nor question has."""
        if claim.count('"') % 2:
            return  # it is unclear which marks open and which close
        for found in _QUOTED.finditer(claim):
            start, end = found.start() + 1, found.end() - 1
            quoted = claim[start:end]
            if len(words_of(quoted)) < LEAST_WORDS or _is_title(quoted):
                continue
            parts = [part for part in map(_spaced, _LEFT_OUT.split(quoted)) if part.strip()]
            if not any(all(part in text for part in parts) for text in (*self._words, _spaced(question))):
                reason = f"the quotation “{quoted.strip()}” stands in no evidence"
                yield Signal("quotation", (start, end), quoted, "", 0, 0, "", reason, 0.9)


def _spaced(text: str) -> str:
    return f" {' '.join(words_of(text))} " if text.strip() else ""


def _is_title(quoted: str) -> bool:
    longer = [word for word in re.findall(r"[^\W\d_]+", quoted) if len(word) > 3]
    return bool(longer) and sum(word[0].isupper() for word in longer) >= _CAPITALISED * len(longer)
