"""What to do with one abstract, by the written rules; the priors as floors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from masis.schema.screening import DESIGNS, STUDY_TYPES, Design, Rule
from masis.screening.grading import rubric
from masis.screening.grading.recommendation import quality_of, recommend, with_prior_floor
from masis.views.screening import DESIGN, RULE_REASON, STUDY_TYPE


@pytest.mark.spec("AESOP-PRIORS")
def test_the_priors_of_the_specification_are_taken_as_they_stand() -> None:
    assert rubric.HIERARCHY["randomised_trial"].prior == 0.65
    assert rubric.HIERARCHY["cohort_study"].prior == 0.45
    assert rubric.HIERARCHY["case_series"].prior == 0.20


@pytest.mark.spec("AESOP-PRIORS")
@pytest.mark.parametrize("design", DESIGNS)
def test_a_prior_is_a_floor_and_never_a_cap(design: Design) -> None:
    prior = rubric.HIERARCHY[design].prior
    assert with_prior_floor(0.0, design) == prior
    assert with_prior_floor(1.0, design) == 1.0
    assert with_prior_floor(prior + 0.01, design) == prior + 0.01
    assert with_prior_floor(None, design) is None


@pytest.mark.spec("AESOP-PRIORS")
def test_the_hierarchy_falls_from_pooled_trials_to_a_single_case_and_names_its_sources() -> None:
    order: tuple[Design, ...] = (
        "meta_analysis",
        "systematic_review",
        "randomised_trial",
        "cohort_study",
        "non_randomised_study",
        "case_control_study",
        "cross_sectional_study",
        "case_series",
        "narrative_review",
        "case_report",
        "in_vitro_study",
    )
    priors = [rubric.HIERARCHY[design].prior for design in order]
    assert priors == sorted(priors, reverse=True)
    assert len(set(priors)) == len(priors)
    assert all(place.source for place in rubric.HIERARCHY.values())
    assert all(adequacy.source for adequacy in rubric.ADEQUATE_SIZE.values())


def test_every_study_type_has_a_place_and_every_design_a_size_and_every_rule_words() -> None:
    assert set(rubric.DESIGN_OF) == set(STUDY_TYPES) == set(STUDY_TYPE)
    assert set(rubric.HIERARCHY) == set(DESIGNS) == set(rubric.ADEQUATE_SIZE)
    assert set(rubric.HIERARCHY) == set(DESIGN)
    assert set(RULE_REASON) == set(get_args(Rule))


@pytest.mark.spec("AESOP-RUBRIC")
def test_the_rubric_holds_policy_only() -> None:
    source = Path(rubric.__file__).read_text(encoding="utf-8")
    imported = re.findall(r"^(?:from|import) (\S+)", source, re.M)
    assert set(imported) <= {"__future__", "typing", "masis.schema.screening"}


CASES: tuple[tuple[str, float | None, float | None, Design | None, bool | None, str, str], ...] = (
    ("a well reported trial", 0.9, 0.8, "randomised_trial", True, "keep", "strong"),
    ("a trial of unknown size", 0.9, 0.65, "randomised_trial", None, "keep", "strong"),
    ("a trial that is too small", 0.9, 0.8, "randomised_trial", False, "needs_more", "underpowered"),
    ("a strong trial of something else", 0.29, 0.9, "randomised_trial", True, "discard", "off_topic"),
    ("a trial partly about it", 0.30, 0.9, "randomised_trial", True, "needs_more", "borderline_relevance"),
    ("just relevant enough", 0.50, 0.65, "randomised_trial", True, "keep", "strong"),
    ("a good cohort", 0.8, 0.55, "cohort_study", True, "keep", "strong"),
    ("a cohort at its prior", 0.9, 0.45, "cohort_study", True, "keep", "strong"),
    ("a cohort somewhat about it", 0.6, 0.45, "cohort_study", True, "keep", "strong"),
    ("a cross-sectional study at its prior", 0.9, 0.30, "cross_sectional_study", True, "keep", "strong"),
    ("one that is only half about it", 0.55, 0.30, "cross_sectional_study", True, "needs_more", "borderline_quality"),
    ("a design's prior taken away", 0.9, 0.29, "cross_sectional_study", True, "needs_more", "borderline_method"),
    ("a case series well told", 1.0, 0.40, "case_series", None, "needs_more", "weak_design"),
    ("a case series badly told", 1.0, 0.20, "case_series", None, "needs_more", "weak_design"),
    ("less than a case series", 1.0, 0.19, "case_series", None, "discard", "weak_method"),
    ("a case report", 1.0, 0.10, "case_report", None, "discard", "weak_method"),
    ("an overview", 1.0, 0.15, "narrative_review", None, "discard", "weak_method"),
    ("a protocol", 1.0, 0.40, "protocol", None, "discard", "not_a_study"),
    ("animals", 1.0, 0.50, "animal_study", True, "needs_more", "weak_design"),
    ("no relevance", None, 0.9, "randomised_trial", True, "needs_more", "unscored"),
    ("no methodology", 0.9, None, "randomised_trial", True, "needs_more", "unscored"),
    ("no design", 0.9, 0.7, None, None, "needs_more", "unknown_design"),
    ("a design nobody knows", 1.0, 0.1, "other", True, "needs_more", "unknown_design"),
    ("a retraction of a trial", 1.0, 0.9, "notice", True, "discard", "not_a_study"),
)


@pytest.mark.spec("AESOP-RECOMMENDATION", "AESOP-WEAK-REJECTED", "AESOP-SERIES", "AESOP-RCT-FAIR")
@pytest.mark.parametrize(("what", "relevance", "method", "design", "enough", "advice", "rule"), CASES)
def test_each_rule_decides_where_it_should(
    what: str,
    relevance: float | None,
    method: float | None,
    design: Design | None,
    enough: bool | None,
    advice: str,
    rule: str,
) -> None:
    found = recommend(relevance, method, design, enough)
    assert (found.recommendation, found.rule) == (advice, rule), what
    assert found.why


def test_every_rule_that_follows_from_scores_is_shown_above() -> None:
    assert {rule for *_, rule in CASES} == set(get_args(Rule)) - {"person", "disagreement", "unmatched", "of_concern"}


@pytest.mark.spec("AESOP-RECOMMENDATION")
def test_animals_are_no_indirect_evidence_for_a_question_about_animals() -> None:
    assert recommend(0.9, 0.5, "animal_study", True).rule == "weak_design"
    assert recommend(0.9, 0.5, "animal_study", True, frozenset({"animal_study"})).recommendation == "keep"


@pytest.mark.spec("AESOP-RECOMMENDATION")
def test_more_is_never_worse() -> None:
    order = {"discard": 0, "needs_more": 1, "keep": 2}
    grid = [i / 20 for i in range(21)]
    for design in DESIGNS:
        for method in grid:
            ranks = [order[recommend(relevance, method, design, True).recommendation] for relevance in grid]
            assert ranks == sorted(ranks), (design, method)
        for relevance in grid:
            ranks = [order[recommend(relevance, method, design, True).recommendation] for method in grid]
            assert ranks == sorted(ranks), (design, relevance)


def test_quality_is_the_mean_of_both_scores() -> None:
    assert quality_of(0.8, 0.6) == pytest.approx(0.7)
    assert quality_of(None, 0.6) is None
