"""Critic and reviser as DSPy modules: what goes in, what comes out, and the rules in code around
the model.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest

from masis.audit.control.run_control import RunControl
from masis.errors import InputError, InvalidRevision, ProviderFailed
from masis.integrations.dspy import (
    CONTEXT,
    CriticAgent,
    CriticAgentOutput,
    RevisionAgentOutput,
)
from masis.settings import Settings
from tests.integrations.with_dspy.conftest import critic_at, reviser_at, settings_at
from tests.served_replies import faulty, status
from tests.serving_models import ModelServer

ANSWER = "It is 9 m long [chunk_1]."
EVIDENCE = ["It is 5 m long.", "It was built in 1900."]
ASKED = {"original_query": "How long is it?", "evidence_chunks": EVIDENCE}


@pytest.mark.spec("REQ-CRITIC-001", "REQ-CRITIC-004")
def test_a_critique_has_the_fields_of_the_spec(server: ModelServer) -> None:
    critic = critic_at(server)
    found = critic(answer=ANSWER, **ASKED)
    output = CriticAgentOutput(
        **{name: getattr(found, name) for name in CriticAgentOutput.model_fields}
    )
    assert isinstance(critic, dspy.Module)
    assert output.issues[0].issue_type == "factual"
    assert output.issues[0].location == ANSWER
    assert (output.overall_quality_score, output.critique_confidence) == (0.6, 0.8)
    assert output.has_major_issues


@pytest.mark.spec("REQ-CRITIC-002")
def test_reasoning_steps_are_optional(
    server: ModelServer,
) -> None:
    critic = critic_at(server)
    critic(answer=ANSWER, **ASKED)
    critic(answer=ANSWER, reasoning_steps=["I measured it."], iteration_number=2, **ASKED)
    without, with_steps = (request.fences("REASONING") for request in server.requests)
    assert without == []
    assert "I measured it." in with_steps[0]


def test_a_string_as_evidence_is_rejected(
    server: ModelServer,
) -> None:
    critic = critic_at(server)
    with pytest.raises(InputError, match="evidence_chunks: is a single item, not a list of chunks"):
        critic(answer=ANSWER, original_query="How long is it?", evidence_chunks=EVIDENCE[0])
    with pytest.raises(InputError, match=r"evidence_chunks\[1\]"):
        critic(answer=ANSWER, original_query="?", evidence_chunks=["text", 7])
    assert not server.requests


def test_a_fabricated_citation_lowers_confidence_and_is_an_issue(
    server: ModelServer,
) -> None:
    found = critic_at(server)(answer="It is 9 m long [chunk_7].", **ASKED)
    assert found.confidence == pytest.approx(0.3)
    assert found.hallucination_detected
    assert found.issues[0].severity == "critical"
    assert [issue.rule for issue in found.critic_issues] == ["critic_unsupported"]


@pytest.mark.parametrize("strict", [True, False])
def test_any_dspy_lm_is_called_without_its_own_retries_and_cache(strict: bool) -> None:
    lm = dspy.LM(
        "openai/gpt-4o" if strict else "openai/unheard-of",
        api_base="?",
        api_key="loopback",
        num_retries=8,
    )
    with ModelServer([status(503)]) as served:
        lm.kwargs["api_base"] = served.address
        critic = CriticAgent(lm=lm, settings=settings_at(served))
        first, second = critic(answer=ANSWER, **ASKED), critic(answer=ANSWER, **ASKED)
        assert first.overall_quality_score == second.overall_quality_score == 0.6
        assert len(served.requests) == 3  # once more after the failure, and no reply from a cache
        assert served.requests[0].mode == ("json_schema" if strict else "prompt")
        assert served.requests[0].fences("ANSWER") == [ANSWER]
    assert len(lm.history) == 2


def test_a_failing_dspy_lm_leaves_the_critique_unscored() -> None:
    lm = dspy.LM("openai/any", api_base="http://127.0.0.1:9", api_key="loopback")
    found = CriticAgent(lm=lm, settings=Settings(retry_base_s=0.01, retry_cap_s=0.01))(
        answer=ANSWER, **ASKED
    )
    assert found.overall_quality_score is None
    assert "openai/any" in found.unscored


@pytest.mark.parametrize("own", [True, False])
def test_an_unresponsive_model_is_abandoned_at_the_deadline(own: bool) -> None:
    with ModelServer(lambda request: faulty("hang", request)) as served:
        lm = None if own else dspy.LM("openai/any", api_base=served.address, api_key="loopback")
        critic = critic_at(served, lm=lm, settings=settings_at(served, call_deadline_s=0.6))
        found = critic(answer=ANSWER, **ASKED)
        awaited = asyncio.run(critic.acall(answer=ANSWER, **ASKED))
    assert found.overall_quality_score is None
    assert awaited.overall_quality_score is None


def test_an_unreadable_dspy_reply_is_requested_again() -> None:
    lm = dspy.utils.DummyLM([{"nonsense": "no"}] * 5)
    found = CriticAgent(lm=lm)(answer=ANSWER, **ASKED)
    assert found.overall_quality_score is None
    assert "no JSON object" in found.unscored
    assert len(lm.history) == 2


def test_the_model_can_come_from_the_dspy_context(server: ModelServer) -> None:
    critic = CriticAgent(lm=CONTEXT)
    lm = critic_at(server).for_run(RunControl())
    with dspy.context(lm=lm):
        assert critic(answer=ANSWER, **ASKED).overall_quality_score == 0.6
    assert "no model is named" in critic(answer=ANSWER, **ASKED).unscored, (
        "no agent configures one for others"
    )
    critic.set_lm(lm)
    assert critic(answer=ANSWER, **ASKED).overall_quality_score == 0.6


def test_an_agent_can_be_awaited(server: ModelServer) -> None:
    critic, reviser = critic_at(server), reviser_at(server)

    async def both() -> tuple[Any, Any]:
        critique = await critic.acall(answer=ANSWER, **ASKED)
        return critique, await reviser.acall(original_answer=ANSWER, critique=critique, **ASKED)

    critique, revision = asyncio.run(both())
    assert critique.overall_quality_score == 0.6
    assert revision.revised_answer == "It is 5 m long [chunk_1]."


@pytest.mark.spec("REQ-CRITIC-008", "REQ-CRITIC-009", "REQ-CRITIC-011")
def test_a_revision_has_the_fields_of_the_spec(server: ModelServer) -> None:
    critique = critic_at(server)(answer=ANSWER, **ASKED)
    found = reviser_at(server)(original_answer=ANSWER, critique=critique, **ASKED)
    output = RevisionAgentOutput(
        **{name: getattr(found, name) for name in RevisionAgentOutput.model_fields}
    )
    assert output.revised_answer == "It is 5 m long [chunk_1]."
    assert output.issues_addressed == ("i1",)
    assert output.updated_confidence == 0.9


def test_a_critique_in_the_format_of_the_spec_is_accepted(server: ModelServer) -> None:
    critique = {"issues": [{"issue_type": "factual", "severity": "high", "description": "Wrong."}]}
    found = reviser_at(server)(original_answer=ANSWER, critique=critique, **ASKED)
    assert found.issues_addressed == ("i1",)
    assert "Wrong." in server.requests[0].fences("ISSUES")[0]


@pytest.mark.parametrize(("fault", "error"), [("prose", InvalidRevision), ("500", ProviderFailed)])
def test_a_missing_revision_is_an_error(fault: str, error: type[Exception]) -> None:
    with ModelServer(lambda request: faulty(fault, request)) as served, pytest.raises(error):
        reviser_at(served)(original_answer=ANSWER, critique={}, **ASKED)


def test_an_agent_behaves_like_a_dspy_module(server: ModelServer, tmp_path: Path) -> None:
    critic, loaded = critic_at(server), critic_at(server)
    asked = {"answer": ANSWER, **ASKED}
    example = dspy.Example(**asked).with_inputs(*asked)
    optimizer = dspy.BootstrapFewShot(
        metric=lambda *_: True, max_bootstrapped_demos=1, max_labeled_demos=0
    )
    with dspy.context(trace=[]):
        compiled = optimizer.compile(critic, trainset=[example])
    compiled.save(str(tmp_path / "critic.json"))
    loaded.load(str(tmp_path / "critic.json"))
    assert loaded(**asked).overall_quality_score == 0.6
    assert server.requests[-1].fences("EXAMPLE_ANSWER") == [ANSWER]

    def quality(example: Any, found: Any, trace: Any = None) -> float:
        return float(found.overall_quality_score or 0)

    assert dspy.Evaluate(devset=[example] * 3, metric=quality, num_threads=2)(critic).score == 60.0
    both = dspy.Parallel(num_threads=2, disable_progress_bar=True)(
        [(critic, example), (loaded, example)]
    )
    assert [output.overall_quality_score for output in both] == [0.6, 0.6]
    copy = CriticAgent(lm=critic.for_run(RunControl())).deepcopy()
    assert copy(**asked).overall_quality_score == 0.6
