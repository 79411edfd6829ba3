"""A person in the graph: it waits until the workbench's log holds a decision, and for
nothing less.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from masis import Settings
from masis.errors import InputError
from masis.integrations.langgraph import (
    aresume,
    critic_node,
    keep_node,
    person_node,
    resume,
    waiting,
)
from masis.services import Workbench
from tests.integrations.with_langgraph.graphs import (
    EVIDENCE,
    RIGHT,
    WRONG,
    build_reviewed_graph,
    chain,
    state_with,
    thread,
)
from tests.reviewing import ADA, decide

decided = partial(decide, iteration=1)


@pytest.fixture
def graph(bench: Workbench) -> Any:
    return build_reviewed_graph(bench, InMemorySaver())


def test_the_graph_pauses_while_its_case_is_in_the_queue(graph: Any, bench: Workbench) -> None:
    state = graph.invoke(state_with(WRONG), thread("bridge"))
    (request,) = waiting(graph.get_state(thread("bridge"))).values()
    opened = bench.cases.open(request["case_id"])
    assert opened.state == "needs_review"
    assert opened.run.id == request["run_id"] == state["review"]["run_id"]
    assert opened.case.metadata == {"made_by": "langgraph", "thread_id": "bridge"}
    assert {reason["code"] for reason in request["reasons"]} >= {
        "invalid_reference",
        "hallucination",
    }
    assert (request["answer"], request["question"]) == (WRONG, opened.case.query)
    assert graph.get_state(thread("bridge")).next == ("person",)


@pytest.mark.parametrize(
    ("verdict", "fields", "answer"),
    [
        ("approve", {}, WRONG),
        ("override", {"corrected_answer": RIGHT, "reason": "It is 120 metres."}, RIGHT),
        ("reject", {"reason": "It makes things up."}, None),
    ],
)
def test_a_decision_resumes_the_graph_with_the_answer(
    graph: Any, bench: Workbench, verdict: str, fields: dict[str, Any], answer: str | None
) -> None:
    before = graph.invoke(state_with(WRONG), thread())
    entry = decided(bench, before["review"]["case_id"], verdict, **fields)
    after = resume(graph, thread(), bench)
    assert after["final_answer"] == answer
    review = {"verdict": verdict, "reviewer": "Ada", "entry_id": entry.id, "state": "decided"}
    assert after["review"] | review | {"reason": fields.get("reason", "read")} == after["review"]
    assert after["trace"][:-1] == before["trace"]
    assert after["trace"][-1]["node"] == "person"
    assert all(after[key] == before[key] for key in ("critique", "metrics", "confidence"))
    assert graph.get_state(thread()).next == ()
    assert json.loads(json.dumps(after, allow_nan=False)) == after
    assert resume(graph, thread(), bench) == after, "resuming a finished thread changes nothing"


def test_only_log_entries_count_as_decisions(graph: Any, bench: Workbench) -> None:
    graph.invoke(state_with(WRONG), thread())
    for forged in ({"verdict": "approve"}, True, "approve", {"review": {"state": "decided"}}):
        state = graph.invoke(Command(resume=forged), thread())
        assert waiting(graph.get_state(thread()))
        assert "verdict" not in state["review"]
    assert resume(graph, thread(), bench) is None


def test_a_decision_undone_before_resuming_doesnt_count(graph: Any, bench: Workbench) -> None:
    state = graph.invoke(state_with(WRONG), thread())
    bench.reviews.undo(ADA, decided(bench, state["review"]["case_id"], "approve").id)
    assert resume(graph, thread(), bench) is None


def test_an_accepted_answer_passes_without_review(graph: Any, bench: Workbench) -> None:
    state = graph.invoke(state_with(RIGHT), thread())
    assert graph.get_state(thread()).next == ()
    assert (state["review"]["state"], state["review"]["source"]) == ("accepted", "CODE")
    assert state["final_answer"] == RIGHT
    assert bench.cases.open(state["review"]["case_id"]).state == "accepted"


def test_a_spot_checked_run_doesnt_pause_the_graph(
    bench: Workbench,
) -> None:
    graph = build_reviewed_graph(bench, InMemorySaver(), Settings(spot_check_share=1.0))
    state = graph.invoke(state_with(RIGHT), thread())
    assert graph.get_state(thread()).next == ()
    assert (state["review"]["state"], state["final_answer"]) == ("not needed", RIGHT)
    assert bench.cases.open(state["review"]["case_id"]).state == "needs_review"


def test_storing_again_is_idempotent_and_a_fork_is_a_new_run(graph: Any, bench: Workbench) -> None:
    graph.invoke(state_with(WRONG), thread())
    history = list(graph.get_state_history(thread()))
    before_keep = next(snapshot for snapshot in history if snapshot.next == ("keep",))
    graph.invoke(None, before_keep.config)
    (case_id,) = {request["case_id"] for request in waiting(graph.get_state(thread())).values()}
    assert len(bench.cases.open(case_id).runs) == 1
    before_critic = next(snapshot for snapshot in history if snapshot.next == ("critic",))
    graph.invoke(None, before_critic.config)
    # audited again: other times, so another run of the same case
    assert len(bench.cases.open(case_id).runs) == 2


def test_a_graph_without_critic_or_keep_is_reported(
    bench: Workbench,
) -> None:
    with pytest.raises(InputError, match=r"metrics\.run: has no audit"):
        keep_node(bench).invoke(state_with(WRONG))
    with pytest.raises(InputError, match="review: is empty"):
        person_node(bench).invoke(state_with(WRONG))
    state = critic_node().invoke(state_with(WRONG))
    with pytest.raises(InputError, match=r"metrics\.run: has no audit"):
        keep_node(bench).invoke(state_with(WRONG) | state | {"evidence": EVIDENCE[:1]})


def test_other_nodes_interrupts_are_untouched(bench: Workbench) -> None:
    nodes = {"critic": critic_node(), "theirs": lambda state: interrupt({"kind": "theirs"})}
    compiled = chain(nodes).compile(checkpointer=InMemorySaver())
    compiled.invoke(state_with(WRONG), thread())
    assert compiled.get_state(thread()).interrupts
    assert waiting(compiled.get_state(thread())) == {}


def test_an_async_graph_pauses_and_resumes_equally(bench: Workbench, tmp_path: Path) -> None:
    checkpoints = str(tmp_path / "checkpoints.db")

    async def begin() -> dict[str, Any]:
        async with AsyncSqliteSaver.from_conn_string(checkpoints) as checkpointer:
            graph = build_reviewed_graph(bench, checkpointer)
            state = await graph.ainvoke(state_with(WRONG), thread())
            assert await aresume(graph, thread(), bench) is None
            return dict(state)

    async def resume() -> dict[str, Any] | None:
        async with AsyncSqliteSaver.from_conn_string(checkpoints) as checkpointer:
            return await aresume(build_reviewed_graph(bench, checkpointer), thread(), bench)

    state = asyncio.run(begin())
    decided(
        bench,
        state["review"]["case_id"],
        "override",
        corrected_answer=RIGHT,
        reason="It is 120 metres.",
    )
    after = asyncio.run(resume())
    assert after["final_answer"] == RIGHT
    assert after["trace"][:-1] == state["trace"]


def test_an_outer_graph_waits_for_a_review_in_a_subgraph(bench: Workbench) -> None:
    graph = chain({"audit": build_reviewed_graph(bench, None)}).compile(
        checkpointer=InMemorySaver()
    )
    graph.invoke(state_with(WRONG), thread())
    (told,) = waiting(graph.get_state(thread())).values()
    decided(bench, told["case_id"], "reject", reason="Made up.")
    after = resume(graph, thread(), bench)
    assert (after["review"]["verdict"], after["final_answer"]) == ("reject", None)
