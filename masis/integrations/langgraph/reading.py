"""What a graph's state says, read into our records: evidence of any make, the case, the audit so far.

Evidence may be ``masis.Evidence``, mappings, LangChain documents, or objects with ``chunk_id`` and ``text``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from masis.errors import InputError
from masis.schema.case import Case, Evidence
from masis.schema.run import Run
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of, validate_abstract

Model = TypeVar("Model", bound=BaseModel)

IDS = ("id", "chunk_id", "doc_id", "document_id")
TEXTS = ("text", "page_content", "content")
SOURCES = ("source", "url", "file_path", "path")

NOTHING = Evidence(id="no_evidence_999999999", source="nothing was retrieved")
"""Stands where a retriever brought nothing: it has no text, and its id is none that an answer could hit by counting."""

_THREAD_SHOWN = 80


def state_entry(state: Any, name: str, default: Any = None) -> Any:
    """A field of the state, which is a mapping, or an object where the graph's schema is one."""
    value = state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)
    return default if value is None else value


def text_of(state: Any, name: str) -> str:
    """A field of the state that is text. Raises InputError where there is none."""
    text = state_entry(state, name, "")
    if not isinstance(text, str) or not text.strip():
        raise InputError("is empty", cure=f"Let a node before this one write {name!r} into the state.", field=name)
    return text


def plain_evidence(found: Iterable[Any]) -> list[dict[str, Any]]:
    """Evidence as plain mappings with ``id`` and ``text``; a chunk found twice is there once.

    One without an id is named by its place (``chunk_1``). Raises InputError for what has no text, for two texts under
    one id, and for one chunk in place of a list, which would be read letter by letter.
    """
    if isinstance(found, str | bytes | Mapping):
        raise InputError("is one thing, not a list of chunks", cure="Put it into a list.", field="evidence")
    plain: dict[str, dict[str, Any]] = {}
    for number, each in enumerate(found, 1):
        chunk = _chunk(each, number)
        chunks_by_id = plain.setdefault(chunk["id"], chunk)
        if chunks_by_id["text"] != chunk["text"]:
            raise InputError(
                f"the id {chunk['id']!r} names two different texts",
                cure="Give each chunk an id of its own.",
                field=f"evidence[{number - 1}]",
            )
    return list(plain.values())


def _chunk(found: Any, number: int) -> dict[str, Any]:
    fields = _fields(found)
    text = next((fields[name] for name in TEXTS if isinstance(fields.get(name), str)), None)
    if text is None:
        raise InputError(
            f"{type(found).__name__} has no text",
            cure="Give a mapping with id and text, a LangChain document, or an object with chunk_id and text.",
            field=f"evidence[{number - 1}]",
        )
    metadata = _metadata(fields)
    name = _first(IDS, fields, metadata)
    source = _first(SOURCES, fields, metadata)
    chunk = {"id": str(name) if name not in (None, "") else f"chunk_{number}", "text": text}
    more = {key: value for key, value in fields.items() if key not in (*IDS, *TEXTS, *SOURCES) and value is not None}
    return {**chunk, **({"source": str(source)} if source else {}), **_jsonable(more)}


def abstracts_by_id(found: Mapping[str, Any] | Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Abstracts as plain mappings by their ids: from a mapping by id, or from records and documents of any make.

    One without an id has the one that its PubMed id, DOI or title gives it. Raises InputError for what has neither a
    title nor a text, and for a text alone.
    """
    if isinstance(found, str | bytes):
        raise InputError("is one text, not a list of abstracts", cure="Put it into a list.", field="abstracts")
    read = (_abstract(each) for each in (found.values() if isinstance(found, Mapping) else found))
    return {abstract.id: abstract.model_dump(mode="json") for abstract in read}


def _abstract(found: Any) -> Abstract:
    if isinstance(found, Abstract):
        return found
    fields = _fields(found)
    values = {**_metadata(fields), **{key: each for key, each in fields.items() if key != "metadata" and each}}
    text = _first((*TEXTS, "abstract"), values)
    values = {key: value for key, value in values.items() if key not in (*TEXTS, "abstract") and value is not None}
    title, doi, pmid = (str(values.get(name) or "") for name in ("title", "doi", "pmid"))
    name = _first(IDS, values) or abstract_of(title=title, text=str(text or ""), doi=doi, pmid=pmid).id
    return validate_abstract({**_jsonable(values), "id": str(name), "text": str(text or "")})


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    found = fields.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _fields(found: Any) -> Mapping[str, Any]:
    if isinstance(found, Mapping):
        return found
    if isinstance(found, str):
        return {"text": found}
    if isinstance(found, BaseModel):
        return found.model_dump()
    names = (*IDS, *TEXTS, *SOURCES, "metadata")
    return {name: getattr(found, name) for name in names if getattr(found, name, None) is not None}


def _first(names: Iterable[str], *places: Mapping[str, Any]) -> Any:
    return next((place[name] for place in places for name in names if place.get(name) not in (None, "")), None)


def _jsonable(fields: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(fields, default=str))
    return plain


def evidence_of(state: Any) -> tuple[Evidence, ...]:
    """The evidence in the state, as the audit takes it."""
    found = plain_evidence(state_entry(state, "evidence", ()))
    return tuple(_valid(Evidence, chunk, "evidence") for chunk in found) or (NOTHING,)


def case_of(state: Any, answer: str, thread: str | None) -> Case:
    """The case of a thread whose first answer was this one: the same content has the same id."""
    query, evidence = text_of(state, "user_query"), evidence_of(state)
    chunks = [chunk.model_dump(mode="json") for chunk in evidence]
    content: dict[str, Any] = {"query": query, "answer": answer, "evidence": chunks, **_screening(state, thread)}
    try:
        digest = hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise InputError("holds half a surrogate pair", cure="Write it without.", field="state") from error
    metadata = {"made_by": "langgraph"} | ({"thread_id": thread} if thread else {})
    name = f"{(thread or 'graph')[:_THREAD_SHOWN]}-{digest[:8]}"
    return _valid(Case, content | {"id": name, "metadata": metadata}, "state")


def _screening(state: Any, thread: str | None) -> dict[str, Any]:
    """The outcome of the evidence critic, where one of ours has judged the evidence in this graph."""
    ruling = (state_entry(state, "metrics", {}).get("screening") or {}).get("ruling") or {}
    if "decision" not in ruling:
        return {}
    conflict = any((chunk.model_extra or {}).get("findings_conflict") is True for chunk in evidence_of(state))
    enough = "conflicting" if conflict else "sufficient"
    outcome = enough if ruling["decision"] == "sufficient" else "evidence_insufficient"
    return {"screening": {"id": thread or "graph", "outcome": outcome}}


def run_of(state: Any) -> Run | None:
    """The audit so far, where a critic has been here."""
    stored = state_entry(state, "metrics", {}).get("run")
    return None if stored is None else _valid(Run, stored, "metrics.run")


def same_case(state: Any, run: Run | None, thread: str | None) -> Case | None:
    """The case of the audit so far; None where question or evidence have changed since, or there is no audit."""
    if run is None or not run.iterations:
        return None
    case = case_of(state, run.iterations[0].answer, thread)
    return case if case.digest() == run.case_digest else None


def _valid(kind: type[Model], fields: Mapping[str, Any], where: str) -> Model:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise InputError(first["msg"], cure="Correct what the graph writes there.", field=place) from error
