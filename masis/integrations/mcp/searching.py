"""The chunks of a case that say most about some words, and the part of each where they stand."""

from __future__ import annotations

import re
import unicodedata

from masis.integrations.mcp.reports import FoundEvidence
from masis.integrations.mcp.sources import address
from masis.schema.case import Case, Evidence

MOST_CHUNKS = 5
EXCERPT = 300
_WORDS = 32
_WORD = re.compile(r"\w+")


def best_chunks(case: Case, text: str) -> list[FoundEvidence]:
    """Up to five chunks of a case with the most of the words, in the order of how many."""
    words = list(dict.fromkeys(_plain(found.group()) for found in _WORD.finditer(text)))[:_WORDS]
    plain = [(chunk, _plain(chunk.text)) for chunk in case.evidence]
    scored = [(sum(word in said for word in words), chunk) for chunk, said in plain]
    best = sorted((each for each in scored if each[0]), key=lambda each: -each[0])[:MOST_CHUNKS]
    return [
        FoundEvidence(
            source_id=address(case.id, chunk.id),
            case_id=case.id,
            evidence_id=chunk.id,
            source=chunk.source,
            excerpt=_excerpt(chunk, words),
            characters=len(chunk.text),
        )
        for _, chunk in best
    ]


def _excerpt(chunk: Evidence, words: list[str]) -> str:
    """The stretch around the first of the words."""
    plain = _plain(chunk.text)
    if len(plain) != len(chunk.text):  # positions differ where a character has no plain form of one character
        return chunk.text[:EXCERPT]
    first = min((at for word in words if (at := plain.find(word)) >= 0), default=0)
    start = max(0, first - EXCERPT // 4)
    cut = chunk.text[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(chunk.text) else ''}"


def _plain(text: str) -> str:
    """Lower case without accents, as the full text index compares words."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
