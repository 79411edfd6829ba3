"""The demo's cases, abstracts and recorded audits are what their labels say."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from masis.api.exam_results import ExamResults, build_examinee_of_run
from masis.audit.acceptance import RULE_VERSION
from masis.schema.case import Case, GoldLabels
from masis.schema.run import Run
from masis.schema.screening import STUDY_TYPES, Abstract
from masis.services import demo_cases
from masis.settings import Settings
from masis.views.words import model_words
from tests.rules import for_each
from tools.recorded_audits import EXPECTED, is_complete, outcome, replay_demo_audits

DATA = Path(__file__).resolve().parents[2] / "data"
FILES = sorted((DATA / "cases").glob("*.jsonl"))
DECOYS = {"[sic]", "[EMIM]", "[OAc]", "[BMIM]", "[Cl]"}
FACTS = ("altered_number", "altered_date", "swapped_name", "negation")
VERDICTS = {"supported", "partial", "contradicted", "unsupported", "unverifiable"}
PLANTS = {*FACTS, "over_general", "fabricated_claim", "uncited_claim", "source_conflict"}
FINDINGS = set(
    "hallucination unsupported contradiction incomplete outdated logical factual safety ambiguity"
    " missing_info incomplete_reasoning source_conflict fabricated_citation uncited misattributed"
    " overgeneral".split()
)
IN_WORDS = {
    "2,000": "two thousand",
    "7": "seven",
    "19": "nineteen",
    "26": "twenty-six",
    "31": "thirty-one",
    "44": "forty-four",
    "64": "sixty-four",
    "640,000": "six hundred and forty thousand",
}
BRACKET = re.compile(r"\[[^\[\]\n]+\](?:\([^()\s]+\))?|【[^】\n]+】|\(Source \d+\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)

JsonCase = dict[str, Any]


def read_cases(path: Path) -> list[JsonCase]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


CASES = [case for path in FILES for case in read_cases(path)]
ANSWERED = [case for case in CASES if "answer" in case]
for_each_case = for_each(CASES, lambda case: case["id"])
for_each_answered = for_each(ANSWERED, lambda case: case["id"])


def resolve(reference: str, evidence: list[dict[str, str]]) -> str | None:
    """The id a reference names: as an id, an address, a last number, a position where ids have no
    number.
    """
    ids = [chunk["id"] for chunk in evidence]
    for chunk in evidence:
        if reference in (chunk["id"], chunk["source"]):
            return chunk["id"]
    if not reference.isdigit():
        return None
    endings = [match for chunk_id in ids if (match := re.search(r"\d+$", chunk_id))]
    if endings:
        named = [match.string for match in endings if match.group() == reference]
        return named[0] if len(named) == 1 else None
    return ids[int(reference) - 1] if 1 <= int(reference) <= len(ids) else None


def plants(case: JsonCase) -> Counter[str]:
    """What is planted in a case: claims by kind, references by status, findings about the whole
    answer.
    """
    labels = case["labels"]
    found = Counter(claim["planted"] for claim in labels["claims"] if "planted" in claim)
    names = {
        "invalid": "fabricated_citation",
        "misattributed": "misattributed",
        "redundant": "redundant",
    }
    found.update(names[ref["status"]] for ref in labels["citations"] if ref["status"] in names)
    of_the_whole = {
        "safety",
        "missing_info",
        "logical",
        "incomplete_reasoning",
        "outdated",
        "ambiguity",
    }
    found.update(
        finding["type"] for finding in labels["findings"] if finding["type"] in of_the_whole
    )
    found.update("unverifiable" for claim in labels["claims"] if claim["verdict"] == "unverifiable")
    return found


def test_there_are_at_least_44_cases_from_8_fields() -> None:
    assert len(CASES) >= 44
    assert len({case["metadata"]["field"] for case in CASES}) == len(FILES) >= 8
    assert max(Counter(case["id"] for case in CASES).values()) == 1
    assert all(path.stat().st_size < 400_000 for path in FILES)


@for_each_case
def test_every_case_round_trips(case: JsonCase) -> None:
    assert Case.model_validate(case).to_json_dict() == case


@for_each_answered
def test_every_labelled_claim_occurs_once_verbatim(case: JsonCase) -> None:
    ids = {chunk["id"] for chunk in case["evidence"]}
    assert case["labels"]["claims"]
    for claim in case["labels"]["claims"]:
        assert case["answer"].count(claim["text"]) == 1, claim["text"]
        assert claim["verdict"] in VERDICTS
        assert claim.get("planted") in {None, *PLANTS}
        assert set(claim["evidence"]) <= ids
        if claim["verdict"] in {"supported", "partial", "contradicted"}:
            assert claim["evidence"], f"no evidence named for {claim['text']!r}"
        if claim["verdict"] == "contradicted" and claim.get("planted") in FACTS:
            assert claim["correct"]


@for_each_answered
def test_labelled_references_resolve_as_labelled(case: JsonCase) -> None:
    ids = {chunk["id"] for chunk in case["evidence"]}
    for ref in case["labels"]["citations"]:
        assert case["answer"].count(ref["sentence"]) == 1, ref
        assert ref["text"] in ref["sentence"]
        named = resolve(ref["reference"], case["evidence"])
        assert (named is None) == (ref["status"] == "invalid"), ref
        assert ref.get("evidence_id") in {None, *ids}
        if ref["status"] in {"valid", "redundant"}:
            assert ref["evidence_id"] == named
        if ref["status"] == "misattributed":
            assert ref["evidence_id"] not in {None, named}


@for_each_answered
def test_every_marker_is_labelled_or_a_known_decoy(
    case: JsonCase,
) -> None:
    prose = CODE.sub("", case["answer"])
    markers = {match.group() for match in BRACKET.finditer(prose)} - DECOYS
    assert markers == {ref["text"] for ref in case["labels"]["citations"]}
    for ref in case["labels"]["citations"]:
        same = [other for other in case["labels"]["citations"] if other["text"] == ref["text"]]
        references_in_it = len({other["reference"] for other in same})
        assert len(same) == references_in_it * prose.count(ref["text"])


@for_each_answered
def test_a_claim_is_cited_exactly_if_it_has_a_reference(case: JsonCase) -> None:
    sentences = {ref["sentence"] for ref in case["labels"]["citations"]}
    for claim in case["labels"]["claims"]:
        assert claim["cited"] == (claim["text"] in sentences), claim["text"]


@for_each_answered
def test_clean_cases_are_supported_cited_and_without_issues(case: JsonCase) -> None:
    labels = case["labels"]
    faultless = (
        all(
            claim["verdict"] == "supported" and claim["cited"] and "planted" not in claim
            for claim in labels["claims"]
        )
        and all(ref["status"] == "valid" for ref in labels["citations"])
        and not labels["findings"]
    )
    assert labels["clean"] == faultless
    assert faultless == ("reference_answer" not in labels)


@for_each_case
def test_labelled_issues_have_a_known_type_and_quote_the_answer(case: JsonCase) -> None:
    for finding in case["labels"]["findings"]:
        assert finding["type"] in FINDINGS
        assert finding["severity"] in {"critical", "high", "medium", "low"}
        assert finding["description"]
        if "text" in finding:
            assert case["answer"].count(finding["text"]) == 1


@for_each_case
def test_reference_answers_have_no_fault(case: JsonCase) -> None:
    corrected = case["labels"].get("reference_answer")
    if corrected is None:
        return
    wrong = [claim["text"] for claim in case["labels"]["claims"] if claim["verdict"] != "supported"]
    assert not [text for text in wrong if text in corrected]
    invented = [ref["text"] for ref in case["labels"]["citations"] if ref["status"] == "invalid"]
    assert not [text for text in invented if text in corrected]
    for number in re.findall(r"\[(?:chunk_)?(\d+)\]", CODE.sub("", corrected)):
        assert resolve(number, case["evidence"]), number


@for_each_answered
def test_supported_numbers_are_in_the_named_evidence(case: JsonCase) -> None:
    texts = {chunk["id"]: f"{chunk['source']} {chunk['text']}" for chunk in case["evidence"]}
    for claim in case["labels"]["claims"]:
        if claim["verdict"] != "supported":
            continue
        bare = BRACKET.sub("", claim["text"])
        said = " ".join(
            [case["query"], *(texts[chunk_id] for chunk_id in claim["evidence"])]
        ).lower()
        numbers = re.findall(r"\d(?:[\d.,]*\d)?", bare)
        missing = [
            number
            for number in numbers
            if number not in said and IN_WORDS.get(number, number) not in said
        ]
        if not any(decoy in claim["text"] for decoy in DECOYS):
            assert not missing, (claim["text"], missing)


def test_the_codebook_matches_the_planted_faults() -> None:
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \| \d+ \| (.+?) \|$",
        (DATA / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )
    told = {case_id: Counter(_kinds(cell)) for case_id, cell in rows}
    assert told == {case["id"]: plants(case) for case in CASES}


def _kinds(cell: str) -> dict[str, int]:
    if cell.startswith(("clean", "no draft")):
        return {}
    parts = [re.fullmatch(r"([a-z_]+)(?: ×(\d+))?", part) for part in cell.split(", ")]
    return {part[1]: int(part[2] or 1) for part in parts if part}


def test_the_two_systems_answer_the_same_questions_from_the_same_evidence() -> None:
    first, second = (
        read_cases(DATA / "systems" / f"{name}.jsonl") for name in ("baseline", "candidate")
    )
    for before, after in zip(first, second, strict=True):
        for name in ("id", "query", "evidence"):
            assert before[name] == after[name]
        assert re.fullmatch(r"services-\d\d", before["id"])  # which doesn't name its fault


# The demo abstracts hold what data/screening/README.md promises: marked, varied, of a plausible
# length, importable

FOLDER = Path(__file__).resolve().parents[2] / "data" / "screening"
KINDS = {"strong", "borderline", "mixed", "weak", "insufficient"}
LEAST, MOST_WORDS, SHORTEST = 90, 250, 110

SIZE_IN_WORDS: dict[int, tuple[str, ...]] = {
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
for_each_record = for_each(RECORDS, lambda record: record["id"])
for_each_question = for_each(QUESTIONS, lambda question: question["id"])


@for_each_record
def test_every_record_is_marked_as_a_demo(record: JsonRecord) -> None:
    assert record["written_for_demo"] is True
    assert record["doi"].startswith("10.5555/")
    assert record["journal"].startswith("Demo ")
    assert all("NCT999" in number for number in re.findall(r"NCT\d+", record["text"]))


@for_each_record
def test_every_record_is_a_valid_abstract(record: JsonRecord) -> None:
    abstract = Abstract.model_validate(record)
    assert abstract.id == record["id"]
    assert abstract.model_extra["labels"] == record["labels"]


@for_each_record
def test_labelled_sample_sizes_are_in_the_abstract(record: JsonRecord) -> None:
    size = record["labels"]["sample_size"]
    if size is not None:
        stated = (*SIZE_IN_WORDS.get(size, ()), str(size), f"{size:,}")
        assert any(words in record["text"] for words in stated)


def test_all_14_study_types_occur() -> None:
    found = Counter(record["labels"]["study_type"] for record in RECORDS)
    assert set(found) == set(STUDY_TYPES)
    assert found["human_rct_non_drug_intervention"] >= 10
    assert max(found.values()) <= len(RECORDS) / 4


@for_each_question
def test_every_question_has_an_expected_result_and_abstracts(question: JsonRecord) -> None:
    assert question["kind"] in KINDS
    assert question["why"]
    assert question["expected"]["outcome"] in {"sufficient", "conflicting", "evidence_insufficient"}
    assert 1 <= question["expected"]["least"] <= question["expected"]["most"] <= 4
    assert sum(record["labels"]["topic"] == question["id"] for record in RECORDS) >= 4


def test_every_kind_of_question_and_off_topic_abstracts_occur() -> None:
    assert {question["kind"] for question in QUESTIONS} == KINDS
    assert sum(record["labels"]["topic"] == "off" for record in RECORDS) >= 10


def test_the_samples_have_ten_records_in_every_format() -> None:
    known = {record["id"]: record for record in RECORDS}
    sample = lines(FOLDER / "import" / "sample.jsonl")
    assert len(sample) == 10
    assert all(known[record["id"]] == record for record in sample)
    dois = {record["doi"] for record in sample}
    folder = FOLDER / "import"
    assert (
        set(re.findall(r"^DO  - (\S+)$", (folder / "sample.ris").read_text("utf-8"), re.M)) == dois
    )
    assert (
        set(
            re.findall(
                r"^  doi      = \{(\S+)\},$", (folder / "sample.bib").read_text("utf-8"), re.M
            )
        )
        == dois
    )
    assert (
        set(re.findall(r"^AID - (\S+) \[doi\]$", (folder / "sample.nbib").read_text("utf-8"), re.M))
        == dois
    )
    tree = ET.parse(folder / "sample.xml")
    assert {element.text for element in tree.iter("ELocationID")} == dois


def test_the_readme_counts_are_correct() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "one hundred and sixteen" in readme
    assert len(RECORDS) == 116


# The demo's recorded audits: what the loop makes of real replies of a model, case by case

RECORDED = {case.id: case for case in demo_cases()}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return replay_demo_audits()


def test_recorded_audits_match_the_expected_results(runs: dict[str, Run]) -> None:
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    assert runs.keys() == expected.keys(), "python tools/recorded_audits.py writes it"
    changed = {name: outcome(run) for name, run in runs.items() if outcome(run) != expected[name]}
    assert not changed, (
        "read what changed; if it is right: python"
        f" tools/recorded_audits.py\n{json.dumps(changed, indent=1)}"
    )


def test_every_step_has_a_recorded_reply(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        assert is_complete(run), name
        assert {call.source for call in run.calls} == {"replay"}, name
        assert run.usage.calls == 0, name
        assert model_words(run.models["critic"]).startswith("recorded replies of "), name
        assert model_words(run.models["critic"]).endswith("; no model was called"), name


def test_demo_audits_cover_every_field_and_fault(runs: dict[str, Run]) -> None:
    cases = [RECORDED[name] for name in runs]
    assert len(cases) == len(RECORDED) >= 40
    assert min(Counter(name.rpartition("-")[0].partition("-")[0] for name in runs).values()) >= 4
    labels = [case.labels for case in cases if case.labels is not None]
    assert {claim.verdict for label in labels for claim in label.claims} >= VERDICTS
    statuses = {citation.status for label in labels for citation in label.citations}
    assert statuses >= {"valid", "invalid", "misattributed", "redundant"}
    assert sum(label.clean is True for label in labels) >= 10
    assert max(run.total_iterations for run in runs.values()) >= 2


def test_recorded_replies_accept_only_with_a_passed_exam(
    runs: dict[str, Run],
) -> None:
    settings = Settings()
    for run in runs.values():
        passed = ExamResults().standing(build_examinee_of_run(run, settings)).passed
        assert passed != ("model_not_examined" in {reason.code for reason in run.review_reasons})
        assert passed or run.needs_review


def lacks_citations_only(label: GoldLabels) -> bool:
    """Whether all that is wrong is that true sentences carry no citation: such an answer may pass."""
    planted = {claim.model_dump().get("planted") for claim in label.claims} - {None}
    return planted == {"uncited_claim"}


def test_without_the_exam_clean_answers_pass_and_faulty_ones_dont() -> None:
    runs = replay_demo_audits(accept_without_exam=True)
    labelled = {name: RECORDED[name].labels for name in runs}
    faulty = [
        name
        for name, label in labelled.items()
        if label is not None and label.clean is False and not lacks_citations_only(label)
    ]
    clean = [name for name, label in labelled.items() if label is not None and label.clean]
    assert [name for name in faulty if not runs[name].needs_review] == []
    assert sum(not runs[name].needs_review for name in clean) >= 0.85 * len(clean)
    assert {run.acceptance.rule for run in runs.values()} == {RULE_VERSION}
