"""The rules in code around the critic and the evaluator, and judges that are sampled several times."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit import critique, evaluation, loop
from masis.audit.context import AuditContext
from masis.audit.critique import RawIssue
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.measures.scores import cap_score, multiply_score, normalize_score
from masis.audit.sampling import SAMPLE, Sample, SampledCritic, SampledEvaluator
from masis.errors import CriticFailed
from masis.observers.observation import run_to_completion
from masis.schema.audit import CitationAudit, Critique, Evaluation, Measurement
from masis.schema.base import Unscored
from masis.schema.case import Severity
from masis.schema.run import Run
from masis.settings import Settings
from tests.audit.factories import JUDGED_BY, citations, issue, judgement, verdict
from tests.cases import case_of
from tests.scripted import MAJOR, ScriptedCritic, ScriptedEvaluator, judgement_with, roles
from tests.waiting import PATIENCE_S

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
HIGH_SCORES = EvaluationJudgement(0.95, 0.95, 0.95, 0.95, 0.95)


def evaluate(audit: CitationAudit, scores: Any = HIGH_SCORES, **critique: Any) -> Evaluation:
    return evaluation.apply_evaluation_rules(
        scores, audit, verdict(audit, **critique), Settings(), JUDGED_BY
    )


@pytest.mark.spec("MASIS-EVAL-P5", "MASIS-EVAL-LOWEST")
@pytest.mark.parametrize(
    ("audit", "hallucination", "bound"),
    [
        (citations(invalid=1), False, 0.4),
        (citations(), True, 0.4),
        (citations(uncited=4), False, 0.95),
        (citations(uncited=5), False, 0.5),
        (citations(uncited=9, has_citations=False), False, 0.5),
        (citations(uncited=10), False, 0.3),
        (citations(uncited=25, has_citations=False), False, 0.3),
        (citations(invalid=1, uncited=5), False, 0.4),
        (citations(invalid=1, uncited=10), False, 0.3),
    ],
)
def test_fabrication_and_uncited_sentences_cap_a_generous_evaluator(
    audit: CitationAudit, hallucination: bool, bound: float
) -> None:
    result = evaluate(audit, hallucination_detected=hallucination)
    assert result.faithfulness == bound
    # The spec's formula rounds to three decimals.
    assert result.overall_score == pytest.approx(0.35 * bound + 0.65 * 0.95, abs=6e-4)


@pytest.mark.spec("MASIS-EVAL-P6")
def test_scales_are_normalized_before_caps() -> None:
    result = evaluate(citations(uncited=5), EvaluationJudgement(95, 88, 72, 60, 80))
    assert result.faithfulness == 0.5
    assert result.relevance == pytest.approx(0.88)
    assert result.overall_score == pytest.approx(
        round(0.5 * 0.35 + 0.88 * 0.25 + 0.72 * 0.25 + 0.6 * 0.15, 3)
    )


@pytest.mark.spec("MASIS-EVAL-WEIGHTS")
def test_the_overall_score_is_always_recomputed() -> None:
    assert evaluate(citations(), EvaluationJudgement(1, 0, 0, 0, 0.99)).overall_score == 0.35
    assert evaluate(citations(), EvaluationJudgement(0, 1, 0, 0, 0.99)).overall_score == 0.25
    assert evaluate(citations(), EvaluationJudgement(0, 0, 1, 0, 0.99)).overall_score == 0.25
    assert evaluate(citations(), EvaluationJudgement(0, 0, 0, 1, 0.99)).overall_score == 0.15
    assert (
        evaluate(citations(), EvaluationJudgement(0.9, 0.8, 0.71, 0.63, 0.99)).overall_score
        == 0.787
    )


def test_a_dimension_without_a_number_makes_the_overall_score_unscored() -> None:
    result = evaluate(citations(), EvaluationJudgement(0.9, "high", 0.9, 0.9))
    assert result.relevance is None
    assert result.overall_score is None
    assert "relevance" in result.unscored.reason
    assert result.faithfulness == 0.9


def test_a_failed_evaluator_gives_no_scores() -> None:
    result = evaluate(citations(), Unscored(reason="refused"))
    assert (result.faithfulness, result.overall_score) == (None, None)


def test_an_applied_cap_is_recorded() -> None:
    scores = {score.name: score for score in evaluate(citations(invalid=1)).scores}
    assert scores["faithfulness"].raw == 0.95
    assert [rule.rule for rule in scores["faithfulness"].rules] == ["hallucination_cap"]
    assert [rule.rule for rule in scores["overall_score"].rules] == ["weighted_mean"]


@pytest.mark.spec("MASIS-CRITIC-P5", "MASIS-EVAL-P6", "REQ-CRITIC-022")
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.85, 0.85),
        (85, 0.85),
        (1, 1.0),
        (0, 0.0),
        (100, 1.0),
        (-1, 0.0),
        (250, 1.0),
        (7.26e9, 1.0),
        (1.5, 0.015),
    ],
)
def test_both_scales_are_equivalent_and_out_of_range_values_are_clamped(
    number: float, expected: float
) -> None:
    assert normalize_score("confidence", number).value == pytest.approx(expected)


@pytest.mark.parametrize(
    "invalid_number", [None, "high", math.nan, math.inf, -math.inf, 10**400, True, [], {}]
)
def test_non_finite_numbers_are_unscored_never_zero(invalid_number: object) -> None:
    score = normalize_score("confidence", invalid_number)
    assert score.value is None
    assert score.raw is None


def test_every_score_adjustment_is_recorded() -> None:
    score = cap_score(
        normalize_score("faithfulness", 95),
        0.4,
        rule="hallucination_cap",
        why="fabricated reference",
    )
    assert [(rule.rule, rule.before, rule.after) for rule in score.rules] == [
        ("percentage", 95, 0.95),
        ("hallucination_cap", 0.95, 0.4),
    ]
    assert score.raw == 95


def test_a_cap_above_the_score_isnt_recorded() -> None:
    assert cap_score(normalize_score("faithfulness", 0.2), 0.4, rule="cap", why="").rules == ()


def test_an_unscored_score_stays_unscored() -> None:
    score = normalize_score("confidence", "high")
    assert (
        cap_score(multiply_score(score, 0.5, rule="penalty", why=""), 0.4, rule="cap", why="").value
        is None
    )


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_score_is_between_0_and_1_or_absent(number: float) -> None:
    value = normalize_score("x", number).value
    assert value is None or 0.0 <= value <= 1.0


@pytest.mark.spec(
    "MASIS-CRITIC-P3",
    "MASIS-CRITIC-P4",
    "MASIS-CRITIC-P5",
    "MASIS-CRITIC-P6",
    "MASIS-CRITIC-OVERRIDE",
)
@pytest.mark.parametrize(
    ("audit", "confidence", "expected_confidence", "forced"),
    [
        (citations(invalid=1), 0.8, 0.4, True),
        (citations(uncited=3), 0.8, 0.72, False),
        (citations(uncited=3, has_citations=False), 0.8, 0.8, False),
        (citations(invalid=2, uncited=3), 1.0, 0.45, True),
        (citations(invalid=1), 85, 0.425, True),
    ],
)
def test_a_fabricated_citation_forces_hallucination_and_retry(
    audit: CitationAudit, confidence: float, expected_confidence: float, forced: bool
) -> None:
    critique_result = verdict(audit, confidence=confidence)
    assert critique_result.confidence == pytest.approx(expected_confidence)
    assert (critique_result.hallucination_detected, critique_result.needs_retry) == (forced, forced)


def test_the_critics_own_flag_is_kept_with_clean_citations() -> None:
    critique_result = verdict(citations(), hallucination_detected=True, needs_retry=True)
    assert critique_result.hallucination_detected
    assert critique_result.needs_retry


@pytest.mark.spec("MASIS-CRITIC-P2", "MASIS-CRITIC-LAYERS")
@pytest.mark.spec("MASIS-CRITIC-P2")
@pytest.mark.parametrize("source", ["claims", "critic", "citations"])
@pytest.mark.parametrize(
    ("type_", "severity", "is_hallucination"),
    [
        *(
            (type_, severity, True)
            for type_ in ("hallucination", "contradiction")
            for severity in SEVERITIES
        ),
        *(("unsupported", severity, severity in ("critical", "high")) for severity in SEVERITIES),
        *(
            (other, "critical", False)
            for other in ("factual", "logical", "missing_info", "incomplete", "ambiguity")
        ),
    ],
)
def test_hallucination_follows_from_issues_of_any_source(
    source: Any, type_: Any, severity: Severity, is_hallucination: bool
) -> None:
    issues = (issue("low", type="ambiguity"), issue(severity, type=type_, source=source))
    assert verdict(issues=issues).hallucination_detected is is_hallucination
    assert verdict(issues=issues, hallucination_detected=True).hallucination_detected is True
    failed = critique.apply_critique_rules(
        Unscored(reason="timeout"), citations(), issues, JUDGED_BY
    )
    assert failed.hallucination_detected is is_hallucination


@pytest.mark.spec("MASIS-CRITIC-P2", "CRITIC-LOOP-CRITIC-OUTPUT")
@pytest.mark.parametrize("severity", SEVERITIES)
def test_serious_issues_force_a_retry_and_the_critic_can_only_add_one(
    severity: Severity,
) -> None:
    raised, major = (issue(severity, source="claims"),), severity in ("critical", "high")
    assert verdict(issues=raised).needs_retry is major
    assert verdict(issues=raised, needs_retry=True).needs_retry is True
    assert (
        critique.apply_critique_rules(
            Unscored(reason="timeout"), citations(), raised, JUDGED_BY
        ).needs_retry
        is major
    )


def test_conflicting_chunks_arent_a_hallucination() -> None:
    assert not verdict(
        issues=(issue("medium", type="contradiction", rule="source_conflict"),)
    ).hallucination_detected


def test_after_a_failed_critic_only_citation_findings_remain() -> None:
    critique_result = critique.apply_critique_rules(
        Unscored(reason="cut off", code="CRITIC-ERR-005"), citations(invalid=1), (), JUDGED_BY
    )
    assert critique_result.unscored is not None
    assert critique_result.hallucination_detected
    assert critique_result.needs_retry
    assert (
        critique_result.confidence,
        critique_result.overall_quality_score,
        critique_result.critique_confidence,
    ) == (
        None,
        None,
        None,
    )


@pytest.mark.spec("REQ-CRITIC-004")
@pytest.mark.parametrize(
    ("severity", "major"), [("critical", True), ("high", True), ("medium", False), ("low", False)]
)
def test_major_issues_are_critical_or_high(severity: str, major: bool) -> None:
    assert (
        critique.apply_critique_rules(
            judgement(), citations(), (issue(severity),), JUDGED_BY
        ).has_major_issues
        is major
    )


@pytest.mark.spec("REQ-CRITIC-021")
def test_fabricated_citations_outweigh_style_in_the_quality_score() -> None:
    audit = citations(invalid=1)
    assert critique.quality_score(
        verdict(audit, overall_quality_score=0.9), audit
    ) == pytest.approx(0.45)


def test_an_unscored_quality_stays_unscored() -> None:
    audit = citations()
    assert critique.quality_score(verdict(audit, overall_quality_score="good"), audit) is None


def test_each_score_names_its_applied_rules() -> None:
    scores = {score.name: score for score in verdict(citations(invalid=1), confidence=85).scores}
    assert [rule.rule for rule in scores["confidence"].rules] == ["percentage", "citation_penalty"]
    assert scores["confidence"].raw == 85


# If a judge is sampled several times, the mean and the spread are recorded, and a large spread
# sends the case to a person

CASE = case_of(
    "The bridge is 120 metres long [chunk_1].", {"chunk_1": "The bridge is 120 metres long."}
)


def audited(
    critic: ScriptedCritic,
    times: int,
    evaluator: ScriptedEvaluator | None = None,
    **settings: object,
) -> Run:
    chosen_roles = roles(critic=critic, evaluator=evaluator)
    sampled = loop.Roles(
        **{
            **chosen_roles.__dict__,
            "critic": SampledCritic(critic, times),
            "evaluator": SampledEvaluator(chosen_roles.evaluator, times),
        }
    )
    return run_to_completion(
        loop.audit(CASE, sampled, Settings(max_iterations=1, **settings), run_id="r")
    )


def reasons(run: Run) -> list[str]:
    return [reason.code for reason in run.review_reasons]


def test_samples_are_numbered_in_result_order() -> None:
    """The number decides which recorded reply a repeated sample gets."""
    seen_samples: list[Sample] = []
    barrier = threading.Barrier(3)

    class Numbered(ScriptedEvaluator):
        def evaluate(
            self, context: AuditContext, critique: Critique
        ) -> EvaluationJudgement | Unscored:
            barrier.wait(PATIENCE_S)
            seen_samples.append(sample := SAMPLE.get())
            score = sample.number / 10
            return EvaluationJudgement(score, score, score, score)

    run = audited(ScriptedCritic(), 3, Numbered(), evaluate="final")
    evaluation = run.iterations[0].evaluation
    assert next(score.samples for score in evaluation.scores if score.name == "relevance") == (
        0.1,
        0.2,
        0.3,
    )
    assert sorted(seen_samples) == [Sample(1, 3), Sample(2, 3), Sample(3, 3)]
    assert SAMPLE.get() == Sample()


def test_the_mean_is_used_and_the_spread_recorded() -> None:
    critic = ScriptedCritic((judgement_with(0.9), judgement_with(0.8), judgement_with(0.7)))
    run = audited(critic, 3)
    critique = run.iterations[0].critique
    assert critique.overall_quality_score == pytest.approx(0.8)
    quality = next(score for score in critique.scores if score.name == "overall_quality_score")
    assert sorted(quality.samples, key=float) == [0.7, 0.8, 0.9]
    assert quality.spread == pytest.approx(0.2)
    assert len(critic.seen) == 3
    assert "judges_disagree" not in reasons(run)


def test_a_large_spread_needs_review() -> None:
    run = audited(
        ScriptedCritic((judgement_with(0.95), judgement_with(0.9), judgement_with(0.4))), 3
    )
    assert "judges_disagree" in reasons(run)
    assert "judges_disagree" not in reasons(
        audited(
            ScriptedCritic((judgement_with(0.95), judgement_with(0.9), judgement_with(0.4))),
            3,
            max_judge_spread=0.6,
        )
    )


def test_a_split_hallucination_vote_is_reported_and_a_tie_counts_as_yes() -> None:
    critic = ScriptedCritic((judgement_with(0.9, hallucination_detected=True), judgement_with(0.9)))
    run = audited(critic, 2)
    assert run.iterations[0].critique.hallucination_detected
    assert run.iterations[0].critique.hallucination_votes == (1, 2)
    assert "judges_disagree" in reasons(run)


def test_a_sample_without_flags_votes_through_its_issues() -> None:
    contradiction = RawIssue(
        "contradiction", "critic_contradiction", "medium", "It is wrong.", "Because.", "Mend it."
    )
    run = audited(
        ScriptedCritic(
            (judgement_with(raw_issues=(contradiction,)), judgement_with(), judgement_with())
        ),
        3,
    )
    assert run.iterations[0].critique.hallucination_votes == (1, 3)
    assert run.iterations[0].critique.hallucination_detected
    assert "1 of 3 samples of the critic found a hallucination." in {
        r.message for r in run.review_reasons
    }


def test_failed_samples_are_excluded_and_reported() -> None:
    run = audited(
        ScriptedCritic(
            (judgement_with(0.8), CriticFailed("no reply"), Unscored(reason="refused", code="X"))
        ),
        3,
    )
    critique = run.iterations[0].critique
    assert critique.overall_quality_score == pytest.approx(0.8)
    assert any("2 of 3 samples failed" in note for note in critique.notes)


def test_without_valid_samples_there_is_no_score() -> None:
    run = audited(ScriptedCritic((CriticFailed("no reply"),)), 3)
    critique = run.iterations[0].critique
    assert critique.unscored.code == "CRITIC-ERR-001"
    assert critique.overall_quality_score is None


def test_equal_issues_of_samples_are_merged_with_the_highest_severity() -> None:
    minor_objection = RawIssue(
        "factual", "test", "low", "It is wrong.", "Because.", "Mend it.", quote="120 metres"
    )
    serious_objection = minor_objection._replace(severity="high")
    other_objection = MAJOR._replace(type="logical", description="It does not follow.")
    judgement_of_samples = SampledCritic(
        ScriptedCritic(
            (
                judgement_with(0.8, raw_issues=(minor_objection,)),
                judgement_with(0.8, raw_issues=(serious_objection, other_objection)),
            )
        ),
        2,
    ).critique(None)
    assert not isinstance(judgement_of_samples, Unscored)
    assert {
        (raw_issue.type, raw_issue.severity) for raw_issue in judgement_of_samples.raw_issues
    } == {
        ("factual", "high"),
        ("logical", "high"),
    }


class AlternatingEvaluator(ScriptedEvaluator):
    """An evaluator whose scores alternate."""

    def evaluate(self, context: object, critique: object) -> EvaluationJudgement:
        self.calls += 1
        score = 0.9 if self.calls % 2 else 0.5
        return EvaluationJudgement(score, score, score, score)


class QueuedEvaluator(ScriptedEvaluator):
    """An evaluator that returns these judgements in turn, whichever thread asks."""

    def __init__(self, judgements: Sequence[EvaluationJudgement]) -> None:
        super().__init__()
        self.remaining = iter(judgements)

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement:
        return next(self.remaining)


def test_a_large_evaluator_spread_needs_review() -> None:
    run = audited(ScriptedCritic(), 2, AlternatingEvaluator())
    evaluation = run.iterations[0].evaluation
    assert evaluation.faithfulness == pytest.approx(0.7)
    assert {score.spread for score in evaluation.scores if score.samples} == {0.4}
    assert "judges_disagree" in reasons(run)


def test_a_dimensions_reason_comes_from_the_sample_nearest_the_mean() -> None:
    def judgement_with_reason(value: float) -> EvaluationJudgement:
        measured = (Measurement(name="the judge", value=value, meaning=f"I say {value}."),)
        return EvaluationJudgement(value, 0.9, 0.9, 0.9, measurements={"faithfulness": measured})

    run = audited(
        ScriptedCritic(),
        3,
        QueuedEvaluator(
            [judgement_with_reason(0.9), judgement_with_reason(0.2), judgement_with_reason(0.7)]
        ),
    )
    evaluation = run.iterations[0].evaluation
    score = next(score for score in evaluation.scores if score.name == "faithfulness")
    assert score.value == pytest.approx(0.6)
    assert [measurement.meaning for measurement in score.measurements] == ["I say 0.7."]
