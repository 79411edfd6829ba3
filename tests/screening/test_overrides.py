"""Reviewers' overrides of grades, appraisals and findings, and their effect on the round and the
screening.
"""

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
    GradeReason,
    ItemState,
    Override,
    OverrideField,
    Screening,
)
from masis.screening.grading.methodology import (
    CHECKLIST,
    LABELS,
    apply_corrections,
    appraise,
    methodology,
    score_items,
    sentence_of,
)
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.recommendation import with_prior_floor
from masis.screening.handover import case_from_screening
from masis.screening.rounds.overrides import (
    apply_overrides,
    apply_review,
    effective_overrides,
    validate_override,
)
from masis.screening.rounds.round_loop import screen
from masis.screening.synthesis.findings import finding_of, synthesise
from masis.settings import Settings
from tests.screening.scripted import (
    AWAY,
    STRONG,
    WEAK,
    Said,
    ScriptedGrader,
    ScriptedSource,
    abstracts,
    grade_of,
    table,
)


def said(
    field: OverrideField,
    value: float | bool | str | None,
    abstract_id: str = "a",
    why: str = "I read it.",
) -> Override:
    return Override(
        abstract_id=abstract_id, field=field, value=value, reason=why, reviewer="Ada", at="now"
    )


def screened(
    says: dict[str, Said], *rounds: tuple[Abstract, ...], question: str = "aspirin"
) -> Screening:
    source = ScriptedSource(*rounds)
    return run_to_completion(
        screen(
            question,
            [source],
            ScriptedGrader(says),
            Settings(screening_max_rounds=1),
            screening_id="s",
        )
    )


FIVE = abstracts("a", "b", "c", "d", "e")


@pytest.mark.spec("AESOP-OVERRIDE")
def test_one_override_flips_the_decision_and_names_the_reviewer_and_reason() -> None:
    machine = screened({"a": WEAK, "b": WEAK}, FIVE)
    assert machine.outcome == "sufficient"
    person = apply_review(machine, [said("recommendation", "discard", "c", "Retracted.")])
    assert person.rounds[0].ruling.tally.keep == 2
    assert (person.outcome, person.kept) == ("evidence_insufficient", ("d", "e"))
    assert person.reasons == (
        "A person set 1 value.",
        f"Round 0: {person.rounds[0].ruling.why}",
    )
    grade = person.grade("c")
    assert grade.rule == "person"
    assert grade.overridden == ("recommendation",)
    assert grade.reasons["recommendation"].text == "Ada: Retracted."


@pytest.mark.spec("AESOP-OVERRIDE")
def test_the_original_grades_are_unchanged() -> None:
    machine = screened({}, FIVE)
    before = machine.model_dump()
    apply_review(machine, [said("recommendation", "discard")])
    assert machine.model_dump() == before


@pytest.mark.spec("AESOP-OVERRIDE")
def test_undoing_the_override_restores_the_original_result() -> None:
    machine = screened({"a": WEAK, "b": WEAK}, FIVE)
    assert (
        apply_review(
            machine, [said("recommendation", "discard", "c"), said("recommendation", None, "c")]
        )
        == machine
    )


def test_the_latest_override_of_each_field_applies() -> None:
    found = effective_overrides(
        [
            said("relevance_score", 0.2),
            said("relevance_score", 0.8),
            said("study_type", "remaining"),
        ]
    )
    assert {name: override.value for name, override in found["a"].items()} == {
        "relevance_score": 0.8,
        "study_type": "remaining",
    }


