"""The order of the steps, the stops, and what is left when a step fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from masis.audit import loop
from masis.audit.evaluation import EvaluationJudgement
from masis.errors import CriticFailed, ReviserFailed, StepError
from masis.observers.observation import run_to_completion
from masis.schema.base import Unscored
from masis.schema.case import Case
from masis.schema.run import Event, Run
from masis.settings import Settings
from tests.audit import factories
from tests.scripted import (
    MAJOR,
    ScriptedCritic,
    ScriptedDrafter,
    ScriptedEvaluator,
    ScriptedReviser,
    roles,
    said,
    ticking,
)

CASE = factories.case()
ALWAYS_WRONG = said(0.5, objections=(MAJOR,))


def run(
    case: Case = CASE, settings: Settings | None = None, on_event: Callable[[Event], None] | None = None, **given: Any
) -> Run:
    extra = {name: given.pop(name) for name in ("cancelled", "progress", "keep") if name in given}
    work = loop.audit(case, roles(**given), settings or Settings(), run_id="r1", clock=ticking(), **extra)
    return run_to_completion(work, on_event)


def rising(*qualities: float) -> ScriptedCritic:
    return ScriptedCritic([said(quality, objections=(MAJOR,)) for quality in qualities])


def answers(count: int) -> ScriptedReviser:
    return ScriptedReviser([f"The bridge is 120 metres long, version {n} [chunk_1]." for n in "bcdef"[:count]])


@pytest.mark.spec("REQ-CRITIC-015", "REQ-CRITIC-017")
def test_a_clean_answer_needs_one_iteration() -> None:
    found = run()
    assert (found.termination_reason, found.total_iterations) == ("no_issues", 1)
    assert found.iterations[0].revision is None


@pytest.mark.spec("REQ-CRITIC-020")
def test_the_summary_tells_number_quality_issues_and_changes_of_every_iteration() -> None:
    found = run(critic=rising(0.5, 0.6, 0.7), reviser=answers(2))
    told = found.summary()
    assert [row["iteration_number"] for row in told] == [1, 2, 3]
    assert [row["quality_score"] for row in told] == [pytest.approx(quality) for quality in (0.5, 0.6, 0.7)]
    assert all(MAJOR.description in row["issues_identified"] for row in told)
    assert [row["changes_made"] for row in told] == ["", "revision 1", "revision 2"]


@pytest.mark.spec("REQ-CRITIC-015", "REQ-CRITIC-018", "REQ-CRITIC-008", "REQ-CRITIC-023")
def test_between_each_two_iterations_stands_a_revision() -> None:
    found = run(critic=ScriptedCritic([said(0.5, objections=(MAJOR,)), said(0.8)]), reviser=answers(1))
    assert [iteration.answer for iteration in found.iterations] == [CASE.answer, answers(1).answers[0]]
    assert found.iterations[0].revision is not None
    assert found.iterations[1].improvement_delta == pytest.approx(0.3)
    assert found.summary()[1]["changes_made"] == "revision 1"


@pytest.mark.spec("REQ-CRITIC-016", "REQ-CRITIC-NFR-011", "CRITIC-ERR-004")
def test_the_limit_ends_the_loop_with_a_warning_and_the_best_answer() -> None:
    found = run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3))
    assert (found.termination_reason, found.total_iterations, found.converged) == ("max_iterations", 3, False)
    assert [warning.code for warning in found.warnings] == ["CRITIC-ERR-004"]
    assert found.best == 2
    assert found.improvement_percentage == pytest.approx(300)
    assert "limit" in {reason.code for reason in found.review_reasons}


@pytest.mark.spec("REQ-CRITIC-017", "REQ-CRITIC-NFR-005")
def test_too_small_an_improvement_is_convergence() -> None:
    found = run(critic=rising(0.5, 0.54), reviser=answers(2))
    assert (found.termination_reason, found.total_iterations, found.converged) == ("convergence", 2, True)


@pytest.mark.spec("REQ-CRITIC-019", "REQ-CRITIC-NFR-010", "MASIS-CRITIC-P7")
def test_a_revision_that_makes_things_worse_stays_in_the_history_and_is_not_chosen() -> None:
    found = run(critic=rising(0.6, 0.3), reviser=answers(2))
    assert found.best == 0
    assert found.final_answer == CASE.answer
    assert found.total_iterations == 2


def test_a_revision_that_changes_nothing_ends_the_loop() -> None:
    found = run(critic=rising(0.5), reviser=ScriptedReviser([CASE.answer or ""]))
    assert (found.termination_reason, found.total_iterations) == ("convergence", 1)


@pytest.mark.spec("REQ-CRITIC-030", "CRITIC-ERR-005")
def test_a_failed_critic_leaves_its_iteration_unscored_and_the_answer_as_it_was() -> None:
    found = run(critic=ScriptedCritic([Unscored(reason="cut off", code="CRITIC-ERR-005")]))
    assert found.termination_reason == "error"
    assert found.final_answer == CASE.answer
    assert found.final_quality_score is None
    assert found.iterations[0].critique.unscored is not None
    assert [warning.code for warning in found.warnings] == ["CRITIC-ERR-005"]
    assert {"unscored", "error"} <= {reason.code for reason in found.review_reasons}


@pytest.mark.spec("REQ-CRITIC-030", "CRITIC-ERR-001")
def test_a_critic_that_raises_is_a_failed_critic() -> None:
    found = run(critic=ScriptedCritic([CriticFailed("no route to the model")]))
    assert found.iterations[0].critique.unscored is not None
    assert found.iterations[0].critique.unscored.code == "CRITIC-ERR-001"


@pytest.mark.spec("REQ-CRITIC-031", "REQ-CRITIC-NFR-010", "CRITIC-ERR-002")
def test_a_failed_reviser_ends_the_loop_with_what_there_is() -> None:
    found = run(critic=rising(0.5, 0.9), reviser=ScriptedReviser([ReviserFailed("refused")]))
    assert (found.termination_reason, found.total_iterations) == ("error", 1)
    assert found.final_answer == CASE.answer
    assert found.final_quality_score == 0.5
    assert [warning.code for warning in found.warnings] == ["CRITIC-ERR-002"]


@pytest.mark.spec("REQ-CRITIC-031")
def test_a_reviser_that_fails_later_leaves_the_best_so_far() -> None:
    found = run(critic=rising(0.5, 0.9), reviser=ScriptedReviser([*answers(1).answers, ReviserFailed("refused")]))
    assert (found.termination_reason, found.best) == ("error", 1)


def test_a_failed_drafter_leaves_a_run_without_iterations_for_a_person() -> None:
    undrafted = CASE.model_copy(update={"answer": None})
    found = run(undrafted, drafter=ScriptedDrafter(error=StepError("refused")))
    assert (found.total_iterations, found.best, found.termination_reason) == (0, None, "error")
    assert found.needs_review


@pytest.mark.spec("REQ-CRITIC-026")
def test_a_case_without_an_answer_is_drafted_first() -> None:
    found = run(CASE.model_copy(update={"answer": None}))
    assert found.draft is not None
    assert found.iterations[0].answer == found.draft.answer


@pytest.mark.spec("MASIS-EVAL-ROUTING")
def test_the_evaluator_runs_for_every_iteration_or_once_at_the_end() -> None:
    every, final = ScriptedEvaluator(), ScriptedEvaluator()
    run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3), evaluator=every)
    found = run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3), evaluator=final, settings=Settings(evaluate="final"))
    assert (every.calls, final.calls) == (3, 1)
    assert [iteration.evaluation is not None for iteration in found.iterations] == [False, False, True]


@pytest.mark.spec("MASIS-EVAL-ROUTING")
def test_the_evaluator_affects_no_routing() -> None:
    harsh = ScriptedEvaluator(Unscored(reason="refused"))
    assert run(evaluator=harsh).termination_reason == run().termination_reason == "no_issues"


def test_cancelling_keeps_what_is_finished() -> None:
    asked = iter([False] * 6 + [True] * 50)
    found = run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3), cancelled=lambda: next(asked))
    assert found.termination_reason == "cancelled"
    assert found.total_iterations == 1
    assert "cancelled" in {reason.code for reason in found.review_reasons}


def test_cancelling_before_the_first_step_leaves_the_original() -> None:
    found = run(cancelled=lambda: True)
    assert (found.total_iterations, found.best, found.final_answer) == (0, None, CASE.answer)


def test_events_are_numbered_and_tell_the_whole_way_without_any_text() -> None:
    events: list[Event] = []
    run(critic=ScriptedCritic([ALWAYS_WRONG, said(0.9)]), reviser=answers(1), on_event=events.append)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    steps = [(event.iteration, event.step) for event in events if event.kind == "step_finished"]
    assert steps == [
        (1, "citations"),
        (1, "claims"),
        (1, "critique"),
        (1, "evaluation"),
        (1, "revision"),
        (2, "citations"),
        (2, "claims"),
        (2, "critique"),
        (2, "evaluation"),
    ]
    assert events[0].kind == "run_started"
    assert events[-1].kind == "run_finished"
    assert not any("bridge is" in event.model_dump_json() for event in events)


@pytest.mark.spec("MASIS-CRITIC-TELEMETRY")
def test_the_critics_telemetry_has_the_fields_of_the_spec() -> None:
    events: list[Event] = []
    run(on_event=events.append)
    data = next(event.data for event in events if event.kind == "step_finished" and event.step == "critique")
    wanted = {
        "confidence",
        "hallucination",
        "needs_retry",
        "conflicts",
        "invalid_citations",
        "uncited_claims",
        "duration_ms",
    }
    assert wanted <= data.keys()


@pytest.mark.spec("REQ-CRITIC-OBS-001")
def test_each_iteration_keeps_the_time_of_each_of_its_steps() -> None:
    found = run(critic=ScriptedCritic([ALWAYS_WRONG, said(0.9)]), reviser=answers(1))
    first, second = (set(iteration.step_ms) for iteration in found.iterations)
    assert first == {"citations", "claims", "critique", "evaluation", "revision"}
    assert second == {"citations", "claims", "critique", "evaluation"}


@pytest.mark.spec("REQ-CRITIC-009")
def test_the_reviser_sees_the_answer_the_question_the_evidence_and_every_issue() -> None:
    reviser = answers(1)
    run(critic=ScriptedCritic([ALWAYS_WRONG, said(0.9)]), reviser=reviser)
    context, critique, issues = reviser.seen[0]
    assert (context.answer, context.query, context.evidence) == (CASE.answer, CASE.query, CASE.evidence)
    assert critique.overall_quality_score == 0.5
    assert [issue.rule for issue in issues] == ["test"]


@pytest.mark.spec("MASIS-EVAL-TELEMETRY")
def test_the_evaluators_telemetry_sends_each_score_under_its_own_name() -> None:
    events: list[Event] = []
    evaluator = ScriptedEvaluator(EvaluationJudgement(0.81, 0.62, 0.43, 0.24))
    found = run(evaluator=evaluator, on_event=events.append)
    data = next(event.data for event in events if event.kind == "step_finished" and event.step == "evaluation")
    assert data["node"] == "evaluator"
    assert (data["faithfulness"], data["relevance"], data["completeness"]) == (0.81, 0.62, 0.43)
    assert data["reasoning_quality"] == 0.24
    assert data["overall_score"] == pytest.approx(0.35 * 0.81 + 0.25 * 0.62 + 0.25 * 0.43 + 0.15 * 0.24, abs=5e-4)
    assert data["duration_ms"] == pytest.approx(found.iterations[0].step_ms["evaluation"], abs=5e-4)
    assert data["duration_ms"] > 0


@pytest.mark.spec("MASIS-EVAL-TELEMETRY")
def test_the_evaluators_telemetry_sends_a_score_after_the_clamps() -> None:
    events: list[Event] = []
    case = CASE.model_copy(update={"answer": "The bridge is 120 metres long [9]."})
    evaluator = ScriptedEvaluator(EvaluationJudgement(0.9, 0.88, 0.72, 0.8))
    run(case=case, settings=Settings(max_iterations=1), evaluator=evaluator, on_event=events.append)
    data = next(event.data for event in events if event.kind == "step_finished" and event.step == "evaluation")
    assert (data["faithfulness"], data["relevance"], data["completeness"]) == (0.4, 0.88, 0.72)


@pytest.mark.spec("REQ-CRITIC-025", "REQ-CRITIC-COMP-001")
def test_scores_deltas_and_the_outcome_are_reported_as_they_happen() -> None:
    events: list[Event] = []
    found = run(critic=ScriptedCritic([ALWAYS_WRONG, said(0.9)]), reviser=answers(1), on_event=events.append)
    finished = [event.data for event in events if event.kind == "iteration_finished"]
    assert [data["quality_score"] for data in finished] == [0.5, 0.9]
    assert finished[1]["improvement_delta"] == pytest.approx(0.4)
    last = events[-1]
    assert (last.case_id, last.at) == ("bridge", "2026-01-02T03:04:05.678Z")
    assert last.data["total_iterations"] == 2
    assert last.data["final_quality_score"] == found.final_quality_score
    assert last.data["improvement_percentage"] == pytest.approx(80)
    assert last.data["termination_reason"] == "no_issues"


@pytest.mark.spec("REQ-CRITIC-NFR-004")
def test_the_loops_deadline_ends_it_with_what_there_is() -> None:
    work = loop.audit(
        CASE,
        roles(critic=rising(0.2, 0.5, 0.8), reviser=answers(3)),
        Settings(loop_deadline_s=1),
        run_id="r1",
        clock=ticking(0.2),
    )
    found = run_to_completion(work)
    assert found.termination_reason == "error"
    assert found.total_iterations == 1
    assert any("deadline" in warning.message for warning in found.warnings)


@pytest.mark.spec("REQ-CRITIC-001", "REQ-CRITIC-002", "REQ-CRITIC-027")
def test_the_critic_sees_what_citations_and_claims_found() -> None:
    critic = ScriptedCritic()
    run(CASE.model_copy(update={"answer": "The bridge is 120 metres long [chunk_99]."}), critic=critic)
    assert critic.seen[0].citation_audit.invalid_citations == ("chunk_99",)
    assert [issue.rule for issue in critic.seen[0].issues][:1] == ["fabricated_reference"]


def test_the_record_says_who_judged_and_with_which_settings() -> None:
    found = run()
    assert found.models == {"critic": "scripted"}
    assert found.settings["max_iterations"] == 3
    assert found.versions.app
    assert found.iterations[0].critique.judged_by.model == "scripted"
