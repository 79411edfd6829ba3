"""Several graders combined: agreement is reported, and ties and spread follow the documented
rules.
"""

from __future__ import annotations

import pytest

from masis.errors import SettingsError
from masis.schema.audit import JudgedBy
from masis.schema.screening import Grade, GradeReason
from masis.screening.grading.ensemble import Ensemble, join_grades, pair_agreement
from masis.screening.ui.result import agreement_words
from tests.screening.scripted import (
    OFF_TOPIC,
    SERIES,
    STRONG,
    UNREADABLE,
    ScriptedGrader,
    ScriptedOpinion,
    abstracts,
    grade_of,
)


def make_grade(*opinions: ScriptedOpinion) -> Grade:
    graders = tuple(
        ScriptedGrader({}, default=opinion, model=f"grader {i}")
        for i, opinion in enumerate(opinions)
    )
    (grade,) = Ensemble(graders).grade("aspirin for headache", abstracts("a"))
    return grade


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_agreeing_graders_give_one_grade_and_keep_each_opinion() -> None:
    grade = make_grade(STRONG, ScriptedOpinion(0.8, 0.7), ScriptedOpinion(0.85, 0.75))
    assert (grade.recommendation, grade.agreement) == ("keep", 1.0)
    assert (grade.relevance_score, grade.methodology_score) == (0.85, 0.75)
    assert [opinion.relevance_score for opinion in grade.opinions] == [0.9, 0.8, 0.85]
    assert grade.judged_by.model == "grader 0 + grader 1 + grader 2"


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_one_outlier_doesnt_move_the_scores_but_asks_for_more() -> None:
    grade = make_grade(STRONG, STRONG, OFF_TOPIC)
    assert (grade.relevance_score, grade.methodology_score) == (0.9, 0.8)
    assert (grade.recommendation, grade.rule) == ("needs_more", "disagreement")
    assert "differ by" in grade.reasons["recommendation"].text


def test_qualities_agree_just_within_the_spread_but_not_just_beyond() -> None:
    def cohort(score: float) -> ScriptedOpinion:
        return ScriptedOpinion(score, score, "cohort_study", True)

    within = make_grade(cohort(0.9), cohort(0.9), cohort(0.6))
    assert (within.recommendation, within.rule) == ("keep", "strong")
    beyond = make_grade(cohort(0.92), cohort(0.92), cohort(0.6))
    assert (beyond.recommendation, beyond.rule) == ("needs_more", "disagreement")


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_a_tie_asks_for_more_evidence() -> None:
    grade = make_grade(ScriptedOpinion(0.6, 0.6), ScriptedOpinion(0.45, 0.6))
    assert (grade.recommendation, grade.rule, grade.agreement) == (
        "needs_more",
        "disagreement",
        0.0,
    )
    assert "don't agree" in grade.reasons["recommendation"].text


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_a_tie_about_the_design_picks_the_lower_prior() -> None:
    assert make_grade(STRONG, SERIES).design == "case_series"


def test_the_reasons_shown_are_those_of_the_median_grader() -> None:
    opinions = {
        "low": ScriptedOpinion(0.7, 0.7),
        "middle": ScriptedOpinion(0.85, 0.8),
        "high": ScriptedOpinion(0.95, 0.9),
    }
    grades = [
        grade_of("a", opinion, name).model_copy(
            update={"reasons": {"relevance_score": GradeReason(text=name)}}
        )
        for name, opinion in opinions.items()
    ]
    grade = join_grades(grades, "a", 3, JudgedBy(model="all", version="1"))
    assert grade.reasons["relevance_score"].text == "middle"
    assert "low keep, middle keep, high keep" in grade.reasons["recommendation"].text


def test_a_grader_without_a_score_abstains() -> None:
    grade = make_grade(STRONG, STRONG, UNREADABLE)
    assert (grade.recommendation, grade.agreement, len(grade.opinions)) == ("keep", 1.0, 3)


def test_an_abstract_that_most_graders_cant_score_is_unscored() -> None:
    grade = make_grade(STRONG, UNREADABLE, UNREADABLE)
    assert (grade.recommendation, grade.relevance_score) == ("needs_more", None)
    assert "1 of 3" in grade.unscored.reason


def test_two_thirds_are_a_majority_if_the_qualities_are_close() -> None:
    grade = make_grade(
        ScriptedOpinion(0.6, 0.6), ScriptedOpinion(0.62, 0.6), ScriptedOpinion(0.48, 0.6)
    )
    assert (grade.recommendation, round(grade.agreement or 0, 3)) == ("keep", 0.333)


def test_an_empty_ensemble_is_rejected() -> None:
    with pytest.raises(SettingsError, match="at least one grader"):
        Ensemble(())


def test_agreeing_pairs_are_counted() -> None:
    assert pair_agreement(["keep", "keep", "discard"]) == pytest.approx(1 / 3)
    assert pair_agreement(["keep"]) is None


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_agreement_is_reported_over_abstracts_scored_by_at_least_two() -> None:
    opinions = {"a": STRONG, "b": OFF_TOPIC, "c": STRONG, "d": UNREADABLE}
    first, second = (
        ScriptedGrader(opinions, model="one"),
        ScriptedGrader({**opinions, "c": OFF_TOPIC}, model="two"),
    )
    grades = Ensemble((first, second)).grade("aspirin for headache", abstracts("a", "b", "c", "d"))
    # Two of three pairs agree. Of 6 votes, 3 keep and 3 discard, so by chance 18 of 30 pairs differ.
    assert (
        agreement_words(grades)
        == "2 graders agree on 67% of 3 abstracts, Krippendorff's alpha 0.44"
    )
    assert agreement_words(grades[:1]) == "2 graders agree on 100% of 1 abstract"
    assert agreement_words(first.grade("aspirin for headache", abstracts("a"))) == ""