@pytest.mark.spec("AESOP-OVERRIDE", "AESOP-PRIORS")
@pytest.mark.parametrize(
    ("machine", "field", "value", "expected"),
    [
        (
            AWAY,
            "relevance_score",
            0.9,
            {"recommendation": "keep", "rule": "strong", "quality": 0.9},
        ),
        (
            Said(0.9, 0.3, "cohort_study", None),
            "study_type",
            "human_rct_drug_intervention",
            {
                "design": "randomised_trial",
                "prior": 0.65,
                "methodology_score": 0.65,
                "methodology_raw": 0.3,
            },
        ),
        (STRONG, "methodology_score", 0.1, {"methodology_score": 0.1, "recommendation": "discard"}),
        (
            STRONG,
            "sample_size_adequate",
            False,
            {"recommendation": "needs_more", "rule": "underpowered"},
        ),
        (Said(None, None), "recommendation", "keep", {"recommendation": "keep", "unscored": None}),
    ],
    ids=[
        "a score is weighed",
        "a type has its floor",
        "a method goes under it",
        "too few keep it out",
        "unscored",
    ],
)
def test_an_overridden_value_is_judged_by_the_same_rules(
    machine: Said, field: OverrideField, value: float | bool | str, expected: dict[str, object]
) -> None:
    found = apply_overrides(grade_of("a", machine), effective_overrides([said(field, value)])["a"])
    assert {name: getattr(found, name) for name in expected} == expected


def test_an_overridden_study_type_gets_its_design_from_the_abstract() -> None:
    text = Abstract(
        id="a",
        title="A systematic review and meta-analysis",
        text="We searched MEDLINE. Results were pooled.",
    )
    set_ = effective_overrides([said("study_type", "human_systematic_review")])["a"]
    assert apply_overrides(grade_of("a", STRONG), set_, abstract=text).design == "meta_analysis"


def test_a_disagreement_lasts_until_the_disputed_value_is_overridden() -> None:
    reasons = {"recommendation": GradeReason(text="The graders don't agree.")}
    torn = grade_of("a", STRONG).model_copy(
        update={"recommendation": "needs_more", "rule": "disagreement", "reasons": reasons}
    )
    sized = apply_overrides(torn, effective_overrides([said("sample_size_adequate", True)])["a"])
    assert (sized.recommendation, sized.rule) == ("needs_more", "disagreement")
    scored = apply_overrides(torn, effective_overrides([said("relevance_score", 0.8)])["a"])
    assert (scored.recommendation, scored.rule) == ("keep", "strong")


def test_an_override_doesnt_change_the_outcome_of_a_cancelled_screening() -> None:
    machine = screened({}, FIVE).model_copy(update={"outcome": "cancelled"})
    assert apply_review(machine, [said("recommendation", "discard")]).outcome == "cancelled"


def test_the_flow_reflects_overrides() -> None:
    found = apply_review(screened({}, FIVE), [said("recommendation", "discard")])
    assert [(each.rule, each.count) for each in found.flow.excluded] == [("person", 1)]
    assert (found.flow.kept, found.flow.screened) == (4, 5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relevance_score", 1),
        ("methodology_score", 0.5),
        ("sample_size_adequate", True),
        ("sample_size_adequate", False),
        ("study_type", "remaining"),
        ("design", "cohort_study"),
        ("recommendation", "keep"),
        ("direction", "opposite"),
        ("blinding", "planned"),
    ],
)
def test_every_field_accepts_its_valid_values(
    field: OverrideField, value: float | bool | str
) -> None:
    override = Override(
        abstract_id="a", field=field, value=value, reason="It says so.", reviewer="Ada", at=""
    )
    assert validate_override(override) is override


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relevance_score", 1.2),
        ("relevance_score", True),
        ("methodology_score", "high"),
        ("sample_size_adequate", "yes"),
        ("study_type", "crossover"),
        ("design", "expert opinion"),
        ("recommendation", "maybe"),
        ("blinding", "yes"),
        ("blinding", True),
        ("blinding", 0.5),
        ("size", "effect"),
        ("direction", "stated"),
        ("direction", "up"),
        ("direction", 1.0),
    ],
)
def test_an_invalid_value_is_rejected(field: OverrideField, value: float | bool | str) -> None:
    with pytest.raises(InputError, match=field.replace("_", " ")):
        validate_override(said(field, value))


def test_an_override_without_a_reason_is_rejected() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        said("relevance_score", 0.5, why=" ")


# Corrections of appraisal items and of a finding's direction.

