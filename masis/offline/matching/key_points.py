"""Helpers that the offline roles share: the cached evidence index and the question's key points."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.audit.text.headings import is_heading
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.matching.passages import EvidencePassage
from masis.offline.text.tokens import loose_keys, tokens
from masis.schema.audit import Claim, JudgedBy, Measurement
from masis.schema.case import Evidence

OFFLINE = "offline"
VERSION = "7"
"""Increased with every change to a verdict or score of an offline role."""

JUDGED_BY = JudgedBy(model=OFFLINE, version=VERSION)

# Words of a question that don't say what it is about.
_QUESTION_WORDS = frozenset(
    "what which who whom whose when where why how tell explain describe list name give "
    "compare".split()
)
# Matches the bullet or number of a list item: "- ", "• ", "1. ", "(2) ", "a) ". It doesn't match
# "-5" or "3.5", because a space must follow.
_LEAD = re.compile(r"\s*(?:[-*•–+]|\(?\d{1,3}[.)]|[a-z][.)])\s+")
KEY_SHARE = 0.6
"""Least relevance of a key point, as a share of the relevance of the best one."""
KEY_LEAST = 0.25
"""Least relevance of a key point, as a share of the question's content."""
KEY_MOST = 6
"""Maximum number of key points per question."""
KEY_WORDS = 4
"""Minimum number of content words of a key point. Headings and date lines have fewer."""
ORIGIN_MOST = 300
"""Maximum number of characters of each field of a chunk's origin that are searched for figures."""
OWN_PART = 0.6
"""Weight of a passage's own words in its relevance; the words of its chunk have the rest."""


class KeyPoint(NamedTuple):
    """A passage that helps to answer the question.

    ``relevance`` is relative to the most relevant passage, from 0 to 1.
    """

    passage: EvidencePassage
    relevance: float


def index_of(evidence: Sequence[Evidence]) -> EvidenceIndex:
    """Return the index of this evidence, which all roles and iterations share.

    Figures in a chunk's origin (source, title, date) count as evidence, because readers see them.
    """
    return _index(
        tuple((chunk.id, chunk.text) for chunk in evidence), tuple(map(origin_of, evidence))
    )


def origin_of(chunk: Evidence) -> str:
    """Return the text of the fields that tell a chunk's origin: source, title, date and others."""
    extra = (
        str(value) for value in (chunk.model_extra or {}).values() if isinstance(value, str | int)
    )
    return " · ".join(part[:ORIGIN_MOST] for part in (chunk.source or "", *extra) if part)


@lru_cache(maxsize=4)
def _index(evidence: tuple[tuple[str, str], ...], origins: tuple[str, ...]) -> EvidenceIndex:
    return EvidenceIndex(evidence, origins=origins)


def plain_text(claim: Claim) -> str:
    """Return the text of a claim with spaces for its markers and bullet, so offsets stay valid."""
    text = claim.text
    for start, end in claim.markers:
        text = text[:start] + " " * (end - start) + text[end:]
    lead = lead_of(text)
    return " " * len(lead) + text[len(lead) :]


def lead_of(text: str) -> str:
    """Return the bullet or number of a list item, with the spaces around it, or an empty string."""
    lead = _LEAD.match(text)
    return lead.group() if lead else ""


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the content stems of a text and their looser keys (prefix, synonyms).

    Two related words share a looser key.
    """
    keys: set[str] = set()
    for token in tokens(text):
        if token.weight > 0:
            keys.add(token.stem)
            keys.update(loose_keys(token.stem))
    return frozenset(keys)


def query_terms(query: str) -> dict[str, float]:
    """Return the content stems of the question with their weights, without question words."""
    return {
        token.stem: token.weight
        for token in tokens(query)
        if token.weight > 0 and token.text.lower() not in _QUESTION_WORDS
    }


def aspects(query: str) -> tuple[frozenset[str], ...]:
    """Return the plain content words of the question, each as its stem and looser keys.

    Names, numbers and question words are left out.
    """
    return tuple(
        frozenset([token.stem, *loose_keys(token.stem)])
        for token in tokens(query)
        if token.weight == 1.0 and token.text.lower() not in _QUESTION_WORDS
    )


def share_met(weights_by_stem: dict[str, float], stems_found: frozenset[str]) -> float:
    """Return the weighted share of the wanted stems that are in ``stems_found``.

    A related word counts like the same one. The share is 1 if there are no wanted stems.
    """
    total = sum(weights_by_stem.values())
    if not total:
        return 1.0
    met_weight = sum(
        weight
        for root, weight in weights_by_stem.items()
        if root in stems_found or not stems_found.isdisjoint(loose_keys(root))
    )
    return met_weight / total


@lru_cache(maxsize=4)
def key_points(query: str, index: EvidenceIndex) -> tuple[KeyPoint, ...]:
    """Return the passages most relevant to the question, the best first, at most `KEY_MOST`.

    The relevance of a passage depends on its own words and, in part, on those of its chunk. The
    chunk counts because a subject is named in one sentence and then referred to by "it". The
    heading of a chunk names its subject, but isn't a point itself.
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
        and not (is_first_of_several(index.passages, at) and is_heading(passage.text))
    ]
    best = max((share for share, _ in scored), default=0.0)
    if best < KEY_LEAST:
        return ()
    chosen = sorted(
        (s for s in scored if s[0] >= max(KEY_LEAST, KEY_SHARE * best)), key=lambda s: (-s[0], s[1])
    )
    return tuple(KeyPoint(index.passages[at], share / best) for share, at in chosen[:KEY_MOST])


def is_first_of_several(passages: Sequence[EvidencePassage], at: int) -> bool:
    """Return whether a passage is the first one of its chunk, and others follow it."""
    document = passages[at].document
    return (
        (at == 0 or passages[at - 1].document != document)
        and at + 1 < len(passages)
        and passages[at + 1].document == document
    )


def _rarity(root: str, stems_of: list[frozenset[str]]) -> float:
    """Return the inverse passage frequency of a stem, or 0 if no passage has it."""
    keys = [root, *loose_keys(root)]
    holding = sum(not own.isdisjoint(keys) for own in stems_of)
    return math.log(1 + len(stems_of) / holding) if holding else 0.0


def share_covered(passage: EvidencePassage, answer: frozenset[str]) -> float:
    """Return the weighted share of a passage's words that the answer has, from 0 to 1."""
    return share_met({word.stem: word.weight for word in passage.words if word.weight > 0}, answer)


def measurement(name: str, value: float, meaning: str) -> Measurement:
    """Return one measured component of a score. ``meaning`` explains it in words."""
    return Measurement(name=name, value=value, meaning=meaning)


def mean(values: Iterable[float], empty: float = 0.0) -> float:
    """Return the mean of the values, or ``empty`` if there are none."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else empty
