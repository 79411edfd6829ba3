"""The state of a graph (MASIS-CRITIC-STATE, MASIS-EVAL-STATE), its reducers, and its conversion to
our records.

A node only returns new values. Reducers merge them into the state, so that nodes don't overwrite
each other's values. Evidence in the state can be ``masis.Evidence``, mappings, LangChain documents,
or objects with ``chunk_id`` and ``text``.
"""

from __future__ import annotations

import asyncio
import json
import operator
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Annotated, Any, TypedDict, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, ValidationError

from masis import schema
from masis.audit.control.concurrency import start_in_thread
from masis.audit.control.run_control import RunBudget, RunControl
from masis.errors import InputError
from masis.schema.case import Case, Evidence
from masis.schema.documents import ID_KEYS, TEXT_KEYS, read_document
from masis.schema.run import Run
from masis.schema.screening import Abstract
from masis.screening.sources.records import abstract_of, validate_abstract
from masis.settings import Settings

Json = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)

REPLACED = ("last_citation_audit", "evaluation", "run")
"""Entries of ``metrics`` that a node overwrites. Other mappings are merged."""


def merged_metrics(before: Json | None, new: Json | None) -> Json:
    """Merge an update into the metrics.

    ``citation_violations`` are summed, ``confidence_history`` is extended, mappings are merged by
    key, and other values are replaced.
    """
    merged = dict(before or {})
    for name, value in (new or {}).items():
        current = merged.get(name)
        if name == "citation_violations":
            merged[name] = (current or 0) + value
        elif name == "confidence_history":
            merged[name] = [*(current or ()), *value]
        elif name not in REPLACED and isinstance(current, dict) and isinstance(value, dict):
            merged[name] = current | value
        else:
            merged[name] = value
    return merged


def replaced_evidence(before: list[Json] | None, new: Iterable[Any] | None) -> list[Json]:
    """Return the newest evidence as plain mappings with our field names."""
    return plain_evidence(new or ())


EvidenceList = Annotated[list[Json], replaced_evidence]
Metrics = Annotated[Json, merged_metrics]
Trace = Annotated[list[Json], operator.add]


class MasisState(TypedDict, total=False):
    """The keys that the nodes read and write. A graph may add others.

    By the rules, ``metrics`` contains ``last_citation_audit``, ``evaluation``,
    ``citation_violations`` (fabricated references over all passes), ``confidence_history`` (one
    value per pass, None if unscored) and ``node_latency_ms`` (each node's last duration). It also
    contains ``needs_review`` and ``review_reasons`` of the audit so far, and ``run``, that audit in
    the workbench's format. ``review`` is the case's state and decision.
    """

    user_query: str
    draft_answer: str
    evidence: EvidenceList
    retry_count: int
    critique: Json
    confidence: float | None
    final_answer: str | None
    metrics: Metrics
    trace: Trace
    review: Json


Work = Callable[[Any, str | None, RunControl], Json]
"""A node's function of the state, the thread's id and the limits of its calls, which returns the
update.
"""


def node(name: str, work: Work, settings: Settings) -> Runnable[Any, Any]:
    """Wrap a function as a node for sync and async graphs, and add its duration to the update.

    In an async graph it runs on a thread, and makes no more model calls once its task is cancelled.
    """

    def timed(state: Any, config: RunnableConfig, control: RunControl) -> Json:
        started = time.perf_counter()
        update = work(state, thread_of(config), control)
        ms = round((time.perf_counter() - started) * 1000, 3)
        update["metrics"] = {"node_latency_ms": {name: ms}, **update.get("metrics", {})}
        if len(update["trace"]) == 1:
            update["trace"][0]["duration_ms"] = ms
        return update

    def run_sync(state: Any, config: RunnableConfig) -> Json:
        return timed(state, config, RunControl(RunBudget(call_s=settings.call_deadline_s)))

    async def run_async(state: Any, config: RunnableConfig) -> Json:
        control = RunControl(RunBudget(call_s=settings.call_deadline_s))
        try:
            return await asyncio.wrap_future(
                start_in_thread(lambda: timed(state, config, control), name)
            )
        finally:
            # Also when the task ends normally, which does no harm.
            control.cancellation.cancel()

    return RunnableLambda(run_sync, run_async, name=name)


def thread_of(config: RunnableConfig) -> str | None:
    """Return the id of the graph's thread, or None if it has none."""
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


# Conversion of the state to our records.

NOTHING = Evidence(id="no_evidence_999999999", source="nothing was retrieved")
"""The evidence if nothing was retrieved. It has no text, and an id that no answer cites by chance.
"""

_THREAD_CHARACTERS = 80
"""Maximum number of characters of a thread's id in the id of its case."""


def state_entry(state: Any, name: str, default: Any = None) -> Any:
    """Return a value of the state, which is an object if the graph's schema is a class."""
    value = state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)
    return default if value is None else value


def text_of(state: Any, name: str) -> str:
    """Return a text of the state. Raises InputError if it's empty or missing."""
    text = state_entry(state, name, "")
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "is empty",
            hint=f"Add a node before this one that writes {name!r} to the state.",
            field=name,
        )
    return text


def plain_evidence(chunks: Iterable[Any]) -> list[Json]:
    """Convert evidence to plain mappings with ``id`` and ``text``, without repeated chunks.

    A chunk without an id is named by its position, such as ``chunk_1``. Raises InputError for a
    chunk without text, for two texts with the same id, and for a single chunk instead of a list,
    which would be read letter by letter.
    """
    normalized = (
        chunks
        if isinstance(chunks, str | bytes | Mapping)
        else list(map(_with_evidence_id, chunks, count()))
    )
    by_id: dict[str, Json] = {}
    for index, chunk in enumerate(schema.case.evidence_of(normalized)):
        plain = _jsonable(chunk.model_dump(exclude_none=True))
        if by_id.setdefault(chunk.id, plain)["text"] != chunk.text:
            raise InputError(
                f"the id {chunk.id!r} names two different texts",
                hint="Give each chunk its own id.",
                field=f"evidence[{index}]",
            )
    return list(by_id.values())


