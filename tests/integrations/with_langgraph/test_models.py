"""Nodes whose roles are models at a scripted server: what a model says is ruled by code, and what
fails is unscored.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from masis.integrations.langgraph import critic_node, evidence_critic_node
from masis.settings import Settings
from tests.integrations.with_langgraph.graphs import RIGHT, WRONG, audited, state_with
from tests.llm.asking import settings_for
from tests.served_replies import Behaviour, reply_with, status
from tests.serving_models import ModelServer
from tests.waiting import until_async


def settings_at(server: ModelServer, **changes: Any) -> Settings:
    return settings_for(server, "openai").model_copy(
        update={"retry_base_s": 0.01, "retry_cap_s": 0.02, **changes}
    )


@pytest.mark.parametrize("reply", [status(500), reply_with("no JSON at all")])
def test_a_failing_critic_leaves_only_citation_findings(
    reply: Behaviour,
) -> None:
    with ModelServer(lambda request: reply) as server:
        state = audited(settings_at(server)).invoke(state_with(WRONG))
    assert state["confidence"] is None
    assert state["critique"]["unscored"]["reason"]
    assert state["critique"][
        "hallucination_detected"
    ]  # chunk_9 doesn't name evidence, whoever fails
    assert state["critique"]["needs_retry"]
    assert state["metrics"]["confidence_history"] == [None]
    assert state["metrics"]["evaluation"]["overall_score"] is None
    assert state["metrics"]["evaluation"]["unscored"]["reason"]
    assert [entry["node"] for entry in state["trace"]] == ["critic", "evaluator"]
    assert json.loads(json.dumps(state, allow_nan=False)) == state


TRIALS = {
    str(n): {"id": str(n), "title": f"Trial {n}", "text": "We gave aspirin to 90 adults."}
    for n in range(40)
}


@pytest.mark.spec("AESOP-ASYNC")
@pytest.mark.parametrize(
    ("node_of", "state"),
    [
        (critic_node, state_with(RIGHT)),
        (
            evidence_critic_node,
            {"user_query": "Does aspirin relieve migraine?", "abstracts": TRIALS},
        ),
    ],
    ids=["critic", "evidence critic"],
)
def test_a_cancelled_node_makes_no_more_calls(node_of: Any, state: dict[str, Any]) -> None:
    async def cancel_and_count(server: ModelServer) -> int:
        node = node_of(settings_at(server, screening_graders="here:judge-1"))
        task = asyncio.create_task(node.ainvoke(state))
        await until_async(lambda: server.requests, "a first call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)  # calls on their way to the server arrive
        asked_by_then = len(server.requests)
        await asyncio.sleep(0.6)
        return len(server.requests) - asked_by_then

    with ModelServer(latency_ms=150) as server:
        assert asyncio.run(cancel_and_count(server)) == 0
