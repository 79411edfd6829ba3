"""The protocol of retrievers, two retrievers in memory, and the search terms of a query.

A query is plain text, not a search language. Operators, quotes, brackets and colons count as
punctuation, so that a text can't inject commands into a search engine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from masis.offline.text.tokens import STOPWORDS, tokens
from masis.schema.screening import Abstract, Design, Query
from masis.screening.sources.pool import with_notices


class Retriever(Protocol):
    """Finds abstracts for a query, best first."""

    @property
    def name(self) -> str:
        """The name stored with the screening: ``corpus:asthma``, ``pubmed``."""
        ...

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts from ``offset`` on; the query is plain text.

        While the source doesn't change, the same query gives the same abstracts in the same order.
        Raises RetrievalFailed if the source can't be searched.
        """
        ...


@runtime_checkable
class FilteredRetriever(Retriever, Protocol):
    """A retriever whose source has fields for the study design and the year."""

    def search_filtered(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        *,
        design: Design | None = None,
        since: int | None = None,
    ) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts of this design, from this year on.

        Raises RetrievalFailed.
        """
        ...


READ_FOR_YEAR = 200
"""Abstracts read from a source that can't filter by year; older ones are then left out."""


def search_source(retriever: Retriever, query: Query, limit: int) -> tuple[Abstract, ...]:
    """Search a source, with its own filters for design and year if it has them.

    Otherwise only the words of the query express the design, and the year is checked here.
    """
    if query.design is None and query.since is None:
        return retriever.search(query.text, limit, query.offset)
    if isinstance(retriever, FilteredRetriever):
        return retriever.search_filtered(
            query.text, limit, query.offset, design=query.design, since=query.since
        )
    if query.since is None:
        return retriever.search(query.text, limit, query.offset)
    results = retriever.search(query.text, max(limit, READ_FOR_YEAR), query.offset)
    return tuple(hit for hit in results if hit.year is not None and hit.year >= query.since)[:limit]


# k1 and b of BM25 (Robertson and Zaragoza 2009): how fast repetitions of a word stop counting, and
# how strongly long texts are discounted.
_SATURATION = 1.2
_LENGTH = 0.75
# How many times a word of the title counts.
_TITLE_WEIGHT = 3


class InMemoryRetriever:
    """Searches a list of abstracts with BM25 over word stems (Robertson and Zaragoza 2009).

    Abstracts without any word of the query are last, in the order of the list, so that all can be
    reached. The words of an abstract are counted when it is taken from ``abstracts`` (50,000 take
    half a minute), so that a caller can pass an iterable that reports progress.
    """

    def __init__(self, abstracts: Iterable[Abstract], name: str = "abstracts in hand") -> None:
        self.name = name
        self._abstracts: list[Abstract] = []
        self._counts: list[Counter[str]] = []
        self._document_counts: Counter[str] = Counter()
        for abstract in abstracts:
            counts = _count_stems(abstract)
            self._abstracts.append(abstract)
            self._counts.append(counts)
            self._document_counts.update(counts.keys())
        self._abstracts = with_notices(self._abstracts)
        self._lengths = [sum(counts.values()) for counts in self._counts]

    def __len__(self) -> int:
        """Return how many abstracts the list has."""
        return len(self._abstracts)

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts from ``offset`` on, best first."""
        count, stems = (
            len(self._abstracts),
            sorted({token.stem for token in tokens(query) if token.weight}),
        )
        # BM25's inverse document frequency. The 1 inside the logarithm keeps it positive for words
        # that more than half of the abstracts contain.
        idf = {
            stem: math.log(1 + (count - (n := self._document_counts[stem]) + 0.5) / (n + 0.5))
            for stem in stems
        }
        mean = sum(self._lengths) / max(1, count) or 1.0

        def score(index: int) -> float:
            counts = self._counts[index]
            damped = _SATURATION * (1 - _LENGTH + _LENGTH * self._lengths[index] / mean)
            return sum(
                idf[stem] * (n := counts[stem]) * (_SATURATION + 1) / (n + damped) for stem in stems
            )

        order = sorted(range(count), key=lambda index: (-score(index), index))
        return tuple(self._abstracts[index] for index in order[offset : offset + limit])


GIVEN = "abstracts given"
"""The source of a screening that graded a given set of abstracts and searched nothing."""


class FixedSetRetriever:
    """Returns the same set of abstracts for every query, in the given order."""

    def __init__(self, abstracts: Sequence[Abstract], name: str = GIVEN) -> None:
        self.name = name
        self._abstracts = tuple(with_notices(abstracts))

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts from ``offset`` on; the query is ignored."""
        return self._abstracts[offset : offset + limit]


def _count_stems(abstract: Abstract) -> Counter[str]:
    counts = Counter(token.stem for token in tokens(abstract.text) if token.weight)
    for token in tokens(abstract.title):
        if token.weight:
            counts[token.stem] += _TITLE_WEIGHT
    return counts


MAX_TERMS = 64
"""Terms used of one query. A question has about ten; searching a pasted page would take seconds."""

_MAX_TERM_LENGTH = 80
# Letters and digits, also joined by hyphens or apostrophes: "double-blind", "Crohn's".
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")


def search_terms(query: str) -> tuple[str, ...]:
    """Return the distinct terms of a query, in order and in lower case; ``low-dose`` is one term.

    Stop words are left out unless the query has nothing else.
    """
    terms = dict.fromkeys(
        word.replace("’", "'").removesuffix("'s")
        for match in _WORD.finditer(query.casefold())
        if len(word := match.group()) <= _MAX_TERM_LENGTH
    )
    content = [term for term in terms if term not in STOPWORDS]
    return tuple((content or list(terms))[:MAX_TERMS])
