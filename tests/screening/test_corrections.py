"""What a person corrects of an appraisal and of a finding, and what follows from it for grade, round and outcome."""

from __future__ import annotations

from typing import get_args

import pytest

from masis.errors import InputError
from masis.observers.observation import run_to_completion
from masis.schema.screening import (
    APPRAISAL_ITEMS,
    DIRECTIONS,
    Abstract,
    AppraisalItem,
    Grade,
    GradeField,
    ItemState,
    Override,
    OverrideField,
    Screening,
)
from masis.screening.grading.methodology import (
    CHECKLIST,
    LABELS,
    appraise,
    corrected,
    methodology,
    score_items,
    sentence_of,
)
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.recommendation import with_prior_floor
from masis.screening.handover import case_from_screening
from masis.screening.rounds.overrides import apply_overrides, apply_review, validate_override
from masis.screening.rounds.round_loop import screen
from masis.screening.synthesis.findings import finding_of, synthesise
from masis.settings import Settings
from tests.screening.scripted import STRONG, Said, ScriptedGrader, ScriptedSource, abstracts, grade_of, table

QUESTION = "Does aspirin relieve headache?"
COHORT = Abstract(
    id="c",
    title="Aspirin and headache: a cohort study",
    text=(
        "We followed a cohort of 400 adults with headache who took aspirin. The odds ratio for relief was 1.4 "
        "(95% CI 1.1 to 1.8). Assessors were not blinded. CONCLUSIONS: Aspirin relieved headache."
    ),
)


def said(name: OverrideField, value: str | None, abstract_id: str = "c", why: str = "Full text.") -> Override:
    return Override(abstract_id=abstract_id, field=name, value=value, reason=why, reviewer="Ada", at="now")


def graded(abstract: Abstract = COHORT) -> Grade:
    return offline_grader().grade(QUESTION, [abstract])[0]


def with_items(grade: Grade, abstract: Abstract = COHORT, **states: ItemState) -> Grade:
    set_: dict[OverrideField, Override] = {
        item: said(item, states[item], abstract.id) for item in APPRAISAL_ITEMS if item in states
    }
    return apply_overrides(grade, set_, question=QUESTION, abstract=abstract)


@pytest.mark.parametrize(("state", "words", "text"), table("item_states"))
def test_each_item_says_how_the_abstract_speaks_of_it_and_where(state: str, words: str, text: str) -> None:
    abstract = Abstract(id="a", title="Aspirin", text=f"Headache is common. {text} It hurts.")
    found = next(each for each in appraise(abstract, "randomised_trial") if each.item == "randomisation")
    assert found.state == state
    assert [each.text for each in found.words] == ([words] if words != "-" else [])
    if found.words:
        sentence, start = sentence_of(found.words[0], abstract)
        assert sentence[start : start + len(words)] == words
        assert "Headache is common" not in sentence


def test_only_what_is_stated_earns_points() -> None:
    items = appraise(COHORT, "cohort_study")
    found = methodology(COHORT, "cohort_study")
    assert found == score_items("cohort_study", items)
    assert "blinding" in found.absent
    assert next(each for each in items if each.item == "blinding").state == "denied"


@pytest.mark.parametrize("item", list(CHECKLIST["cohort_study"]))
def test_each_correction_is_worth_the_points_of_its_item_both_ways(item: AppraisalItem) -> None:
    items = appraise(COHORT, "cohort_study")
    stated = score_items("cohort_study", corrected(items, {item: "stated"})).score
    for state in ("denied", "planned", "not_stated"):
        without = score_items("cohort_study", corrected(items, {item: state})).score  # type: ignore[dict-item]
        assert stated is not None
        assert without is not None
        assert stated > without


@pytest.mark.spec("AESOP-OVERRIDE")
def test_a_correction_grades_the_abstract_again_by_the_same_rules() -> None:
    machine = graded()
    now = with_items(machine, model="stated", control="stated", outcome="stated", prospective="stated")
    expected = score_items(
        "cohort_study",
        corrected(
            appraise(COHORT, "cohort_study", machine.sample_sizes),
            {"model": "stated", "control": "stated", "outcome": "stated", "prospective": "stated"},
        ),
    )
    assert now.methodology_raw == expected.score
    assert now.methodology_score == with_prior_floor(expected.score, "cohort_study")
    assert now.methodology_score is not None
    assert machine.methodology_score is not None
    assert now.methodology_score > machine.methodology_score
    assert now.relevance_score is not None
    assert now.quality == pytest.approx((now.relevance_score + now.methodology_score) / 2)
    assert set(now.overridden) == {"model", "control", "outcome", "prospective"}
    assert "Set by a person" in now.reasons["methodology_score"].text
    assert now.reasons["model"].text == "Ada: Full text."


@pytest.mark.spec("AESOP-PRIORS")
def test_a_correction_never_takes_the_methodology_below_the_floor() -> None:
    nothing: dict[str, ItemState] = dict.fromkeys(CHECKLIST["cohort_study"], "not_stated")
    now = with_items(graded(), **nothing)
    assert now.methodology_raw == 0.0
    assert now.methodology_score == 0.45
    assert "Raised from 0.00 to 0.45" in now.reasons["methodology_score"].text


