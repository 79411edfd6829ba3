"""Every field of the specs' records is there under its name, with the constants that the specs give it."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import BaseModel

from masis import run_audit
from masis.audit import run_metrics
from masis.audit.context import AuditContext
from masis.audit.issues import CRITIC_LOOP_TYPE
from masis.audit.step_events import of_run
from masis.errors import CriticFailed
from masis.llm.roles import reviser, verifier
from masis.schema.audit import Critique, Evaluation, Issue, IssueType, Revision, Severity
from masis.schema.case import Case
from masis.schema.run import Event, Iteration, Run, TerminationReason
from masis.settings import Settings
from tests.audit.test_loop import CASE, run
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, roles, said


def fields(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


@pytest.mark.spec("CRITIC-LOOP-CRITIC-INPUT")
def test_the_critics_input() -> None:
    critic = ScriptedCritic()
    run(critic=critic, case=CASE.model_copy(update={"reasoning_steps": ("First.", "Then.")}))
    seen = critic.seen[0]
    assert isinstance(seen, AuditContext)
    assert (seen.answer, seen.query, seen.evidence) == (CASE.answer, CASE.query, CASE.evidence)
    assert (seen.reasoning_steps, seen.iteration_number) == (("First.", "Then."), 1)


@pytest.mark.spec("CRITIC-LOOP-ISSUE")
def test_an_issue() -> None:
    assert {"type", "severity", "description", "quote", "start", "end", "suggestion", "reason"} <= fields(Issue)
    assert set(get_args(Severity)) == {"critical", "high", "medium", "low"}
    six = {"logical", "factual", "safety", "ambiguity", "missing_info", "incomplete_reasoning"}
    assert six <= set(get_args(IssueType))
    assert set(CRITIC_LOOP_TYPE.values()) == six


@pytest.mark.spec("CRITIC-LOOP-CRITIC-OUTPUT")
def test_the_critics_output() -> None:
    named = {"overall_quality_score", "critique_confidence", "critique_reasoning", "has_major_issues"}
    assert named <= fields(Critique)
    for severity, major in (("critical", True), ("high", True), ("medium", False), ("low", False)):
        critic = ScriptedCritic((said(0.5, objections=(MAJOR._replace(severity=severity),)),))
        first = run(critic=critic, settings=Settings(max_iterations=1, strictness="strict")).iterations[0]
        assert first.critique.has_major_issues is major
        assert first.issues


@pytest.mark.spec("CRITIC-LOOP-REVISER-INPUT", "CRITIC-LOOP-REVISER-OUTPUT")
def test_the_revisers_input_and_output() -> None:
    reviser_ = ScriptedReviser()
    found = run(critic=ScriptedCritic((said(0.5, objections=(MAJOR,)), said(0.9))), reviser=reviser_)
    context, critique, issues = reviser_.seen[0]
    assert (context.answer, context.query, context.evidence) == (CASE.answer, CASE.query, CASE.evidence)
    assert context.iteration_number == 1
    assert critique == found.iterations[0].critique
    assert issues == found.iterations[0].issues
    named = {"revised_answer", "changes_explanation", "updated_confidence", "issues_addressed", "preserved_content"}
    assert named <= fields(Revision)


@pytest.mark.spec("CRITIC-LOOP-INPUT")
def test_the_loops_input() -> None:
    assert {"answer", "query", "evidence", "reasoning_steps"} <= fields(Case)
    assert (Settings().max_iterations, Settings().improvement_threshold) == (3, 0.05)


@pytest.mark.spec("CRITIC-LOOP-ITERATION", "CRITIC-LOOP-OUTPUT")
def test_an_iteration_and_the_loops_output() -> None:
    named = {"iteration_number", "answer", "quality_score", "issues", "changes_made", "improvement_delta"}
    assert named <= fields(Iteration)
    named = {"final_answer", "final_quality_score", "iterations", "total_iterations", "improvement_percentage"}
    assert named | {"converged", "termination_reason"} <= fields(Run)


@pytest.mark.spec("CRITIC-LOOP-REASONS")
def test_the_reasons_to_end() -> None:
    four = {"max_iterations", "convergence", "no_issues", "error"}
    assert set(get_args(TerminationReason)) == four | {"cancelled"}


@pytest.mark.spec("MASIS-CRITIC-OVERRIDE", "MASIS-CRITIC-LAYERS")
@pytest.mark.parametrize("judgement", [said(0.9), CriticFailed("gone")])
def test_what_code_finds_stands_whatever_the_model_says_or_fails_to_say(judgement: object) -> None:
    case = CASE.model_copy(update={"answer": "The bridge is 120 metres long [9]."})
    settings = Settings(max_iterations=1)
    critique = run(case=case, critic=ScriptedCritic((judgement,)), settings=settings).iterations[0].critique  # type: ignore[arg-type]
    assert critique.hallucination_detected
    assert critique.needs_retry
    assert critique.has_major_issues


@pytest.mark.spec("MASIS-CRITIC-NO-CITATION")
def test_an_answer_that_cites_nothing_pays_nothing_for_its_uncited_sentences() -> None:
    case = CASE.model_copy(update={"answer": "The bridge is 120 metres long. It is made of steel."})
    audit = run(case=case).iterations[0].citation_audit
    assert len(audit.uncited_claims) == 2
    assert audit.penalty_factor == 1.0


@pytest.mark.spec("MASIS-EVAL-FIELDS")
def test_an_evaluation() -> None:
    named = {"faithfulness", "relevance", "completeness", "reasoning_quality", "overall_score"}
    assert named | {"improvement_suggestions"} <= fields(Evaluation)


@pytest.mark.spec(
    "REQ-CRITIC-OBS-001-CRITIC-TIME",
    "REQ-CRITIC-OBS-001-REVISER-TIME",
    "REQ-CRITIC-OBS-001-LOOP-TIME",
    "REQ-CRITIC-OBS-001-ITERATIONS",
    "REQ-CRITIC-OBS-001-DELTA",
    "REQ-CRITIC-OBS-001-PERCENT",
    "REQ-CRITIC-OBS-001-CONVERGENCE",
    "REQ-CRITIC-OBS-001-TOKENS",
    "REQ-CRITIC-COMP-001-FIELDS",
)
def test_the_record_of_a_run_holds_every_metric() -> None:
    found = run(critic=ScriptedCritic((said(0.5, objections=(MAJOR,)), said(0.9))))
    first, second = found.iterations
    assert first.step_ms["critique"] > 0
    assert first.step_ms["revision"] > 0
    assert found.started_at <= found.finished_at
    assert sum(sum(iteration.step_ms.values()) for iteration in found.iterations) > 0
    told = of_run(found)
    assert (told["total_iterations"], told["termination_reason"]) == (2, "no_issues")
    assert told["final_quality_score"] == pytest.approx(0.9)
    assert told["improvement_percentage"] == pytest.approx(80)
    assert second.improvement_delta == pytest.approx(0.4)
    assert found.converged is False
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (0, 0)
    assert found.case_id == CASE.id


MINOR = MAJOR._replace(rule="minor", severity="low", description="It could be shorter.")


@pytest.mark.spec("REQ-CRITIC-OBS-001-ISSUES")
def test_every_issue_of_an_answer_is_counted_whatever_its_severity() -> None:
    critic = ScriptedCritic((said(0.5, objections=(MAJOR, MINOR)), said(0.9, objections=(MINOR,)), said(0.9)))
    events: list[Event] = []
    found = run(critic=critic, settings=Settings(strictness="strict"), on_event=events.append)
    assert [[issue.severity for issue in each.issues] for each in found.iterations] == [["high", "low"], ["low"]]
    assert [(each.issues, each.major_issues) for each in run_metrics.of_run(found).iterations] == [(2, 1), (1, 0)]
    emitted = [event.data for event in events if event.kind == "iteration_finished"]
    assert [(data["issues"], data["major_issues"]) for data in emitted] == [(2, 1), (1, 0)]


@pytest.mark.spec("DRAFT-CRITIQUE-TEMPERATURES")
def test_the_temperatures_of_the_specs_prompts() -> None:
    assert (verifier.EXTRACT_TEMPERATURE, verifier.VERIFY_TEMPERATURE) == (0.1, 0.1)
    assert verifier.COMPLETENESS_TEMPERATURE == 0.2
    assert reviser.ModelReviser.temperature == 0.3


@pytest.mark.spec("CRITIC-LOOP-STRATEGY", "DRAFT-CRITIQUE-STRICTNESS")
def test_which_severities_count_is_a_setting() -> None:
    case = CASE.model_copy(update={"answer": "The bridge is 120 metres long [chunk_1]. Its colour is much admired."})
    found = {
        strictness: len(run_audit(case, Settings(strictness=strictness, max_iterations=1)).iterations[0].issues)
        for strictness in ("lenient", "moderate", "strict")
    }
    assert found["lenient"] <= found["moderate"] <= found["strict"]
    assert Settings().strictness == "moderate"


@pytest.mark.spec("CRITIC-LOOP-MODELS")
def test_each_role_may_have_a_model_of_its_own() -> None:
    told = Settings(critic="openai:gpt-4o", reviser="anthropic:claude-haiku-4-5")
    assert told.models()["critic"] != told.models()["reviser"]
    assert roles().models
