"""Evidence about a bridge, states with answers about it, and graphs of the nodes."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph

from masis.integrations.langgraph import (
    MasisState,
    critic_node,
    evaluator_node,
    keep_node,
    person_node,
)
from masis.services import Workbench
from masis.settings import Settings

EVIDENCE = (
    {"id": "chunk_1", "text": "The Halden bridge is 120 metres long. It is made of steel."},
    {"id": "chunk_2", "text": "It was opened to traffic in 1931 by the mayor."},
)
QUESTION = "How long is the Halden bridge, and when was it opened?"
WRONG = "The Halden bridge is 90 metres long [chunk_1]. It cost 4 million crowns [chunk_9]."
RIGHT = (
    "The Halden bridge is 120 metres long [chunk_1]. It was opened to traffic in 1931 by the mayor"
    " [chunk_2]."
)


def state_with(answer: str = WRONG, **fields: Any) -> dict[str, Any]:
    """Return a state with an answer that the critic hasn't judged yet."""
    state = {
        "user_query": QUESTION,
        "draft_answer": answer,
        "evidence": list(EVIDENCE),
        "retry_count": 0,
    }
    return state | fields


def thread(name: str = "t") -> dict[str, Any]:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": name}}


def chain(nodes: dict[str, Any], state: Any = MasisState) -> Any:
    """Return a graph that runs the nodes in this order."""
    graph = StateGraph(state).add_sequence(list(nodes.items()))
    return graph.add_edge(START, next(iter(nodes)))


def audited(settings: Settings | None = None, checkpointer: Any = None) -> Any:
    """Return the graph critic -> evaluator."""
    nodes = {"critic": critic_node(settings), "evaluator": evaluator_node(settings)}
    return chain(nodes).compile(checkpointer=checkpointer)


def build_reviewed_graph(
    bench: Workbench, checkpointer: Any, settings: Settings | None = None
) -> Any:
    """Return the graph critic -> keep -> person; an escalation returns to the person."""
    graph = chain(
        {"critic": critic_node(settings), "keep": keep_node(bench), "person": person_node(bench)}
    )
    graph.add_conditional_edges(
        "person", lambda state: "person" if state["review"]["state"] == "escalated" else END
    )
    return graph.compile(checkpointer=checkpointer)
