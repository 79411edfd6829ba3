"""Sample sizes: recognition, kinds, and the share of hand-labeled sizes that are
extracted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.screening.grading.sample_size import TextTokens, sample_sizes, study_size
from tests.screening.scripted import table

GOLD = Path(__file__).parent / "sample_sizes_gold.jsonl"


def sizes_in(text: str) -> set[tuple[int, str]]:
    """Return the sizes in a text as value and kind."""
    return {(size.value, size.kind) for size in sample_sizes(text)}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("We enrolled 1,204 patients with stroke.", {(1204, "total")}),
        ("A total of 1 204 participants took part.", {(1204, "total")}),
        ("Forty-two women were interviewed.", {(42, "total")}),
        ("Two hundred and fifty-nine outpatients were randomised.", {(259, "total")}),
        ("Rats were divided into four groups (n = 8 per group).", {(8, "arm")}),
        ("The rats were given the drug or saline, 12 animals per group.", {(12, "arm")}),
        ("Adult day care clients (N = 48) were studied.", {(48, "total")}),
        (
            "Patients with asthma (n = 31) and controls (n = 29) were compared.",
            {(31, "arm"), (29, "arm")},
        ),
        (
            "We compared 31 patients with asthma and 29 healthy controls.",
            {(31, "arm"), (29, "arm")},
        ),
        ("We studied 60 patients. The rash healed in 42 of 50.", {(60, "total"), (50, "of")}),
        ("We treated 80 patients (45 drug, 35 placebo).", {(80, "total")}),
        (
            "Thirty patients with migraine and 28 with headache were enrolled.",
            {(30, "arm"), (28, "arm")},
        ),
        ("The sample consisted of 219 university students.", {(219, "total")}),
        ("This study of 12 male Wistar rats lasted a year.", {(12, "total")}),
        ("Respondents were 282 14-year-olds.", {(282, "total")}),
        ("A 49-year-old woman presented with chest pain.", {(1, "total")}),
        ("A nine-year-old girl was referred with attacks of pain.", {(1, "total")}),
        (
            "Male rats (n = 10 per group, 40 in all) were given vehicle.",
            {(10, "arm"), (40, "total")},
        ),
        ("A questionnaire was sent to the heads of the units; 57 answered.", {(57, "total")}),
        (
            "Twenty-four knock-in mice and twelve littermates were studied.",
            {(24, "arm"), (12, "arm")},
        ),
        (
            "We describe five patients (three women, two men).",
            {(5, "total"), (3, "arm"), (2, "arm")},
        ),
    ],
)
def test_a_stated_sample_size_is_extracted_with_its_kind(
    text: str, sizes: set[tuple[int, str]]
) -> None:
    assert sizes_in(text) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "Patients aged 18 to 65 years took 20 mg a day for 12 weeks.",
        "The scale has 36 items in 8 domains.",
        "In 2010 patients were seen at 45 centres.",
        "The disease affects 12% of children.",
        "Interleukin 6 and the 5-HT2A receptor were measured in 3xTg mice.",
        "Two reviewers independently judged the abstracts.",
        "The odds ratio was 2.4 (95% CI 1.2 to 4.8).",
        "Cohort studies with at least 50 participants were eligible.",
        "",
    ],
)
def test_other_numbers_arent_sample_sizes(text: str) -> None:
    assert sizes_in(text) == set()


@pytest.mark.parametrize(
    "outcome",
    ["Twelve patients died.", "A rash was seen in 12 patients.", "12 (10%) patients had a rash."],
)
def test_participants_with_an_outcome_arent_a_sample_size(outcome: str) -> None:
    assert sizes_in(f"We followed 120 patients. {outcome}") == {(120, "total")}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Response was seen in 25 patients (50%).", None),
        ("Recurrence was observed in 12 (24%) patients.", None),
        ("Pain recurred in 15 women [30%].", None),
        ("Response was seen in 25 patients, 50%.", None),
        ("Relapse was seen in 20 patients on A and 35 patients on B.", None),
        ("Relapse was seen in 20 patients on A and in 35 patients given B.", None),
        ("Disease was found in 40 patients. 400 patients were screened.", 400),
        ("Disease was found in 40 patients. We included 400 patients.", 400),
        ("Cancer developed in 40 men and 400 men were followed.", 400),
        ("Cancer developed in 9 children. A total of 120 children were followed.", 120),
        ("Fever was noted in 8 children (16%). Fifty children were enrolled.", 50),
        ("Tumors were found in 12 patients.", 12),
        ("Tumors occurred in 55 patients, 90% of whom were men.", 55),
    ],
)
def test_people_with_an_event_are_no_sample_if_others_are_counted(
    text: str, size: int | None
) -> None:
    found = study_size(text)
    assert (found and found.value) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("A total of 50 patients and 50 controls were studied.", 100),
        ("A total of 50 patients and 50 controls", 100),
        ("A total of 100 men and 100 women took part.", 200),
        ("A sample of 30 girls and 30 boys was interviewed.", 60),
        ("A total of 40 cases and 40 controls were matched.", 80),
        ("A total of 267 men and 220 women took part.", 487),
    ],
)
def test_the_parts_of_a_total_are_added_even_if_they_are_equal(text: str, size: int) -> None:
    found = study_size(text)
    assert found is not None
    assert found.value == size


def test_a_review_counts_its_studies_and_their_participants() -> None:
    text = (
        "In this systematic review we searched MEDLINE. We included 29 studies with 2599"
        " participants."
    )
    assert sizes_in(text) == {(29, "total"), (2599, "total")}
    size = study_size(text)
    assert (size.value, size.unit) == (2599, "participants")


def test_studies_only_mentioned_arent_a_sample_size() -> None:
    assert sizes_in("Two studies have shown this. We measured the blood flow.") == set()


def test_screened_records_are_the_pool_of_the_sample() -> None:
    assert sizes_in("Of 651 patients screened, 402 patients were included.") == {
        (651, "of"),
        (402, "total"),
    }


def test_the_study_size_is_the_number_enrolled() -> None:
    size = study_size("We randomised 285 participants; 277 participants completed the trial.")
    assert (size.value, size.kind, size.unit) == (285, "total", "participants")
    assert study_size("The review discusses models of memory.") is None


def test_offsets_cover_the_words_that_state_the_size() -> None:
    text = "Background – unknown. We enrolled forty-two elderly women and 1,204 men."
    stated = [text[size.start : size.end] for size in sample_sizes(text)]
    assert stated == ["forty-two elderly women", "1,204 men"]


@given(st.integers(min_value=0, max_value=999_999))
def test_a_number_is_read_the_same_with_and_without_commas(value: int) -> None:
    for text in (str(value), f"{value:,}", f"{value:,}".replace(",", " ")):
        assert [numeral.value for numeral in TextTokens(text).numerals()] == [value]


@given(st.text(alphabet="n=of 0123456789,./()%-patients and with the review ", max_size=300))
def test_offsets_stay_inside_any_text(text: str) -> None:
    for size in sample_sizes(text):
        assert 0 <= size.start < size.end <= len(text)


class Counts(NamedTuple):
    """The numbers of sizes that are both extracted and labeled, extracted, and labeled."""

    correct: int
    extracted: int
    labeled: int


def test_most_hand_labeled_sample_sizes_are_extracted(public_data: Path) -> None:
    rows = map(
        json.loads, (public_data / "study_types_val.jsonl").read_text(encoding="utf-8").splitlines()
    )
    texts = {row["pmid"]: row["abstract"] for row in rows}
    correct = extracted = labeled = 0
    study_results: list[bool] = []
    for row in map(json.loads, GOLD.read_text(encoding="utf-8").splitlines()):
        text = texts[row["pmid"]]
        assert hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"])
        values = {size.value for size in sample_sizes(text)}
        gold = {size["value"] for size in row["sizes"]}
        if row["study"] is not None:
            size = study_size(text)
            study_results.append(size is not None and size.value == row["study"])
        correct, extracted, labeled = (
            correct + len(values & gold),
            extracted + len(values),
            labeled + len(gold),
        )
    counts = Counts(correct, extracted, labeled)
    assert counts.correct / counts.extracted >= 0.92, counts
    assert counts.correct / counts.labeled >= 0.80, counts
    assert len(study_results) == 79
    assert sum(study_results) >= 71


@pytest.mark.spec("AESOP-SIZE")
@pytest.mark.parametrize(("participants", "text"), table("study_sizes"))
def test_the_study_size_counts_participants_and_nothing_else(participants: str, text: str) -> None:
    size = study_size(text)
    assert size.value == int(participants)
