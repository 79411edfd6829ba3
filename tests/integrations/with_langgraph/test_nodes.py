"""Critic, evaluator and synthesizer: the fields of the specs and no others, in sync and async
graphs, many at once.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from masis import Settings, run_audit
from masis.errors import InputError, SettingsError
from masis.integrations.langgraph import (
    EvidenceList,
    Metrics,
    Trace,
    critic_node,
    evaluator_node,
    synthesizer_node,
)
from masis.schema.run import Run
from tests.integrations.with_langgraph.graphs import (
    EVIDENCE,
    QUESTION,
    RIGHT,
    WRONG,
    audited,
    chain,
    state_with,
)

NAMES = (
    "confidence hallucination_detected unsupported_claims logical_gaps conflicting_evidence"
    " needs_retry"
)


def audit_without_graph(answer: str) -> Run:
    """Run the same audit without a graph."""
    case = {"id": "x", "query": QUESTION, "answer": answer, "evidence": list(EVIDENCE)}
    return run_audit(case, Settings(max_iterations=1))


@pytest.fixture(scope="module")
def wrong() -> dict[str, Any]:
    """Return the state after an audit of the wrong answer."""
    return dict(audited().invoke(state_with(WRONG)))


@pytest.mark.spec("MASIS-CRITIC-STATE", "MASIS-CRITIC-P2")
def test_the_critic_writes_exactly_the_fields_of_the_spec() -> None:
    update = critic_node().invoke(state_with())
    assert set(update) == {"critique", "confidence", "final_answer", "metrics", "trace"}
    assert set(NAMES.split()) <= set(update["critique"])
    metrics = {
        "last_citation_audit",
        "citation_violations",
        "confidence_history",
        "node_latency_ms",
    }
    assert metrics <= set(update["metrics"])
    assert update["final_answer"] == WRONG
    assert (
        update["confidence"]
        == update["critique"]["confidence"]
        == update["metrics"]["confidence_history"][0]
    )


@pytest.mark.spec("MASIS-CRITIC-STATE", "MASIS-CRITIC-P3", "MASIS-CRITIC-P6")
def test_the_graph_critic_equals_an_audit_including_penalties() -> None:
    update, run = critic_node().invoke(state_with()), audit_without_graph(WRONG)
    (iteration,) = run.iterations
    assert update["critique"] == json.loads(iteration.critique.model_dump_json())
    assert update["critique"]["hallucination_detected"]
    assert update["critique"]["needs_retry"]
    citation_audit = update["metrics"]["last_citation_audit"]
    assert (citation_audit["invalid_citations"], citation_audit["uncited_claim_count"]) == (
        ["chunk_9"],
        0,
    )
    assert citation_audit["hallucination_detected"]
    assert update["metrics"]["citation_violations"] == 1


@pytest.mark.parametrize("answer", [WRONG, RIGHT])
def test_acceptance_in_a_graph_equals_other_audits(answer: str) -> None:
    run = audit_without_graph(answer)
    expected = [{"code": reason.code, "tier": reason.tier} for reason in run.review_reasons]
    for graph in (critic_node(), audited()):
        metrics = graph.invoke(state_with(answer))["metrics"]
        assert (metrics["needs_review"], metrics["review_reasons"]) == (run.needs_review, expected)
    assert any(reason["tier"] == "must_look" for reason in expected) == (answer == WRONG)


@pytest.mark.parametrize(
    ("decision", "needs_review"), [("sufficient", False), ("retrieve_more", True)]
)
def test_insufficient_screening_evidence_needs_review(decision: str, needs_review: bool) -> None:
    state = state_with(RIGHT, metrics={"screening": {"round": 1, "ruling": {"decision": decision}}})
    codes = [reason["code"] for reason in audited().invoke(state)["metrics"]["review_reasons"]]
    assert ("insufficient_evidence" in codes) == needs_review


@pytest.mark.spec("MASIS-CRITIC-TELEMETRY")
def test_the_critics_trace_entry_has_exactly_the_fields_of_the_spec() -> None:
    update = critic_node().invoke(state_with())
    (entry,) = update["trace"]
    assert entry.pop("duration_ms") > 0
    assert entry == {
        "node": "critic",
        "confidence": update["confidence"],
        "hallucination": True,
        "needs_retry": True,
        "conflicts": len(audit_without_graph(WRONG).iterations[0].critique.conflicting_evidence),
        "invalid_citations": 1,
        "uncited_claims": 0,
    }


@pytest.mark.spec("MASIS-EVAL-STATE", "MASIS-EVAL-TELEMETRY")
def test_the_evaluators_trace_entry_has_exactly_the_fields_of_the_spec(
    wrong: dict[str, Any],
) -> None:
    update = evaluator_node().invoke(wrong)
    assert set(update) == {"metrics", "trace"}
    evaluation, run = update["metrics"]["evaluation"], audit_without_graph(WRONG)
    assert evaluation == json.loads(run.iterations[0].evaluation.model_dump_json())
    (entry,) = update["trace"]
    assert entry.pop("duration_ms") == update["metrics"]["node_latency_ms"]["evaluator"] > 0
    assert entry == {
        "node": "evaluator",
        **{
            name: evaluation[name]
            for name in ("overall_score", "faithfulness", "relevance", "completeness")
        },
    }


@pytest.mark.spec("MASIS-EVAL-P4")
def test_issues_of_another_answer_are_ignored(wrong: dict[str, Any]) -> None:
    state = wrong | {"final_answer": RIGHT}
    update = evaluator_node().invoke(state)
    assert update["metrics"]["evaluation"]["faithfulness"] > 0.9
    # That answer wasn't audited, so the stored audit is unchanged.
    assert "run" not in update["metrics"]


@pytest.mark.spec("MASIS-CRITIC-P7", "MASIS-CRITIC-STATE")
def test_a_retry_is_the_next_iteration_of_the_same_run(wrong: dict[str, Any]) -> None:
    retried = audited().invoke(wrong | {"draft_answer": RIGHT, "retry_count": 1})
    run = Run.model_validate(retried["metrics"]["run"])
    assert [iteration.answer for iteration in run.iterations] == [WRONG, RIGHT]
    assert [iteration.evaluation is not None for iteration in run.iterations] == [True, True]
    assert retried["final_answer"] == RIGHT
    assert len(retried["metrics"]["confidence_history"]) == 2
    assert retried["metrics"]["citation_violations"] == 1


def test_changed_evidence_starts_another_run(wrong: dict[str, Any]) -> None:
    evidence = [*EVIDENCE, {"id": "chunk_9", "text": "It cost 4 million crowns."}]
    state = audited().invoke(wrong | {"evidence": evidence})
    run = Run.model_validate(state["metrics"]["run"])
    assert run.total_iterations == 1
    assert run.id != wrong["metrics"]["run"]["id"]
    assert run.iterations[0].citation_audit.invalid_citations == ()


@pytest.mark.parametrize("name", ["user_query", "draft_answer"])
@pytest.mark.parametrize("value", ["", "  ", None, 7])
def test_a_state_without_question_or_draft_is_rejected(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name}: is empty"):
        critic_node().invoke(state_with() | {name: value})


def test_an_audit_written_by_something_else_is_rejected() -> None:
    with pytest.raises(InputError, match=r"metrics\.run\.id: Field required"):
        critic_node().invoke(state_with(metrics={"run": {"iterations": []}}))


def test_an_unusable_model_is_reported_at_construction() -> None:
    for factory in (critic_node, evaluator_node, synthesizer_node):
        with pytest.raises(SettingsError, match="openai"):
            factory(Settings(critic="openai:gpt-4o"))


def test_the_synthesizer_drafts_then_addresses_the_critique(
    wrong: dict[str, Any],
) -> None:
    first = synthesizer_node().invoke({"user_query": QUESTION, "evidence": EVIDENCE})
    assert "[chunk_1]" in first["draft_answer"]
    revised = synthesizer_node().invoke(wrong)["draft_answer"]
    assert "chunk_9" not in revised
    assert "120 metres" in revised


def test_streaming_yields_node_updates_and_steps() -> None:
    chunks = list(audited().stream(state_with(), stream_mode=["updates", "custom"]))
    updates = [next(iter(chunk)) for mode, chunk in chunks if mode == "updates"]
    steps = [
        chunk["step"]
        for mode, chunk in chunks
        if mode == "custom" and chunk["kind"] == "step_started"
    ]
    assert updates == ["critic", "evaluator"]
    assert steps == ["citations", "claims", "critique", "evaluation"]
    assert WRONG not in json.dumps([chunk for mode, chunk in chunks if mode == "custom"])


@pytest.mark.parametrize("text", ["half a pair \ud800 [chunk_1].", "a null \x00 byte [chunk_1]."])
def test_unstorable_text_is_rejected_with_a_reason(text: str) -> None:
    with pytest.raises(InputError):
        critic_node().invoke(state_with(text))


def test_pydantic_graph_states_are_supported(wrong: dict[str, Any]) -> None:
    class TypedState(BaseModel):
        user_query: str
        draft_answer: str
        evidence: EvidenceList = Field(default_factory=list)
        critique: dict[str, Any] = Field(default_factory=dict)
        confidence: float | None = None
        final_answer: str | None = None
        metrics: Metrics = Field(default_factory=dict)
        trace: Trace = Field(default_factory=list)

    initial = state_with()
    del initial["retry_count"]
    state = (
        chain({"critic": critic_node(), "evaluator": evaluator_node()}, TypedState)
        .compile()
        .invoke(initial)
    )
    assert state["critique"] == wrong["critique"]
    assert [entry["node"] for entry in state["trace"]] == ["critic", "evaluator"]
