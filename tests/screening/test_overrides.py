"""A person's word on a grade, and what follows from it for the round and the screening."""

from __future__ import annotations

import pytest

from masis.errors import InputError
from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, GradeField, Override, Reason, Screening
from masis.screening.rounds.overrides import apply_overrides, apply_review, effective_overrides, validate_override
from masis.screening.rounds.round_loop import screen
from masis.settings import Settings
from tests.screening.scripted import AWAY, STRONG, WEAK, Said, ScriptedGrader, ScriptedSource, abstracts, grade_of


def said(
    field: GradeField, value: float | bool | str | None, abstract_id: str = "a", why: str = "I read it."
) -> Override:
    return Override(abstract_id=abstract_id, field=field, value=value, reason=why, reviewer="Ada", at="now")


def screened(says: dict[str, Said], *rounds: tuple[Abstract, ...]) -> Screening:
    source = ScriptedSource(*rounds)
    return run_to_completion(
        screen("aspirin", [source], ScriptedGrader(says), Settings(screening_max_rounds=1), screening_id="s")
    )


FIVE = abstracts("a", "b", "c", "d", "e")


@pytest.mark.spec("AESOP-OVERRIDE")
def test_one_override_flips_the_decision_of_the_round_and_names_who_and_why() -> None:
    machine = screened({"a": WEAK, "b": WEAK}, FIVE)
    assert machine.outcome == "sufficient"
    person = apply_review(machine, [said("recommendation", "discard", "c", "Retracted.")])
    assert person.rounds[0].ruling.tally.keep == 2
    assert (person.outcome, person.kept) == ("evidence_insufficient", ("d", "e"))
    assert person.reasons == ("With 1 value set by a person.", f"Round 0: {person.rounds[0].ruling.why}")
    grade = person.grade("c")
    assert grade is not None
    assert grade.rule == "person"
    assert grade.overridden == ("recommendation",)
    assert grade.reasons["recommendation"].text == "Ada: Retracted."


@pytest.mark.spec("AESOP-OVERRIDE")
def test_what_the_machine_said_stays() -> None:
    machine = screened({}, FIVE)
    before = machine.model_dump()
    apply_review(machine, [said("recommendation", "discard")])
    assert machine.model_dump() == before


@pytest.mark.spec("AESOP-OVERRIDE")
def test_taking_the_override_back_restores_the_machines_word() -> None:
    machine = screened({"a": WEAK, "b": WEAK}, FIVE)
    assert apply_review(machine, [said("recommendation", "discard", "c"), said("recommendation", None, "c")]) == machine


def test_the_last_word_stands_and_other_fields_keep_theirs() -> None:
    found = effective_overrides(
        [said("relevance_score", 0.2), said("relevance_score", 0.8), said("study_type", "remaining")]
    )
    assert {name: override.value for name, override in found["a"].items()} == {
        "relevance_score": 0.8,
        "study_type": "remaining",
    }


@pytest.mark.spec("AESOP-OVERRIDE")
def test_a_score_set_by_a_person_is_weighed_by_the_same_rules() -> None:
    grade = grade_of("a", AWAY)
    found = apply_overrides(grade, effective_overrides([said("relevance_score", 0.9)])["a"])
    assert (found.recommendation, found.rule) == ("keep", "strong")
    assert found.quality == pytest.approx((0.9 + 0.9) / 2)


@pytest.mark.spec("AESOP-PRIORS")
def test_another_study_type_brings_its_own_floor() -> None:
    grade = grade_of("a", Said(0.9, 0.3, "cohort_study", None))
    assert grade.methodology_score == 0.45
    found = apply_overrides(grade, effective_overrides([said("study_type", "human_rct_drug_intervention")])["a"])
    assert (found.design, found.prior, found.methodology_score) == ("randomised_trial", 0.65, 0.65)
    assert found.methodology_raw == 0.3


def test_the_words_of_the_abstract_place_a_type_set_by_a_person() -> None:
    grade = grade_of("a", STRONG)
    text = Abstract(
        id="a", title="A systematic review and meta-analysis", text="We searched MEDLINE. Results were pooled."
    )
    found = apply_overrides(
        grade, effective_overrides([said("study_type", "human_systematic_review")])["a"], abstract=text
    )
    assert found.design == "meta_analysis"


def test_a_methodology_set_by_a_person_may_lie_under_the_prior() -> None:
    found = apply_overrides(grade_of("a", STRONG), effective_overrides([said("methodology_score", 0.1)])["a"])
    assert (found.methodology_score, found.recommendation) == (0.1, "discard")


def test_a_size_called_too_small_keeps_a_trial_out() -> None:
    found = apply_overrides(grade_of("a", STRONG), effective_overrides([said("sample_size_adequate", False)])["a"])
    assert (found.recommendation, found.rule) == ("needs_more", "underpowered")


def test_a_person_may_keep_what_could_not_be_graded() -> None:
    grade = grade_of("a", Said(None, None))
    found = apply_overrides(grade, effective_overrides([said("recommendation", "keep")])["a"])
    assert (found.recommendation, found.unscored) == ("keep", None)


def test_graders_who_disagree_stay_so_until_a_person_settles_what_they_disagree_on() -> None:
    reasons = {"recommendation": Reason(text="The graders don't agree.")}
    torn = grade_of("a", STRONG).model_copy(
        update={"recommendation": "needs_more", "rule": "disagreement", "reasons": reasons}
    )
    sized = apply_overrides(torn, effective_overrides([said("sample_size_adequate", True)])["a"])
    assert (sized.recommendation, sized.rule) == ("needs_more", "disagreement")
    scored = apply_overrides(torn, effective_overrides([said("relevance_score", 0.8)])["a"])
    assert (scored.recommendation, scored.rule) == ("keep", "strong")


def test_how_a_screening_was_stopped_is_not_changed_by_an_override() -> None:
    machine = screened({}, FIVE).model_copy(update={"outcome": "cancelled"})
    assert apply_review(machine, [said("recommendation", "discard")]).outcome == "cancelled"


def test_the_flow_follows() -> None:
    found = apply_review(screened({}, FIVE), [said("recommendation", "discard")])
    assert [(each.rule, each.count) for each in found.flow.excluded] == [("person", 1)]
    assert (found.flow.kept, found.flow.screened) == (4, 5)


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
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(field: GradeField, value: float | bool | str) -> None:
    with pytest.raises(InputError, match=field.replace("_", " ")):
        validate_override(said(field, value))


def test_an_override_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        said("relevance_score", 0.5, why=" ")