def _with_evidence_id(chunk: Any, index: int) -> Any:
    """Convert a mapping or a graph's own object to a mapping with ``id``. Other objects are
    unchanged.
    """
    if not isinstance(chunk, Mapping):
        if not hasattr(chunk, "chunk_id"):
            return chunk
        chunk = {name: getattr(chunk, name, None) for name in ("chunk_id", "text", "source")}
    if not any(isinstance(chunk.get(name), str) for name in TEXT_KEYS):
        hint = (
            "Give a mapping with id and text, a LangChain document, or an object with chunk_id and"
            " text."
        )
        raise InputError("has no text", hint=hint, field=f"evidence[{index}]")
    key = next((name for name in ID_KEYS if chunk.get(name) not in (None, "")), "id")
    rest = {
        name: value
        for name, value in chunk.items()
        if name not in (key, "id") and value is not None
    }
    return {"id": str(chunk[key]), **rest} if chunk.get(key) else rest


def abstracts_by_id(items: Mapping[str, Any] | Iterable[Any]) -> dict[str, Json]:
    """Convert records or documents, or a mapping of them, to abstracts as plain mappings by id.

    An item without an id gets one from its PubMed id, DOI or title. Raises InputError for an item
    with neither title nor text, and for a single text instead of a list.
    """
    if isinstance(items, str | bytes):
        raise InputError(
            "is one text, not a list of abstracts", hint="Put it into a list.", field="abstracts"
        )
    abstracts = {}
    for index, item in enumerate(items.values() if isinstance(items, Mapping) else items):
        abstract = item if isinstance(item, Abstract) else _to_abstract(item, index)
        abstracts[abstract.id] = abstract.model_dump(mode="json")
    return abstracts


def _to_abstract(item: Any, index: int) -> Abstract:
    if isinstance(item, Mapping):
        metadata = item.get("metadata")
        values = {**(metadata if isinstance(metadata, Mapping) else {}), **item}
        text = next((values[name] for name in (*TEXT_KEYS, "abstract") if values.get(name)), "")
    else:
        document = read_document(item, index, "abstracts")
        text = document.content
        values = {**document.metadata, **({"id": document.id} if document.id else {})}
    values = {
        name: value
        for name, value in values.items()
        if value and name not in (*TEXT_KEYS, "abstract", "metadata")
    }
    title, doi, pmid = (str(values.get(name, "")) for name in ("title", "doi", "pmid"))
    name = next((values[name] for name in ID_KEYS if name in values), None)
    name = name or abstract_of(title=title, text=str(text), doi=doi, pmid=pmid).id
    return validate_abstract({**_jsonable(values), "id": str(name), "text": str(text)})


def _jsonable(fields: Mapping[str, Any]) -> Json:
    # Checkpointers serialize the state, and not all of them accept dates or objects of libraries.
    plain: Json = json.loads(json.dumps(fields, default=str))
    return plain


def evidence_of(state: Any) -> tuple[Evidence, ...]:
    """Return the evidence of the state as records."""
    chunks = plain_evidence(state_entry(state, "evidence", ()))
    return tuple(_validate_as(Evidence, chunk, "evidence") for chunk in chunks) or (NOTHING,)


def case_of(state: Any, answer: str, thread: str | None) -> Case:
    """Return the case of a thread with this first answer. Its id depends on the content."""
    content: Json = {
        "id": "graph",
        "query": text_of(state, "user_query"),
        "answer": answer,
        "evidence": evidence_of(state),
        "metadata": {"made_by": "langgraph"} | ({"thread_id": thread} if thread else {}),
    }
    case = _validate_as(Case, content | _screening_outcome(state, thread), "state")
    return case.model_copy(
        update={"id": f"{(thread or 'graph')[:_THREAD_CHARACTERS]}-{case.digest()[:8]}"}
    )


def _screening_outcome(state: Any, thread: str | None) -> Json:
    """Return the outcome of our evidence critic, if the graph has one."""
    ruling = (state_entry(state, "metrics", {}).get("screening") or {}).get("ruling") or {}
    if "decision" not in ruling:
        return {}
    conflict = any(
        (chunk.model_extra or {}).get("findings_conflict") is True for chunk in evidence_of(state)
    )
    enough = "conflicting" if conflict else "sufficient"
    outcome = enough if ruling["decision"] == "sufficient" else "evidence_insufficient"
    return {"screening": {"id": thread or "graph", "outcome": outcome}}


def run_of(state: Any) -> Run | None:
    """Return the audit so far, or None before the first critic."""
    stored = state_entry(state, "metrics", {}).get("run")
    return None if stored is None else _validate_as(Run, stored, "metrics.run")


def same_case(state: Any, run: Run | None, thread: str | None) -> Case | None:
    """Return the case of the audit so far.

    Returns None if there is no audit, or if the question or the evidence has changed since.
    """
    if run is None or not run.iterations:
        return None
    case = case_of(state, run.iterations[0].answer, thread)
    return case if case.digest() == run.case_digest else None


def _validate_as(kind: type[Model], fields: Mapping[str, Any], field_path: str) -> Model:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(
            first["msg"],
            hint="Correct the value that the graph writes there.",
            field=".".join(map(str, (field_path, *first["loc"]))),
        ) from error
