"""The critic loop as a DSPy module: masis.audit.loop with the agents in their roles."""

from __future__ import annotations

from typing import Any

import dspy
import pytest

from masis.errors import SettingsError
from masis.integrations.dspy import (
    CriticAgent,
    CriticLoopOutput,
    MultiAgentCriticLoop,
    RevisionAgent,
)
from tests.integrations.with_dspy.conftest import critic_at, reviser_at
from tests.serving_models import ModelServer

GIVEN = {
    "initial_answer": "It is 9 m long [chunk_1].",
    "original_query": "How long is it?",
    "evidence_chunks": ["It is 5 m long.", "It was built in 1900."],
}


def loop_at(served: ModelServer, **options: Any) -> MultiAgentCriticLoop:
    return MultiAgentCriticLoop(critic_at(served), reviser_at(served), **options)


@pytest.mark.spec("REQ-CRITIC-015", "REQ-CRITIC-026", "REQ-CRITIC-027", "REQ-CRITIC-029")
def test_the_loop_returns_the_fields_of_the_spec(server: ModelServer) -> None:
    loop = loop_at(server)
    found = loop(**GIVEN, reasoning_steps=["I measured it."])
    output = CriticLoopOutput(
        **{name: getattr(found, name) for name in CriticLoopOutput.model_fields}
    )
    assert isinstance(loop, dspy.Module)
    assert output.final_answer == "It is 5 m long [chunk_1]."
    assert output.termination_reason == "no_issues"
    assert [iteration.quality_score for iteration in output.iterations] == [0.6, 0.9]
    assert output.iterations[1].changes_made
    assert output.improvement_percentage == pytest.approx(50)
    assert "I measured it." in server.requests[0].fences("REASONING")[0]


def test_calls_of_any_dspy_lm_are_recorded(server: ModelServer) -> None:
    lm = dspy.LM("openai/foreign", api_base=server.address, api_key="loopback")
    run = MultiAgentCriticLoop(CriticAgent(lm=lm), RevisionAgent(lm=lm))(**GIVEN).run
    assert [(call.role, call.model, call.iteration) for call in run.calls] == [
        ("critic", "openai/foreign", 1),
        ("reviser", "openai/foreign", 1),
        ("critic", "openai/foreign", 2),
    ]
    assert all(call.prompt_tokens > 500 and call.completion_tokens > 30 for call in run.calls)


def test_the_iteration_limit_is_validated_and_respected() -> None:
    with ModelServer(issues="always") as served:
        loop = loop_at(served, max_iterations=2, improvement_threshold=0.0)
        assert loop(**GIVEN, max_iterations=1).total_iterations == 1
    with pytest.raises(SettingsError, match="max_iterations"):
        loop_at(served, max_iterations=6)


def test_an_optimizer_reaches_both_agents_through_the_loop(server: ModelServer) -> None:
    loop = loop_at(server)
    assert sorted(name for name, _ in loop.named_predictors()) == [
        "critic_agent.critic",
        "revision_agent.revision",
    ]
    example = dspy.Example(**GIVEN).with_inputs(*GIVEN)
    optimizer = dspy.BootstrapFewShot(
        metric=lambda *_: True, max_bootstrapped_demos=1, max_labeled_demos=0
    )
    with dspy.context(trace=[]):
        compiled = optimizer.compile(loop, trainset=[example])
    assert all(len(predictor.demos) == 1 for predictor in compiled.predictors())
    compiled(**GIVEN)
    assert server.requests[-1].fences("EXAMPLE_ANSWER")
