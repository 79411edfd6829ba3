"""Relevance by meaning: synonyms are never discarded, another drug isn't a match, and other
languages are left open.
"""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, Grade
from masis.screening.critic import evaluate
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.grading.question import read_question
from masis.screening.grading.relevance import relevance

METHOD = (
    "In this double-blind, placebo-controlled trial 412 adults were randomly assigned 1:1 by a"
    " computer-generated sequence. The primary outcome was analysed by intention to treat (odds"
    " ratio 0.61, 95% CI 0.45 to 0.83; p=0.002). Adverse events were rare. NCT01234567."
)


def grade_abstract(question: str, title: str, text: str) -> Grade:
    return offline_grader().grade(
        question, [Abstract(id="a", title=title, text=f"{text} {METHOD}")]
    )[0]


SYNONYMOUS = (
    (
        "Does colchicine prevent recurrent MI?",
        "Colchicine after acute myocardial infarction",
        "Colchicine.",
    ),
    (
        "Does exposure therapy help in OCD?",
        "Exposure and response prevention for obsessive-compulsive disorder",
        "",
    ),
    (
        "Does prone positioning lower mortality in ARDS?",
        "Prone position in acute respiratory distress syndrome",
        "",
    ),
    (
        "Does vaccination prevent shingles in older adults?",
        "A subunit vaccine against herpes zoster in the aged",
        "",
    ),
    (
        "Do SSRIs relieve premenstrual syndrome?",
        "Sertraline for premenstrual dysphoric disorder",
        "",
    ),
    ("Is CBT effective for insomnia?", "Cognitive behavioural therapy for chronic insomnia", ""),
    ("Does acupuncture relieve a stiff neck?", "Acupuncture needling in chronic cervical pain", ""),
    (
        "Does screening prevent bowel cancer deaths?",
        "Colonoscopy screening and colorectal carcinoma mortality",
        "",
    ),
    (
        "Does CPAP improve sleepiness in OSA?",
        "Continuous positive airway pressure in obstructive sleep apnoea",
        "",
    ),
)


@pytest.mark.spec("AESOP-GRADING")
@pytest.mark.parametrize(("question", "title", "text"), SYNONYMOUS)
def test_a_good_trial_in_other_words_is_never_off_topic(
    question: str, title: str, text: str
) -> None:
    grade = grade_abstract(question, title, f"{text} {title}.")
    assert grade.recommendation != "discard", grade.reasons["relevance_score"].text


OFF_TOPIC = (
    (
        "Does colchicine prevent recurrent myocardial infarction?",
        "Early walking after knee replacement",
    ),
    (
        "Does exposure therapy help in obsessive-compulsive disorder?",
        "Silver dressings for venous leg ulcers",
    ),
    (
        "Does prone positioning lower mortality in ARDS?",
        "Fluoride varnish against caries in schoolchildren",
    ),
    ("Do SSRIs relieve premenstrual syndrome?", "Robotic surgery of the prostate and continence"),
    ("Is CBT effective for insomnia?", "Iron supplements for anaemia in pregnancy"),
)


@pytest.mark.spec("AESOP-GRADING")
@pytest.mark.parametrize(("question", "title"), OFF_TOPIC)
def test_a_good_trial_of_something_else_is_off_topic(question: str, title: str) -> None:
    assert grade_abstract(question, title, f"{title}.").rule == "off_topic"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "In pharmacists, does resilience training reduce burnout?",
            "Resilience training reduced burnout in teachers.",
        ),
        (
            "In pharmacists, does resilience training reduce burnout?",
            "Resilience training reduced burnout in teachers. Pharmacists were excluded.",
        ),
        (
            "Does folic acid prevent preeclampsia?",
            "Folic acid and the risk of childhood leukaemia. Folic acid helped.",
        ),
    ],
)
def test_an_abstract_without_the_population_and_outcome_is_not_kept(
    question: str, text: str
) -> None:
    grade = grade_abstract(question, text.split(".", maxsplit=1)[0], text)
    assert grade.recommendation != "keep"
    assert "It doesn't mention the" in grade.reasons["relevance_score"].text


def test_dropouts_count_toward_relevance_but_exclusion_criteria_dont() -> None:
    question = "Does aspirin relieve headache in adults?"
    with_dropouts = grade_abstract(
        question,
        "A trial",
        "Of 300 adults with headache given aspirin, 12 were excluded. Pain fell.",
    )
    with_exclusion_criteria = grade_abstract(
        question, "A trial", "Exclusion criteria: adults with headache who took aspirin. Pain fell."
    )
    assert (
        (with_dropouts.relevance_score or 0.0)
        >= 0.5
        > (with_exclusion_criteria.relevance_score or 0.0)
    )


def test_another_drug_for_the_same_disease_isnt_a_match() -> None:
    title = "Ramipril and mortality in heart failure"
    grade = grade_abstract(
        "Does metformin reduce mortality in patients with heart failure?",
        title,
        f"{title}. Ramipril.",
    )
    assert grade.recommendation == "needs_more"
    assert grade.relevance_score < 0.5
    assert "metformin" in grade.reasons["relevance_score"].text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "German",
            (
                "In dieser doppelblinden Studie wurden die Patienten mit Migräne zufällig auf"
                " Acetylsalicylsäure oder Placebo verteilt. Die Schmerzen waren nach zwei Stunden"
                " unter dem Wirkstoff deutlich geringer."
            ),
        ),
        (
            "Chinese",
            (
                "本研究为随机双盲安慰剂对照试验 纳入四百例偏头痛患者 评估阿司匹林对急性发作的疗效"
                " 两小时后疼痛明显减轻"
            ),
        ),
    ],
)
def test_an_abstract_in_another_language_is_left_open_and_doesnt_vote(
    language: str, text: str
) -> None:
    abstract = Abstract(id="a", text=text)
    grades, ruling = evaluate("Does aspirin relieve migraine?", [abstract], grader=offline_grader())
    assert (grades[0].recommendation, grades[0].rule, grades[0].relevance_score) == (
        "needs_more",
        "unmatched",
        None,
    )
    assert language in grades[0].reasons["recommendation"].text
    assert (ruling.tally.votes, ruling.tally.not_relevant) == (0, 1)


@pytest.mark.parametrize(
    ("word", "is_match"),
    [("ARDS", True), ("ARDSs", True), ("RDS", True), ("AR", False), ("ARDX", False)],
)
def test_initials_match_an_abbreviation_of_at_least_three_letters(
    word: str, is_match: bool
) -> None:
    abstract = Abstract(id="a", text="An acute respiratory distress syndrome")
    assert bool(relevance(read_question(f"Does {word} matter?"), abstract).score) is is_match
