"""Documents of any origin as sources, recognised by their attributes and not by their types.

A document may be ours (SourceDocument, Evidence), a mapping, a text, LangChain's (``page_content``,
``metadata``, ``id``), LlamaIndex's (``node`` with a ``score``, or the node itself), or a pair of
any of these with its score. None of these libraries is imported.
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


def documents(retrieved: Any) -> tuple[SourceDocument, ...]:
    """Return documents as sources, in their order.

    Ids are kept. A document without one is named by its position (``chunk_1``). An exact duplicate
    is left out, and a different text under a used id gets the next free ``id#2``.

    Raises:
        InputError: It isn't a list of documents.

    """
    by_id: dict[str, SourceDocument] = {}
    texts_without_id: set[str] = set()
    for place, document in enumerate(_read_documents(retrieved), 1):
        if document.id is None and document.content in texts_without_id:
            continue
        wanted_id = document.id or _free_id(f"chunk_{place}", by_id)
        if wanted_id in by_id and by_id[wanted_id].content == document.content:
            known_document = by_id[wanted_id]
            scores = [
                score
                for score in (known_document.relevance_score, document.score)
                if score is not None
            ]
            by_id[wanted_id] = known_document.model_copy(
                update={"relevance_score": max(scores, default=None)}
            )
            continue
        if document.id is None:
            texts_without_id.add(document.content)
        free_id = _free_id(wanted_id, by_id)
        by_id[free_id] = SourceDocument(
            id=free_id,
            content=document.content,
            type=document.type,
            path=document.path,
            relevance_score=document.score,
        )
    return tuple(by_id.values())


def evidence(retrieved: Any) -> tuple[Evidence, ...]:
    """Return documents as evidence to audit against.

    Raises the errors of ``documents``.
    """
    return tuple(document.as_evidence() for document in documents(retrieved))


def _read_documents(retrieved: Any) -> Iterator[ReadDocument]:
    if isinstance(retrieved, Mapping):
        for key in ("documents", "results", "source_documents", "context"):
            if isinstance(retrieved.get(key), list | tuple):
                retrieved = retrieved[key]
                break
    if (
        retrieved is None
        or isinstance(retrieved, str | bytes | Mapping)
        or not isinstance(retrieved, Iterable)
    ):
        raise InputError(
            f"is {'nothing' if retrieved is None else type(retrieved).__name__},"
            " not a list of documents",
            hint=f"Give a list of {KINDS}; an empty one where nothing was found.",
            field="documents",
        )
    for place, document in enumerate(retrieved):
        yield _read_one_document(document, place)


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


def _free_id(name: str, used_ids: Mapping[str, SourceDocument]) -> str:
    free, number = name, 1
    while free in used_ids:
        number += 1
        free = f"{name}#{number}"
    return free
