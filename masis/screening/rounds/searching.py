"""One round's search: every query put to every source, hits taken in turn, a record reported twice taken once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from masis.errors import RetrievalFailed
from masis.schema.screening import Abstract, Query
from masis.screening.sources.duplicates import RecordKeys, matched_by, record_keys
from masis.screening.sources.retrievers import Retriever, search_source


class SearchResult(NamedTuple):
    """The result of a round's searches: hits with repeats counted, the abstracts once each, warnings."""

    identified: int
    abstracts: tuple[Abstract, ...]
    warnings: tuple[str, ...]
    failed: bool


@dataclass
class Pool:
    """The abstracts of a screening so far, each once, by id and by what else a record is known by.

    ``by_title`` False takes no likeness of titles for sameness: whoever gave the records gave them ids of their own.
    """

    by_title: bool = True
    by_id: dict[str, Abstract] = field(default_factory=dict)
    _marks: dict[str, RecordKeys] = field(default_factory=dict)
    _by_mark: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, abstract: Abstract) -> Abstract:
        """Return the abstract as the pool knows it: itself if it is new, else the one that came first."""
        if abstract.id in self.by_id:
            return self.by_id[abstract.id]
        keys_of_record = record_keys(abstract)
        title = keys_of_record.title if self.by_title else None
        keys = [
            (kind, key)
            for kind, key in (("doi", keys_of_record.doi), ("pmid", keys_of_record.pmid), ("title", title))
            if key
        ]
        for key in keys:
            for other in self._by_mark.get(key, ()):
                if matched_by(keys_of_record, self._marks[other]) is not None:
                    return self.by_id[other]
        self.by_id[abstract.id] = abstract
        self._marks[abstract.id] = keys_of_record
        for key in keys:
            self._by_mark.setdefault(key, []).append(abstract.id)
        return abstract


def search(
    queries: Sequence[Query],
    retrievers: Sequence[Retriever],
    limit: int,
    pool: Pool,
    before_search: Callable[[], None] = lambda: None,
) -> SearchResult:
    """Return at most ``limit`` abstracts from each source.

    ``before_search`` is called before each search, and may raise to stop.

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
    identified = 0
    taken: dict[str, Abstract] = {}
    for place in zip_longest(*hits):
        for hit in place:
            if hit is None or len(taken) >= limit * len(retrievers):
                continue
            identified += 1
            abstract = pool.add(hit)
            taken[abstract.id] = abstract
    return SearchResult(identified, tuple(taken.values()), tuple(dict.fromkeys(warnings)), not hits)
