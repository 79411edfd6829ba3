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
from masis.screening.grading.directions import finding_of
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
from masis.screening.synthesis.findings import synthesise
from masis.settings import Settings
from tests.screening.scripted import (
    OFF_TOPIC,
    STRONG,
    WEAK,
    ScriptedGrader,
    ScriptedOpinion,
    ScriptedSource,
    abstracts,
    grade_of,
    table,
)


def override(
    field: OverrideField,
    value: float | bool | str | None,
    abstract_id: str = "a",
    reason: str = "I read it.",
) -> Override:
    return Override(
        abstract_id=abstract_id, field=field, value=value, reason=reason, reviewer="Ada", at="now"
    )


def run_screening(
    opinions: dict[str, ScriptedOpinion], *rounds: tuple[Abstract, ...], question: str = "aspirin"
) -> Screening:
    source = ScriptedSource(*rounds)
    return run_to_completion(
        screen(
            question,
            [source],
            ScriptedGrader(opinions),
            Settings(screening_max_rounds=1),
            screening_id="s",
        )
    )


FIVE = abstracts("a", "b", "c", "d", "e")


@pytest.mark.spec("AESOP-OVERRIDE")
def test_one_override_flips_the_decision_and_names_the_reviewer_and_reason() -> None:
    original = run_screening({"a": WEAK, "b": WEAK}, FIVE)
    assert original.outcome == "sufficient"
    reviewed = apply_review(original, [override("recommendation", "discard", "c", "Retracted.")])
    assert reviewed.rounds[0].ruling.tally.keep == 2
    assert (reviewed.outcome, reviewed.kept) == ("evidence_insufficient", ("d", "e"))
    assert reviewed.reasons == (
        "A person set 1 value.",
        f"Round 0: {reviewed.rounds[0].ruling.why}",
    )
    grade = reviewed.grade("c")
    assert grade.rule == "person"
    assert grade.overridden == ("recommendation",)
    assert grade.reasons["recommendation"].text == "Ada: Retracted."


@pytest.mark.spec("AESOP-OVERRIDE")
def test_the_original_grades_are_unchanged() -> None:
    original = run_screening({}, FIVE)
    before = original.model_dump()
    apply_review(original, [override("recommendation", "discard")])
    assert original.model_dump() == before


@pytest.mark.spec("AESOP-OVERRIDE")
def test_undoing_the_override_restores_the_original_result() -> None:
    original = run_screening({"a": WEAK, "b": WEAK}, FIVE)
    assert (
        apply_review(
            original,
            [override("recommendation", "discard", "c"), override("recommendation", None, "c")],
        )
        == original
    )


def test_the_latest_override_of_each_field_applies() -> None:
    effective = effective_overrides(
        [
            override("relevance_score", 0.2),
            override("relevance_score", 0.8),
            override("study_type", "remaining"),
        ]
    )
    assert {name: override.value for name, override in effective["a"].items()} == {
        "relevance_score": 0.8,
        "study_type": "remaining",
    }


