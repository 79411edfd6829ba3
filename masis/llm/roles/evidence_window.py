"""Evidence that doesn't fit a model's context: what of it is sent, and how much of the whole that
is.

A context is learned by what a server refuses: the evidence is halved until a call fits, and the run
remembers what did. What wasn't read can't be spoken of: a claim that its passages don't support is
not confirmed rather than unsupported.
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
"""Characters of one passage, about; it ends with a sentence where there is one."""
LEAST = 2 * WINDOW
"""Characters of evidence below which no more is left out: what doesn't fit then is not too long
because of it.
"""
LEFT_OUT = "\n[...]\n"
"""Stands between two passages of a chunk where something was left out."""
_PASSAGE = re.compile(
    rf"(?s).{{1,{WINDOW}}}(?:(?<=[.!?\n])(?=\s)|\Z)|.{{1,{WINDOW}}}(?=\s)|.{{1,{WINDOW}}}"
)
_WORD = re.compile(r"\w+")


class EvidenceWindow(NamedTuple):
    """The evidence that a call sent; ``share`` is how much of it was sent, 1 where nothing was left
    out.
    """

    evidence: Sequence[Evidence]
    share: float = 1.0


def ask_within_context(
    asker: Asker,
    evidence: Sequence[Evidence],
    about: Sequence[str],
    ask: Callable[[EvidenceWindow], T],
) -> tuple[T, EvidenceWindow]:
    """Ask with as much of the evidence as fits the model's context.

    That is all of it, or what shares most words with ``about``.

    Raises:
        ContextFull: Hardly any evidence fits. Whatever else ``ask`` raises comes through.

    """
    room = asker.control.evidence_room
    while True:
        fitted = narrow_evidence(evidence, about, room.get(asker.name, math.inf))
        try:
            return ask(fitted), fitted
        except ContextFull:
            sent = sum(len(chunk.text) for chunk in fitted.evidence)
            if sent // 2 < LEAST:
                raise
            room[asker.name] = min(room.get(asker.name, sent), sent // 2)


def narrow_evidence(
    evidence: Sequence[Evidence], about: Sequence[str], room: float
) -> EvidenceWindow:
    """Return the evidence cut to so many characters.

    Each text of ``about`` in turn takes the passage most like it. Chunks keep their ids and order,
    and passages the order in which they stand; a chunk of which nothing is sent is left out.
    """
    total = sum(len(chunk.text) for chunk in evidence)
    if total <= room:
        return EvidenceWindow(evidence)
    passages = [
        (at, text) for at, chunk in enumerate(evidence) for text in _PASSAGE.findall(chunk.text)
    ]
    words = [_telling_words(text) for _, text in passages]
    spread = Counter(word for each in words for word in each)
    wanted = [_rank_passages(_telling_words(text), words, spread) for text in about]
    chosen: set[int] = set()
    left = room
    for place in range(len(passages)):
        for ranked in wanted:
            number = ranked[place]
            if number not in chosen and len(passages[number][1]) <= left:
                chosen.add(number)
                left -= len(passages[number][1])
    kept = [passages[number] for number in sorted(chosen)]
    chunks = tuple(
        evidence[at].model_copy(update={"text": LEFT_OUT.join(text for _, text in group)})
        for at, group in (
            (at, list(group)) for at, group in groupby(kept, key=lambda each: each[0])
        )
    )
    return EvidenceWindow(chunks, (room - left) / total)


def _rank_passages(
    claim: frozenset[str], passages: Sequence[frozenset[str]], spread: Counter[str]
) -> list[int]:
    """Return the numbers of the passages, that which shares the most telling words with the claim
    first.
    """
    worth = {word: math.log(1 + len(passages) / spread[word]) for word in claim if word in spread}
    return sorted(
        range(len(passages)),
        key=lambda n: -sum(worth.get(word, 0.0) for word in passages[n] & claim),
    )


def _telling_words(text: str) -> frozenset[str]:
    return frozenset(
        word for word in _WORD.findall(text.casefold()) if len(word) > 2 or word.isdigit()
    )
