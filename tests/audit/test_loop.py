"""The loop: order and failure of steps, waiting for models, resumed audits, and limits of input."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.api import stepwise
from masis.audit import loop
from masis.audit.citations import audit_citations
from masis.audit.context import AuditContext
from masis.audit.control.run_control import RunControl, RunPosition
from masis.audit.critique import CritiqueJudgement
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.limits import select_evidence, truncate_answer
from masis.errors import ProviderFailed, ReviserFailed, StepError
from masis.observers.observation import run_to_completion
from masis.schema import limits
from masis.schema.audit import Critique, Draft, Revision
from masis.schema.base import Unscored
from masis.schema.calls import ModelCall
from masis.schema.case import Case, Evidence
from masis.schema.run import Event, Iteration, Run, StepsDone
from masis.services import Workbench
from masis.services import audits as audit_service
from masis.settings import Settings
from tests.audit import factories
from tests.reviewing import ADA
from tests.scripted import (
    FAIR,
    JUDGED_BY,
    MAJOR,
    ContentVerifier,
    ScriptedCritic,
    ScriptedDrafter,
    ScriptedEvaluator,
    ScriptedReviser,
    judgement_with,
    roles,
    ticking,
)

CASE = factories.case()
ALWAYS_WRONG = judgement_with(0.5, raw_issues=(MAJOR,))


def run(
    case: Case = CASE,
    settings: Settings | None = None,
    on_event: Callable[[Event], None] | None = None,
    **options: Any,
) -> Run:
    audit_options = {
        name: options.pop(name) for name in ("cancelled", "progress", "keep") if name in options
    }
    events = loop.audit(
        case,
        roles(**options),
        settings or Settings(),
        run_id="r1",
        clock=ticking(),
        **audit_options,
    )
    return run_to_completion(events, on_event)


def rising(*qualities: float) -> ScriptedCritic:
    return ScriptedCritic([judgement_with(quality, raw_issues=(MAJOR,)) for quality in qualities])


def answers(count: int) -> ScriptedReviser:
    return ScriptedReviser(
        [
            f"The bridge is 120 metres long, version {version} [chunk_1]."
            for version in "bcdef"[:count]
        ]
    )


@pytest.mark.spec("REQ-CRITIC-015", "REQ-CRITIC-017")
def test_a_clean_answer_needs_one_iteration() -> None:
    audit_run = run()
    assert (audit_run.termination_reason, audit_run.total_iterations) == ("no_issues", 1)
    assert audit_run.iterations[0].revision is None


@pytest.mark.spec("REQ-CRITIC-020")
def test_the_summary_lists_quality_issues_and_changes_per_iteration() -> None:
    audit_run = run(critic=rising(0.5, 0.6, 0.7), reviser=answers(2))
    summary = audit_run.summary()
    assert [row["iteration_number"] for row in summary] == [1, 2, 3]
    assert [row["quality_score"] for row in summary] == [
        pytest.approx(quality) for quality in (0.5, 0.6, 0.7)
    ]
    assert all(MAJOR.description in row["issues_identified"] for row in summary)
    assert [row["changes_made"] for row in summary] == ["", "revision 1", "revision 2"]


@pytest.mark.spec("REQ-CRITIC-015", "REQ-CRITIC-018", "REQ-CRITIC-008", "REQ-CRITIC-023")
def test_iterations_are_separated_by_a_revision() -> None:
    audit_run = run(
        critic=ScriptedCritic([judgement_with(0.5, raw_issues=(MAJOR,)), judgement_with(0.8)]),
        reviser=answers(1),
    )
    assert [iteration.answer for iteration in audit_run.iterations] == [
        CASE.answer,
        answers(1).answers[0],
    ]
    assert audit_run.iterations[0].revision is not None
    assert audit_run.iterations[1].improvement_delta == pytest.approx(0.3)
    assert audit_run.summary()[1]["changes_made"] == "revision 1"


@pytest.mark.spec("REQ-CRITIC-016", "REQ-CRITIC-NFR-011", "CRITIC-ERR-004")
def test_the_limit_ends_the_loop_with_a_warning_and_the_best_answer() -> None:
    audit_run = run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3))
    assert (audit_run.termination_reason, audit_run.total_iterations, audit_run.converged) == (
        "max_iterations",
        3,
        False,
    )
    assert [warning.code for warning in audit_run.warnings] == ["CRITIC-ERR-004"]
    assert audit_run.best == 2
    assert audit_run.improvement_percentage == pytest.approx(300)
    assert "limit" in {reason.code for reason in audit_run.review_reasons}


@pytest.mark.spec("REQ-CRITIC-017", "REQ-CRITIC-NFR-005")
def test_a_too_small_improvement_is_convergence() -> None:
    audit_run = run(critic=rising(0.5, 0.54), reviser=answers(2))
    assert (audit_run.termination_reason, audit_run.total_iterations, audit_run.converged) == (
        "convergence",
        2,
        True,
    )


@pytest.mark.spec("REQ-CRITIC-019", "REQ-CRITIC-NFR-010", "MASIS-CRITIC-P7")
def test_a_worse_revision_is_kept_but_not_chosen() -> None:
    audit_run = run(critic=rising(0.6, 0.3), reviser=answers(2))
    assert audit_run.best == 0
    assert audit_run.final_answer == CASE.answer
    assert audit_run.total_iterations == 2


def test_an_unchanged_revision_ends_the_loop() -> None:
    audit_run = run(critic=rising(0.5), reviser=ScriptedReviser([CASE.answer or ""]))
    assert (audit_run.termination_reason, audit_run.total_iterations) == ("convergence", 1)


@pytest.mark.spec("REQ-CRITIC-030", "CRITIC-ERR-005")
def test_a_failed_critic_leaves_the_iteration_unscored() -> None:
    audit_run = run(critic=ScriptedCritic([Unscored(reason="cut off", code="CRITIC-ERR-005")]))
    assert audit_run.termination_reason == "error"
    assert audit_run.final_answer == CASE.answer
    assert audit_run.final_quality_score is None
    assert audit_run.iterations[0].critique.unscored is not None
    assert [warning.code for warning in audit_run.warnings] == ["CRITIC-ERR-005"]
    assert {"unscored", "error"} <= {reason.code for reason in audit_run.review_reasons}


@pytest.mark.spec("REQ-CRITIC-031", "REQ-CRITIC-NFR-010", "CRITIC-ERR-002")
@pytest.mark.parametrize("revised", [0, 1])
def test_a_failed_reviser_ends_the_loop_with_the_best_answer(revised: int) -> None:
    reviser = ScriptedReviser([*answers(revised).answers, ReviserFailed("refused")])
    audit_run = run(critic=rising(0.5, 0.9), reviser=reviser)
    assert (audit_run.termination_reason, audit_run.best, audit_run.total_iterations) == (
        "error",
        revised,
        revised + 1,
    )
    assert audit_run.final_answer == audit_run.iterations[revised].answer
    assert audit_run.final_quality_score == (0.5, 0.9)[revised]
    assert [warning.code for warning in audit_run.warnings] == ["CRITIC-ERR-002"]


def test_a_failed_drafter_yields_a_run_without_iterations() -> None:
    case = CASE.model_copy(update={"answer": None})
    audit_run = run(case, drafter=ScriptedDrafter(error=StepError("refused")))
    assert (audit_run.total_iterations, audit_run.best, audit_run.termination_reason) == (
        0,
        None,
        "error",
    )
    assert audit_run.needs_review


@pytest.mark.spec("REQ-CRITIC-026")
def test_a_case_without_an_answer_is_drafted_first() -> None:
    audit_run = run(CASE.model_copy(update={"answer": None}))
    assert audit_run.iterations[0].answer == audit_run.draft.answer


UNANSWERED = masis.Case(
    **CASE.to_json_dict()
    | {
        "answer": None,
        "no_answer": {"code": "failed", "message": "It broke."},
    }
)


def test_a_missing_answer_calls_no_role_and_the_run_says_why() -> None:
    critic, saved = ScriptedCritic([FAIR]), list[object]()
    audit_run = run(UNANSWERED, critic=critic, keep=saved.append)
    assert (audit_run.termination_reason, audit_run.draft, audit_run.best, audit_run.converged) == (
        "no_answer",
        None,
        0,
        False,
    )
    (iteration,) = audit_run.iterations
    assert (iteration.answer, iteration.quality_score, iteration.issues, iteration.claims) == (
        "",
        None,
        (),
        (),
    )
    assert iteration.critique.unscored
    assert iteration.critique.unscored.code is None
    assert audit_run.incomplete is False
    assert [item.message for item in audit_run.warnings] == [
        "The call of the system failed: It broke."
    ]
    assert [(item.code, item.tier) for item in audit_run.review_reasons] == [
        ("answer_failed", "not_certified")
    ]
    assert saved == [iteration]


def test_a_missing_answer_can_be_drafted_on_request() -> None:
    audit_run = run(UNANSWERED, Settings(draft_unanswered=True))
    assert audit_run.draft
    assert audit_run.iterations[0].answer == audit_run.draft.answer
    assert audit_run.review_reasons[0].code == "answer_failed"


def test_a_host_can_supply_the_missing_answer() -> None:
    first_run = masis.run_audit(UNANSWERED)
    second_run = stepwise.audit_once(UNANSWERED, Settings(), before=first_run, answer=CASE.answer)
    assert [item.answer for item in second_run.iterations] == ["", CASE.answer]
    assert second_run.draft is None
    assert "answer_failed" in {item.code for item in second_run.review_reasons}


@pytest.mark.spec("MASIS-EVAL-ROUTING")
def test_the_evaluator_runs_per_iteration_or_once_at_the_end() -> None:
    per_iteration, at_the_end = ScriptedEvaluator(), ScriptedEvaluator()
    run(critic=rising(0.2, 0.5, 0.8), reviser=answers(3), evaluator=per_iteration)
    audit_run = run(
        critic=rising(0.2, 0.5, 0.8),
        reviser=answers(3),
        evaluator=at_the_end,
        settings=Settings(evaluate="final"),
    )
    assert (per_iteration.calls, at_the_end.calls) == (3, 1)
    assert [iteration.evaluation is not None for iteration in audit_run.iterations] == [
        False,
        False,
        True,
    ]


@pytest.mark.spec("MASIS-EVAL-ROUTING")
def test_the_evaluator_doesnt_affect_routing() -> None:
    failing_evaluator = ScriptedEvaluator(Unscored(reason="refused"))
    assert (
        run(evaluator=failing_evaluator).termination_reason
        == run().termination_reason
        == "no_issues"
    )


def test_cancelling_keeps_finished_iterations() -> None:
    cancel_replies = iter([False] * 6 + [True] * 50)
    audit_run = run(
        critic=rising(0.2, 0.5, 0.8), reviser=answers(3), cancelled=lambda: next(cancel_replies)
    )
    assert audit_run.termination_reason == "cancelled"
    assert audit_run.total_iterations == 1
    assert "cancelled" in {reason.code for reason in audit_run.review_reasons}


@pytest.mark.parametrize(("step", "confidence"), [("critique", None), ("evaluation", 0.2)])
def test_cancelling_the_first_iteration_keeps_finished_steps(
    step: str, confidence: float | None
) -> None:
    finished_steps: list[str] = []
    saved: list[Any] = []

    def record_step(event: Event) -> None:
        if event.kind == "step_finished":
            finished_steps.append(event.step or "")

    last_step = {"critique": "claims", "evaluation": "critique"}[step]
    audit_run = run(
        critic=rising(0.2),
        on_event=record_step,
        cancelled=lambda: last_step in finished_steps,
        keep=saved.append,
    )
    (iteration,) = audit_run.iterations
    assert audit_run.termination_reason == "cancelled"
    assert iteration.claims
    assert (iteration.critique.confidence, iteration.evaluation) == (confidence, None)
    assert saved[-1] == iteration
    assert "cancelled" in {reason.code for reason in audit_run.review_reasons}


def test_cancelling_before_the_first_step_keeps_the_original() -> None:
    audit_run = run(cancelled=lambda: True)
    assert (audit_run.total_iterations, audit_run.best, audit_run.final_answer) == (
        0,
        None,
        CASE.answer,
    )


def test_events_are_numbered_complete_and_free_of_text() -> None:
    events: list[Event] = []
    run(
        critic=ScriptedCritic([ALWAYS_WRONG, judgement_with(0.9)]),
        reviser=answers(1),
        on_event=events.append,
    )
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


@pytest.mark.spec("MASIS-EVAL-TELEMETRY")
def test_evaluator_telemetry_names_each_score() -> None:
    events: list[Event] = []
    evaluator = ScriptedEvaluator(EvaluationJudgement(0.81, 0.62, 0.43, 0.24))
    audit_run = run(evaluator=evaluator, on_event=events.append)
    data = next(
        event.data
        for event in events
        if event.kind == "step_finished" and event.step == "evaluation"
    )
    assert data["node"] == "evaluator"
    assert (data["faithfulness"], data["relevance"], data["completeness"]) == (0.81, 0.62, 0.43)
    assert data["reasoning_quality"] == 0.24
    assert data["overall_score"] == pytest.approx(
        0.35 * 0.81 + 0.25 * 0.62 + 0.25 * 0.43 + 0.15 * 0.24, abs=5e-4
    )
    assert data["duration_ms"] == pytest.approx(
        audit_run.iterations[0].step_ms["evaluation"], abs=5e-4
    )
    assert data["duration_ms"] > 0


@pytest.mark.spec("REQ-CRITIC-NFR-004")
def test_the_loop_deadline_returns_the_results_so_far() -> None:
    events = loop.audit(
        CASE,
        roles(critic=rising(0.2, 0.5, 0.8), reviser=answers(3)),
        Settings(loop_deadline_s=1),
        run_id="r1",
        clock=ticking(0.2),
    )
    audit_run = run_to_completion(events)
    assert audit_run.termination_reason == "error"
    assert audit_run.total_iterations == 1
    assert any("deadline" in warning.message for warning in audit_run.warnings)


@pytest.mark.spec("REQ-CRITIC-001", "REQ-CRITIC-002", "REQ-CRITIC-027")
def test_the_critic_receives_citation_and_claim_results() -> None:
    critic = ScriptedCritic()
    run(
        CASE.model_copy(update={"answer": "The bridge is 120 metres long [chunk_99]."}),
        critic=critic,
    )
    assert critic.seen[0].citation_audit.invalid_citations == ("chunk_99",)
    assert [issue.rule for issue in critic.seen[0].issues][:1] == ["fabricated_reference"]


def test_the_run_records_models_and_settings() -> None:
    audit_run = run()
    assert audit_run.models == {"critic": "scripted"}
    assert audit_run.settings["max_iterations"] == 3
    assert audit_run.versions.app
    assert audit_run.iterations[0].critique.judged_by.model == "scripted"


# Steps that wait for a model: their notices, cancellation and deadlines

SECRET = "the bridge of sighs"
SIGHS = factories.case(
    f"{SECRET} is 120 metres long [chunk_1].",
    f"{SECRET} is 120 metres long.",
    query=f"How long is {SECRET}?",
)


def call(role: str, cost: float | None = 0.01) -> ModelCall:
    return ModelCall(
        role=role,
        step=None,
        iteration=None,
        model="m",
        prompt="p/1",
        mode="json_schema",
        outcome="answered",
        ms=5,
        prompt_tokens=100,
        cached_tokens=40,
        completion_tokens=10,
        cost_usd=cost,
    )


class RecordingCritic(ScriptedCritic):
    """A critic that reports a retry and records its call, as a role with a model does."""

    control: RunControl

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        self.control.calls.emit("call_retried", "The server asked to wait.", attempt=1)
        self.control.calls.record(call("critic"))
        return super().critique(context)


class RecordingReviser(ScriptedReviser):
    control: RunControl

    def revise(self, *given: object) -> Revision:
        self.control.calls.record(call("reviser", cost=None))
        return super().revise(*given)


def roles_with_models(
    critic: ScriptedCritic, reviser: ScriptedReviser | None = None, **other_roles: object
) -> loop.Roles:
    control = RunControl()
    for role in (critic, reviser):
        if role is not None:
            role.control = control
    chosen_roles = roles(critic=critic, reviser=reviser, **other_roles)
    return dataclasses.replace(chosen_roles, control=control, calls_models=True)


def run_with_models(
    chosen_roles: loop.Roles,
    events: list[Event] | None = None,
    case: Case = SIGHS,
    **settings_values: object,
) -> Run:
    settings = Settings.model_validate(settings_values)
    event_stream = loop.audit(case, chosen_roles, settings, run_id="r1", case_digest=case.digest())
    return run_to_completion(event_stream, events.append if events is not None else None)


def test_call_events_arrive_during_their_step() -> None:
    events: list[Event] = []
    run_with_models(roles_with_models(RecordingCritic()), events)
    kinds = [(event.kind, event.step) for event in events if event.step == "critique"]
    assert kinds == [
        ("step_started", "critique"),
        ("call_retried", "critique"),
        ("step_finished", "critique"),
    ]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    retried = next(event for event in events if event.kind == "call_retried")
    assert (retried.iteration, retried.data) == (1, {"attempt": 1})


@pytest.mark.spec("REQ-CRITIC-NFR-012")
def test_calls_are_recorded_per_iteration_and_summed_per_role() -> None:
    judgements = (judgement_with(0.5, raw_issues=(MAJOR,)), judgement_with(0.9))
    run = run_with_models(roles_with_models(RecordingCritic(judgements), RecordingReviser()))
    assert [[call_.role for call_ in iteration.calls] for iteration in run.iterations] == [
        ["critic", "reviser"],
        ["critic"],
    ]
    assert (run.usage.calls, run.usage.prompt_tokens, run.usage.cached_tokens) == (3, 300, 120)
    assert run.usage.cost_usd == pytest.approx(0.02)
    usage = run.usage_by_role()
    assert usage["critic"].calls == 2
    assert usage["critic"].completion_tokens == 20
    assert usage["reviser"].cost_usd is None


def test_draft_calls_are_recorded_with_the_draft() -> None:
    class TellingDrafter(ScriptedDrafter):
        control: RunControl

        def draft(self, *given: object) -> Draft:
            self.control.calls.record(call("drafter"))
            return super().draft(*given)

    drafter = TellingDrafter()
    chosen = roles_with_models(RecordingCritic(), drafter=drafter)
    drafter.control = chosen.control
    run = run_with_models(chosen, case=SIGHS.model_copy(update={"answer": None}))
    assert [call_.role for call_ in run.draft.calls] == ["drafter"]
    assert [call_.role for call_ in run.calls] == ["drafter", "critic"]
    assert run.usage.calls == 2


class HangingCritic(ScriptedCritic):
    """A critic that waits until the run is cancelled."""

    control: RunControl
    waited_out = False

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        self.control.calls.record(call("critic"))
        self.waited_out = self.control.cancellation.pause(30)
        return super().critique(context)


def test_cancelling_doesnt_wait_for_a_pending_reply() -> None:
    stop = threading.Event()
    critic = HangingCritic()
    chosen_roles = roles_with_models(critic)
    event_stream = loop.audit(SIGHS, chosen_roles, Settings(), run_id="r1", cancelled=stop.is_set)

    def stop_at_critique(event: Event) -> None:
        if event.step == "critique":
            stop.set()

    run = run_to_completion(event_stream, stop_at_critique)
    assert run.termination_reason == "cancelled"
    assert chosen_roles.control.cancellation.is_cancelled
    assert not critic.waited_out
    assert run.usage.calls == 1, "the call in progress is counted"


@pytest.mark.spec("REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002")
def test_critic_and_reviser_calls_have_15_seconds_including_retries() -> None:
    control, clock = control_at(Settings())
    assert control.budget.left_s() == 15
    clock[0] += 5
    assert control.budget.left_s() == 15, "each call has its own deadline"


@pytest.mark.spec("REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004")
def test_calls_respect_the_35_second_iteration_and_90_second_loop_limits() -> None:
    control, clock = control_at(Settings())
    clock[0] += 30
    assert control.budget.left_s() == 5
    clock[0] += 6
    assert control.budget.left_s() == -1
    control.budget.begin_iteration()
    assert control.budget.left_s() == 15
    clock[0] += 30
    control.budget.begin_iteration()
    clock[0] += 20
    assert control.budget.left_s() == 4, "86 of the loop's 90 seconds have passed"


def control_at(settings: Settings) -> tuple[RunControl, list[float]]:
    clock = [100.0]
    control = RunControl()
    control.budget.begin_loop(settings, lambda: clock[0])
    control.budget.begin_iteration()
    return control, clock


def test_waiting_for_a_busy_provider_doesnt_count_toward_deadlines() -> None:
    control, clock = control_at(Settings())
    with control.budget.pause_while_queued():
        clock[0] += 50
        with control.budget.pause_while_queued():
            clock[0] += 50
        assert control.budget.left_s() == 15
    clock[0] += 30
    assert control.budget.left_s() == 5


def test_calls_know_their_current_step() -> None:
    positions: list[RunPosition] = []

    class PositionCritic(RecordingCritic):
        def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
            positions.append(self.control.calls.place)
            return super().critique(context)

    run_with_models(roles_with_models(PositionCritic()))
    assert positions == [RunPosition("critique", 1)]


# Runs that are interrupted between two steps


class Killed(BaseException):
    """Simulates the end of the process."""


def interrupt_audit(bench: Workbench, monkeypatch: pytest.MonkeyPatch, **chosen_roles: Any) -> None:
    monkeypatch.setattr(
        audit_service, "build_roles", lambda *_, **__: roles_with_models(**chosen_roles)
    )
    with pytest.raises(Killed):
        bench.audits.audit(ADA, SIGHS)
    assert [
        bench.runs.summary(run_id).case_id for run_id in bench.store.runs.in_state("interrupted")
    ] == [SIGHS.id]


class DyingEvaluator(ScriptedEvaluator):
    def evaluate(self, *given: object) -> EvaluationJudgement:
        raise Killed


def test_resuming_retries_a_failed_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench.open(tmp_path / "masis.db")
    bench.cases.add(ADA, [SIGHS])
    critic = RecordingCritic((ProviderFailed("no answer"), judgement_with(0.9)))
    interrupt_audit(bench, monkeypatch, critic=critic, evaluator=DyingEvaluator())
    monkeypatch.setattr(
        audit_service, "build_roles", lambda *_, **__: roles_with_models(critic=critic)
    )
    run = bench.audits.audit(ADA, SIGHS)
    assert run.iterations[0].critique.unscored is None
    assert run.termination_reason == "no_issues"


# An audit that is interrupted after any event and resumed has the same result as an uninterrupted
# one, and requests no step twice

FIRST = "The bridge is 120 metres long [chunk_1]."
SECOND = "The bridge, it says, is 120 metres long [chunk_1]."
THIRD = "The bridge, they say, is 120 metres long [chunk_1]."
FIRST_CASE = factories.case(FIRST)


@dataclass
class Judges:
    """Roles whose replies depend only on the answer, with a count of their requests."""

    qualities: Mapping[str, float]
    rewrites: Mapping[str, str]
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    judged_by = JUDGED_BY

    def draft(self, query: str, evidence: Any) -> Draft:
        self.asked["draft", ""] += 1
        return ScriptedDrafter(FIRST).draft(query, evidence)

    def critique(self, context: AuditContext) -> CritiqueJudgement:
        self.asked["critique", context.answer] += 1
        quality = self.qualities[context.answer]
        return judgement_with(quality, raw_issues=() if quality > 0.85 else (MAJOR,))

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement:
        self.asked["evaluation", context.answer] += 1
        return FAIR

    def revise(self, context: AuditContext, critique: Critique, issues: Any) -> Revision:
        self.asked["revision", context.answer] += 1
        return Revision(
            revised_answer=self.rewrites[context.answer],
            changes_explanation="As far as the evidence goes.",
            updated_confidence=None,
            judged_by=JUDGED_BY,
        )

    def roles(self) -> loop.Roles:
        """Return roles that count as calling models, so that finished steps are saved."""
        return loop.Roles(
            drafter=self,
            verifier=ContentVerifier(),
            critic=self,
            reviser=self,
            evaluator=self,
            models={"critic": "scripted"},
            calls_models=True,
        )


@dataclass
class SavedProgress:
    """The saved state of a run in progress: its draft, iterations and finished steps."""

    draft: Draft | None = None
    iterations: dict[int, Iteration] = field(default_factory=dict)
    steps: dict[int, StepsDone] = field(default_factory=dict)

    def keep(self, finished: Draft | Iteration | StepsDone) -> None:
        if isinstance(finished, Draft):
            self.draft = finished
        elif isinstance(finished, Iteration):
            self.iterations[finished.iteration_number] = finished
        else:
            number = finished.iteration_number
            earlier_steps = self.steps.get(number)
            self.steps[number] = earlier_steps.with_more(finished) if earlier_steps else finished

    def progress(self, events: int) -> loop.AuditProgress:
        current_steps = self.steps.get(len(self.iterations) + 1)
        return loop.AuditProgress(
            self.draft, tuple(self.iterations.values()), events, steps=current_steps
        )


def audited_up_to(
    case: Case,
    judges: Judges,
    settings: Settings,
    saved: SavedProgress,
    events: int,
    stop_after: int = 0,
) -> Run | None:
    """Continue the audit from the saved state; return None if it stops after ``stop_after`` events."""
    event_stream = loop.audit(
        case,
        judges.roles(),
        settings,
        run_id="r1",
        keep=saved.keep,
        progress=saved.progress(events),
        clock=ticking(),
    )
    if not stop_after:
        return run_to_completion(event_stream)
    for _ in range(stop_after):
        next(event_stream)
    event_stream.close()
    return None


def result(run: Run | None) -> dict[str, Any]:
    """Return the content of a run without its times."""
    times = {"started_at", "finished_at", "iterations", "settings"}
    return run.model_dump(exclude=times) | {
        "iterations": [iteration.model_dump(exclude={"step_ms"}) for iteration in run.iterations]
    }


SCRIPTS: dict[str, tuple[dict[str, float], dict[str, str], str, int]] = {
    "the first revision changes nothing": ({FIRST: 0.5}, {FIRST: FIRST}, "convergence", 1),
    "the second revision changes nothing": (
        {FIRST: 0.5, SECOND: 0.7},
        {FIRST: SECOND, SECOND: SECOND},
        "convergence",
        2,
    ),
    "nothing is left to revise": ({FIRST: 0.5, SECOND: 0.9}, {FIRST: SECOND}, "no_issues", 2),
    "the limit is reached": (
        {FIRST: 0.2, SECOND: 0.5, THIRD: 0.8},
        {FIRST: SECOND, SECOND: THIRD},
        "max_iterations",
        3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("evaluate", ["every", "final", "never"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_resuming_after_any_event_gives_the_same_result(script: str, evaluate: str) -> None:
    qualities, rewrites, reason, length = SCRIPTS[script]
    settings = Settings.model_validate({"evaluate": evaluate})
    case = FIRST_CASE.model_copy(update={"answer": None})
    uninterrupted = Judges(qualities, rewrites)
    events: list[Any] = []
    work = loop.audit(case, uninterrupted.roles(), settings, run_id="r1", clock=ticking())
    expected = run_to_completion(work, events.append)
    assert (expected.termination_reason, expected.total_iterations) == (reason, length)
    for event_count in range(1, len(events) + 1):
        judges, saved = Judges(qualities, rewrites), SavedProgress()
        audited_up_to(case, judges, settings, saved, 0, stop_after=event_count)
        resumed = audited_up_to(case, judges, settings, saved, event_count)
        assert result(resumed) == result(expected), (
            f"cut short after event {event_count}, {events[event_count - 1].kind}"
        )
        repeated_requests = judges.asked - uninterrupted.asked
        assert repeated_requests.total() <= 1, (
            f"cut short after event {event_count}: {repeated_requests}"
        )
        if events[event_count - 1].kind in ("step_started", "iteration_finished", "run_finished"):
            assert not repeated_requests, f"cut short after event {event_count}"


def test_an_unchanged_answer_from_a_host_is_audited_again() -> None:
    settings = Settings()
    first_run = stepwise.audit_once(FIRST_CASE, settings)
    second_run = stepwise.audit_once(FIRST_CASE, settings, before=first_run, answer=FIRST)
    assert [iteration.answer for iteration in second_run.iterations] == [FIRST, FIRST]


def test_resuming_doesnt_repeat_an_unchanged_revision() -> None:
    judges, saved = Judges({FIRST: 0.5}, {FIRST: FIRST}), SavedProgress()
    audited_up_to(FIRST_CASE, judges, Settings(evaluate="final"), saved, 0)
    last = saved.iterations[1]
    # The run was interrupted during the evaluation.
    saved.iterations[1] = last.model_copy(update={"evaluation": None})
    resumed = audited_up_to(FIRST_CASE, judges, Settings(evaluate="final"), saved, 9)
    assert resumed.iterations == tuple(saved.iterations.values())
    assert (judges.asked["revision", FIRST], judges.asked["evaluation", FIRST]) == (1, 2)


# Input beyond the limits is checked up to the limits; the unchecked parts are reported, and the
# answer needs review

SENTENCE = "The bridge is 120 metres long [chunk_1]. "


def limit_and_audit(case: Case, settings: Settings, **chosen_roles: Any) -> Run:
    event_stream = loop.audit(
        case,
        roles(verifier=ContentVerifier(), **chosen_roles),
        settings,
        run_id="r1",
        clock=ticking(),
    )
    return run_to_completion(event_stream)


def reports_unchecked_input(run: Run) -> bool:
    """Return whether the run reports unchecked input, consistently in every field."""
    reason = next((item for item in run.review_reasons if item.code == "not_all_checked"), None)
    check = next(item for item in run.acceptance.checks if item.name == "limits")
    warned = any("Not everything was checked" in warning.message for warning in run.warnings)
    assert (
        (reason is not None)
        == warned
        == (not check.passed)
        == bool(run.iterations[0].claim_report.unchecked)
    )
    assert reason is None or reason.tier == "not_certified"
    return reason is not None


def test_input_within_the_limits_is_checked_completely() -> None:
    run = limit_and_audit(factories.case(), Settings())
    assert not reports_unchecked_input(run)
    assert not run.needs_review


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"max_answer_characters": 1_000}, "983 of 12,300 characters of the answer were checked."),
        ({"max_claims": 7}, "7 of 300 claims were checked."),
        ({"max_evidence": 2}, "2 of 40 chunks of evidence were checked."),
        ({"max_evidence_characters": 1_000}, "1,000 of 2,240 characters of evidence were checked."),
    ],
)
def test_input_beyond_a_limit_is_reported_and_needs_review(
    changes: dict[str, int], warning: str
) -> None:
    evidence = [
        Evidence(
            id=f"chunk_{number}",
            text=f"The bridge is 120 metres long, says {number:02} of these sources.",
        )
        for number in range(40)
    ]
    run = limit_and_audit(factories.case(SENTENCE * 300, evidence=evidence), Settings(**changes))
    assert reports_unchecked_input(run)
    assert run.needs_review
    assert warning in " ".join(run.iterations[0].claim_report.unchecked)
    assert run.iterations[0].answer == SENTENCE * 300
    assert run.iterations[0].citation_audit.invalid_citations == ()


def test_a_long_answer_is_cut_at_a_sentence_end() -> None:
    settings = Settings(max_answer_characters=1_000)
    assert truncate_answer(SENTENCE * 300, settings).endswith("[chunk_1].")
    assert len(truncate_answer("word " * 300, settings)) == 1_000


def test_cited_evidence_has_priority_and_unread_chunks_arent_fabricated() -> None:
    evidence = tuple(Evidence(id=str(number), text="x" * 400) for number in range(1, 10))
    audit = audit_citations("It is so [8]. And so [9].", evidence)
    assert [chunk.id for chunk in select_evidence(evidence, audit, Settings(max_evidence=3))] == [
        "1",
        "8",
        "9",
    ]
    shortened = select_evidence(evidence, audit, Settings(max_evidence_characters=1_000))
    assert [(chunk.id, len(chunk.text)) for chunk in shortened] == [
        ("1", 200),
        ("8", 400),
        ("9", 400),
    ]
    towers = tuple(
        Evidence(id=str(number), text=f"Tower {number} is {number} metres high.")
        for number in range(1, 10)
    )
    case = Case(
        id="towers",
        query="How high?",
        answer="Tower 8 is 8 metres high [8][9][7].",
        evidence=towers,
    )
    [first, *_] = masis.run_audit(case, Settings(max_evidence=2)).iterations
    assert first.citation_audit.invalid_citations == ()
    assert len(first.claims) == 1


def test_claims_arent_flagged_if_unread_evidence_might_support_them() -> None:
    evidence = tuple(
        Evidence(id=str(n), text=f"Tower {n} stands in the north and is 1{n} metres high.")
        for n in (1, 2)
    )
    case = Case(
        id="towers",
        query="Where?",
        answer="The mayor collects antique spoons from Portugal.",
        evidence=evidence,
    )
    [first, *_] = masis.run_audit(case, Settings(max_evidence=1)).iterations
    assert {check.verdict for check in first.claims} == {"unverifiable"}
    assert [check.abstained for check in first.claims if check.abstained] in ([], ["limits"])


def test_the_unchecked_rest_is_appended_to_the_revision_unchanged() -> None:
    full_answer = SENTENCE * 30
    settings = Settings(max_answer_characters=1_000, min_iterations=2)
    checked_answer = truncate_answer(full_answer, settings)
    run = limit_and_audit(
        factories.case(full_answer),
        settings,
        reviser=ScriptedReviser([checked_answer.replace("120", "0120")]),
    )
    assert (
        run.iterations[1].answer
        == checked_answer.replace("120", "0120") + full_answer[len(checked_answer) :]
    )


@pytest.mark.slow
def test_an_answer_of_more_than_a_million_characters_takes_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every entry point rejects such an answer, but a stored one can be audited.
    monkeypatch.setattr(limits, "ANSWER", 2_000_000)
    run = masis.run_audit(factories.case(SENTENCE * 40_000), Settings(max_claims=50))
    assert reports_unchecked_input(run)
    assert len(run.iterations[0].claims) == 50
    assert run.termination_reason != "error"
