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
