"""One round's search: every query put to every source, hits taken in turn, a record reported twice taken once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from masis.errors import RetrievalFailed
from masis.schema.screening import Abstract, Query
from masis.screening.sources.pool import Pool
from masis.screening.sources.retrievers import Retriever, search_source


class SearchResult(NamedTuple):
    """The result of a round's searches; ``identified`` counts hits that no earlier round brought, repeats included."""

    identified: int
    abstracts: tuple[Abstract, ...]
    warnings: tuple[str, ...]
    failed: bool


def search(
    queries: Sequence[Query],
    retrievers: Sequence[Retriever],
    limit: int,
    pool: Pool,
    before_search: Callable[[], None] = lambda: None,
) -> SearchResult:
    """Return at most ``limit`` abstracts from each source.

    ``before_search`` is called before each search, and may raise to stop. A record that an
    earlier round brought is neither identified nor a duplicate once more when another query finds it again.

    A source that fails leaves a warning; ``failed`` says that every one did, every time.
    """
    hits: list[tuple[Abstract, ...]] = []
    warnings: list[str] = []
    for query in queries:
        for retriever in retrievers:
            before_search()
            try:
                hits.append(tuple(search_source(retriever, query, limit)))
            except RetrievalFailed as error:
                warnings.append(f"{retriever.name}: {error}")
    identified, earlier = 0, frozenset(pool.seen)
    taken: dict[str, Abstract] = {}
    for place in zip_longest(*hits):
        for hit in place:
            if hit is None or len(taken) >= limit * len(retrievers):
                continue
            identified += hit.id not in earlier
            abstract = pool.add(hit)
            taken[abstract.id] = abstract
    return SearchResult(identified, tuple(taken.values()), tuple(dict.fromkeys(warnings)), not hits)
