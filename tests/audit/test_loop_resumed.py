"""An audit cut short after any event and resumed ends as one that was never cut short, and asks for no step twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from masis.api import stepwise
from masis.audit import loop
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.evaluation import EvaluationJudgement
from masis.observers.observation import run_to_completion
from masis.schema.audit import Critique, Draft, Revision
from masis.schema.case import Case
from masis.schema.run import Iteration, Run, StepsDone
from masis.settings import Settings
from tests.audit import factories
from tests.scripted import FAIR, JUDGED_BY, MAJOR, ContentVerifier, ScriptedDrafter, said, ticking

FIRST = "The bridge is 120 metres long [chunk_1]."
SECOND = "The bridge, it says, is 120 metres long [chunk_1]."
THIRD = "The bridge, they say, is 120 metres long [chunk_1]."
CASE = factories.case(FIRST)


@dataclass
class Judges:
    """Roles whose replies follow from the answer alone, as those of a model at temperature 0; counts what it asked."""

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
        return said(quality, objections=() if quality > 0.85 else (MAJOR,))

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
        """They wait, as models do, so that steps are kept."""
        return loop.Roles(
            drafter=self,
            verifier=ContentVerifier(),
            critic=self,
            reviser=self,
            evaluator=self,
            models={"critic": "scripted"},
            waits=True,
        )


@dataclass
class Kept:
    """What a store keeps of a run under way: its draft, its iterations, the steps of the one after them."""

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
            before = self.steps.get(number)
            self.steps[number] = before.with_more(finished) if before else finished

    def progress(self, events: int) -> loop.Progress:
        under_way = self.steps.get(len(self.iterations) + 1)
        return loop.Progress(self.draft, tuple(self.iterations.values()), events, steps=under_way)


def audited(case: Case, judges: Judges, settings: Settings, kept: Kept, events: int, stop_after: int = 0) -> Run | None:
    """Audit, from what was kept on; None where the audit is cut short after so many events of its own."""
    work = loop.audit(
        case, judges.roles(), settings, run_id="r1", keep=kept.keep, progress=kept.progress(events), clock=ticking()
    )
    if not stop_after:
        return run_to_completion(work)
    for _ in range(stop_after):
        next(work)
    work.close()
    return None


def result(run: Run | None) -> dict[str, Any]:
    """What a run came to, without its times."""
    assert run is not None
    times = {"started_at", "finished_at", "iterations", "settings"}
    return run.model_dump(exclude=times) | {
        "iterations": [each.model_dump(exclude={"step_ms"}) for each in run.iterations]
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
def test_an_audit_cut_short_after_any_event_ends_as_one_never_cut_short(script: str, evaluate: str) -> None:
    qualities, rewrites, reason, length = SCRIPTS[script]
    settings = Settings.model_validate({"evaluate": evaluate})
    case = CASE.model_copy(update={"answer": None})
    whole = Judges(qualities, rewrites)
    events: list[Any] = []
    work = loop.audit(case, whole.roles(), settings, run_id="r1", clock=ticking())
    expected = run_to_completion(work, events.append)
    assert (expected.termination_reason, expected.total_iterations) == (reason, length)
    for cut in range(1, len(events) + 1):
        judges, kept = Judges(qualities, rewrites), Kept()
        audited(case, judges, settings, kept, 0, stop_after=cut)
        resumed = audited(case, judges, settings, kept, cut)
        assert result(resumed) == result(expected), f"cut short after event {cut}, {events[cut - 1].kind}"
        twice = judges.asked - whole.asked
        assert twice.total() <= 1, f"cut short after event {cut}: {twice}"
        if events[cut - 1].kind in ("step_started", "iteration_finished", "run_finished"):
            assert not twice, f"cut short after event {cut}"


def test_an_answer_that_a_host_hands_in_unchanged_is_audited_again() -> None:
    settings = Settings()
    first = stepwise.audit_once(CASE, settings)
    again = stepwise.audit_once(CASE, settings, before=first, answer=FIRST)
    assert [each.answer for each in again.iterations] == [FIRST, FIRST]


def test_an_audit_that_ended_with_a_revision_that_changed_nothing_is_not_revised_again_when_it_is_resumed() -> None:
    judges, kept = Judges({FIRST: 0.5}, {FIRST: FIRST}), Kept()
    audited(CASE, judges, Settings(evaluate="final"), kept, 0)
    last = kept.iterations[1]
    kept.iterations[1] = last.model_copy(update={"evaluation": None})  # it was cut short while the judge was asked
    resumed = audited(CASE, judges, Settings(evaluate="final"), kept, 9)
    assert resumed is not None
    assert resumed.iterations == tuple(kept.iterations.values())
    assert (judges.asked["revision", FIRST], judges.asked["evaluation", FIRST]) == (1, 2)
