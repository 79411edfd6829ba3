"""The state that the rules describe, how updates of several nodes join in it, and what it says, as
our records.

MASIS-CRITIC-STATE and MASIS-EVAL-STATE. A node returns what is new and no more; the reducers here
put it into the state, so that no node loses what another wrote. Evidence in it may be
``masis.Evidence``, mappings, LangChain documents, or objects with ``chunk_id`` and ``text``.
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
"""Entries of ``metrics`` that a node overwrites each time; other mappings are merged."""


def merged_metrics(before: Json | None, new: Json | None) -> Json:
    """Return the metrics with an update: ``citation_violations`` added up, ``confidence_history``
    appended to, mappings merged key by key, anything else replaced.
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
    """Return the evidence last retrieved, as plain mappings whatever a retriever calls
    its parts.
    """
    return plain_evidence(new or ())


EvidenceList = Annotated[list[Json], replaced_evidence]
Metrics = Annotated[Json, merged_metrics]
Trace = Annotated[list[Json], operator.add]


class MasisState(TypedDict, total=False):
    """What the nodes read and write; a graph may add keys of its own.

    ``metrics`` holds ``last_citation_audit``, ``evaluation``, ``citation_violations`` (fabricated
    references, over all passes), ``confidence_history`` (one a pass, None where it was unscored)
    and ``node_latency_ms`` (each node's last time). Beyond the rules it holds ``needs_review`` and
    ``review_reasons``, what acceptance makes of the audit so far, and ``run``, that audit as the
    workbench stores it. ``review`` says in which state the case is, and what was decided.
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
"""What a node does with the state, the id of its thread and the limits of its calls; returns what
is new.
"""


def node(name: str, work: Work, settings: Settings) -> Runnable[Any, Any]:
    """Return the work as a node for sync and async graphs; how long it took is added to what it
    returns.

    In an async graph it is done on a thread, and makes no further call once its task is cancelled.
    """

    def timed(state: Any, config: RunnableConfig, control: RunControl) -> Json:
        began = time.perf_counter()
        update = work(state, thread_of(config), control)
        ms = round((time.perf_counter() - began) * 1000, 3)
        update["metrics"] = {"node_latency_ms": {name: ms}, **update.get("metrics", {})}
        if len(update["trace"]) == 1:
            update["trace"][0]["duration_ms"] = ms
        return update

    def sync(state: Any, config: RunnableConfig) -> Json:
        return timed(state, config, RunControl(RunBudget(call_s=settings.call_deadline_s)))

    async def unsync(state: Any, config: RunnableConfig) -> Json:
        control = RunControl(RunBudget(call_s=settings.call_deadline_s))
        try:
            return await asyncio.wrap_future(
                start_in_thread(lambda: timed(state, config, control), name)
            )
        finally:
            control.cancellation.cancel()

    return RunnableLambda(sync, unsync, name=name)


def thread_of(config: RunnableConfig) -> str | None:
    """Return the id of the graph's thread, or None if it has none."""
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


# What a state says, read into our records.

NOTHING = Evidence(id="no_evidence_999999999", source="nothing was retrieved")
"""Stands where a retriever brought nothing: it has no text, and its id is none that an answer could
hit by counting.
"""

_THREAD_SHOWN = 80


def state_entry(state: Any, name: str, default: Any = None) -> Any:
    """A field of the state, which is a mapping, or an object where the graph's schema is one."""
    value = state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)
    return default if value is None else value


def text_of(state: Any, name: str) -> str:
    """A field of the state that is text. Raises InputError where there is none."""
    text = state_entry(state, name, "")
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "is empty",
            hint=f"Let a node before this one write {name!r} into the state.",
            field=name,
        )
    return text


def plain_evidence(found: Iterable[Any]) -> list[Json]:
    """Evidence as plain mappings with ``id`` and ``text``; a chunk found twice is there once.

    One without an id is named by its place (``chunk_1``). Raises InputError for what has no text,
    for two texts under one id, and for one chunk in place of a list, which would be read letter by
    letter.
    """
    given = (
        found
        if isinstance(found, str | bytes | Mapping)
        else list(map(_with_evidence_id, found, count()))
    )
    plain: dict[str, Json] = {}
    for place, read in enumerate(schema.case.evidence_of(given)):
        chunk = _jsonable(read.model_dump(exclude_none=True))
        if plain.setdefault(read.id, chunk)["text"] != read.text:
            problem, hint = (
                f"the id {read.id!r} names two different texts",
                "Give each chunk an id of its own.",
            )
            raise InputError(problem, hint=hint, field=f"evidence[{place}]")
    return list(plain.values())


