"""Write, audit, retry and evaluate an answer in LangGraph, then let a person decide it.

    python examples/langgraph/graph.py start examples/langgraph/ferry.json --db ferry.db
    masis serve --db ferry.db                                # decide the waiting case there
    python examples/langgraph/graph.py resume ferry --db ferry.db

The process of ``start`` ends at the interrupt; ``resume`` is a new one. Needs the extra
``langgraph``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from masis.errors import MasisError
from masis.integrations.langgraph import (
    MasisState,
    critic_node,
    evaluator_node,
    keep_node,
    person_node,
    resume,
    synthesizer_node,
    waiting,
)
from masis.services import Workbench
from masis.settings import Settings, load


def build(workbench: Workbench, settings: Settings, checkpointer: Any) -> Any:
    """Connect synthesizer, critic, supervisor (retry or finalize), evaluator, keep and person."""

    def supervisor(state: MasisState) -> Command[str]:
        tried = state["retry_count"]
        # about the last draft, whereas review_reasons are about the first
        wrong = state["critique"]["has_major_issues"]
        done = (
            not (wrong or state["critique"]["needs_retry"]) or tried + 1 >= settings.max_iterations
        )
        told = {
            "node": "supervisor",
            "decision": "finalise" if done else "retry",
            "retry_count": tried,
        }
        if done:
            return Command(goto="evaluator", update={"trace": [told]})
        return Command(goto="synthesizer", update={"retry_count": tried + 1, "trace": [told]})

    graph = StateGraph(MasisState)
    graph.add_node("synthesizer", synthesizer_node(settings))
    graph.add_node("critic", critic_node(settings))
    graph.add_node("supervisor", supervisor, destinations=("synthesizer", "evaluator"))
    graph.add_node("evaluator", evaluator_node(settings))
    graph.add_node("keep", keep_node(workbench))
    graph.add_node("person", person_node(workbench))
    graph.add_conditional_edges(
        START, lambda state: "critic" if state.get("draft_answer") else "synthesizer"
    )
    graph.add_edge("synthesizer", "critic")
    graph.add_edge("critic", "supervisor")
    graph.add_edge("evaluator", "keep")
    graph.add_edge("keep", "person")
    # an escalated case waits for the next reviewer
    graph.add_conditional_edges(
        "person", lambda state: "person" if state["review"]["state"] == "escalated" else END
    )
    return graph.compile(checkpointer=checkpointer)


@contextmanager
def opened(db: Path) -> Iterator[tuple[Any, Workbench]]:
    """Open the workbench on a database, with the graph's checkpoints in a file next to it."""
    settings = load().settings
    workbench = Workbench.open(db, settings)
    with SqliteSaver.from_conn_string(str(db.with_suffix(".checkpoints.db"))) as checkpointer:
        yield build(workbench, settings, checkpointer), workbench
    workbench.store.close()


@click.group()
def main() -> None:
    """Start the graph for an answer, and resume it after a person has decided."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@click.option("--db", type=click.Path(path_type=Path), default=Path("masis.db"))
@click.option("--thread", default=None, help="The thread's name. Default: the file's.")
def start(file: Path, db: Path, thread: str | None) -> None:
    """Begin with the question, evidence and (if there is one) draft in FILE."""
    given = json.loads(file.read_text(encoding="utf-8"))
    thread = thread or file.stem
    with opened(db) as (graph, _):
        config = {"configurable": {"thread_id": thread}}
        if graph.get_state(config).next:
            raise click.UsageError(
                f"thread {thread!r} is in progress: resume it, or name another with --thread."
            )
        graph.invoke({**given, "retry_count": 0}, config)
        told(graph, config)


@main.command(name="resume")
@click.argument("thread")
@click.option("--db", type=click.Path(path_type=Path), default=Path("masis.db"))
def go_on(thread: str, db: Path) -> None:
    """Go on with THREAD, if its case has been decided in the workbench."""
    with opened(db) as (graph, workbench):
        config = {"configurable": {"thread_id": thread}}
        try:
            resumed = resume(graph, config, workbench)
        except MasisError as error:
            raise click.ClickException(str(error)) from error
        told(graph, config)
    sys.exit(1 if resumed is None else 0)


def told(graph: Any, config: Any) -> None:
    """Where the thread stands: for people on stderr, as JSON on stdout."""
    snapshot = graph.get_state(config)
    for asked in waiting(snapshot).values():
        click.echo(f"Waits for a person: case {asked['case_id']} in the workbench.", err=True)
        for reason in asked["reasons"]:
            click.echo(f"- {reason['message']}", err=True)
    state = dict(snapshot.values)
    state["metrics"] = {
        name: value for name, value in state.get("metrics", {}).items() if name != "run"
    }
    click.echo(json.dumps(state | {"next": list(snapshot.next)}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
