"""What is no trial never passes for one: retractions, errata, comments, protocols, animals; and what is denied."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, AppraisalItem, Design
from masis.screening.grading.hierarchy import place_design, sure_design
from masis.screening.grading.methodology import CHECKLIST, methodology
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


READ_AS: tuple[tuple[AppraisalItem, str, bool], ...] = (
    ("control", "There was no control group.", False),
    ("control", "The study lacked a control group.", False),
    ("control", "Without a comparison group, causality can't be inferred.", False),
    ("control", "No comparison group was included.", False),
    ("control", "An uncontrolled study.", False),
    ("control", "We did not include a control arm.", False),
    ("control", "There was neither a control group nor blinding.", False),
    ("control", "The absence of a control group limits this study.", False),
    ("control", "A limitation was the lack of a concurrent control group.", False),
    ("control", "This single-arm study had no comparator.", False),
    ("control", "Laparoscopic surgery compared with open surgery.", True),
    ("control", "Patients who walked did better than those who did not.", True),
    ("control", "Drug A versus drug B.", True),
    ("control", "Pain fell more with aspirin than with placebo.", True),
    ("control", "Blood pressure was lower in the aspirin group than in the control group.", True),
    ("control", "Compared with usual care, walking helped.", True),
    ("control", "Symptoms were well controlled.", False),
    ("control", "More than 50 patients were seen.", False),
    ("control", "Patients older than 65 years.", False),
    ("control", "Rather than wait we treated.", False),
    ("control", "No difference compared with placebo was found.", True),
    ("control", "There was no benefit versus placebo.", True),
    ("control", "Not significantly different from controls.", True),
    ("control", "Outcomes were not compared with a control group.", False),
    ("control", "Other than age nothing mattered.", False),
    ("control", "Pain was less than 3 points.", False),
    ("blinding", "Patients could not be blinded.", False),
    ("blinding", "Blinding was impossible.", False),
    ("blinding", "Participants were not blinded, but assessors were blinded.", True),
    ("blinding", "An open-label, unblinded trial.", False),
    ("blinding", "Nobody was blinded.", False),
    ("blinding", "Therapists could not be masked.", False),
    ("blinding", "Staff were aware of allocation; there was no blinding.", False),
    ("blinding", "It was not possible to blind patients.", False),
    ("blinding", "The trial was neither randomised nor blinded.", False),
    ("blinding", "Assessors were blinded.", True),
    ("blinding", "A double-blind trial.", True),
    ("blinding", "A non-blinded trial.", False),
    ("blinding", "Outcome assessors were masked to group.", True),
    ("blinding", "Lack of blinding was a limitation.", False),
    ("blinding", "Double-blinding was not feasible.", False),
    ("blinding", "Colour-blind men were studied.", False),
    ("blinding", "The trial was not double-blind.", False),
    ("blinding", "blinded assessment was not carried out", False),
    ("randomisation", "Patients were not randomised.", False),
    ("randomisation", "Allocation was not randomised.", False),
    ("randomisation", "A non-randomised study.", False),
    ("randomisation", "A nonrandomized trial.", False),
    ("randomisation", "Treatment was not randomly assigned.", False),
    ("randomisation", "Randomisation was not done.", False),
    ("randomisation", "Randomisation was not feasible.", False),
    ("randomisation", "Patients were allocated without randomisation.", False),
    ("randomisation", "The groups were not formed by randomisation.", False),
    ("randomisation", "A quasi-randomised study.", False),
    ("randomisation", "Patients were randomised.", True),
    ("randomisation", "A randomly selected sample.", False),
    ("randomisation", "Owing to ethical concerns randomisation could not be performed.", False),
    ("randomisation", "We could not randomise patients.", False),
    ("randomisation", "Because patients were not randomised, confounding is possible.", False),
    ("randomisation", "Participants were randomly allocated.", True),
    ("randomisation", "Randomization failed to balance age.", True),
    ("allocation", "Allocation was not concealed.", False),
    ("allocation", "Allocation concealment was not reported.", False),
    ("allocation", "Allocation was concealed.", True),
    ("allocation", "Sealed envelopes were used.", True),
    ("allocation", "No allocation concealment.", False),
    ("registration", "The trial was not registered.", False),
    ("registration", "NCT01234567.", True),
    ("registration", "The protocol was not preregistered.", False),
    ("model", "Analyses were not adjusted for age.", False),
    ("model", "Results were adjusted for age.", True),
    ("model", "No adjustment for confounders was made.", False),
    ("model", "Without adjusting for age.", False),
    ("model", "An intention-to-treat analysis was not performed.", False),
    ("model", "By intention to treat.", True),
    ("model", "No regression analysis was done.", False),
    ("follow_up", "There was no follow-up.", False),
    ("follow_up", "Followed up for 2 years.", True),
    ("follow_up", "Follow-up was not available.", False),
    ("harms", "Adverse events were not reported.", False),
    ("harms", "Harms: no adverse events occurred.", True),
    ("harms", "Safety was not assessed.", False),
    ("harms", "No serious adverse events.", True),
    ("prospective", "This was not a prospective study.", False),
    ("prospective", "A prospective study.", True),
    ("outcome", "No primary outcome was specified.", False),
    ("outcome", "The primary outcome was pain.", True),
    ("interval", "Confidence intervals were not reported.", False),
    ("interval", "95% CI 1 to 2.", True),
    ("consecutive", "Patients were not consecutive.", False),
    ("consecutive", "Consecutive patients.", True),
    ("search", "No systematic search was done; PubMed was not searched.", False),
    ("bias", "Risk of bias was not assessed.", False),
    ("bias", "Quality of the studies was not appraised.", False),
    ("bias", "Risk of bias was assessed.", True),
    ("selection", "Two reviewers independently selected.", True),
    ("blinding", "Staff were unaware of the allocation.", True),
    ("blinding", "Examiners did not know the assignment.", True),
    ("blinding", "An examiner-masked trial.", True),
    ("randomisation", "Specimens were divided at random.", True),
    ("randomisation", "Treatment was not allocated at random.", False),
    ("control", "A controlled study is needed.", False),
    ("control", "Adults were randomised to yoga or walking.", True),
)


@pytest.mark.spec("AESOP-METHODOLOGY")
@pytest.mark.parametrize(("item", "text", "stated"), READ_AS)
def test_a_method_word_earns_its_points_only_where_it_is_not_denied(
    item: AppraisalItem, text: str, stated: bool
) -> None:
    designs: tuple[Design, ...] = ("randomised_trial", "cohort_study", "systematic_review")
    design = next(each for each in designs if item in CHECKLIST[each])
    assert (item in methodology(of("", text), design).reported) is stated


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