def _with_evidence_id(chunk: Any, place: int) -> Any:
    """Return a mapping, or an object of a graph's own, with its id under the name that evidence
    has.
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
        raise InputError("has no text", hint=hint, field=f"evidence[{place}]")
    key = next((name for name in ID_KEYS if chunk.get(name) not in (None, "")), "id")
    rest = {
        name: each for name, each in chunk.items() if name not in (key, "id") and each is not None
    }
    return {"id": str(chunk[key]), **rest} if chunk.get(key) else rest


def abstracts_by_id(found: Mapping[str, Any] | Iterable[Any]) -> dict[str, Json]:
    """Abstracts as plain mappings by their ids: from a mapping by id, or from records and documents
    of any make.

    One without an id has the one that its PubMed id, DOI or title gives it. Raises InputError for
    what has neither a title nor a text, and for a text alone.
    """
    if isinstance(found, str | bytes):
        raise InputError(
            "is one text, not a list of abstracts", hint="Put it into a list.", field="abstracts"
        )
    abstracts = {}
    for place, each in enumerate(found.values() if isinstance(found, Mapping) else found):
        abstract = each if isinstance(each, Abstract) else _to_abstract(each, place)
        abstracts[abstract.id] = abstract.model_dump(mode="json")
    return abstracts


def _to_abstract(found: Any, place: int) -> Abstract:
    if isinstance(found, Mapping):
        metadata = found.get("metadata")
        values = {**(metadata if isinstance(metadata, Mapping) else {}), **found}
        text = next((values[name] for name in (*TEXT_KEYS, "abstract") if values.get(name)), "")
    else:
        read = read_document(found, place, "abstracts")
        values, text = {**read.metadata, **({"id": read.id} if read.id else {})}, read.content
    values = {
        name: each
        for name, each in values.items()
        if each and name not in (*TEXT_KEYS, "abstract", "metadata")
    }
    title, doi, pmid = (str(values.get(name, "")) for name in ("title", "doi", "pmid"))
    name = next((values[name] for name in ID_KEYS if name in values), None)
    name = name or abstract_of(title=title, text=str(text), doi=doi, pmid=pmid).id
    return validate_abstract({**_jsonable(values), "id": str(name), "text": str(text)})


def _jsonable(fields: Mapping[str, Any]) -> Json:
    plain: Json = json.loads(json.dumps(fields, default=str))
    return plain


def evidence_of(state: Any) -> tuple[Evidence, ...]:
    """Return the evidence in the state in the form that the audit uses."""
    found = plain_evidence(state_entry(state, "evidence", ()))
    return tuple(_validate_as(Evidence, chunk, "evidence") for chunk in found) or (NOTHING,)


def case_of(state: Any, answer: str, thread: str | None) -> Case:
    """The case of a thread whose first answer was this one: the same content has the same id."""
    content: Json = {
        "id": "graph",
        "query": text_of(state, "user_query"),
        "answer": answer,
        "evidence": evidence_of(state),
        "metadata": {"made_by": "langgraph"} | ({"thread_id": thread} if thread else {}),
    }
    case = _validate_as(Case, content | _screening_outcome(state, thread), "state")
    return case.model_copy(
        update={"id": f"{(thread or 'graph')[:_THREAD_SHOWN]}-{case.digest()[:8]}"}
    )


def _screening_outcome(state: Any, thread: str | None) -> Json:
    """The outcome of the evidence critic, where one of ours has judged the evidence in
    this graph.
    """
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
    """The audit so far, where a critic has been here."""
    stored = state_entry(state, "metrics", {}).get("run")
    return None if stored is None else _validate_as(Run, stored, "metrics.run")


def same_case(state: Any, run: Run | None, thread: str | None) -> Case | None:
    """The case of the audit so far; None where question or evidence have changed since, or there is
    no audit.
    """
    if run is None or not run.iterations:
        return None
    case = case_of(state, run.iterations[0].answer, thread)
    return case if case.digest() == run.case_digest else None


def _validate_as(kind: type[Model], fields: Mapping[str, Any], where: str) -> Model:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise InputError(
            first["msg"], hint="Correct what the graph writes there.", field=place
        ) from error
