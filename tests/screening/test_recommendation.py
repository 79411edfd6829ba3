"""The recommendation for one abstract by the documented rules, with the priors as floors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from masis.schema.screening import DESIGNS, STUDY_TYPES, Design, Rule
from masis.screening.grading import rubric
from masis.screening.grading.recommendation import quality_of, recommend, with_prior_floor
from masis.screening.views.words import DESIGN, RULE_REASON, STUDY_TYPE
from tests.screening.scripted import table


@pytest.mark.spec("AESOP-PRIORS")
def test_the_priors_match_the_specification() -> None:
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
def test_the_hierarchy_descends_from_meta_analysis_and_names_its_sources() -> None:
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


def test_every_study_type_design_and_rule_has_an_entry() -> None:
    assert set(rubric.DESIGN_OF) == set(STUDY_TYPES) == set(STUDY_TYPE)
    assert set(rubric.HIERARCHY) == set(DESIGNS) == set(rubric.ADEQUATE_SIZE)
    assert set(rubric.HIERARCHY) == set(DESIGN)
    assert set(RULE_REASON) == set(get_args(Rule))


@pytest.mark.spec("AESOP-RUBRIC")
def test_the_rubric_has_no_logic() -> None:
    source = Path(rubric.__file__).read_text(encoding="utf-8")
    imported = re.findall(r"^(?:from|import) (\S+)", source, re.M)
    assert set(imported) <= {"__future__", "typing", "masis.schema.screening"}


CASES = table("recommendations")


@pytest.mark.spec("AESOP-RECOMMENDATION", "AESOP-WEAK-REJECTED", "AESOP-SERIES", "AESOP-RCT-FAIR")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_rule_applies_to_its_cases(case: tuple[str, ...]) -> None:
    _, relevance, method, design, is_adequate, recommendation, rule = case
    scores = [None if score == "-" else float(score) for score in (relevance, method)]
    known_design: Design | None = next((name for name in DESIGNS if name == design), None)
    result = recommend(*scores, known_design, {"yes": True, "no": False}.get(is_adequate))
    assert (result.recommendation, result.rule) == (recommendation, rule)
    assert result.why


def test_every_rule_based_on_scores_has_a_case() -> None:
    assert {rule for *_, rule in CASES} == set(get_args(Rule)) - {
        "person",
        "disagreement",
        "unmatched",
        "of_concern",
    }


@pytest.mark.spec("AESOP-RECOMMENDATION")
def test_animal_studies_are_direct_evidence_for_a_question_about_animals() -> None:
    assert recommend(0.9, 0.5, "animal_study", True).rule == "weak_design"
    assert (
        recommend(0.9, 0.5, "animal_study", True, frozenset({"animal_study"})).recommendation
        == "keep"
    )


@pytest.mark.spec("AESOP-RECOMMENDATION")
def test_a_higher_score_never_gives_a_worse_recommendation() -> None:
    order = {"discard": 0, "needs_more": 1, "keep": 2}
    grid = [i / 20 for i in range(21)]
    for design in DESIGNS:
        for method in grid:
            ranks = [
                order[recommend(relevance, method, design, True).recommendation]
                for relevance in grid
            ]
            assert ranks == sorted(ranks), (design, method)
        for relevance in grid:
            ranks = [
                order[recommend(relevance, method, design, True).recommendation] for method in grid
            ]
            assert ranks == sorted(ranks), (design, relevance)


def test_quality_is_the_mean_of_both_scores() -> None:
    assert quality_of(0.8, 0.6) == pytest.approx(0.7)
    assert quality_of(None, 0.6) is None
