"""Runs, iterations, steps and model calls have nested spans without texts."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import masis
from masis import Case, Settings
from masis.api.audits import run_audit, run_audit_async
from masis.api.draft_critique import critique_draft
from masis.audit import loop
from masis.errors import ReviserFailed
from masis.integrations.telemetry import spans
from masis.observers.log_records import JsonLine
from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract
from masis.settings import ROLES
from tests.cases import case_of
from tests.integrations.with_otel.conftest import Exported, Watch, attributes_of
from tests.llm.asking import KEY, settings_here
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, judgement_with, roles
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer

CASE = case_of(
    "The walrus sleeps in Skagen [1]. It eats lanterns [9].",
    {"1": "The walrus sleeps in Skagen."},
    case_id="walrus-1",
    query="Where does the walrus sleep?",
)
AGENTS = ("verifier", "critic", "reviser", "evaluator")
TEXTS = ("walrus sleeps", "skagen", "lanterns", "where does")


def test_an_audit_is_a_tree_of_spans(seen: Exported) -> None:
    run = seen.audited(CASE)
    paths = {"/".join(seen.path(span)) for span in seen.spans.get_finished_spans()}
    top = "invoke_workflow audit/iteration"
    assert {
        "invoke_workflow audit",
        top,
        f"{top}/citations",
        *(f"{top}/invoke_agent {role}" for role in AGENTS),
        *(f"{top}/invoke_agent {role}/chat m" for role in AGENTS),
    } == paths
    assert len(seen.find_spans("iteration")) == run.total_iterations
    assert len(seen.find_spans("chat m")) == run.usage.calls
    assert (
        len({span.context.trace_id for span in seen.spans.get_finished_spans() if span.context})
        == 1
    )
    assert not [
        span
        for span in seen.spans.get_finished_spans()
        if span.status.status_code is StatusCode.ERROR
    ]


def test_model_calls_follow_the_semantic_conventions(seen: Exported) -> None:
    run = seen.audited(CASE, issues="none", prices={"here:m": {"input": 1.0, "output": 2.0}})
    call = next(call for call in run.calls if call.role == "critic")
    span = next(
        span for span in seen.find_spans("chat m") if attributes_of(span)["masis.role"] == "critic"
    )
    assert span.kind is SpanKind.CLIENT
    assert call.prompt_tokens
    assert call.completion_tokens
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "here",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": call.answered_by,
        "gen_ai.usage.input_tokens": call.prompt_tokens,
        "gen_ai.usage.output_tokens": call.completion_tokens,
        "gen_ai.output.type": "json",
        "gen_ai.prompt.name": call.prompt,
        "masis.tries": 1,
        "masis.step": "critique",
        "masis.iteration": 1,
        "masis.cost_usd": call.cost_usd,
    }
    assert attributes_of(span) | attributes == attributes_of(span)
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "critic"}
    assert agent.items() <= attributes_of(seen.one("invoke_agent critic")).items()


def test_replayed_calls_are_marked_and_not_counted(seen: Exported, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    recorded = seen.audited(CASE, issues="none", max_iterations=1, record=str(file))
    seen.spans.clear()
    before = seen.metrics()["gen_ai.client.operation.duration"].count
    run_audit(
        CASE,
        Settings.model_validate(dict.fromkeys(ROLES, f"replay:{file}") | {"max_iterations": 1}),
    )
    spans = list(map(attributes_of, seen.find_spans("chat here:m")))
    assert len(spans) == recorded.usage.calls
    assert {
        (attributes["masis.source"], attributes["gen_ai.provider.name"]) for attributes in spans
    } == {("replay", "replay")}
    assert seen.metrics()["gen_ai.client.operation.duration"].count == before


def test_names_follow_the_semantic_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    ours = set(
        re.findall(r'"(gen_ai\.[a-z_.]+)"', Path(spans.__file__).read_text(encoding="utf-8"))
    )
    theirs = {
        value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")
    }
    assert len(ours) > 10
    assert ours <= theirs


def test_a_run_span_records_its_ending(seen: Exported) -> None:
    run = run_audit(CASE, Settings(max_iterations=1))
    found = attributes_of(seen.one("invoke_workflow audit"))
    assert "invalid_reference" in found["masis.review_reasons"]
    ended = {
        "masis.run.id": run.id,
        "masis.case.id": "walrus-1",
        "masis.termination_reason": run.termination_reason,
        "masis.needs_review": True,
        "masis.final_quality_score": run.final_quality_score,
        "masis.model.critic": "offline",
    }
    assert found | ended == found


@pytest.mark.spec("MASIS-CRITIC-TELEMETRY", "MASIS-EVAL-TELEMETRY")
def test_critic_and_evaluator_emit_the_fields_of_their_specs(seen: Exported) -> None:
    run = run_audit(CASE, Settings(max_iterations=1))
    (emitted,) = [event for event in seen.one("critique").events if event.name == "critic"]
    iteration = run.iterations[0]
    found = dict(emitted.attributes or {})
    assert found | {"duration_ms": 0, "issues": 0} == {
        "node": "critic",
        "confidence": iteration.critique.confidence,
        "hallucination": True,
        "needs_retry": True,
        "conflicts": 0,
        "invalid_citations": 1,
        "uncited_claims": len(iteration.citation_audit.uncited_claims),
        "duration_ms": 0,
        "issues": 0,
    }
    assert found["duration_ms"] == pytest.approx(iteration.step_ms["critique"], abs=0.001)
    (judged,) = [event for event in seen.one("evaluation").events if event.name == "evaluator"]
    scores = dict(judged.attributes or {})
    assert {
        "node",
        "overall_score",
        "faithfulness",
        "relevance",
        "completeness",
        "duration_ms",
    } <= set(scores)
    assert scores["faithfulness"] == iteration.evaluation.faithfulness


@pytest.mark.spec("REQ-CRITIC-SEC-003")
def test_spans_have_no_text_by_default(watch: Watch) -> None:
    def failing(request: Request) -> Behaviour | None:
        if request.schema_name == "evaluation_reply":
            return Behaviour(status=500, error={"message": request.text})
        return None

    bare, whole = watch(), watch(telemetry_texts=True)
    bare.audited(CASE, failing, max_retries=0)
    critique_draft(
        CASE.query, CASE.answer or "", [{"id": "1", "content": "The walrus sleeps in Skagen."}]
    )
    assert len(bare.spans.get_finished_spans()) == len(whole.spans.get_finished_spans()) > 10
    assert not [text for text in TEXTS if text in bare.text().lower()]
    assert KEY not in whole.text()
    call = next(
        found
        for found in map(attributes_of, whole.find_spans("chat m"))
        if found["masis.role"] == "critic"
    )
    assert "walrus sleeps" in call["gen_ai.input.messages"]
    assert "gen_ai.system_instructions" in call
    assert '"assistant"' in call["gen_ai.output.messages"]
    assert (
        attributes_of(whole.find_spans("invoke_workflow audit")[0])["masis.question"] == CASE.query
    )


def test_parallel_audits_have_separate_span_trees(seen: Exported) -> None:
    tracer = seen.tracers.get_tracer("web")
    cases = [CASE.model_copy(update={"id": f"walrus-{number}"}) for number in range(6)]

    async def one(case: Case) -> None:
        with tracer.start_as_current_span(f"request {case.id}") as request:
            await run_audit_async(case, settings)
            assert trace.get_current_span() is request

    async def all_of_them() -> None:
        await asyncio.gather(*map(one, cases))

    with ModelServer(issues="always", latency_ms=5) as server:
        settings = settings_here(server, max_iterations=2)
        asyncio.run(all_of_them())
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda case: run_audit(case, settings), cases[:3]))
    for case in cases:
        request = seen.one(f"request {case.id}")
        (run,) = [
            span
            for span in seen.find_spans("invoke_workflow audit")
            if span.parent == request.context
        ]
        assert attributes_of(run)["masis.case.id"] == case.id
    runs = seen.find_spans("invoke_workflow audit")
    assert len(runs) == 9
    assert len([run for run in runs if run.parent is None]) == 3
    for span in seen.spans.get_finished_spans():  # each span belongs to the run of its trace
        if span.name.startswith("invoke_agent"):
            assert seen.path(span)[-3:-1] == ["invoke_workflow audit", "iteration"]
    by_trace = {run.context.trace_id for run in runs if run.context}
    assert len(by_trace) == 9
    assert {span.context.trace_id for span in seen.find_spans("chat m") if span.context} == by_trace


def test_a_failed_reviser_is_an_error_in_step_and_run(seen: Exported) -> None:
    failing = roles(
        critic=ScriptedCritic([judgement_with(0.5, raw_issues=(MAJOR,))]),
        reviser=ScriptedReviser([ReviserFailed("no walrus sleeps here")]),
    )
    run_to_completion(loop.audit(CASE, failing, Settings(), run_id="r1"))
    step, run = seen.one("revision"), seen.one("invoke_workflow audit")
    for span in (step, run):
        assert (span.status.status_code, span.status.description) == (
            StatusCode.ERROR,
            "CRITIC-ERR-002",
        )
    assert attributes_of(step)["error.type"] == "CRITIC-ERR-002"
    assert seen.path(step) == ["invoke_workflow audit", "iteration", "revision"]
    assert seen.one("critique").status.status_code is StatusCode.UNSET
    assert "walrus sleeps" not in seen.text()


def test_a_call_without_a_reply_is_an_error_with_its_attempts(seen: Exported) -> None:
    def busy(request: Request) -> Behaviour | None:
        return Behaviour(status=500) if request.schema_name == "critique_reply" else None

    seen.audited(CASE, busy, "none", max_iterations=1, max_retries=1)
    (call,) = [
        span for span in seen.find_spans("chat m") if span.status.status_code is StatusCode.ERROR
    ]
    assert (call.status.description, attributes_of(call)["error.type"]) == ("failed", "failed")
    assert attributes_of(call)["masis.tries"] == 2
    step = seen.one("invoke_agent critic")
    assert (step.status.status_code, step.status.description) == (
        StatusCode.ERROR,
        "CRITIC-ERR-003",
    )
    assert [event.name for event in step.events] == ["call_retried", "warning", "critic"]


def test_an_interrupted_run_ends_its_spans(seen: Exported) -> None:
    def stop(event: masis.Event) -> None:
        if event.step == "critique":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_audit(CASE, Settings(), stop)
    run = seen.one("invoke_workflow audit")
    assert (run.status.status_code, run.status.description) == (
        StatusCode.ERROR,
        "KeyboardInterrupt",
    )
    assert seen.one("critique").parent == seen.one("iteration").context
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert not seen.metrics()


def test_a_cancelled_run_isnt_an_error(seen: Exported) -> None:
    run_to_completion(loop.audit(CASE, roles(), Settings(), run_id="r1", cancelled=lambda: True))
    run = seen.one("invoke_workflow audit")
    assert run.status.status_code is StatusCode.UNSET
    assert attributes_of(run)["masis.termination_reason"] == "cancelled"


def test_a_draft_critique_has_a_parent_span(seen: Exported) -> None:
    critique_draft(
        "How long?", "It is 30 seconds long.", [{"id": "1", "content": "It is 60 seconds long."}]
    )
    draft, audit = seen.one("invoke_workflow critique_draft"), seen.one("invoke_workflow audit")
    assert audit.parent == draft.context
    assert attributes_of(audit)["masis.operation"] == "critique_draft"
    assert attributes_of(draft)["masis.is_valid"] is False
    assert attributes_of(draft)["masis.sources"] == 1


def test_a_screening_and_its_rounds_have_spans(seen: Exported) -> None:
    abstracts = [
        Abstract(
            id=str(number),
            title=f"Walrus sleep, a trial {number}",
            text="We randomised 200 patients to sleep.",
        )
        for number in range(3)
    ]
    result = masis.screen_abstracts("Does sleep help?", abstracts)
    screening = seen.one("invoke_workflow screen_abstracts")
    assert attributes_of(screening)["masis.outcome"] == result.outcome
    assert attributes_of(screening)["masis.rounds"] == len(result.rounds)
    assert [span.parent for span in seen.find_spans("round")] == [screening.context] * len(
        result.rounds
    )
    assert "walrus" not in seen.text().lower()


def test_log_lines_have_trace_ids(watch: Watch) -> None:
    lines: list[dict[str, Any]] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonLine().format(record)))

    logger, handler = logging.getLogger("masis"), RecordingHandler()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        seen = watch()
        run_audit(CASE, Settings(max_iterations=1))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    step = next(line for line in lines if line.get("node") == "critic")
    critique = seen.one("critique").context
    assert (step["trace_id"], step["span_id"]) == (
        f"{critique.trace_id:032x}",
        f"{critique.span_id:016x}",
    )
