"""Selects the evidence to send if all of it doesn't fit a model's context.

The size of a context is learned from refused calls: the evidence is halved until a call fits, and
the run remembers that size. A claim that the sent passages don't support is not confirmed rather
than unsupported, because the rest of the evidence wasn't read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from masis.errors import ContextFull
from masis.llm.roles.prompting import Asker
from masis.schema.case import Evidence

T = TypeVar("T")

WINDOW = 600
"""Maximum number of characters per passage. A passage ends with a sentence if possible."""
MIN_EVIDENCE = 2 * WINDOW
"""Evidence isn't cut below this number of characters, because a call that still doesn't
fit is too long for another reason.
"""
OMISSION = "\n[...]\n"
"""Separates two passages of a chunk if the text between them was left out."""
# Up to WINDOW characters that end with a sentence or line, else before a space, else anywhere.
_PASSAGE = re.compile(
    rf"(?s).{{1,{WINDOW}}}(?:(?<=[.!?\n])(?=\s)|\Z)|.{{1,{WINDOW}}}(?=\s)|.{{1,{WINDOW}}}"
)
_WORD = re.compile(r"\w+")


class EvidenceWindow(NamedTuple):
    """The evidence that a call sends; ``share`` is the part of all its characters, from 0 to 1."""

    evidence: Sequence[Evidence]
    share: float = 1.0


def ask_within_context(
    asker: Asker,
    evidence: Sequence[Evidence],
    about: Sequence[str],
    ask: Callable[[EvidenceWindow], T],
) -> tuple[T, EvidenceWindow]:
    """Ask with as much of the evidence as fits the model's context, and return that evidence too.

    If not all of it fits, the passages that share most words with ``about`` are sent. Propagates
    the errors of ``ask``.

    Raises:
        ContextFull: Hardly any evidence fits.

    """
    rooms = asker.control.evidence_room
    while True:
        fitted = narrow_evidence(evidence, about, rooms.get(asker.name, math.inf))
        try:
            return ask(fitted), fitted
        except ContextFull:
            sent = sum(len(chunk.text) for chunk in fitted.evidence)
            if sent // 2 < MIN_EVIDENCE:
                raise
            # Parallel calls may have learned a smaller room in the meantime, which is kept.
            rooms[asker.name] = min(rooms.get(asker.name, sent), sent // 2)


def narrow_evidence(
    evidence: Sequence[Evidence], about: Sequence[str], room: float
) -> EvidenceWindow:
    """Return the evidence cut to at most ``room`` characters.

    The texts of ``about`` take turns in choosing the most similar passage. Chunks and passages keep
    their order, and chunks their ids; a chunk without a chosen passage is left out.
    """
    total = sum(len(chunk.text) for chunk in evidence)
    if total <= room:
        return EvidenceWindow(evidence)
    passages = [
        (index, text)
        for index, chunk in enumerate(evidence)
        for text in _PASSAGE.findall(chunk.text)
    ]
    words = [_distinctive_words(text) for _, text in passages]
    frequencies = Counter(word for passage_words in words for word in passage_words)
    rankings = [_rank_passages(_distinctive_words(text), words, frequencies) for text in about]
    chosen: set[int] = set()
    left = room
    # In turns, so that each claim gets its best passage before any gets its second.
    for rank in range(len(passages)):
        for ranking in rankings:
            number = ranking[rank]
            if number not in chosen and len(passages[number][1]) <= left:
                chosen.add(number)
                left -= len(passages[number][1])
    passages_kept = [passages[number] for number in sorted(chosen)]
    chunks = tuple(
        evidence[index].model_copy(update={"text": OMISSION.join(text for _, text in group)})
        for index, group in (
            (index, list(group))
            for index, group in groupby(passages_kept, key=lambda passage: passage[0])
        )
    )
    return EvidenceWindow(chunks, (room - left) / total)


def _rank_passages(
    claim: frozenset[str], passages: Sequence[frozenset[str]], frequencies: Counter[str]
) -> list[int]:
    """Return the numbers of the passages, starting with the most similar to the claim.

    Similarity counts the shared distinctive words; rare words count more.
    """
    # Inverse document frequency, as in BM25.
    weights = {
        word: math.log(1 + len(passages) / frequencies[word])
        for word in claim
        if word in frequencies
    }
    return sorted(
        range(len(passages)),
        key=lambda n: -sum(weights.get(word, 0.0) for word in passages[n] & claim),
    )


def _distinctive_words(text: str) -> frozenset[str]:
    return frozenset(
        word for word in _WORD.findall(text.casefold()) if len(word) > 2 or word.isdigit()
    )
