"""Lets a person decide within a graph. The run waits in the workbench's queue, and the graph waits
at an interrupt.

    keep_node(workbench)      stores the audit so far as a case with its run, and auto-accepts a
                              case that doesn't need a person
    person_node(workbench)    stops the graph until the case is decided, then writes the decision
                              into the state
    resume(graph, ...)        continues a thread whose case was decided, in any process

The node never trusts the value that a graph is resumed with. It reads the decision from the
workbench's log, and stops again if there is none. An escalation is also a decision, and the graph
may wait for the next one after it.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.types import Command, StateSnapshot, interrupt

from masis.errors import InputError
from masis.integrations.langgraph.state import Json, run_of, same_case, state_entry, thread_of
from masis.services import Actor, Workbench
from masis.services.reviews import DecisionInForce

ACTOR = Actor(name="langgraph")
"""The actor recorded for a graph's cases and runs."""

KIND = "masis_review"
"""The kind of our interrupts, which distinguishes them from others in the same graph."""


def keep_node(workbench: Workbench) -> Runnable[Any, Any]:
    """Return a node that stores the case and the audit so far in a workbench.

    It writes ``review`` with the ids, whether a person is needed, and why. Storing the same audit
    again has no effect. Raises InputError if no critic node ran before, or if the question or the
    evidence has changed since.
    """

    def keep(state: Any, config: RunnableConfig) -> Json:
        run = run_of(state)
        case = same_case(state, run, thread_of(config))
        if run is None or case is None:
            raise InputError(
                "has no audit of this question and evidence",
                hint="Add a critic node before the keep node.",
                field="metrics.run",
            )
        # Derive the id from the content. A graph that continues differently from an earlier
        # checkpoint makes another run.
        run = run.model_copy(
            update={"id": hashlib.sha256(run.model_dump_json().encode()).hexdigest()[:32]}
        )
        # Both calls have no effect if the same content is stored already.
        workbench.cases.add(ACTOR, [case])
        workbench.audits.store_run(ACTOR, run)
        return {
            "review": {
                "case_id": case.id,
                "run_id": run.id,
                "needed": run.needs_review,
                "reasons": [reason.model_dump(mode="json") for reason in run.review_reasons],
                "state": "waiting" if run.needs_review else "not needed",
                "seen": 0,
            }
        }

    return RunnableLambda(keep, name="keep")  # in an async graph LangChain calls it on a thread


def person_node(workbench: Workbench) -> Runnable[Any, Any]:
    """Return a node that waits until the case in ``review`` is decided, if a person is needed.

    It writes ``review`` (``verdict``, ``reviewer``, ``reason``, ...), ``final_answer`` (the
    corrected answer after an override, the accepted one after an approval, None after a rejection,
    unchanged after an escalation) and ``trace``. If the graph returns to this node, it waits for
    the next decision. It needs a checkpointer.
    """

    def person(state: Any) -> Json:
        review: Json = state_entry(state, "review", {})
        if "case_id" not in review:
            raise InputError(
                "is empty",
                hint="Add a keep node before the person node.",
                field="review",
            )
        question = {
            "kind": KIND,
            **{name: review[name] for name in ("case_id", "run_id", "seen", "reasons")},
            "question": state_entry(state, "user_query", ""),
            "answer": run.final_answer if (run := run_of(state)) else "",
        }
        decided = workbench.reviews.outcome(review["case_id"], review["seen"])
        # LangGraph runs the whole node again when it resumes, and interrupt() then returns at once.
        # The loop asks again if the case still isn't decided.
        while decided is None and review["needed"]:
            interrupt(question)
            decided = workbench.reviews.outcome(review["case_id"], review["seen"])
        # Without a need for a person there may be no decision, as for a run drawn for a spot check.
        return {} if decided is None else _decision_update(review, decided)

    return RunnableLambda(person, name="person")


def _decision_update(review: Json, decided: DecisionInForce) -> Json:
    """Return the update of the state after a decision."""
    decision = decided.decision
    escalated = decision.verdict == "escalate"
    status = (
        "escalated" if escalated else "accepted" if decision.kind == "policy_accept" else "decided"
    )
    outcome = {
        "entry_id": decided.entry_id,
        "at": decided.at,
        **{
            name: getattr(decision, name)
            for name in ("source", "verdict", "reviewer", "reason", "note", "iteration")
        },
        "run_id": decision.run_id or review["run_id"],
        "state": status,
        "seen": decided.seq,
    }
    traced = {
        "node": "person",
        "verdict": decision.verdict,
        "reviewer": decision.reviewer,
        "at": decided.at,
    }
    update: Json = {"review": review | outcome, "trace": [traced]}
    return update if escalated else update | {"final_answer": decided.answer}


def waiting(snapshot: StateSnapshot) -> dict[str, Json]:
    """Return the cases that a graph waits for, by interrupt id.

    ``snapshot`` is the result of ``graph.get_state(config)``.
    """
    return {
        pending.id: pending.value
        for pending in snapshot.interrupts
        if isinstance(pending.value, dict) and pending.value.get("kind") == KIND
    }


def resume(graph: Any, config: RunnableConfig, workbench: Workbench) -> Json | None:
    """Continue a thread until it waits for a decision, and return its state.

    Returns None if it still waits for a decision. An interrupted thread that doesn't wait continues
    from its last checkpoint, and a thread that has ended isn't changed.
    """
    can_continue, value = _next_command(graph.get_state(config), workbench)
    state: Json | None = graph.invoke(value, config) if can_continue else value
    return state


async def aresume(graph: Any, config: RunnableConfig, workbench: Workbench) -> Json | None:
    """Continue a thread like ``resume``, for async code."""
    can_continue, value = await asyncio.to_thread(
        _next_command, await graph.aget_state(config), workbench
    )
    state: Json | None = await graph.ainvoke(value, config) if can_continue else value
    return state


def _next_command(snapshot: StateSnapshot, workbench: Workbench) -> tuple[bool, Any]:
    """Return whether a thread can continue, and the command for it, or else the thread's state.

    The command resumes every interrupt whose case is decided.
    """
    if snapshot.created_at is None:
        raise InputError(
            "isn't known to the checkpointer",
            hint="Start the thread first, or name another.",
            field="thread_id",
        )
    # A thread without a next node has ended.
    if not snapshot.next:
        return False, dict(snapshot.values)
    decided = {
        name: {"case_id": question["case_id"], "entry_id": outcome.entry_id}
        for name, question in waiting(snapshot).items()
        if (outcome := workbench.reviews.outcome(question["case_id"], question["seen"])) is not None
    }
    if decided:
        return True, Command(resume=decided)
    return not snapshot.interrupts, None
