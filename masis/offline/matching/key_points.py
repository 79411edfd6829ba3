"""The evidence of a case as the offline roles share it: one cached index, and the key points the
question asks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.matching.passages import EvidencePassage
from masis.offline.text.tokens import loose_keys, tokens
from masis.schema.audit import Claim, JudgedBy, Measurement
from masis.schema.case import Evidence

OFFLINE = "offline"
VERSION = "6"
"""Raised whenever an offline role judges otherwise than before."""

JUDGED_BY = JudgedBy(model=OFFLINE, version=VERSION)

_ASKING = frozenset(
    "what which who whom whose when where why how tell explain describe list name give "
    "compare".split()
)
_LEAD = re.compile(r"\s*(?:[-*•–+]|\(?\d{1,3}[.)]|[a-z][.)])\s+")
KEY_SHARE = 0.6
KEY_LEAST = 0.25
KEY_MOST = 6
KEY_WORDS = 4
"""Content words that a passage needs to count as a key point: a heading or a date line is none."""
ORIGIN_MOST = 300
"""Characters of a field of a chunk's origin in which figures are looked for."""
OWN_PART = 0.6
"""Weight of a passage's own words in its relevance, against those of its whole chunk."""


class KeyPoint(NamedTuple):
    """A passage of evidence that the question asks for; ``relevance`` is 0..1 against the most
    relevant one.
    """

    passage: EvidencePassage
    relevance: float


def index_of(evidence: Sequence[Evidence]) -> EvidenceIndex:
    """Return the index of this evidence, built once for all roles and iterations.

    Of a chunk's origin (source, title, date) figures count as evidence, as they do for whoever
    reads it.
    """
    return _index(
        tuple((chunk.id, chunk.text) for chunk in evidence), tuple(map(origin_of, evidence))
    )


def origin_of(chunk: Evidence) -> str:
    """Return where a chunk is from, in words: its source, title, date and the like."""
    extra = (
        str(value) for value in (chunk.model_extra or {}).values() if isinstance(value, str | int)
    )
    return " · ".join(part[:ORIGIN_MOST] for part in (chunk.source or "", *extra) if part)


@lru_cache(maxsize=4)
def _index(evidence: tuple[tuple[str, str], ...], origins: tuple[str, ...]) -> EvidenceIndex:
    return EvidenceIndex(evidence, origins=origins)


def plain_text(claim: Claim) -> str:
    """Return the text of a claim with its markers and its bullet blanked, so that offsets stay
    valid.
    """
    text = claim.text
    for start, end in claim.markers:
        text = text[:start] + " " * (end - start) + text[end:]
    lead = lead_of(text)
    return " " * len(lead) + text[len(lead) :]


def lead_of(text: str) -> str:
    """Return the bullet or number that opens a list item, with the blanks around it; empty where
    there is none.
    """
    found = _LEAD.match(text)
    return found.group() if found else ""


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the content stems of a text, with the looser keys (prefix, synonyms) under which
    related words meet.
    """
    found: set[str] = set()
    for token in tokens(text):
        if token.weight > 0:
            found.add(token.stem)
            found.update(loose_keys(token.stem))
    return frozenset(found)


def query_terms(query: str) -> dict[str, float]:
    """Return what the question is about: content stems with their weights, question
    words left out.
    """
    return {
        token.stem: token.weight
        for token in tokens(query)
        if token.weight > 0 and token.text.lower() not in _ASKING
    }


def aspects(query: str) -> tuple[frozenset[str], ...]:
    """Return the plain content words of the question, each as the keys under which related words
    meet it.

    Names, numbers and question words are none.
    """
    return tuple(
        frozenset([token.stem, *loose_keys(token.stem)])
        for token in tokens(query)
        if token.weight == 1.0 and token.text.lower() not in _ASKING
    )


def share_met(wanted: dict[str, float], found: frozenset[str]) -> float:
    """Return the share (by weight) of the wanted stems that are found, if loosely; 1 where nothing
    is wanted.
    """
    total = sum(wanted.values())
    if not total:
        return 1.0
    met = sum(
        weight
        for root, weight in wanted.items()
        if root in found or not found.isdisjoint(loose_keys(root))
    )
    return met / total


@lru_cache(maxsize=4)
def key_points(query: str, index: EvidenceIndex) -> tuple[KeyPoint, ...]:
    """Return the passages most relevant to the question, the best first; at most six.

    A passage is as relevant as its own words and, in part, the chunk around it: what follows the
    sentence that names the subject is about the subject too.
    """
    stems_of = [stems(passage.text) for passage in index.passages]
    wanted = {
        root: weight * rarity
        for root, weight in query_terms(query).items()
        if (rarity := _rarity(root, stems_of))
    }
    if not wanted:
        return ()
    around: dict[int, frozenset[str]] = {}
    for passage, own in zip(index.passages, stems_of, strict=True):
        around[passage.document] = around.get(passage.document, frozenset()) | own
    chunks = {document: share_met(wanted, own) for document, own in around.items()}
    scored = [
        (OWN_PART * share_met(wanted, own) + (1 - OWN_PART) * chunks[passage.document], at)
        for at, (passage, own) in enumerate(zip(index.passages, stems_of, strict=True))
        if len(passage.content) >= KEY_WORDS
    ]
    best = max((share for share, _ in scored), default=0.0)
    if best < KEY_LEAST:
        return ()
    chosen = sorted(
        (s for s in scored if s[0] >= max(KEY_LEAST, KEY_SHARE * best)), key=lambda s: (-s[0], s[1])
    )
    return tuple(KeyPoint(index.passages[at], share / best) for share, at in chosen[:KEY_MOST])


def _rarity(root: str, stems_of: list[frozenset[str]]) -> float:
    """Return the inverse passage frequency of a stem; 0 where no passage has it."""
    keys = [root, *loose_keys(root)]
    holding = sum(not own.isdisjoint(keys) for own in stems_of)
    return math.log(1 + len(stems_of) / holding) if holding else 0.0


def share_covered(passage: EvidencePassage, answer: frozenset[str]) -> float:
    """Return the share of a passage that the answer covers, 0..1 by word weight."""
    return share_met({word.stem: word.weight for word in passage.words if word.weight > 0}, answer)


def measurement(name: str, value: float, meaning: str) -> Measurement:
    """Return one measured quantity of a score, with what it means in words."""
    return Measurement(name=name, value=value, meaning=meaning)


def mean(values: Iterable[float], empty: float = 0.0) -> float:
    """Return the mean, or ``empty`` where there is none."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else empty