QUESTION = "Does aspirin relieve headache?"
COHORT = Abstract(
    id="c",
    title="Aspirin and headache: a cohort study",
    text=(
        "We followed a cohort of 400 adults with headache who took aspirin. The odds ratio for"
        " relief was 1.4 (95% CI 1.1 to 1.8). Assessors were not blinded. CONCLUSIONS: Aspirin"
        " relieved headache."
    ),
)


def graded(abstract: Abstract = COHORT) -> Grade:
    return offline_grader().grade(QUESTION, [abstract])[0]


def with_items(grade: Grade, abstract: Abstract = COHORT, **states: ItemState) -> Grade:
    set_: dict[OverrideField, Override] = {
        item: said(item, states[item], abstract.id) for item in APPRAISAL_ITEMS if item in states
    }
    return apply_overrides(grade, set_, question=QUESTION, abstract=abstract)


@pytest.mark.parametrize(("state", "words", "text"), table("item_states"))
def test_each_item_has_a_state_and_the_words_for_it(state: str, words: str, text: str) -> None:
    abstract = Abstract(id="a", title="Aspirin", text=f"Headache is common. {text} It hurts.")
    found = next(
        each for each in appraise(abstract, "randomised_trial") if each.item == "randomisation"
    )
    assert found.state == state
    assert [each.text for each in found.words] == ([words] if words != "-" else [])
    if found.words:
        sentence, start = sentence_of(found.words[0], abstract)
        assert sentence[start : start + len(words)] == words
        assert "Headache is common" not in sentence


def test_only_stated_items_earn_points() -> None:
    items = appraise(COHORT, "cohort_study")
    found = methodology(COHORT, "cohort_study")
    assert found == score_items("cohort_study", items)
    assert "blinded" not in found.reason.text.partition("Not reported:")[0]
    assert next(each for each in items if each.item == "blinding").state == "denied"


@pytest.mark.parametrize("item", list(CHECKLIST["cohort_study"]))
def test_each_correction_adds_or_removes_the_points_of_its_item(item: AppraisalItem) -> None:
    items = appraise(COHORT, "cohort_study")
    stated = score_items("cohort_study", apply_corrections(items, {item: "stated"})).score
    for state in ("denied", "planned", "not_stated"):
        without = score_items("cohort_study", apply_corrections(items, {item: state})).score  # type: ignore[dict-item]
        assert stated > without


@pytest.mark.spec("AESOP-OVERRIDE")
def test_a_correction_regrades_the_abstract_by_the_same_rules() -> None:
    machine = graded()
    now = with_items(
        machine, model="stated", control="stated", outcome="stated", prospective="stated"
    )
    expected = score_items(
        "cohort_study",
        apply_corrections(
            appraise(COHORT, "cohort_study"),
            {"model": "stated", "control": "stated", "outcome": "stated", "prospective": "stated"},
        ),
    )
    assert now.methodology_raw == expected.score
    assert now.methodology_score == with_prior_floor(expected.score, "cohort_study")
    assert now.methodology_score > machine.methodology_score
    assert now.quality == pytest.approx((now.relevance_score + now.methodology_score) / 2)
    assert set(now.overridden) == {"model", "control", "outcome", "prospective"}
    assert "Set by a person" in now.reasons["methodology_score"].text
    assert now.reasons["model"].text == "Ada: I read it."


@pytest.mark.spec("AESOP-PRIORS")
def test_a_correction_never_lowers_the_methodology_below_the_floor() -> None:
    nothing: dict[str, ItemState] = dict.fromkeys(CHECKLIST["cohort_study"], "not_stated")
    now = with_items(graded(), **nothing)
    assert now.methodology_raw == 0.0
    assert now.methodology_score == 0.45
    assert "Raised from 0.00 to 0.45" in now.reasons["methodology_score"].text


