"""Every metric of the specs is exported with its name, unit and value."""

from __future__ import annotations

import pytest

from masis import Case, Settings
from masis.api.audits import run_audit
from masis.api.draft_critique import critique_draft, metrics
from masis.audit import loop
from masis.audit.measures.metric_catalogue import METRICS
from masis.observers.observation import run_to_completion
from masis.schema.run import Run
from tests.cli.running import case
from tests.integrations.with_otel.conftest import Exported
from tests.llm.asking import settings_here
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, judgement_with, roles
from tests.serving_models import ModelServer

CASE = Case.model_validate(case("bridge"))
SPECIFIED = {
    # the critic-loop spec, REQ-CRITIC-OBS-001, which defines the kinds but not the names
    "masis.critic.duration": "s",
    "masis.reviser.duration": "s",
    "masis.loop.duration": "s",
    "masis.loop.iterations": "{iteration}",
    "masis.loop.improvement_delta": "1",
    "masis.loop.improvement_percentage": "%",
    "masis.loop.converged_rate": "1",
    "masis.loop.convergence_rate": "1",
    "masis.loop.issues": "{issue}",
    "masis.loop.tokens": "{token}",
    # the draft-critique spec, "Metrics to Track"
    "critique_hallucination_rate": "1",
    "critique_revision_rate": "1",
    "critique_latency_ms": "ms",
    "critique_confidence_avg": "1",
    "claims_per_draft": "{claim}",
    # the GenAI conventions
    "gen_ai.client.operation.duration": "s",
    "gen_ai.client.token.usage": "{token}",
}


def scripted_run() -> Run:
    """Return a run with quality 0.4, then 0.8; the second iteration has no issues."""
    critic = ScriptedCritic([judgement_with(0.4, raw_issues=(MAJOR,)), judgement_with(0.8)])
    case = CASE.model_copy(update={"answer": "The bridge is 120 metres long [1]."})
    steps = loop.audit(
        case, roles(critic=critic, reviser=ScriptedReviser()), Settings(), run_id="r1"
    )
    return run_to_completion(steps)


@pytest.mark.spec(
    "REQ-CRITIC-OBS-001",
    "REQ-CRITIC-OBS-001-CRITIC-TIME",
    "REQ-CRITIC-OBS-001-REVISER-TIME",
    "REQ-CRITIC-OBS-001-LOOP-TIME",
    "REQ-CRITIC-OBS-001-ITERATIONS",
    "REQ-CRITIC-OBS-001-DELTA",
    "REQ-CRITIC-OBS-001-PERCENT",
    "REQ-CRITIC-OBS-001-CONVERGENCE",
    "REQ-CRITIC-OBS-001-ISSUES",
    "REQ-CRITIC-OBS-001-TOKENS",
    "DRAFT-CRITIQUE-METRICS",
)
def test_every_metric_of_the_specs_is_exported_with_its_unit(seen: Exported) -> None:
    seen.audited(CASE, prices={"here:m": {"input": 1.0, "output": 2.0}})
    scripted_run()  # a run that improves
    exported = seen.metrics()
    assert {name: exported[name].unit for name in SPECIFIED if name in exported} == SPECIFIED
    assert set(exported) == {metric.name for metric in METRICS}
    assert {name: found.unit for name, found in exported.items()} == {
        metric.name: metric.unit for metric in METRICS
    }


def test_metric_names_are_unique_and_bounds_ascend() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert list(metric.bounds) == sorted(set(metric.bounds))
        assert bool(metric.bounds) is (metric.kind == "histogram")


@pytest.mark.spec("REQ-CRITIC-OBS-001")
def test_metric_values_match_the_run(seen: Exported) -> None:
    run = scripted_run()
    exported = seen.metrics()
    first, second = run.iterations
    critique_ms, report = (
        sum(iteration.step_ms["critique"] for iteration in run.iterations),
        first.claim_report,
    )
    for name, count, total in (
        ("masis.loop.iterations", 1, 2),
        ("masis.loop.improvement_delta", 1, 0.4),  # the first iteration has no delta
        ("masis.loop.improvement_percentage", 1, 100.0),
        ("masis.loop.converged_rate", 1, float(run.ended_well)),
        ("masis.loop.convergence_rate", 1, 0),
        ("masis.critic.duration", 2, critique_ms / 1000),
        ("masis.reviser.duration", 1, first.step_ms["revision"] / 1000),
        ("masis.critic.confidence", 2, 1.2),
        ("masis.evaluator.overall_score", 2, 2 * 0.9),
        ("critique_revision_rate", 1, 1),
        ("critique_hallucination_rate", 1, 0),
        ("critique_confidence_avg", 1, report.confidence),
        ("claims_per_draft", 1, report.facts_checked),
    ):
        assert (exported[name].count, exported[name].sum) == (count, pytest.approx(total)), name
    assert exported["masis.loop.issues"].sum == len(first.issues) + len(second.issues) > 0


@pytest.mark.spec("REQ-CRITIC-NFR-012")
def test_tokens_are_counted_by_role_and_kind(seen: Exported) -> None:
    run = seen.audited(CASE)
    exported = seen.metrics()
    tokens = exported["masis.loop.tokens"]
    assert tokens.sum == run.usage.prompt_tokens + run.usage.completion_tokens
    by_role = run.usage_by_role()
    for point in tokens.points:
        role_usage = by_role[point.attributes["masis.role"]]
        kind = point.attributes["gen_ai.token.type"]
        assert point.value == (
            role_usage.prompt_tokens if kind == "input" else role_usage.completion_tokens
        )
    usage = exported["gen_ai.client.token.usage"]
    assert usage.sum == tokens.sum
    assert usage.values("gen_ai.token.type") == {"input", "output"}
    calls = exported["gen_ai.client.operation.duration"]
    assert calls.count == run.usage.calls
    assert calls.sum == pytest.approx(sum(call.ms for call in run.calls) / 1000)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "here",
        "gen_ai.request.model": "m",
    }
    assert all(expected.items() <= dict(point.attributes).items() for point in calls.points)


def test_failed_calls_are_counted_by_error_kind(seen: Exported) -> None:
    with ModelServer(
        lambda request: None, refuses=("json_schema", "json_object"), keys=["another"]
    ) as server:
        run_audit(CASE, settings_here(server, max_iterations=1, max_retries=0))
    calls = seen.metrics()["gen_ai.client.operation.duration"]
    assert "failed" in calls.values("error.type")


@pytest.mark.spec("DRAFT-CRITIQUE-METRICS")
def test_draft_metrics_match_the_package(seen: Exported) -> None:
    sources = [{"id": "1", "content": "Timeout: 60 seconds"}]
    results = [
        critique_draft("What is the timeout?", f"The timeout is {seconds} seconds.", sources)
        for seconds in (30, 60)
    ]
    expected, exported = metrics(results), seen.metrics()
    for name in (name for name in SPECIFIED if name.startswith(("critique_", "claims_"))):
        assert exported[name].count == 2
        assert exported[name].sum / 2 == pytest.approx(getattr(expected, name))
    assert exported["critique_latency_ms"].values("masis.operation") == {"critique_draft"}
