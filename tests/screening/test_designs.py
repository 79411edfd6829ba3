"""Study types are recognized without a model, with the words they are based on and the documented
accuracy.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.schema.screening import STUDY_TYPES, Abstract, StudyType
from masis.screening.grading.designs import (
    WEIGHTS,
    AbstractTerms,
    load_classifier,
    recognise,
    version,
)
from masis.screening.grading.hierarchy import place_design
from tests.screening.scripted import TABLES

PLAIN_ABSTRACTS = [
    json.loads(line)
    for line in (TABLES / "study_types.jsonl").read_text(encoding="utf-8").splitlines()
]
"""One abstract written for each study type."""


def abstract(title: str, text: str) -> Abstract:
    """Return an abstract with an id."""
    return Abstract(id="a", title=title, text=text)


@pytest.mark.parametrize("row", PLAIN_ABSTRACTS, ids=[row["study_type"] for row in PLAIN_ABSTRACTS])
def test_a_plain_abstract_of_each_study_type_is_recognized(row: dict[str, str]) -> None:
    study_type, title, text = row["study_type"], row["title"], row["abstract"]
    recognized = recognise(abstract(title, text))
    assert recognized.study_type == study_type
    assert 1 / len(STUDY_TYPES) < recognized.confidence <= 1
    assert recognized.words
    for words in recognized.words:
        source = title if words.place == "title" else text
        assert source[words.start : words.end] == words.text != ""


def test_text_without_known_words_has_no_study_type() -> None:
    for title, text in (("", ""), ("Заголовок", "Слова на другом языке"), ("", "... 5 % = ???")):
        recognized = recognise(abstract(title, text))
        assert recognized == (None, 0.0, ())


def test_a_title_alone_can_give_a_study_type() -> None:
    assert (
        recognise(abstract("A case report of stroke in a young man", "")).study_type
        == "human_case_report"
    )


@given(st.text(max_size=300))
def test_words_match_their_positions(text: str) -> None:
    terms = AbstractTerms(text)
    assert all(
        match.group().lower() == word or word == "0"
        for word, match in zip(terms.words, terms.matches, strict=True)
    )


def test_the_weights_are_small_and_need_no_heavy_library() -> None:
    assert WEIGHTS.stat().st_size < 5_000_000
    code = (
        "import sys; from masis.screening.grading.designs import load_classifier; "
        "load_classifier().recognise('a trial', 'of patients'); "
        "print([name for name in ('sklearn', 'scipy', 'torch', 'pandas') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
    assert version()


def test_study_types_are_recognized_as_well_as_documented(public_data: Path) -> None:
    rows = [
        json.loads(line)
        for line in (public_data / "study_types_val.jsonl").read_text("utf-8").splitlines()
    ]
    labels = [row["accepted_label"].lower().replace("-", "_") for row in rows]
    guesses = [
        load_classifier().recognise(row["title"], row["abstract"]).study_type for row in rows
    ]
    assert weighted_f1(labels, guesses) >= 0.80


def weighted_f1(labels: list[str], guesses: list[StudyType | None]) -> float:
    """Return the mean F1 of the labels, weighted by frequency. Written out here to check the tool's
    own formula.
    """
    total = 0.0
    for label in set(labels):
        right = sum(truth == guess == label for truth, guess in zip(labels, guesses, strict=True))
        guessed, actual = guesses.count(label), labels.count(label)  # type: ignore[arg-type]
        total += actual * 2 * right / (guessed + actual)
    return total / len(labels)


PLAIN = Abstract(
    id="1", title="On the matter", text="Something was looked at, and something else was seen."
)
WEAK: tuple[StudyType, ...] = (
    "human_case_report",
    "non_systematic_review",
    "animal_other",
    "in_vitro_study",
)


@pytest.mark.parametrize("study_type", WEAK)
def test_a_weak_study_type_counts_from_a_share_of_one_half(study_type: StudyType) -> None:
    assert place_design(study_type, PLAIN, 0.5).design not in ("other", "cohort_study")
    uncertain = place_design(study_type, PLAIN, 0.49)
    assert uncertain.design == "other"
    assert "with too little confidence (0.49)" in uncertain.why


def test_words_that_name_the_design_outweigh_an_uncertain_type() -> None:
    rats = Abstract(id="1", title="Aspirin in rats", text="Male Wistar rats received aspirin.")
    assert place_design("animal_drug_intervention", rats, 0.2).design == "animal_study"


def test_an_uncertain_strong_type_keeps_its_design() -> None:
    assert place_design("human_rct_drug_intervention", PLAIN, 0.3).design == "randomised_trial"


def record(*types: str, title: str = "On the matter", text: str = "It was seen.") -> Abstract:
    """Return an abstract with these publication types."""
    return Abstract(id="a", title=title, text=text, publication_types=types)


@pytest.mark.parametrize(
    ("types", "design"),
    [
        (["Journal Article", "Randomized Controlled Trial"], "randomised_trial"),
        (["Clinical Trial", "Randomized Controlled Trial"], "randomised_trial"),
        (["Clinical Trial, Phase II"], "non_randomised_study"),
        (["Observational Study", "Multicenter Study"], "cohort_study"),
        (["Case Reports"], "case_report"),
        (["Case Reports", "Review"], "case_report"),
        (["Review"], "narrative_review"),
        (["Review", "Systematic Review"], "systematic_review"),
        (["Meta-Analysis", "Systematic Review"], "meta_analysis"),
    ],
)
def test_the_publication_type_of_a_record_comes_before_its_words(
    types: list[str], design: str
) -> None:
    mice = record(*types, text="Male mice received aspirin, and the cells were cultured in vitro.")
    assert place_design("human_rct_drug_intervention", record(*types), 0.99).design == design
    assert place_design("animal_other", mice, 0.99).design == design


@pytest.mark.parametrize(
    ("types", "text", "design"),
    [
        ("Clinical Trial", "Patients were randomly assigned to A or B.", "randomised_trial"),
        ("Observational Study", "In this case-control study, we asked.", "case_control_study"),
        ("Observational Study", "We did a cross-sectional survey.", "cross_sectional_study"),
        ("Case Reports", "We report a case series of patients.", "case_series"),
        ("Review", "We performed a systematic review and searched MEDLINE.", "systematic_review"),
    ],
)
def test_words_choose_among_the_designs_of_a_publication_type(
    types: str, text: str, design: str
) -> None:
    assert place_design("remaining", record(types, text=text)).design == design


@pytest.mark.parametrize(
    "text",
    [
        "METHODS: Randomised, double-blind, crossover study in 40 adults.",
        "Forty adults received both drugs in a randomized order.",
        "We randomised 40 adults to one of two doses.",
        "Randomization was by sealed envelopes.",
        "In a randomized, placebo-controlled trial, 40 adults received aspirin.",
    ],
)
def test_randomization_anywhere_in_the_methods_makes_a_trial(text: str) -> None:
    title = "Aspirin in adults with migraine"
    assert place_design("remaining", abstract(title, text)).design == "randomised_trial"


@pytest.mark.parametrize(
    "text",
    [
        "A randomized controlled trial would help determine whether it works.",
        "Data from veterans enrolled in a randomized clinical trial were analyzed.",
        "This uncontrolled study supports the need for a randomized trial.",
        "A randomised trial is needed.",
    ],
)
def test_a_trial_of_others_or_of_the_future_is_no_trial(text: str) -> None:
    therapy = abstract("Therapy for anxiety", text)
    placement = place_design("human_non_rct_non_drug_intervention", therapy)
    assert placement.design != "randomised_trial"


def test_a_qualitative_study_within_a_trial_is_qualitative() -> None:
    title = "Fidelity in trials: a qualitative study"
    within = abstract(title, "In this randomised trial, we interviewed 20 nurses.")
    assert place_design("human_rct_drug_intervention", within).design == "qualitative_study"


@pytest.mark.parametrize(
    "title",
    [
        "Outcome of in vitro fertilization after age 40",
        "In-vitro fertilisation and thyroid disease",
        "Live birth after IVF",
        "ICSI for male infertility",
    ],
)
def test_in_vitro_fertilization_is_no_study_of_cells(title: str) -> None:
    couples = abstract(title, "In this retrospective study, 120 couples were compared.")
    assert place_design("in_vitro_study", couples, 0.9).design == "cohort_study"
    assert place_design("in_vitro_study", abstract("Aspirin in vitro", "")).design == (
        "in_vitro_study"
    )
