"""Where abstracts come from, as a protocol: a local corpus, PubMed, or a list in hand."""

from __future__ import annotations

from typing import Protocol

from masis.schema.screening import Abstract


class Retriever(Protocol):
    """Finds abstracts for a query, best first."""

    @property
    def name(self) -> str:
        """What the record calls it: ``corpus:asthma``, ``pubmed``."""
        ...

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """At most ``limit`` abstracts from ``offset`` on; a query is plain words, never a search language.

        The same query gives the same abstracts in the same order while the source does not change. Raises
        RetrievalFailed where the source can't be asked.
        """
        ...
