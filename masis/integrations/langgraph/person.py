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
"""Who stores the audits of a graph."""

KIND = "masis_review"
"""What tells our interrupts from others in the same graph."""


def keep_node(workbench: Workbench) -> Runnable[Any, Any]:
    """A node that keeps the audit so far in a workbench: the case, and its run as any other.

    It writes ``review`` with the ids, whether a person is needed, and why. Doing it again for the
    same audit changes nothing. Raises InputError where no critic node has been here, or question or
    evidence changed after it.
    """

    def keep(state: Any, config: RunnableConfig) -> Json:
        run = run_of(state)
        case = same_case(state, run, thread_of(config))
        if run is None or case is None:
            raise InputError(
                "holds no audit of this question and evidence",
                hint="Let a critic node work before the run is kept.",
                field="metrics.run",
            )
        # An id that follows from the content: a graph that goes another way from an earlier
        # checkpoint is another run.
        run = run.model_copy(
            update={"id": hashlib.sha256(run.model_dump_json().encode()).hexdigest()[:32]}
        )
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
    """A node that waits until the case in ``review`` is decided; it goes by at once where no person
    is needed.

    It writes ``review`` (``verdict``, ``reviewer``, ``reason``, ...), ``final_answer`` (the
    corrected one after an override, the one accepted after an approval, None after a rejection,
    untouched after an escalation) and ``trace``. In a graph that leads back to it, it waits for a
    decision after the last. Needs a checkpointer.
    """

    def person(state: Any) -> Json:
        review: Json = state_entry(state, "review", {})
        if "case_id" not in review:
            raise InputError(
                "is empty",
                hint="Let the keep node work before the person is asked.",
                field="review",
            )
        question = {
            "kind": KIND,
            **{name: review[name] for name in ("case_id", "run_id", "seen", "reasons")},
            "question": state_entry(state, "user_query", ""),
            "answer": run.final_answer if (run := run_of(state)) else "",
        }
        decided = workbench.reviews.outcome(review["case_id"], review["seen"])
        while decided is None and review["needed"]:
            interrupt(question)
            decided = workbench.reviews.outcome(review["case_id"], review["seen"])
        # Nothing is decided where no person is needed, as of a run drawn for a spot check.
        return {} if decided is None else _decision_update(review, decided)

    return RunnableLambda(person, name="person")


def _decision_update(review: Json, decided: DecisionInForce) -> Json:
    """What a decision changes."""
    decision = decided.decision
    escalated = decision.verdict == "escalate"
    stands = (
        "escalated" if escalated else "accepted" if decision.kind == "policy_accept" else "decided"
    )
    now = {
        "entry_id": decided.entry_id,
        "at": decided.at,
        **{
            name: getattr(decision, name)
            for name in ("source", "verdict", "reviewer", "reason", "note", "iteration")
        },
        "run_id": decision.run_id or review["run_id"],
        "state": stands,
        "seen": decided.seq,
    }
    traced = {
        "node": "person",
        "verdict": decision.verdict,
        "reviewer": decision.reviewer,
        "at": decided.at,
    }
    update: Json = {"review": review | now, "trace": [traced]}
    return update if escalated else update | {"final_answer": decided.answer}


def waiting(snapshot: StateSnapshot) -> dict[str, Json]:
    """The cases a graph waits for, as its interrupts tell them, by the interrupts' ids; empty where
    it waits for none.

    ``snapshot`` is what ``graph.get_state(config)`` gives.
    """
    return {
        each.id: each.value
        for each in snapshot.interrupts
        if isinstance(each.value, dict) and each.value.get("kind") == KIND
    }


def resume(graph: Any, config: RunnableConfig, workbench: Workbench) -> Json | None:
    """Go on with a thread as far as decisions allow, and return its state; None where it waits and
    nothing is decided.

    A thread that was cut short, and waits for nobody, goes on from its last checkpoint; one that
    has ended is left.
    """
    goes_on, found = _next_command(graph.get_state(config), workbench)
    state: Json | None = graph.invoke(found, config) if goes_on else found
    return state


async def aresume(graph: Any, config: RunnableConfig, workbench: Workbench) -> Json | None:
    """``resume`` for code that is async."""
    goes_on, found = await asyncio.to_thread(
        _next_command, await graph.aget_state(config), workbench
    )
    state: Json | None = await graph.ainvoke(found, config) if goes_on else found
    return state


def _next_command(snapshot: StateSnapshot, workbench: Workbench) -> tuple[bool, Any]:
    """Whether a thread goes on, and with which command, at every interrupt whose case is decided;
    else its state.
    """
    if snapshot.created_at is None:
        raise InputError(
            "is not known to the checkpointer",
            hint="Start it first, or name another.",
            field="thread_id",
        )
    if not snapshot.next:
        return False, dict(snapshot.values)
    decided = {
        name: {"case_id": waiting_for["case_id"], "entry_id": found.entry_id}
        for name, waiting_for in waiting(snapshot).items()
        if (found := workbench.reviews.outcome(waiting_for["case_id"], waiting_for["seen"]))
        is not None
    }
    if decided:
        return True, Command(resume=decided)
    return not snapshot.interrupts, None
