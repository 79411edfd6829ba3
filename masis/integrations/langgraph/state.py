"""The state that the rules describe, and how updates of several nodes join in it.

MASIS-CRITIC-STATE and MASIS-EVAL-STATE. A node returns what is new and no
more; the reducers here put it into the state, so that no node loses what another wrote.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from masis.audit.concurrency import start_in_thread
from masis.audit.run_control import RunBudget, RunControl
from masis.integrations.langgraph.reading import plain_evidence
from masis.settings import Settings

Json = dict[str, Any]

REPLACED = ("last_citation_audit", "evaluation", "run")
"""Entries of ``metrics`` that a node overwrites each time; other mappings are merged."""


def merged_metrics(before: Json | None, new: Json | None) -> Json:
    """Return the metrics with an update: ``citation_violations`` added up, ``confidence_history`` appended to, mappings
    merged key by key, anything else replaced.
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


def appended(before: list[Json] | None, new: list[Json] | None) -> list[Json]:
    """Return a list with what a node adds to it."""
    return [*(before or ()), *(new or ())]


def replaced_evidence(before: list[Json] | None, new: Iterable[Any] | None) -> list[Json]:
    """Return the evidence last retrieved, as plain mappings whatever a retriever calls its parts."""
    return plain_evidence(new or ())


EvidenceList = Annotated[list[Json], replaced_evidence]
Metrics = Annotated[Json, merged_metrics]
Trace = Annotated[list[Json], appended]


class MasisState(TypedDict, total=False):
    """What the nodes read and write; a graph may add keys of its own.

    ``metrics`` holds ``last_citation_audit``, ``evaluation``, ``citation_violations`` (fabricated references, over all
    passes), ``confidence_history`` (one a pass, None where it was unscored) and ``node_latency_ms`` (each node's last
    time). Beyond the rules it holds ``needs_review`` and ``review_reasons``, what acceptance makes of the audit so far,
    and ``run``, that audit as the workbench stores it. ``review`` says in which state the case is, and what was
    decided.
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
"""What a node does with the state, the id of its thread and the limits of its calls; returns what is new."""


def node(name: str, work: Work, settings: Settings) -> Runnable[Any, Any]:
    """Return the work as a node for sync and async graphs; how long it took is added to what it returns.

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

    def control() -> RunControl:
        return RunControl(RunBudget(call_s=settings.call_deadline_s))

    def sync(state: Any, config: RunnableConfig) -> Json:
        return timed(state, config, control())

    async def unsync(state: Any, config: RunnableConfig) -> Json:
        under_way = control()
        try:
            return await asyncio.wrap_future(start_in_thread(lambda: timed(state, config, under_way), name))
        finally:
            under_way.cancellation.cancel()

    return RunnableLambda(sync, unsync, name=name)


def thread_of(config: RunnableConfig) -> str | None:
    """Return the id of the thread that a graph runs in; None without one."""
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)