@pytest.mark.spec("AESOP-OVERRIDE", "AESOP-PRIORS")
@pytest.mark.parametrize(
    ("original", "field", "value", "expected"),
    [
        (
            OFF_TOPIC,
            "relevance_score",
            0.9,
            {"recommendation": "keep", "rule": "strong", "quality": 0.9},
        ),
        (
            ScriptedOpinion(0.9, 0.3, "cohort_study", None),
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
        (
            ScriptedOpinion(None, None),
            "recommendation",
            "keep",
            {"recommendation": "keep", "unscored": None},
        ),
    ],
    ids=[
        "a score counts",
        "a study type raises the score to its floor",
        "a methodology score may be below the floor",
        "too few participants",
        "unscored",
    ],
)
def test_an_overridden_value_is_judged_by_the_same_rules(
    original: ScriptedOpinion,
    field: OverrideField,
    value: float | bool | str,
    expected: dict[str, object],
) -> None:
    result = apply_overrides(
        grade_of("a", original), effective_overrides([override(field, value)])["a"]
    )
    assert {name: getattr(result, name) for name in expected} == expected


def test_an_overridden_study_type_gets_its_design_from_the_abstract() -> None:
    text = Abstract(
        id="a",
        title="A systematic review and meta-analysis",
        text="We searched MEDLINE. Results were pooled.",
    )
    overrides = effective_overrides([override("study_type", "human_systematic_review")])["a"]
    assert (
        apply_overrides(grade_of("a", STRONG), overrides, abstract=text).design == "meta_analysis"
    )


def test_a_disagreement_lasts_until_the_disputed_value_is_overridden() -> None:
    reasons = {"recommendation": GradeReason(text="The graders don't agree.")}
    disputed = grade_of("a", STRONG).model_copy(
        update={"recommendation": "needs_more", "rule": "disagreement", "reasons": reasons}
    )
    size_overridden = apply_overrides(
        disputed, effective_overrides([override("sample_size_adequate", True)])["a"]
    )
    assert (size_overridden.recommendation, size_overridden.rule) == ("needs_more", "disagreement")
    score_overridden = apply_overrides(
        disputed, effective_overrides([override("relevance_score", 0.8)])["a"]
    )
    assert (score_overridden.recommendation, score_overridden.rule) == ("keep", "strong")


def test_an_override_doesnt_change_the_outcome_of_a_cancelled_screening() -> None:
    original = run_screening({}, FIVE).model_copy(update={"outcome": "cancelled"})
    assert apply_review(original, [override("recommendation", "discard")]).outcome == "cancelled"


def test_the_flow_reflects_overrides() -> None:
    reviewed = apply_review(run_screening({}, FIVE), [override("recommendation", "discard")])
    assert [(excluded.rule, excluded.count) for excluded in reviewed.flow.excluded] == [
        ("person", 1)
    ]
    assert (reviewed.flow.kept, reviewed.flow.screened) == (4, 5)


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
        validate_override(override(field, value))


def test_an_override_without_a_reason_is_rejected() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        override("relevance_score", 0.5, reason=" ")


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


def grade_abstract(abstract: Abstract = COHORT) -> Grade:
    return offline_grader().grade(QUESTION, [abstract])[0]


def with_items(grade: Grade, abstract: Abstract = COHORT, **states: ItemState) -> Grade:
    overrides: dict[OverrideField, Override] = {
        item: override(item, states[item], abstract.id)
        for item in APPRAISAL_ITEMS
        if item in states
    }
    return apply_overrides(grade, overrides, question=QUESTION, abstract=abstract)


@pytest.mark.parametrize(("state", "words", "text"), table("item_states"))
def test_each_item_has_a_state_and_the_words_for_it(state: str, words: str, text: str) -> None:
    abstract = Abstract(id="a", title="Aspirin", text=f"Headache is common. {text} It hurts.")
    appraised = next(
        item for item in appraise(abstract, "randomised_trial") if item.item == "randomisation"
    )
    assert appraised.state == state
    assert [passage.text for passage in appraised.words] == ([words] if words != "-" else [])
    if appraised.words:
        sentence, start = sentence_of(appraised.words[0], abstract)
        assert sentence[start : start + len(words)] == words
        assert "Headache is common" not in sentence


def test_only_stated_items_earn_points() -> None:
    items = appraise(COHORT, "cohort_study")
    result = methodology(COHORT, "cohort_study")
    assert result == score_items("cohort_study", items)
    assert "blinded" not in result.reason.text.partition("Not reported:")[0]
    assert next(item for item in items if item.item == "blinding").state == "denied"


@pytest.mark.parametrize("item", list(CHECKLIST["cohort_study"]))
def test_each_correction_adds_or_removes_the_points_of_its_item(item: AppraisalItem) -> None:
    items = appraise(COHORT, "cohort_study")
    stated = score_items("cohort_study", apply_corrections(items, {item: "stated"})).score
    for state in ("denied", "planned", "not_stated"):
        unstated = score_items("cohort_study", apply_corrections(items, {item: state})).score  # type: ignore[dict-item]
        assert stated > unstated


@pytest.mark.spec("AESOP-OVERRIDE")
def test_a_correction_regrades_the_abstract_by_the_same_rules() -> None:
    original = grade_abstract()
    corrected = with_items(
        original, model="stated", control="stated", outcome="stated", prospective="stated"
    )
    expected = score_items(
        "cohort_study",
        apply_corrections(
            appraise(COHORT, "cohort_study"),
            {"model": "stated", "control": "stated", "outcome": "stated", "prospective": "stated"},
        ),
    )
    assert corrected.methodology_raw == expected.score
    assert corrected.methodology_score == with_prior_floor(expected.score, "cohort_study")
    assert corrected.methodology_score > original.methodology_score
    assert corrected.quality == pytest.approx(
        (corrected.relevance_score + corrected.methodology_score) / 2
    )
    assert set(corrected.overridden) == {"model", "control", "outcome", "prospective"}
    assert "Set by a person" in corrected.reasons["methodology_score"].text
    assert corrected.reasons["model"].text == "Ada: I read it."


@pytest.mark.spec("AESOP-PRIORS")
def test_a_correction_never_lowers_the_methodology_below_the_floor() -> None:
    not_stated: dict[str, ItemState] = dict.fromkeys(CHECKLIST["cohort_study"], "not_stated")
    corrected = with_items(grade_abstract(), **not_stated)
    assert corrected.methodology_raw == 0.0
    assert corrected.methodology_score == 0.45
    assert "Raised from 0.00 to 0.45" in corrected.reasons["methodology_score"].text


def test_a_model_score_moves_by_the_points_of_the_item() -> None:
    original = grade_of("c", ScriptedOpinion(0.9, 0.60, "cohort_study", True), "some:model")
    raised = with_items(original, model="stated")
    lowered = with_items(raised.model_copy(update={"overridden": ()}), effect="not_stated")
    assert 0.60 < raised.methodology_raw < 0.80
    assert lowered.methodology_raw < raised.methodology_raw
    assert "changes it by +" in raised.reasons["methodology_score"].text


def test_an_overridden_methodology_score_outranks_corrected_items() -> None:
    overrides: dict[OverrideField, Override] = {
        "model": override("model", "stated", "c"),
        "methodology_score": Override(
            abstract_id="c",
            field="methodology_score",
            value=0.2,
            reason="Flawed.",
            reviewer="Ada",
            at="now",
        ),
    }
    assert apply_overrides(grade_abstract(), overrides, abstract=COHORT).methodology_score == 0.2


@pytest.mark.spec("AESOP-OVERRIDE")
def test_undoing_every_correction_restores_the_original_result() -> None:
    original, kept_abstracts = five_kept()
    overrides = [override("blinding", "stated", "a"), override("direction", "opposite", "a")]
    assert apply_review(original, overrides, kept_abstracts) != original
    undone = [*overrides, override("blinding", None), override("direction", None)]
    assert apply_review(original, undone, kept_abstracts) == original


def test_every_item_has_a_label_and_no_item_is_a_field() -> None:
    assert set(LABELS) == set(APPRAISAL_ITEMS)
    assert not set(get_args(GradeField)) & {*APPRAISAL_ITEMS, "direction"}
    assert {item for checklist in CHECKLIST.values() for item in checklist} == set(APPRAISAL_ITEMS)


def five_kept() -> tuple[Screening, dict[str, Abstract]]:
    """Return a screening that keeps five abstracts, and the abstracts, which say that aspirin
    relieved headache.
    """
    conclusion = "CONCLUSIONS: Aspirin relieved headache."
    kept_abstracts = {
        abstract.id: abstract.model_copy(update={"text": f"{abstract.text} {conclusion}"})
        for abstract in FIVE
    }
    return run_screening({}, tuple(kept_abstracts.values()), question=QUESTION), kept_abstracts


@pytest.mark.parametrize("direction", [d for d in DIRECTIONS if d != "effect"])
def test_the_synthesis_counts_a_corrected_direction(direction: str) -> None:
    original, kept_abstracts = five_kept()
    reviewed = apply_review(original, [override("direction", direction, "a")], kept_abstracts)
    synthesis = synthesise(QUESTION, reviewed.grades, kept_abstracts)
    assert synthesis.counts[direction] == 1  # type: ignore[index]
    assert synthesis.counts["effect"] == 4
    grade = reviewed.grade("a")
    assert finding_of(QUESTION, grade, kept_abstracts["a"]).direction == direction
    assert grade.quality == original.grades[0].quality


def test_corrected_directions_make_a_screening_conflicting_and_undo_reverts_it() -> None:
    original, kept_abstracts = five_kept()
    assert original.outcome == "sufficient"
    overrides = [override("direction", "opposite", abstract_id) for abstract_id in "ab"]
    reviewed = apply_review(original, overrides, kept_abstracts)
    assert reviewed.outcome == "conflicting"
    assert "so they conflict" in reviewed.reasons[-1]
    assert reviewed.kept == original.kept
    assert (
        apply_review(original, [*overrides, override("direction", None)], kept_abstracts).outcome
        == "sufficient"
    )


def test_a_corrected_direction_doesnt_regrade() -> None:
    """A grade made by the rules of an earlier version stays unchanged if only the direction is
    corrected.
    """
    outdated = grade_abstract().model_copy(
        update={"recommendation": "keep", "rule": "borderline_method"}
    )
    corrected = apply_overrides(
        outdated, {"direction": override("direction", "opposite", "c")}, abstract=COHORT
    )
    assert (corrected.recommendation, corrected.rule, corrected.direction) == (
        "keep",
        "borderline_method",
        "opposite",
    )


def test_a_case_with_corrected_directions_has_a_new_id() -> None:
    original, kept_abstracts = five_kept()
    overrides = [override("direction", "opposite", abstract_id) for abstract_id in "ab"]
    reviewed = apply_review(original, overrides, kept_abstracts)
    first, second = (
        case_from_screening(original, kept_abstracts),
        case_from_screening(reviewed, kept_abstracts),
    )
    assert first.id != second.id
    directions = [(chunk.model_extra or {})["direction"] for chunk in second.evidence]
    assert sorted(directions) == ["effect"] * 3 + ["opposite"] * 2
    assert all((chunk.model_extra or {}).get("findings_conflict") for chunk in second.evidence)