def test_a_model_score_moves_by_the_points_of_the_item() -> None:
    machine = grade_of("c", Said(0.9, 0.60, "cohort_study", True), "some:model")
    up = with_items(machine, model="stated")
    down = with_items(up.model_copy(update={"overridden": ()}), effect="not_stated")
    assert 0.60 < up.methodology_raw < 0.80
    assert down.methodology_raw < up.methodology_raw
    assert "changes it by +" in up.reasons["methodology_score"].text


def test_an_overridden_methodology_score_outranks_corrected_items() -> None:
    set_: dict[OverrideField, Override] = {
        "model": said("model", "stated", "c"),
        "methodology_score": Override(
            abstract_id="c",
            field="methodology_score",
            value=0.2,
            reason="Flawed.",
            reviewer="Ada",
            at="now",
        ),
    }
    assert apply_overrides(graded(), set_, abstract=COHORT).methodology_score == 0.2


@pytest.mark.spec("AESOP-OVERRIDE")
def test_undoing_every_correction_restores_the_original_result() -> None:
    machine, held = five_kept()
    set_ = [said("blinding", "stated", "a"), said("direction", "opposite", "a")]
    assert apply_review(machine, set_, held) != machine
    undone = [*set_, said("blinding", None), said("direction", None)]
    assert apply_review(machine, undone, held) == machine


def test_every_item_has_a_label_and_no_item_is_a_field() -> None:
    assert set(LABELS) == set(APPRAISAL_ITEMS)
    assert not set(get_args(GradeField)) & {*APPRAISAL_ITEMS, "direction"}
    assert {item for checklist in CHECKLIST.values() for item in checklist} == set(APPRAISAL_ITEMS)


def five_kept() -> tuple[Screening, dict[str, Abstract]]:
    """Return a screening that keeps five abstracts, and the abstracts, which say that aspirin
    relieved headache.
    """
    said = "CONCLUSIONS: Aspirin relieved headache."
    held = {each.id: each.model_copy(update={"text": f"{each.text} {said}"}) for each in FIVE}
    return screened({}, tuple(held.values()), question=QUESTION), held


@pytest.mark.parametrize("direction", [each for each in DIRECTIONS if each != "effect"])
def test_the_synthesis_counts_a_corrected_direction(direction: str) -> None:
    machine, held = five_kept()
    now = apply_review(machine, [said("direction", direction, "a")], held)
    found = synthesise(QUESTION, now.grades, held)
    assert found.counts[direction] == 1  # type: ignore[index]
    assert found.counts["effect"] == 4
    grade = now.grade("a")
    assert finding_of(QUESTION, grade, held["a"]).direction == direction
    assert grade.quality == machine.grades[0].quality


def test_corrected_directions_make_a_screening_conflicting_and_undo_reverts_it() -> None:
    machine, held = five_kept()
    assert machine.outcome == "sufficient"
    two = [said("direction", "opposite", each) for each in "ab"]
    now = apply_review(machine, two, held)
    assert now.outcome == "conflicting"
    assert "so they conflict" in now.reasons[-1]
    assert now.kept == machine.kept
    assert apply_review(machine, [*two, said("direction", None)], held).outcome == "sufficient"


def test_a_corrected_direction_doesnt_regrade() -> None:
    """A grade by an earlier version's rules stays unchanged if only the direction of its finding is
    corrected.
    """
    odd = graded().model_copy(update={"recommendation": "keep", "rule": "borderline_method"})
    now = apply_overrides(odd, {"direction": said("direction", "opposite", "c")}, abstract=COHORT)
    assert (now.recommendation, now.rule, now.direction) == (
        "keep",
        "borderline_method",
        "opposite",
    )


def test_a_case_with_corrected_directions_has_a_new_id() -> None:
    machine, held = five_kept()
    now = apply_review(machine, [said("direction", "opposite", each) for each in "ab"], held)
    first, second = case_from_screening(machine, held), case_from_screening(now, held)
    assert first.id != second.id
    directions = [(each.model_extra or {})["direction"] for each in second.evidence]
    assert sorted(directions) == ["effect"] * 3 + ["opposite"] * 2
    assert all((each.model_extra or {}).get("findings_conflict") for each in second.evidence)