def test_a_model_s_score_moves_by_what_the_item_is_worth() -> None:
    machine = grade_of("c", Said(0.9, 0.60, "cohort_study", True), "some:model")
    up = with_items(machine, model="stated")
    down = with_items(up.model_copy(update={"overridden": ()}), effect="not_stated")
    assert up.methodology_raw is not None
    assert 0.60 < up.methodology_raw < 0.80
    assert down.methodology_raw is not None
    assert down.methodology_raw < up.methodology_raw
    assert "moves it by +" in up.reasons["methodology_score"].text


def test_a_methodology_set_by_hand_stands_above_corrected_items() -> None:
    set_: dict[OverrideField, Override] = {
        "model": said("model", "stated"),
        "methodology_score": Override(
            abstract_id="c", field="methodology_score", value=0.2, reason="Flawed.", reviewer="Ada", at="now"
        ),
    }
    assert apply_overrides(graded(), set_, abstract=COHORT).methodology_score == 0.2


@pytest.mark.spec("AESOP-OVERRIDE")
def test_undoing_every_correction_restores_the_machine_s_result() -> None:
    machine, held = screened(5)
    set_ = [said("blinding", "stated", "a"), said("direction", "opposite", "a")]
    assert apply_review(machine, set_, held) != machine
    undone = [*set_, said("blinding", None, "a", ""), said("direction", None, "a", "")]
    assert apply_review(machine, undone, held) == machine


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("blinding", "yes"),
        ("blinding", True),
        ("blinding", 0.5),
        ("size", "effect"),
        ("direction", "stated"),
        ("direction", "up"),
        ("direction", 1.0),
    ],
)
def test_a_state_that_there_is_not_is_refused(name: OverrideField, value: float | bool | str) -> None:
    with pytest.raises(InputError):
        validate_override(
            Override(abstract_id="c", field=name, value=value, reason="Because.", reviewer="Ada", at="now")
        )


def test_every_item_has_a_label_and_no_item_is_a_field() -> None:
    assert set(LABELS) == set(APPRAISAL_ITEMS)
    assert not set(get_args(GradeField)) & {*APPRAISAL_ITEMS, "direction"}
    assert {item for checklist in CHECKLIST.values() for item in checklist} == set(APPRAISAL_ITEMS)


def screened(
    count: int, text: str = "CONCLUSIONS: Aspirin relieved headache."
) -> tuple[Screening, dict[str, Abstract]]:
    ids = "abcdefgh"[:count]
    held = {each.id: each.model_copy(update={"text": f"{each.text} {text}"}) for each in abstracts(*ids)}
    source = ScriptedSource(tuple(held.values()))
    steps = screen(QUESTION, [source], ScriptedGrader({}, STRONG), Settings(screening_max_rounds=1), screening_id="s")
    return run_to_completion(steps), held


@pytest.mark.parametrize("direction", [each for each in DIRECTIONS if each != "effect"])
def test_a_corrected_direction_is_what_the_synthesis_counts(direction: str) -> None:
    machine, held = screened(5)
    now = apply_review(machine, [said("direction", direction, "a")], held)
    found = synthesise(QUESTION, now.grades, held)
    assert found.counts[direction] == 1  # type: ignore[index]
    assert found.counts["effect"] == 4
    grade = now.grade("a")
    assert grade is not None
    assert finding_of(QUESTION, grade, held["a"]).direction == direction
    assert grade.quality == machine.grades[0].quality


def test_corrected_directions_make_a_sufficient_screening_conflicting_and_back() -> None:
    machine, held = screened(5)
    assert machine.outcome == "sufficient"
    two = [said("direction", "opposite", each) for each in "ab"]
    now = apply_review(machine, two, held)
    assert now.outcome == "conflicting"
    assert "they conflict" in now.reasons[-1]
    assert now.kept == machine.kept
    assert apply_review(machine, [*two, said("direction", None, "a", "")], held).outcome == "sufficient"


def test_a_direction_does_not_grade_again() -> None:
    """A grade of an earlier version's rules stays as it is where a person only says which way the finding goes."""
    odd = graded().model_copy(update={"recommendation": "keep", "rule": "borderline_method"})
    now = apply_overrides(odd, {"direction": said("direction", "opposite")}, abstract=COHORT)
    assert (now.recommendation, now.rule, now.direction) == ("keep", "borderline_method", "opposite")


def test_a_case_carries_corrected_directions_and_is_another_case() -> None:
    machine, held = screened(5)
    now = apply_review(machine, [said("direction", "opposite", each) for each in "ab"], held)
    first, second = case_from_screening(machine, held), case_from_screening(now, held)
    assert first.id != second.id
    directions = [(each.model_extra or {})["direction"] for each in second.evidence]
    assert sorted(directions) == ["effect"] * 3 + ["opposite"] * 2
    assert all((each.model_extra or {}).get("findings_conflict") for each in second.evidence)
