"""Documents of any origin as sources, recognised by their methods, not by their types.

A document may be ours (SourceDocument, Evidence), a mapping, a text, one of LangChain's
(``page_content``, ``metadata``, ``id``), one of LlamaIndex's (``node`` with a ``score``, or the
node itself), or a pair of any of these with its score. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from masis.errors import InputError
from masis.schema.case import Evidence
from masis.schema.documents import (
    KINDS,
    ReadDocument,
    document_score,
    finite_number,
    first_score,
    read_document,
)
from masis.schema.drafts import SourceDocument


def documents(found: Any) -> tuple[SourceDocument, ...]:
    """What was found, as sources, in its order.

    Ids are kept. A document without one is named by its place (``chunk_1``); one that came before
    to the letter is left out, and one of another text under a used id gets the next free ``id#2``.
    Raises InputError for what is none.
    """
    taken: dict[str, SourceDocument] = {}
    nameless: set[str] = set()
    for place, read in enumerate(_read_documents(found), 1):
        if read.id is None and read.content in nameless:
            continue
        own_name = read.id or _free_id(f"chunk_{place}", taken)
        if own_name in taken and taken[own_name].content == read.content:
            taken[own_name] = _with_better_score(taken[own_name], read.score)
            continue
        if read.id is None:
            nameless.add(read.content)
        name = _free_id(own_name, taken)
        taken[name] = SourceDocument(
            id=name,
            content=read.content,
            type=read.type,
            path=read.path,
            relevance_score=read.score,
        )
    return tuple(taken.values())


def evidence(found: Any) -> tuple[Evidence, ...]:
    """What was found, as evidence to audit against; raises InputError as ``documents`` does."""
    return tuple(each.as_evidence() for each in documents(found))


def _read_documents(found: Any) -> Iterator[ReadDocument]:
    if isinstance(found, Mapping):
        for key in ("documents", "results", "source_documents", "context"):
            if isinstance(found.get(key), list | tuple):
                found = found[key]
                break
    if found is None or isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise InputError(
            f"is {'nothing' if found is None else type(found).__name__}, not a list of documents",
            hint=f"Give a list of {KINDS}; an empty one where nothing was found.",
            field="documents",
        )
    for place, each in enumerate(found):
        yield _read_one_document(each, place)


def _read_one_document(document: Any, place: int, score: float | None = None) -> ReadDocument:
    if isinstance(document, SourceDocument):
        score = first_score(document.relevance_score, score)
        return ReadDocument(document.id, document.content, document.type, document.path, score, {})
    if isinstance(document, Evidence):
        extra = document.model_extra or {}
        kind, score = str(extra.get("type") or ""), document_score(extra, score)
        return ReadDocument(document.id, document.text, kind, document.source, score, {})
    if (
        isinstance(document, tuple)
        and len(document) == 2
        and isinstance(document[0], SourceDocument | Evidence)
    ):
        return _read_one_document(document[0], place, finite_number(document[1]))
    return read_document(document, place, score=score)


def _with_better_score(before: SourceDocument, score: float | None) -> SourceDocument:
    scores = [each for each in (before.relevance_score, score) if each is not None]
    return before.model_copy(update={"relevance_score": max(scores) if scores else None})


def _free_id(name: str, taken: Mapping[str, SourceDocument]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    return free
