"""What is no trial never passes for one: retractions, errata, comments, protocols, animals; and what is denied."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract
from masis.screening.grading.hierarchy import place_design, sure_design
from masis.screening.grading.methodology import methodology
from masis.screening.grading.offline_grader import offline_grader

TRIAL = (
    "412 adults with migraine were randomly assigned to aspirin or placebo. Patients and assessors were blinded. The "
    "primary outcome was pain at 2 hours (odds ratio 2.1, 95% CI 1.5 to 2.9; p<0.001). NCT01234567."
)
QUESTION = "Does aspirin relieve migraine in adults?"


def of(title: str, text: str = TRIAL, **more: object) -> Abstract:
    return Abstract.model_validate({"id": "a", "title": title, "text": text, **more})


NOTICES = (
    of("Retraction: Aspirin for migraine: a randomised trial"),
    of("RETRACTED: Aspirin for migraine in adults"),
    of("Retracted article: Aspirin for migraine"),
    of("WITHDRAWN: Aspirin for migraine in adults"),
    of("Erratum to: Aspirin for migraine, a randomised trial"),
    of("Corrigendum: Aspirin for migraine"),
    of("Correction to: Aspirin for migraine in adults"),
    of("Expression of concern: Aspirin for migraine"),
    of("Editorial: aspirin for migraine at last?"),
    of("Commentary on: Aspirin for migraine"),
    of("Aspirin for migraine", f"{TRIAL} This article has been retracted at the request of the editor."),
    of("Aspirin for migraine in adults", publication_types=["Journal Article", "Retracted Publication"]),
    of("Aspirin for migraine in adults", publication_types=["Editorial"]),
)


@pytest.mark.spec("AESOP-WEAK-REJECTED")
@pytest.mark.parametrize("notice", NOTICES, ids=lambda each: each.title[:30])
def test_a_retraction_an_erratum_or_a_comment_is_discarded_whatever_it_repeats(notice: Abstract) -> None:
    (grade,) = offline_grader().grade(QUESTION, [notice])
    assert (grade.design, grade.recommendation, grade.rule) == ("notice", "discard", "not_a_study")


def test_a_trial_whose_title_holds_such_a_word_is_none_of_them() -> None:
    for title in (
        "Retraction devices in surgery: a trial",
        "Correction of anaemia: a trial",
        "Comments by text message",
    ):
        assert sure_design(of(title)) is None, title
    assert offline_grader().grade(QUESTION, [of("Aspirin for migraine in adults")])[0].recommendation == "keep"


PROTOCOLS = (
    ("Aspirin for migraine: study protocol", "Adults will be randomised."),
    ("Aspirin for migraine: a trial protocol", "412 adults are sought."),
    ("Protocol for a randomised trial of aspirin", "The outcome is pain."),
    ("Rationale and design of the ASPIRE trial", "ASPIRE is a randomised, double-blind trial in 412 adults."),
    ("The ASPIRE trial: design and rationale", "412 adults with migraine are being enrolled."),
    ("The ASPIRE trial", "Adults will be randomised to aspirin. Pain will be measured at 2 hours."),
    ("Aspirin for migraine", "We will recruit 412 adults, who will receive aspirin or placebo."),
    ("Aspirin for migraine", "Patients will be enrolled at 12 sites and will be randomly assigned to aspirin."),
    ("Aspirin in adults", "Participants will be followed for a year. Costs will be compared."),
    ("Aspirin: a review protocol", "Databases will be searched."),
)


@pytest.mark.parametrize(("title", "text"), PROTOCOLS)
def test_a_protocol_without_results_is_no_trial(title: str, text: str) -> None:
    assert place_design("human_rct_drug_intervention", of(title, text)).design == "protocol"


ANIMALS = (
    ("Aspirin in rats", "40 rats were randomly assigned to aspirin."),
    ("Aspirin and migraine", "Sixty male Wistar rats were randomised to aspirin or saline."),
    ("Aspirin and migraine", "C57BL/6 mice were randomly divided into two groups."),
    ("A mouse model of migraine", "Animals were randomised to aspirin."),
    ("Aspirin and migraine", "24 rabbits received aspirin at random."),
    ("Effects of aspirin on spreading depression in mice", "We randomised animals to aspirin."),
    ("Aspirin and migraine", "Adult female mice were treated with aspirin, double-blind."),
    ("Aspirin and migraine", "Sprague-Dawley rats were assigned to placebo or aspirin."),
    ("Aspirin in a rat model of migraine", "Randomised, blinded, placebo-controlled."),
    ("Aspirin and migraine", "12 pigs were anaesthetised and randomised."),
)


@pytest.mark.parametrize(("title", "text"), ANIMALS)
def test_a_randomised_experiment_in_animals_is_no_trial(title: str, text: str) -> None:
    assert place_design("human_rct_drug_intervention", of(title, text)).design == "animal_study"


def test_people_bitten_by_rats_are_people() -> None:
    assert sure_design(of("Wounds", "Patients were bitten by 12 rats. Patients were randomised to a vaccine.")) is None


DENIED = (
    ("randomisation", "No patients were randomised."),
    ("randomisation", "Patients were not randomised."),
    ("randomisation", "None of the participants were randomised."),
    ("randomisation", "Future randomised trials are needed."),
    ("randomisation", "Larger randomised studies are needed."),
    ("randomisation", "Patients should be randomised in a next study."),
    ("blinding", "Blinding was not possible."),
    ("blinding", "Blinding of patients was not possible."),
    ("blinding", "Masked hypertension was frequent."),
    ("blinding", "Masked uncontrolled hypertension was frequent."),
    ("blinding", "Assessors were not blinded."),
    ("blinding", "Patients will be blinded in the next phase."),
    ("model", "COX-2 inhibitors were given."),
    ("model", "Cox 1 was measured."),
)


@pytest.mark.spec("AESOP-METHODOLOGY")
@pytest.mark.parametrize(("item", "text"), DENIED)
def test_what_is_denied_planned_or_something_else_is_no_method(item: str, text: str) -> None:
    design = "cohort_study" if item == "model" else "randomised_trial"
    assert item not in methodology(of("", text), design).reported


def test_a_result_that_was_not_significant_is_still_reported() -> None:
    found = methodology(
        of("", "The primary outcome was not different. Adverse events were not rare."), "randomised_trial"
    )
    assert {"outcome", "harms"} <= set(found.reported)


PLACED = (
    ("The sensitivity was 92% against histology as the reference standard.", "diagnostic_accuracy_study"),
    ("Two observers measured each film; inter-observer agreement was good.", "diagnostic_accuracy_study"),
    ("Tumour stage was a prognostic factor; overall survival was 61%.", "prognostic_study"),
    ("Semi-structured interviews with 20 nurses were analysed.", "qualitative_study"),
    ("An interrupted time series of prescriptions in 40 hospitals.", "interrupted_time_series"),
    ("We emulated a target trial in claims data.", "target_trial_emulation"),
    ("A two-sample Mendelian randomisation with 40 variants.", "mendelian_randomisation"),
    ("A cost-effectiveness analysis with a Markov model.", "economic_evaluation"),
    ("A nested case-control study within a cohort of nurses.", "case_control_study"),
    ("We reviewed the medical records of 667 patients.", "cohort_study"),
    ("Participants completed an anonymous online questionnaire.", "cross_sectional_study"),
)


@pytest.mark.spec("AESOP-PRIORS")
@pytest.mark.parametrize(("text", "design"), PLACED)
def test_designs_beyond_the_fourteen_types_are_recognised_by_their_words(text: str, design: str) -> None:
    assert place_design("remaining", of("", text)).design == design
