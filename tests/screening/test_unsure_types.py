"""A type that is not sure enough discards nothing: its design counts as unknown, which needs more."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, StudyType
from masis.screening.grading.hierarchy import place_design

PLAIN = Abstract(id="1", title="On the matter", text="Something was looked at, and something else was seen.")
WEAK: tuple[StudyType, ...] = ("human_case_report", "non_systematic_review", "animal_other", "in_vitro_study")


@pytest.mark.parametrize("study_type", WEAK)
def test_a_weak_type_counts_from_a_half_on(study_type: StudyType) -> None:
    assert place_design(study_type, PLAIN, 0.5).design not in ("other", "cohort_study")
    unsure = place_design(study_type, PLAIN, 0.49)
    assert unsure.design == "other"
    assert "not surely enough (share 0.49)" in unsure.why


def test_words_that_name_the_design_outweigh_an_unsure_type() -> None:
    rats = Abstract(id="1", title="Aspirin in rats", text="Male Wistar rats received aspirin.")
    assert place_design("animal_drug_intervention", rats, 0.2).design == "animal_study"


def test_a_strong_type_that_is_unsure_keeps_its_place() -> None:
    assert place_design("human_rct_drug_intervention", PLAIN, 0.3).design == "randomised_trial"
