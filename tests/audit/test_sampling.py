"""A judge asked several times: the mean counts, the spread shows, and a judge at odds with itself goes to a person."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from masis.audit import loop
from masis.audit.context import AuditContext
from masis.audit.critique import Objection
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.sampling import SAMPLE, Sample, SampledCritic, SampledEvaluator
from masis.errors import CriticFailed
from masis.observers.observation import run_to_completion
from masis.schema.audit import Critique, Measurement
from masis.schema.base import Unscored
from masis.schema.run import Run
from masis.settings import Settings
from tests.cases import case_of
from tests.scripted import MAJOR, ScriptedCritic, ScriptedEvaluator, roles, said
from tests.waiting import PATIENCE_S

CASE = case_of("The bridge is 120 metres long [chunk_1].", {"chunk_1": "The bridge is 120 metres long."})


def audited(critic: ScriptedCritic, times: int, evaluator: ScriptedEvaluator | None = None, **told: object) -> Run:
    chosen = roles(critic=critic, evaluator=evaluator)
    sampled = loop.Roles(
        **{
            **chosen.__dict__,
            "critic": SampledCritic(critic, times),
            "evaluator": SampledEvaluator(chosen.evaluator, times),
        }
    )
    return run_to_completion(loop.audit(CASE, sampled, Settings(max_iterations=1, **told), run_id="r"))


def reasons(run: Run) -> list[str]:
    return [reason.code for reason in run.review_reasons]


def test_each_sample_is_numbered_in_the_order_of_the_results_however_threads_run() -> None:
    """So that the recorded replies to the same question go to the samples that they were given to."""
    numbered: list[Sample] = []
    begin = threading.Barrier(3)

    class Numbered(ScriptedEvaluator):
        def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
            begin.wait(PATIENCE_S)
            numbered.append(sample := SAMPLE.get())
            score = sample.number / 10
            return EvaluationJudgement(score, score, score, score)

    run = audited(ScriptedCritic(), 3, Numbered(), evaluate="final")
    evaluation = run.iterations[0].evaluation
    assert evaluation is not None
    assert next(score.samples for score in evaluation.scores if score.name == "relevance") == (0.1, 0.2, 0.3)
    assert sorted(numbered) == [Sample(1, 3), Sample(2, 3), Sample(3, 3)]
    assert SAMPLE.get() == Sample()


def test_the_mean_counts_and_the_spread_is_kept() -> None:
    critic = ScriptedCritic((said(0.9), said(0.8), said(0.7)))
    run = audited(critic, 3)
    critique = run.iterations[0].critique
    assert critique.overall_quality_score == pytest.approx(0.8)
    quality = next(score for score in critique.scores if score.name == "overall_quality_score")
    assert sorted(quality.samples, key=float) == [0.7, 0.8, 0.9]  # type: ignore[arg-type]
    assert quality.spread == pytest.approx(0.2)
    assert len(critic.seen) == 3
    assert "judges_disagree" not in reasons(run)


def test_a_spread_above_the_setting_sends_the_run_to_a_person() -> None:
    run = audited(ScriptedCritic((said(0.95), said(0.9), said(0.4))), 3)
    assert "judges_disagree" in reasons(run)
    assert "judges_disagree" not in reasons(
        audited(ScriptedCritic((said(0.95), said(0.9), said(0.4))), 3, max_judge_spread=0.6)
    )


def test_a_split_vote_on_hallucination_is_reported_and_a_tie_counts_as_found() -> None:
    critic = ScriptedCritic((said(0.9, hallucination_detected=True), said(0.9)))
    run = audited(critic, 2)
    assert run.iterations[0].critique.hallucination_detected
    assert run.iterations[0].critique.hallucination_votes == (1, 2)
    assert "judges_disagree" in reasons(run)


def test_samples_that_failed_are_left_out_and_reported() -> None:
    run = audited(ScriptedCritic((said(0.8), CriticFailed("no reply"), Unscored(reason="refused", code="X"))), 3)
    critique = run.iterations[0].critique
    assert critique.overall_quality_score == pytest.approx(0.8)
    assert any("2 of 3 samples failed" in note for note in critique.notes)


def test_where_all_samples_failed_there_is_no_score() -> None:
    run = audited(ScriptedCritic((CriticFailed("no reply"),)), 3)
    critique = run.iterations[0].critique
    assert critique.unscored
    assert critique.unscored.code == "CRITIC-ERR-001"
    assert critique.overall_quality_score is None


def test_objections_of_all_samples_stand_once_and_the_gravest_holds() -> None:
    mild = Objection("factual", "test", "low", "It is wrong.", "Because.", "Mend it.", quote="120 metres")
    grave = mild._replace(severity="high")
    other = MAJOR._replace(type="logical", description="It does not follow.")
    judged = SampledCritic(
        ScriptedCritic((said(0.8, objections=(mild,)), said(0.8, objections=(grave, other)))), 2
    ).critique(None)  # type: ignore[arg-type]
    assert not isinstance(judged, Unscored)
    assert {(objection.type, objection.severity) for objection in judged.objections} == {
        ("factual", "high"),
        ("logical", "high"),
    }


class Wavering(ScriptedEvaluator):
    """Gives another score each time."""

    def evaluate(self, context: object, critique: object) -> EvaluationJudgement:
        self.calls += 1
        score = 0.9 if self.calls % 2 else 0.5
        return EvaluationJudgement(score, score, score, score)


class InTurn(ScriptedEvaluator):
    """Gives these judgements in turn, from whichever thread it is asked."""

    def __init__(self, judgements: Sequence[EvaluationJudgement]) -> None:
        super().__init__()
        self.left = iter(judgements)

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement:
        return next(self.left)


def test_the_evaluators_spread_sends_the_run_to_a_person_too() -> None:
    run = audited(ScriptedCritic(), 2, Wavering())
    evaluation = run.iterations[0].evaluation
    assert evaluation
    assert evaluation.faithfulness == pytest.approx(0.7)
    assert {score.spread for score in evaluation.scores if score.samples} == {0.4}
    assert "judges_disagree" in reasons(run)


def test_the_reason_reported_for_a_dimension_is_that_of_the_sample_nearest_its_mean() -> None:
    def told(value: float) -> EvaluationJudgement:
        measured = (Measurement(name="the judge", value=value, meaning=f"I say {value}."),)
        return EvaluationJudgement(value, 0.9, 0.9, 0.9, measurements={"faithfulness": measured})

    run = audited(ScriptedCritic(), 3, InTurn([told(0.9), told(0.2), told(0.7)]))
    evaluation = run.iterations[0].evaluation
    assert evaluation
    score = next(score for score in evaluation.scores if score.name == "faithfulness")
    assert score.value == pytest.approx(0.6)
    assert [measurement.meaning for measurement in score.measurements] == ["I say 0.7."]
