"""Where abstracts come from in a graph: our retrievers as they are, LangChain's and functions by their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from masis.errors import InputError, RetrievalFailed
from masis.integrations.langgraph.reading import abstracts_by_id
from masis.schema.screening import Abstract
from masis.screening.retrieval import Retriever

Source: TypeAlias = Any
"""Something with ``search`` (ours) or ``invoke`` (LangChain's), or a function of a query that gives documents."""


def retriever_of(source: Source) -> Retriever:
    """The source as a retriever of ours. Raises InputError for what can't be asked."""
    if hasattr(source, "search"):
        ours: Retriever = source
        return ours
    ask = getattr(source, "invoke", source)
    if not callable(ask):
        raise InputError(
            f"{type(source).__name__} can't be asked",
            cure="Give a retriever with search or invoke, or a function of a query.",
            field="retrievers",
        )
    name = getattr(source, "name", None) or getattr(source, "__name__", None) or type(source).__name__
    return _Asked(ask, str(name))


class _Asked:
    """Takes what is given for a query as its whole list, and reads on in it."""

    def __init__(self, ask: Callable[[str], Iterable[Any]], name: str) -> None:
        self._ask, self.name = ask, name

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """At most ``limit`` of what is given, from ``offset`` on. Raises RetrievalFailed where that fails."""
        try:
            found = abstracts_by_id(self._ask(query))
        except Exception as error:  # sources of others fail in ways of their own
            raise RetrievalFailed(f"it can't be asked, or read: {type(error).__name__}.") from error
        return tuple(map(Abstract.model_validate, list(found.values())[offset : offset + limit]))
