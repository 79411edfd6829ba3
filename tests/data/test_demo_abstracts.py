"""The demo abstracts hold what data/screening/README.md promises: marked, varied, of a plausible length, importable."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

from masis.schema.screening import STUDY_TYPES, Abstract
from tests.rules import each

FOLDER = Path(__file__).resolve().parents[2] / "data" / "screening"
KINDS = {"strong", "borderline", "mixed", "weak", "insufficient"}
LEAST, MOST_WORDS, SHORTEST = 90, 250, 110

IN_WORDS: dict[int, tuple[str, ...]] = {
    1: ("A ", "An "),
    5: ("five",),
    6: ("six",),
    8: ("eight",),
    11: ("eleven",),
    21: ("Twenty-one",),
    22: ("Twenty-two",),
    24: ("Twenty-four",),
    30: ("Thirty",),
    36: ("Thirty-six",),
    38: ("Thirty-eight",),
    44: ("Forty-four",),
    57: ("Fifty-seven",),
    60: ("Sixty",),
    64: ("Sixty-four",),
    72: ("Seventy-two",),
    92: ("Ninety-two",),
    122: ("One hundred and twenty-two",),
}

JsonRecord = dict[str, Any]


def lines(path: Path) -> list[JsonRecord]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


RECORDS = lines(FOLDER / "abstracts.jsonl")
QUESTIONS: list[JsonRecord] = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
each_record = each(RECORDS, lambda record: record["id"])
each_question = each(QUESTIONS, lambda question: question["id"])


@each_record
def test_every_record_is_marked_as_written_for_the_demo(record: JsonRecord) -> None:
    assert record["written_for_demo"] is True
    assert record["doi"].startswith("10.5555/")
    assert record["journal"].startswith("Demo ")
    assert all("NCT999" in number for number in re.findall(r"NCT\d+", record["text"]))


@each_record
def test_every_record_is_an_abstract_as_the_critic_reads_it(record: JsonRecord) -> None:
    abstract = Abstract.model_validate(record)
    assert abstract.id == record["id"]
    assert abstract.model_extra is not None
    assert abstract.model_extra["labels"] == record["labels"]


@each_record
def test_a_labelled_size_is_a_number_the_abstract_states(record: JsonRecord) -> None:
    size = record["labels"]["sample_size"]
    if size is not None:
        stated = (*IN_WORDS.get(size, ()), str(size), f"{size:,}")
        assert any(words in record["text"] for words in stated)


def test_all_fourteen_study_types_occur_in_a_mix_like_that_of_real_searches() -> None:
    found = Counter(record["labels"]["study_type"] for record in RECORDS)
    assert set(found) == set(STUDY_TYPES)
    assert found["human_rct_non_drug_intervention"] >= 10
    assert max(found.values()) <= len(RECORDS) / 4


@each_question
def test_a_question_says_what_is_expected_and_why_and_has_abstracts(question: JsonRecord) -> None:
    assert question["kind"] in KINDS
    assert question["why"]
    assert question["expected"]["outcome"] in {"sufficient", "conflicting", "evidence_insufficient"}
    assert 1 <= question["expected"]["least"] <= question["expected"]["most"] <= 4
    assert sum(record["labels"]["topic"] == question["id"] for record in RECORDS) >= 4


def test_every_kind_of_question_occurs_and_some_abstracts_are_about_none() -> None:
    assert {question["kind"] for question in QUESTIONS} == KINDS
    assert sum(record["labels"]["topic"] == "off" for record in RECORDS) >= 10


def test_the_samples_hold_ten_of_the_records_in_every_format() -> None:
    known = {record["id"]: record for record in RECORDS}
    sample = lines(FOLDER / "import" / "sample.jsonl")
    assert len(sample) == 10
    assert all(known[record["id"]] == record for record in sample)
    dois = {record["doi"] for record in sample}
    folder = FOLDER / "import"
    assert set(re.findall(r"^DO  - (\S+)$", (folder / "sample.ris").read_text("utf-8"), re.M)) == dois
    assert set(re.findall(r"^  doi      = \{(\S+)\},$", (folder / "sample.bib").read_text("utf-8"), re.M)) == dois
    assert set(re.findall(r"^AID - (\S+) \[doi\]$", (folder / "sample.nbib").read_text("utf-8"), re.M)) == dois
    tree = ET.parse(folder / "sample.xml")
    assert {each.text for each in tree.iter("ELocationID")} == dois


def test_the_readme_counts_right() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "one hundred and sixteen" in readme
    assert len(RECORDS) == 116
