"""Steps that wait for a model: what they tell meanwhile, how they are stopped, by when they must be done."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from masis.audit import loop
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.run_control import Place, RunControl
from masis.errors import ProviderFailed
from masis.observers.observation import run_to_completion
from masis.schema.audit import Draft, Revision
from masis.schema.base import Unscored
from masis.schema.calls import ModelCall
from masis.schema.case import Case
from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.services import audits as audit_service
from masis.settings import Settings
from tests.audit import factories
from tests.reviewing import ADA
from tests.scripted import MAJOR, ScriptedCritic, ScriptedDrafter, ScriptedEvaluator, ScriptedReviser, roles, said

SECRET = "the bridge of sighs"
CASE = factories.case(
    f"{SECRET} is 120 metres long [chunk_1].", f"{SECRET} is 120 metres long.", query=f"How long is {SECRET}?"
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


class TellingCritic(ScriptedCritic):
    """Tells of a retry and leaves a record of its call, as a role with a model does."""

    control: RunControl

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        self.control.calls.emit("call_retried", "The server asked to wait.", attempt=1)
        self.control.calls.record(call("critic"))
        return super().critique(context)


class TellingReviser(ScriptedReviser):
    control: RunControl

    def revise(self, *given: object) -> Revision:  # type: ignore[override]
        self.control.calls.record(call("reviser", cost=None))
        return super().revise(*given)  # type: ignore[arg-type]


def waiting(critic: ScriptedCritic, reviser: ScriptedReviser | None = None, **others: object) -> loop.Roles:
    control = RunControl()
    for role in (critic, reviser):
        if role is not None:
            role.control = control  # type: ignore[union-attr]
    chosen = roles(critic=critic, reviser=reviser, **others)  # type: ignore[arg-type]
    return dataclasses.replace(chosen, control=control, waits=True)


def audited(chosen: loop.Roles, events: list[Event] | None = None, case: Case = CASE, **told: object) -> Run:
    settings = Settings.model_validate(told)
    work = loop.audit(case, chosen, settings, run_id="r1", case_digest=case.digest())
    return run_to_completion(work, events.append if events is not None else None)


def test_what_a_call_tells_comes_while_its_step_is_under_way() -> None:
    events: list[Event] = []
    audited(waiting(TellingCritic()), events)
    kinds = [(event.kind, event.step) for event in events if event.step == "critique"]
    assert kinds == [("step_started", "critique"), ("call_retried", "critique"), ("step_finished", "critique")]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    retried = next(event for event in events if event.kind == "call_retried")
    assert (retried.iteration, retried.data) == (1, {"attempt": 1})


@pytest.mark.spec("REQ-CRITIC-NFR-012")
def test_each_call_is_filed_with_its_iteration_and_the_run_knows_the_sum_of_each_role() -> None:
    judgements = (said(0.5, objections=(MAJOR,)), said(0.9))
    run = audited(waiting(TellingCritic(judgements), TellingReviser()))
    assert [[c.role for c in iteration.calls] for iteration in run.iterations] == [["critic", "reviser"], ["critic"]]
    assert (run.usage.calls, run.usage.prompt_tokens, run.usage.cached_tokens) == (3, 300, 120)
    assert run.usage.cost_usd == pytest.approx(0.02)
    spent = run.usage_by_role()
    assert spent["critic"].calls == 2
    assert spent["critic"].completion_tokens == 20
    assert spent["reviser"].cost_usd is None


def test_calls_of_the_draft_belong_to_the_draft() -> None:
    class TellingDrafter(ScriptedDrafter):
        control: RunControl

        def draft(self, *given: object) -> Draft:  # type: ignore[override]
            self.control.calls.record(call("drafter"))
            return super().draft(*given)  # type: ignore[arg-type]

    drafter = TellingDrafter()
    chosen = waiting(TellingCritic(), drafter=drafter)
    drafter.control = chosen.control
    run = audited(chosen, case=CASE.model_copy(update={"answer": None}))
    assert run.draft
    assert [c.role for c in run.draft.calls] == ["drafter"]
    assert [c.role for c in run.calls] == ["drafter", "critic"]
    assert run.usage.calls == 2


class HangingCritic(ScriptedCritic):
    """Waits until it is let go."""

    control: RunControl
    waited_out = False

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        self.control.calls.record(call("critic"))
        self.waited_out = self.control.cancellation.pause(30)
        return super().critique(context)


def test_who_stops_a_run_need_not_wait_for_the_reply() -> None:
    stop = threading.Event()
    critic = HangingCritic()
    chosen = waiting(critic)
    work = loop.audit(CASE, chosen, Settings(), run_id="r1", cancelled=stop.is_set)

    def stop_at_critique(event: Event) -> None:
        if event.step == "critique":
            stop.set()

    run = run_to_completion(work, stop_at_critique)
    assert run.termination_reason == "cancelled"
    assert chosen.control.cancellation.cancelled
    assert not critic.waited_out
    assert run.usage.calls == 1, "the call that was under way is counted"


@pytest.mark.spec("REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002")
def test_a_critics_or_revisers_call_has_15_seconds_over_all_its_tries() -> None:
    control, clock = control_at(Settings())
    assert control.budget.left_s() == 15
    clock[0] += 5
    assert control.budget.left_s() == 15, "each call has its own"


@pytest.mark.spec("REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004")
def test_no_call_outlives_the_35_seconds_of_its_iteration_or_the_90_of_its_loop() -> None:
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
    assert control.budget.left_s() == 4, "90 seconds from the loop's begin, 86 are over"


def control_at(settings: Settings) -> tuple[RunControl, list[float]]:
    clock = [100.0]
    control = RunControl()
    control.budget.begin_loop(settings, lambda: clock[0])
    control.budget.begin_iteration()
    return control, clock


def test_no_deadline_runs_while_a_call_waits_for_its_turn_at_a_busy_provider() -> None:
    control, clock = control_at(Settings())
    with control.budget.queued():
        clock[0] += 50
        with control.budget.queued():
            clock[0] += 50
        assert control.budget.left_s() == 15
    clock[0] += 30
    assert control.budget.left_s() == 5


def test_the_step_under_way_is_known_to_its_calls() -> None:
    seen: list[Place] = []

    class LookingCritic(TellingCritic):
        def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
            seen.append(self.control.calls.place)
            return super().critique(context)

    audited(waiting(LookingCritic()))
    assert seen == [Place("critique", 1)]


# a run cut short between two steps


class Killed(BaseException):
    """The process is gone."""


def cut_short(bench: Workbench, monkeypatch: pytest.MonkeyPatch, **chosen: Any) -> None:
    monkeypatch.setattr(audit_service, "build_roles", lambda settings, _replies: waiting(**chosen))
    with pytest.raises(Killed):
        bench.audits.audit(ADA, CASE)
    assert [bench.runs.summary(each).case_id for each in bench.store.runs.in_state("interrupted")] == [CASE.id]


class DyingEvaluator(ScriptedEvaluator):
    def evaluate(self, *given: object) -> EvaluationJudgement:
        raise Killed


def test_a_step_that_failed_is_tried_again_when_its_run_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench.open(tmp_path / "masis.db")
    bench.cases.add(ADA, [CASE])
    critic = TellingCritic((ProviderFailed("no answer"), said(0.9)))
    cut_short(bench, monkeypatch, critic=critic, evaluator=DyingEvaluator())
    monkeypatch.setattr(audit_service, "build_roles", lambda settings, _replies: waiting(critic=critic))
    run = bench.audits.audit(ADA, CASE)
    assert run.iterations[0].critique.unscored is None
    assert run.termination_reason == "no_issues"
