"""Nodes whose roles are models at a scripted server: what a model says is ruled by code, and what fails is unscored."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from masis.integrations.langgraph import critic_node, evaluator_node, evidence_critic_node
from masis.settings import Settings
from tests.integrations.with_langgraph.graphs import RIGHT, WRONG, asked, audited
from tests.llm.asking import settings_for
from tests.served_replies import Behaviour, Request, says, sensible, status
from tests.serving_models import ModelServer
from tests.waiting import until_async


def settings_at(server: ModelServer, **changes: Any) -> Settings:
    return settings_for(server, "openai").model_copy(update={"retry_base_s": 0.01, "retry_cap_s": 0.02, **changes})


def told(**changes: Any) -> Any:
    """A server's script: the critic's and the judge's replies hold these values."""

    def script(request: Request) -> Behaviour | None:
        if request.schema_name not in ("critique_reply", "evaluation_reply", "common_reply"):
            return None
        reply = sensible(request, "none")
        for part in (reply, *(each for each in reply.values() if isinstance(each, dict))):
            part.update({key: value for key, value in changes.items() if key in part})
        return says(reply)

    return script


@pytest.mark.spec("MASIS-CRITIC-P5", "MASIS-CRITIC-P6", "MASIS-CRITIC-STATE")
def test_a_model_s_confidence_is_normalised_and_multiplied_by_the_penalty_in_code() -> None:
    script = told(confidence=90, hallucination_detected=False, needs_retry=False)
    with ModelServer(script, issues="none") as server:
        update = critic_node(settings_at(server)).invoke(asked(WRONG))
    assert update["confidence"] == pytest.approx(0.45)
    assert update["critique"]["hallucination_detected"]
    assert update["critique"]["needs_retry"]
    assert update["trace"][0]["confidence"] == pytest.approx(0.45)


@pytest.mark.spec("MASIS-EVAL-P5", "MASIS-EVAL-STATE")
def test_a_generous_judge_is_clamped_by_what_the_critic_left_in_the_state() -> None:
    script = told(faithfulness=0.95, relevance=0.88, completeness=0.72, reasoning_quality=0.9)
    with ModelServer(script, issues="none") as server:
        state = audited(settings_at(server)).invoke(asked(WRONG))
    evaluation = state["metrics"]["evaluation"]
    assert (evaluation["faithfulness"], evaluation["relevance"]) == (0.4, 0.88)
    assert evaluation["overall_score"] == pytest.approx(0.4 * 0.35 + 0.88 * 0.25 + 0.72 * 0.25 + 0.9 * 0.15)


@pytest.mark.parametrize("reply", [status(500), status(401), says("no JSON at all"), Behaviour(refusal="No.")])
def test_a_critic_that_fails_leaves_no_confidence_and_what_the_citations_prove(reply: Behaviour) -> None:
    with ModelServer(lambda request: reply) as server:
        state = audited(settings_at(server)).invoke(asked(WRONG))
    assert state["confidence"] is None
    assert state["critique"]["unscored"]["reason"]
    assert state["critique"]["hallucination_detected"]  # chunk_9 names no evidence, whoever fails
    assert state["critique"]["needs_retry"]
    assert state["metrics"]["confidence_history"] == [None]
    assert state["metrics"]["evaluation"]["overall_score"] is None
    assert state["metrics"]["evaluation"]["unscored"]["reason"]
    assert [entry["node"] for entry in state["trace"]] == ["critic", "evaluator"]
    assert json.loads(json.dumps(state, allow_nan=False)) == state


def test_a_failure_names_no_key_and_no_text_of_ours() -> None:
    with ModelServer(lambda request: status(401)) as server:
        update = critic_node(settings_at(server)).invoke(asked(RIGHT))
    assert "loopback/0123456789" not in json.dumps(update)


def test_a_cancelled_graph_asks_no_further_question() -> None:
    async def cancelled(server: ModelServer) -> int:
        task = asyncio.create_task(critic_node(settings_at(server)).ainvoke(asked(RIGHT)))
        await until_async(lambda: server.requests, "a first call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asked_by_then = len(server.requests)
        await asyncio.sleep(1.2)
        return len(server.requests) - asked_by_then

    with ModelServer(latency_ms=400) as server:
        assert asyncio.run(cancelled(server)) == 0


@pytest.mark.spec("AESOP-ASYNC")
def test_a_cancelled_screening_asks_no_further_question() -> None:
    question = "Does aspirin relieve migraine?"
    abstracts = {
        str(n): {"id": str(n), "title": f"Trial {n}", "text": "We gave aspirin to 90 adults."} for n in range(40)
    }

    async def cancelled(server: ModelServer) -> int:
        node = evidence_critic_node(settings_at(server, screening_graders="here:judge-1"))
        task = asyncio.create_task(node.ainvoke({"user_query": question, "abstracts": abstracts}))
        await until_async(lambda: server.requests, "a first call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)  # calls on their way to the server arrive
        asked_by_then = len(server.requests)
        await asyncio.sleep(1.0)
        return len(server.requests) - asked_by_then

    with ModelServer(latency_ms=150) as server:
        assert asyncio.run(cancelled(server)) == 0


def test_models_of_several_threads_are_asked_side_by_side() -> None:
    async def at_once(settings: Settings) -> list[dict[str, Any]]:
        node = critic_node(settings)
        return await asyncio.gather(*(node.ainvoke(asked(RIGHT)) for _ in range(14)))

    with ModelServer(latency_ms=150, issues="none") as server:
        updates = asyncio.run(at_once(settings_at(server)))
        assert server.most_at_once >= 6
    assert len(updates) == 14


def test_the_judge_receives_what_the_critic_found() -> None:
    with ModelServer(told()) as server:
        settings = settings_at(server)
        state = audited(settings).invoke(asked(WRONG))
        server.requests.clear()
        evaluator_node(settings).invoke(state)
        (request,) = server.requests
    assert "chunk_9" in "".join(request.fences("CITATION_AUDIT"))
