"""Sample sizes: what counts as one, of which kind, and how many of the hand-labelled ones are found."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.screening.grading.sample_size import Tokens, family_of, sample_sizes, study_size

GOLD = Path(__file__).parent / "sample_sizes_gold.jsonl"


def found(text: str) -> set[tuple[int, str]]:
    """The sizes of a text as value and kind."""
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
        ("Patients with asthma (n = 31) and controls (n = 29) were compared.", {(31, "arm"), (29, "arm")}),
        ("We compared 31 patients with asthma and 29 healthy controls.", {(31, "arm"), (29, "arm")}),
        ("We studied 60 patients. The rash healed in 42 of 50.", {(60, "total"), (50, "of")}),
        ("We treated 80 patients (45 drug, 35 placebo).", {(80, "total"), (45, "arm"), (35, "arm")}),
        ("Thirty patients with migraine and 28 with headache were enrolled.", {(30, "arm"), (28, "arm")}),
        ("The sample consisted of 219 university students.", {(219, "total")}),
        ("This study of 12 male Wistar rats lasted a year.", {(12, "total")}),
        ("Respondents were 282 14-year-olds.", {(282, "total")}),
        ("A 49-year-old woman presented with chest pain.", {(1, "total")}),
        ("A nine-year-old girl was referred with attacks of pain.", {(1, "total")}),
        ("Male rats (n = 10 per group, 40 in all) were given vehicle.", {(10, "arm"), (40, "total")}),
        ("A questionnaire was sent to the heads of the units; 57 answered.", {(57, "total")}),
        ("Twenty-four knock-in mice and twelve littermates were studied.", {(24, "arm"), (12, "arm")}),
        ("We describe five patients (three women, two men).", {(5, "total"), (3, "arm"), (2, "arm")}),
    ],
)
def test_a_stated_size_is_found_with_its_kind(text: str, sizes: set[tuple[int, str]]) -> None:
    assert found(text) == sizes


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
def test_other_numbers_are_no_sample_sizes(text: str) -> None:
    assert found(text) == set()


@pytest.mark.parametrize(
    "outcome", ["Twelve patients died.", "A rash was seen in 12 patients.", "12 (10%) patients had a rash."]
)
def test_those_who_had_an_outcome_are_no_sample(outcome: str) -> None:
    assert found(f"We followed 120 patients. {outcome}") == {(120, "total")}


def test_a_review_counts_its_studies_and_their_participants() -> None:
    text = "In this systematic review we searched MEDLINE. We included 29 studies with 2599 participants."
    assert found(text) == {(29, "total"), (2599, "total")}
    rests = study_size(text)
    assert rests is not None
    assert (rests.value, rests.unit) == (2599, "participants")


def test_studies_that_are_only_mentioned_are_no_sample() -> None:
    assert found("Two studies have shown this. We measured the blood flow.") == set()


def test_records_that_were_screened_are_what_the_sample_came_from() -> None:
    assert found("Of 651 patients screened, 402 patients were included.") == {(651, "of"), (402, "total")}


def test_the_study_rests_on_those_it_set_out_with() -> None:
    rests = study_size("We randomised 285 participants; 277 participants completed the trial.")
    assert rests is not None
    assert (rests.value, rests.kind, rests.unit) == (285, "total", "participants")
    assert study_size("The review discusses models of memory.") is None


def test_an_arm_is_named_by_its_words() -> None:
    sizes = sample_sizes("The ADHD group (n = 23) was compared to the control group (n = 25).")
    assert [size.arm for size in sizes] == ["adhd group", "control group"]


def test_offsets_hold_the_words_that_state_the_size() -> None:
    text = "Background – unknown. We enrolled forty-two elderly women and 1,204 men."
    stated = [text[size.start : size.end] for size in sample_sizes(text)]
    assert stated == ["forty-two elderly women", "1,204 men"]


def test_a_unit_has_its_family() -> None:
    assert family_of("patients") == "people"
    assert family_of("Women") == "people"
    assert family_of("rat") == "animals"
    assert family_of("trials") == "studies"
    assert family_of("milligrams") is None


@given(st.integers(min_value=0, max_value=999_999))
def test_a_number_reads_the_same_with_and_without_commas(value: int) -> None:
    for written in (str(value), f"{value:,}", f"{value:,}".replace(",", " ")):
        assert [numeral.value for numeral in Tokens(written).numerals()] == [value]


@given(st.text(alphabet="n=of 0123456789,./()%-patients and with the review ", max_size=300))
def test_whatever_the_text_offsets_stay_inside_it(text: str) -> None:
    for size in sample_sizes(text):
        assert 0 <= size.start < size.end <= len(text)


class Counts(NamedTuple):
    """Sizes found and labelled, sizes found, sizes labelled."""

    right: int
    found: int
    labelled: int


def test_most_of_the_sizes_labelled_by_hand_are_found(public_data: Path) -> None:
    rows = map(json.loads, (public_data / "study_types_val.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {row["pmid"]: row["abstract"] for row in rows}
    right = stated = labelled = 0
    for row in map(json.loads, GOLD.read_text(encoding="utf-8").splitlines()):
        text = texts[row["pmid"]]
        assert hashlib.sha256(text.encode()).hexdigest().startswith(row["sha256"])
        values = {size.value for size in sample_sizes(text)}
        gold = {size["value"] for size in row["sizes"]}
        right, stated, labelled = right + len(values & gold), stated + len(values), labelled + len(gold)
    counts = Counts(right, stated, labelled)
    assert counts.right / counts.found >= 0.92, counts
    assert counts.right / counts.labelled >= 0.80, counts


@pytest.mark.spec("AESOP-SIZE")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("We followed 3 million adults.", 3_000_000),
        ("2.5 million people were included.", 2_500_000),
        ("1.2 million women were studied.", 1_200_000),
        ("0.5 million patients were included.", 500_000),
        ("two million adults were studied", 2_000_000),
        ("A million adults were studied.", 1_000_000),
        ("5 thousand patients were enrolled.", 5_000),
        ("12.5 thousand patients were enrolled.", 12_500),
        ("Two dozen patients were enrolled.", 24),
        ("Three dozen patients were enrolled.", 36),
        ("2 dozen patients were enrolled.", 24),
        ("A dozen patients were treated.", 12),
        ("3 patients were enrolled.", 3),
    ],
)
def test_thousands_millions_and_dozens_multiply_what_stands_before_them(text: str, value: int) -> None:
    assert [size.value for size in sample_sizes(text)] == [value]
    assert study_size(text) is not None


@pytest.mark.spec("AESOP-SIZE")
@pytest.mark.parametrize(
    ("text", "participants"),
    [
        ("Eight patients were treated at 12 clinics; there were 166 adverse events.", 8),
        ("We report outcomes in 8 patients who underwent 166 procedures.", 8),
        ("Eight patients received a total of 166 infusions.", 8),
        ("In this pilot, 8 patients (166 treatment sessions) were followed.", 8),
        ("A total of 1,204 patients from 48 clinics were randomised.", 1204),
        ("48 clinics were randomised; 3,120 patients were enrolled.", 3120),
        ("Forty general practices enrolled 2,310 adults with diabetes.", 2310),
        ("Over 12,450 person-years of follow-up, 312 deaths occurred among 2,140 men.", 2140),
        ("During 5,600 patient-years, 412 of 1,830 participants had a stroke.", 1830),
        ("We followed 960 women for 8,900 person-years; 210 events occurred.", 960),
        (
            "Patients took 500 mg of aspirin daily. In total, 86 patients completed the trial of the 102 randomised.",
            102,
        ),
        ("We randomised 102 adults; 86 completed follow-up.", 102),
        ("Adults aged 65 to 80 years (n = 214) were enrolled.", 214),
        ("A total of 300 events were recorded in 150 patients.", 150),
        ("There were 620 hospital admissions in 230 patients.", 230),
        ("We analysed 4,000 visits by 700 patients.", 700),
        ("Of 3,412 people screened, 240 were randomised.", 240),
        ("Of 1,500 eligible patients, 612 consented and were randomised.", 612),
        ("We screened 2,000 records and included 14 trials with 3,456 participants.", 3456),
        ("Two hundred forty participants were randomized 1:1 to drug (n=120) or placebo (n=120).", 240),
        ("Participants were randomly assigned to yoga (n = 34) or waiting list (n = 32).", 66),
        ("120 patients were randomised to drug and 118 to placebo.", 238),
        ("We randomly assigned 61 patients to surgery and 59 patients to physiotherapy.", 120),
        ("Patients (mean age 64 years; 52% women) received 40 mg daily for 12 weeks. The sample was 77 adults.", 77),
        ("The trial recruited 1 012 adults in 27 centres in 9 countries.", 1012),
        ("Fifty-six nurses from 4 hospitals completed questionnaires.", 56),
        ("The 95% CI was 1.2 to 3.4; 18 strokes occurred in 410 patients.", 410),
        ("Data from 12 randomised trials (n = 4,812) were pooled in this systematic review of MEDLINE.", 4812),
        ("A 3-year study of 98 children.", 98),
        ("Over 3 years, 98 children were seen at 2 clinics.", 98),
        ("Between 2010 and 2015, 451 consecutive patients were treated; 39 patients died.", 451),
        ("Thirty-two knees in 28 patients were operated.", 28),
        ("We studied 64 eyes of 40 patients.", 40),
        ("N = 88.", 88),
        ("Participants: 88 community-dwelling adults aged 70 years or older.", 88),
        ("SETTING: 14 primary care practices. PARTICIPANTS: 512 smokers.", 512),
        ("A cluster trial in 22 schools (1,844 pupils).", 1844),
        ("22 schools with 1,844 pupils were randomised.", 1844),
        ("The cohort comprised 15,203 person-years from 1,987 veterans.", 1987),
        ("The intention-to-treat population comprised 402 patients, and 380 were analysed per protocol.", 402),
        ("Sixteen volunteers each took 200 mg on 3 occasions, giving 48 measurements.", 16),
        ("Nine patients had 27 lesions.", 9),
        ("We enrolled eight adults. 166 scans were analysed.", 8),
        ("This single-centre series describes eight patients; 166 have been reported in the literature.", 8),
        ("Eight patients were included. Previously, 166 patients had been described.", 8),
        ("In a previous trial of 1,500 patients aspirin failed. We enrolled 80 adults.", 80),
        ("A sample size of 200 was planned; 173 patients were enrolled.", 173),
        ("Interviews were held with 23 carers over 166 hours.", 23),
        ("A total of 166 blood samples from 8 patients were analysed.", 8),
        ("Eight patients with 166 metastases were irradiated.", 8),
        ("Records of 166 admissions of 8 patients were reviewed.", 8),
        ("Each of 166 doses was given to one of 8 patients.", 8),
        ("Children were assigned to no varnish (n = 126), once a year (n = 125) or twice a year (n = 125).", 376),
        ("We matched those treated by video (n = 71) with patients of the hospital (n = 71).", 142),
        ("Nurses were allocated to training (n = 71) or none (n = 70). Six nurses withdrew.", 141),
        ("The study covers 9,812 births by 9,640 women.", 9640),
        ("Rats were divided into four groups (n = 8 per group).", 32),
        ("Patients were randomised, 40 per group.", 80),
    ],
)
def test_a_study_rests_on_its_participants_not_on_what_else_is_counted(text: str, participants: int) -> None:
    found = study_size(text)
    assert found is not None
    assert found.value == participants
