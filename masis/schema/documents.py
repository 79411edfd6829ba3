"""Documents of different libraries, read by their attributes and not by their type.

Supported are a text, a mapping, a LangChain document (``page_content``, ``metadata``, ``id``), a
LlamaIndex node (alone or in ``node`` with a ``score``), and a pair of any of these and a score.
None of these libraries is imported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from masis.errors import InputError

ID_KEYS = ("id", "_id", "chunk_id", "doc_id", "document_id", "node_id", "uuid", "pk")
TEXT_KEYS = ("content", "text", "page_content", "snippet", "body")
PATH_KEYS = ("path", "source", "file_path", "file_name", "filename", "url", "uri", "title")
SCORE_KEYS = ("relevanceScore", "relevance_score", "score", "similarity")
KINDS = (
    "texts, mappings with 'id' and 'content' (or 'text'), LangChain documents or LlamaIndex nodes"
)


class ReadDocument(NamedTuple):
    """One document of any kind.

    ``id`` is None if it has none; ``metadata`` is the part of its metadata that JSON can represent.
    """

    id: str | None
    content: str
    type: str
    path: str | None
    score: float | None
    metadata: Mapping[str, Any]


def is_document(value: Any) -> bool:
    """Return whether a value is a single library document, which may itself be iterable."""
    return any(hasattr(value, name) for name in ("page_content", "get_content", "node"))


def read_document(
    document: Any, place: int, field: str = "documents", score: float | None = None
) -> ReadDocument:
    """Return the content of a document.

    Args:
        document: The document.
        place: Its position, from 0.
        field: The list that an error names, as ``field[place]``.
        score: Its score, if it came beside the document.

    Raises:
        InputError: The document is of an unknown kind.

    """
    if isinstance(document, str):
        return ReadDocument(None, document, "", None, score, {})
    if (
        isinstance(document, tuple)
        and len(document) == 2
        and finite_number(document[1]) is not None
    ):
        return read_document(document[0], place, field, finite_number(document[1]))
    if isinstance(document, Mapping):
        return _read_mapping(document, f"{field}[{place}]", score)
    return _read_object(document, f"{field}[{place}]", score)


def _read_mapping(document: Mapping[Any, Any], field: str, score: float | None) -> ReadDocument:
    nested = document.get("metadata")
    nested = nested if isinstance(nested, Mapping) else {}
    about = {**nested, **document}
    content = next((about[key] for key in TEXT_KEYS if isinstance(about.get(key), str)), None)
    if content is None:
        raise _unreadable_document(
            f"a mapping without {' or '.join(map(repr, TEXT_KEYS[:2]))}", field
        )
    return _read_by_keys(_document_id(about), content, about, score, nested)


def _read_object(document: Any, field: str, score: float | None) -> ReadDocument:
    # A NodeWithScore also forwards the attributes of its node, but the score is only beside it.
    if (node := getattr(document, "node", None)) is not None:  # LlamaIndex: a node with its score
        return _read_object(
            node, field, first_score(finite_number(getattr(document, "score", None)), score)
        )
    about = getattr(document, "metadata", None)
    about = about if isinstance(about, Mapping) else {}
    content = getattr(document, "page_content", None)
    # Not every version of LlamaIndex gives nodes a text attribute, but all have get_content().
    if not isinstance(content, str) and callable(own := getattr(document, "get_content", None)):
        content = own()
    if not isinstance(content, str):
        content = next(
            (own for key in TEXT_KEYS if isinstance(own := getattr(document, key, None), str)), None
        )
    if content is None:
        raise _unreadable_document(
            "None" if document is None else f"a {type(document).__name__}", field
        )
    ids = {key: getattr(document, key, None) for key in ("id", "node_id", "id_")}
    own_id = next((str(value) for value in ids.values() if value not in (None, "")), None)
    return _read_by_keys(own_id or _document_id(about), content, about, score, about)


def _read_by_keys(
    name: str | None,
    content: str,
    about: Mapping[Any, Any],
    score: float | None,
    metadata: Mapping[Any, Any],
) -> ReadDocument:
    path = next(
        (str(about[key]) for key in PATH_KEYS if isinstance(about.get(key), str) and about[key]),
        None,
    )
    plain_metadata = {str(key): value for key, value in metadata.items() if _is_plain_json(value)}
    return ReadDocument(
        name,
        content,
        str(about.get("type") or ""),
        path,
        document_score(about, score),
        plain_metadata,
    )


def _is_plain_json(value: Any) -> bool:
    """Return whether a value survives JSON unchanged.

    Libraries also put dates and objects of their own into metadata.
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _unreadable_document(description: str, field: str) -> InputError:
    return InputError(f"is {description}", hint=f"Give {KINDS}.", field=field)


def _document_id(about: Mapping[Any, Any]) -> str | None:
    return next((str(about[key]) for key in ID_KEYS if about.get(key) not in (None, "")), None)


def document_score(about: Mapping[Any, Any], score: float | None) -> float | None:
    """Return the given score, or else the score that the document itself has."""
    own = next(
        (number for key in SCORE_KEYS if (number := finite_number(about.get(key))) is not None),
        None,
    )
    return first_score(score, own)


def finite_number(value: Any) -> float | None:
    """Return a finite number of any library as a float, or None for anything else."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def first_score(*scores: float | None) -> float | None:
    """Return the first score that isn't None."""
    return next((score for score in scores if score is not None), None)
