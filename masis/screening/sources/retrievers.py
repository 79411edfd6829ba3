"""The protocol of retrievers, two that work on a list in memory, and the words of a query that are
worth searching for.

A query is plain words, never a search language: operators, quotes, brackets and colons are
punctuation here, so that no text can steer a search engine.
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
        """Return at most ``limit`` abstracts from ``offset`` on; a query is plain words, never a
        search language.

        The same query gives the same abstracts in the same order while the source does not change.
        Raises RetrievalFailed where the source can't be asked.
        """
        ...


@runtime_checkable
class FilteredRetriever(Retriever, Protocol):
    """A retriever that can ask for a design and for a first year by fields of its own."""

    def search_filtered(
        self,
        query: str,
        limit: int,
        offset: int = 0,
        *,
        design: Design | None = None,
        since: int | None = None,
    ) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts of this design, from this year on. Raises
        RetrievalFailed.
        """
        ...


READ_FOR_YEAR = 200
"""A source without a field for the year is read so deep, and older abstracts are left out."""


def search_source(retriever: Retriever, query: Query, limit: int) -> tuple[Abstract, ...]:
    """Return what a source has for a query: by its fields where it has them, else by words and the
    year of a record.
    """
    if query.design is None and query.since is None:
        return retriever.search(query.text, limit, query.offset)
    if isinstance(retriever, FilteredRetriever):
        return retriever.search_filtered(
            query.text, limit, query.offset, design=query.design, since=query.since
        )
    if query.since is None:
        return retriever.search(query.text, limit, query.offset)
    found = retriever.search(query.text, max(limit, READ_FOR_YEAR), query.offset)
    return tuple(each for each in found if each.year is not None and each.year >= query.since)[
        :limit
    ]


_SATURATION = 1.2
_LENGTH = 0.75
_TITLE = 3
"""A word of the title counts as so many of the text."""


class InMemoryRetriever:
    """Searches a list of abstracts by BM25 over word stems (Robertson and Zaragoza 2009, k1 = 1.2,
    b = 0.75).

    What shares no word with a query comes last, in the order of the list, so that reading on
    reaches everything. The words of each abstract are counted as it is taken from ``abstracts``
    (50,000 take half a minute), so that an iterable can show how far that has come.
    """

    def __init__(self, abstracts: Iterable[Abstract], name: str = "abstracts in hand") -> None:
        self.name = name
        self._abstracts: list[Abstract] = []
        self._counts: list[Counter[str]] = []
        self._holding: Counter[str] = Counter()
        for abstract in abstracts:
            counts = _count_stems(abstract)
            self._abstracts.append(abstract)
            self._counts.append(counts)
            self._holding.update(counts.keys())
        self._abstracts = with_notices(self._abstracts)
        self._lengths = [sum(counts.values()) for counts in self._counts]

    def __len__(self) -> int:
        """Return how many abstracts it holds."""
        return len(self._abstracts)

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` abstracts from ``offset`` on, best first."""
        held, roots = (
            len(self._abstracts),
            sorted({token.stem for token in tokens(query) if token.weight}),
        )
        rare = {
            each: math.log(1 + (held - (n := self._holding[each]) + 0.5) / (n + 0.5))
            for each in roots
        }
        mean = sum(self._lengths) / max(1, held) or 1.0

        def score(index: int) -> float:
            counts = self._counts[index]
            damped = _SATURATION * (1 - _LENGTH + _LENGTH * self._lengths[index] / mean)
            return sum(
                rare[each] * (n := counts[each]) * (_SATURATION + 1) / (n + damped)
                for each in roots
            )

        order = sorted(range(held), key=lambda index: (-score(index), index))
        return tuple(self._abstracts[index] for index in order[offset : offset + limit])


GIVEN = "abstracts given"
"""The source of a screening that graded all it was given: there is nothing else to search."""


class FixedSetRetriever:
    """Returns one fixed set for any query, in its order."""

    def __init__(self, abstracts: Sequence[Abstract], name: str = GIVEN) -> None:
        self.name = name
        self._abstracts = tuple(with_notices(abstracts))

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return the abstracts from ``offset`` on, as many as ``limit`` allows; the query is
        ignored.
        """
        return self._abstracts[offset : offset + limit]


def _count_stems(abstract: Abstract) -> Counter[str]:
    counts = Counter(token.stem for token in tokens(abstract.text) if token.weight)
    for token in tokens(abstract.title):
        if token.weight:
            counts[token.stem] += _TITLE
    return counts


MOST_TERMS = 64
"""Terms taken from one query; a question has ten, a pasted page would take seconds."""

_LONGEST = 80
# Letters and digits, also joined by hyphens or apostrophes: "double-blind", "Crohn's".
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")


def search_terms(query: str) -> tuple[str, ...]:
    """Return the terms of a query in its order, in lower case, each once: ``low-dose`` is one, a
    phrase of two words.

    Words that every abstract holds are left out, unless nothing else is left.
    """
    found = dict.fromkeys(
        word.replace("’", "'").removesuffix("'s")
        for match in _WORD.finditer(query.casefold())
        if len(word := match.group()) <= _LONGEST
    )
    content = [word for word in found if word not in STOPWORDS]
    return tuple((content or list(found))[:MOST_TERMS])
