"""Steps that wait for a model: what they tell meanwhile, how they are stopped, by when they must be done."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.api import audits
from masis.audit import loop
from masis.audit.claims import Checked
from masis.audit.concurrency import run_concurrently
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.run_control import Place, RunControl
from masis.errors import CriticFailed, ProviderFailed, ReviserFailed
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
from tests.scripted import (
    MAJOR,
    ContentVerifier,
    ScriptedCritic,
    ScriptedDrafter,
    ScriptedEvaluator,
    ScriptedReviser,
    roles,
    said,
)
from tests.waiting import until, until_async

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


def test_tasks_side_by_side_keep_their_order_and_a_failure_is_a_value() -> None:
    def failing() -> int:
        raise ProviderFailed("no answer")

    first, second, third = run_concurrently([lambda: 1, failing, lambda: 3])
    assert (first, third) == (1, 3)
    assert isinstance(second, ProviderFailed)


def test_the_step_under_way_is_known_to_its_calls() -> None:
    seen: list[Place] = []

    class LookingCritic(TellingCritic):
        def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
            seen.append(self.control.calls.place)
            return super().critique(context)

    audited(waiting(LookingCritic()))
    assert seen == [Place("critique", 1)]


# logs


def logged(caplog: pytest.LogCaptureFixture, level: int, chosen: loop.Roles, **told: object) -> str:
    with caplog.at_level(level, logger="masis"):
        audited(chosen, **told)  # type: ignore[arg-type]
    return caplog.text


@pytest.mark.spec("REQ-CRITIC-OBS-002")
def test_info_tells_begin_end_scores_deltas_and_convergence(caplog: pytest.LogCaptureFixture) -> None:
    judgements = (said(0.5, objections=(MAJOR,)), said(0.52, objections=(MAJOR,)))
    text = logged(caplog, logging.INFO, waiting(TellingCritic(judgements), TellingReviser()))
    assert "begins on case" in text
    assert "iteration 1: quality 0.500, improvement none" in text
    assert "iteration 2: quality 0.520, improvement 0.020" in text
    assert "ends after 2 iterations: convergence, converged, quality 0.520, improvement 4.0 %" in text


@pytest.mark.spec("REQ-CRITIC-OBS-003")
@pytest.mark.parametrize(
    ("critic", "reviser", "code"),
    [
        (TellingCritic((CriticFailed(SECRET),)), None, "CRITIC-ERR-001"),
        (TellingCritic((said(0.5, objections=(MAJOR,)),)), TellingReviser((ReviserFailed(SECRET),)), "CRITIC-ERR-002"),
        (TellingCritic((ProviderFailed(SECRET),)), None, "CRITIC-ERR-003"),
    ],
)
def test_error_tells_failures_of_critic_reviser_and_provider_and_the_end_they_bring(
    caplog: pytest.LogCaptureFixture, critic: ScriptedCritic, reviser: ScriptedReviser | None, code: str
) -> None:
    logged(caplog, logging.ERROR, waiting(critic, reviser))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert any(code in line for line in told)
    assert any("ended by an error" in line for line in told)


@pytest.mark.spec("REQ-CRITIC-SEC-003")
def test_no_text_is_logged_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    judgements = (said(0.5, objections=(MAJOR,), critique_reasoning=SECRET), CriticFailed(SECRET))
    text = logged(caplog, logging.DEBUG, waiting(TellingCritic(judgements), TellingReviser((SECRET,))))
    assert "run r1" in text
    assert SECRET not in text


@pytest.mark.spec("REQ-CRITIC-OBS-004")
def test_debug_has_critiques_and_revisions_whole_where_the_setting_says_so(caplog: pytest.LogCaptureFixture) -> None:
    judgements = (said(0.5, objections=(MAJOR,), critique_reasoning=SECRET), said(0.9))
    chosen = waiting(TellingCritic(judgements), TellingReviser(("Another answer [chunk_1].",)))
    text = logged(caplog, logging.DEBUG, chosen, log_texts=True)
    assert SECRET in text
    assert "Another answer" in text
    caplog.clear()
    chosen = waiting(TellingCritic(judgements), TellingReviser(("Another answer [chunk_1].",)))
    assert SECRET not in logged(caplog, logging.INFO, chosen, log_texts=True)


# the async twin


def test_the_async_twin_gives_the_same_run() -> None:
    events: list[Event] = []
    here = masis.run_audit(CASE)
    there = asyncio.run(masis.run_audit_async(CASE, on_event=events.append))
    changing = {"id", "started_at", "finished_at", "iterations"}
    assert there.model_dump(exclude=changing) == here.model_dump(exclude=changing)
    assert there.iterations[0].critique == here.iterations[0].critique
    assert events[-1].kind == "run_finished"


def test_cancelling_the_task_stops_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = waiting(HangingCritic())
    monkeypatch.setattr(audits, "build_roles", lambda settings: chosen)

    async def cancel_in_the_middle() -> None:
        task = asyncio.create_task(masis.run_audit_async(CASE))
        await until_async(lambda: chosen.control.calls.since(), "the critic is asked")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_in_the_middle())
    until(lambda: chosen.control.cancellation.cancelled, "the audit is stopped", 20)


# a run cut short between two steps


class Killed(BaseException):
    """The process is gone."""


class CountingVerifier(ContentVerifier):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def check(self, *given: Any, **told: Any) -> Checked:
        self.asked += 1
        return super().check(*given, **told)


def cut_short(bench: Workbench, monkeypatch: pytest.MonkeyPatch, **chosen: Any) -> None:
    monkeypatch.setattr(audit_service, "build_roles", lambda settings, _replies: waiting(**chosen))
    with pytest.raises(Killed):
        bench.audits.audit(ADA, CASE)
    assert [bench.runs.summary(each).case_id for each in bench.store.runs.in_state("interrupted")] == [CASE.id]


class DyingEvaluator(ScriptedEvaluator):
    def evaluate(self, *given: object) -> EvaluationJudgement:
        raise Killed


class DyingReviser(ScriptedReviser):
    def revise(self, *given: object) -> Revision:  # type: ignore[override]
        raise Killed


def test_a_run_cut_short_goes_on_after_its_last_finished_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench.open(tmp_path / "masis.db")
    bench.cases.add(ADA, [CASE])
    verifier, critic = CountingVerifier(), TellingCritic()
    cut_short(bench, monkeypatch, critic=critic, verifier=verifier, evaluator=DyingEvaluator())
    assert (verifier.asked, len(critic.seen)) == (1, 1)
    monkeypatch.setattr(
        audit_service, "build_roles", lambda settings, _replies: waiting(critic=critic, verifier=verifier)
    )
    run = bench.audits.audit(ADA, CASE)
    assert (verifier.asked, len(critic.seen)) == (1, 1), "neither claims nor critique are asked for again"
    assert run.termination_reason == "no_issues"
    assert [c.role for c in run.iterations[0].calls] == ["critic"], "what was paid for before is on the record"
    assert set(run.iterations[0].step_ms) >= {"citations", "claims", "critique", "evaluation"}
    assert bench.store.runs.get(run.id) == run


def test_a_run_cut_short_in_its_revision_judges_the_answer_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench.open(tmp_path / "masis.db")
    bench.cases.add(ADA, [CASE])
    verifier, evaluator = CountingVerifier(), ScriptedEvaluator()
    critic = TellingCritic((said(0.5, objections=(MAJOR,)), said(0.9)))
    cut_short(bench, monkeypatch, critic=critic, verifier=verifier, evaluator=evaluator, reviser=DyingReviser())
    assert evaluator.calls == 1
    chosen = {"critic": critic, "verifier": verifier, "evaluator": evaluator}
    monkeypatch.setattr(audit_service, "build_roles", lambda settings, _replies: waiting(**chosen))
    run = bench.audits.audit(ADA, CASE)
    assert run.total_iterations == 2
    assert (verifier.asked, len(critic.seen), evaluator.calls) == (2, 2, 2), "once for each iteration"
    assert [issue.source for issue in run.iterations[0].issues] == ["critic"]


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
