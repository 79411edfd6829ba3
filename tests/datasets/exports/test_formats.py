"""The content of each export format, the cases it omits and reports, and the split of each
question.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from defusedxml import ElementTree

from masis.datasets.exports.export import DECISIONS, Selection
from masis.datasets.exports.formats import export_formats, labelling_interface
from masis.datasets.exports.splits import SplitShares, assign_splits
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.labels import LABEL_CHOICES, TargetLabel
from masis.schema.team import DEFAULT_LABEL_TYPES, LabelType, LabelTypes, QueuePolicy
from masis.services import Workbench
from masis.store import Store
from masis.store.audits.queue import QUERY_SHOWN
from masis.store.records import CaseFilter
from tests.modes import WRONG_DATE, WRONG_UNIT
from tests.reviewing import ADA, decide
from tests.store.factories import a_case

ANSWER = "The bridge is 12 metres long [1]. It is red [9]."
ROW = {"id": "1", "text": "The bridge is 120 metres long."}
GOOD = "The bridge is 120 metres long [1]."
LONGER = f"{GOOD} Its colour isn't given."
TURNS = [
    {"role": "human", "content": "Which bridges are there?"},
    {"role": "ai", "content": "Five."},
    {"role": "tool", "content": "lookup"},
    {"role": "user", "content": "How long is bridge number 1?"},
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Five audited cases: rejected by Ben and then overridden by Ada, approved, rejected,
    overridden, and open.
    """
    bench = Workbench.open(tmp_path_factory.mktemp("formats") / "formats.db")
    for number in range(1, 6):
        case = Case.model_validate(
            {
                "id": f"case-{number}",
                "query": f"How long is bridge number {number}?",
                "answer": ANSWER,
                "evidence": [
                    {"id": "1", "text": "The bridge is 120 metres long.", "licence": "CC-BY-4.0"},
                    {
                        "id": "survey",
                        "text": "passage 2: red.\n\npassage 3: old",
                        "source": "survey.pdf",
                    },
                ],
                "metadata": (
                    {"dataset": "pilot" if number < 4 else "other"}
                    | ({"trace_id": "trace-1"} if number == 1 else {})
                ),
                **({"messages": TURNS} if number == 1 else {}),
            }
        )
        bench.cases.add_one(ADA, case)
        bench.audits.audit(ADA, case)
    decide(bench, "case-1", "reject", "Ben", iteration=1, labels=label_claim("partial"))
    decide(
        bench,
        "case-1",
        "override",
        iteration=1,
        labels=label_claim("contradicted"),
        corrected_answer=GOOD,
    )
    decide(bench, "case-2", "approve", iteration=1)
    decide(bench, "case-3", "reject", iteration=1)
    decide(bench, "case-4", "override", iteration=1, corrected_answer=LONGER)
    yield bench
    bench.close()


def label_claim(label: str) -> tuple[TargetLabel, ...]:
    """Return a label for the first claim of the answer."""
    words = ANSWER[: ANSWER.index(" It is")]
    return (TargetLabel(target="claim", start=0, end=len(words), text=words, label=label),)


def rows(
    bench: Workbench, form: str, selection: Selection = DECISIONS
) -> tuple[list[Any], dict[str, Any]]:
    out = io.BytesIO()
    written = bench.exports.write(ADA, out, form, selection)
    text = out.getvalue().decode()
    found = (
        json.loads(text)
        if export_formats()[form].suffix == ".json"
        else list(map(json.loads, text.splitlines()))
    )
    return found, written.manifest


def test_labels_have_a_row_per_reviewer_with_the_machine_verdict(bench: Workbench) -> None:
    found, manifest = rows(bench, "labels")
    assert [(row["reviewer"], row["label"], row["in_force"]) for row in found] == [
        ("Ben", "partial", False),
        ("Ada", "contradicted", True),
    ]
    assert {row["text"] for row in found} == {"The bridge is 12 metres long [1]."}
    assert manifest["class_balance"] == {"label": {"contradicted": 1, "partial": 1}}
    assert manifest["counts"]["left_out"] == {"no label": 3}
    assert manifest["provenance"]["reviewers"] == {"Ada": 1, "Ben": 1}
    assert manifest["licences"] == {"CC-BY-4.0": 1}


def test_a_decided_case_has_its_answers_claims_and_other_decisions(
    bench: Workbench,
) -> None:
    found, _ = rows(bench, "decided")
    first = found[0]
    assert (first["answer"], first["original_answer"], first["judged_answer"]) == (
        GOOD,
        ANSWER,
        ANSWER,
    )
    assert [decision["decision"]["reviewer"] for decision in first["decisions"]] == ["Ben", "Ada"]
    assert {"verdict", "start", "end", "text"} <= set(first["claims"][0])
    assert any(citation["status"] == "invalid" for citation in first["citations"])
    assert any(issue["rule"] == "fabricated_reference" for issue in first["issues"])


def test_decided_cases_as_csv_are_readable_in_a_spreadsheet(bench: Workbench) -> None:
    stream = io.BytesIO()
    bench.exports.write(ADA, stream, "decided", encoding="csv")
    found = list(csv.DictReader(io.StringIO(stream.getvalue().decode())))
    assert [row["case_id"] for row in found] == [f"case-{number}" for number in range(1, 5)]
    first = {
        name: found[0][name]
        for name in ("question", "decision", "reviewer", "answer", "original_answer")
    }
    assert first == {
        "question": "How long is bridge number 1?",
        "decision": "override",
        "reviewer": "Ada",
        "answer": GOOD,
        "original_answer": ANSWER,
    }
    assert "record" not in found[0]


def test_pairs_are_exported_only_if_a_reviewer_chose_another_text(bench: Workbench) -> None:
    found, manifest = rows(bench, "pairs")
    assert [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in found] == [
        (GOOD, ANSWER),
        (LONGER, ANSWER),
    ]
    assert manifest["counts"]["left_out"] == {"no answer stands": 1, "the texts are the same": 1}
    (openai, _other), _ = rows(bench, "pairs-openai")
    assert set(openai) == {"input", "preferred_output", "non_preferred_output"}
    chats, _ = rows(bench, "sft")
    assert [row["messages"][-1]["content"] for row in chats] == [GOOD, ANSWER, LONGER]
    assert [len(row["messages"]) for row in chats] == [4, 2, 2]
    before = [
        {"role": "user", "content": "Which bridges are there?"},
        {"role": "assistant", "content": "Five."},
    ]
    assert (
        chats[0]["messages"][:2]
        == found[0]["prompt"][:2]
        == openai["input"]["messages"][:2]
        == before
    )


def test_spans_omit_a_rejected_answer_without_labels(bench: Workbench) -> None:
    found, manifest = rows(bench, "spans")
    by_type = {
        (row["source_id"], row["reviewer"]): [label["label_type"] for label in row["labels"]]
        for row in found
    }
    assert by_type == {
        ("case-1", "Ben"): ["Subtle Baseless Info"],
        ("case-1", "Ada"): ["Evident Conflict"],
        ("case-2", "Ada"): [],
    }
    assert manifest["counts"]["left_out"] == {"no label": 2}


def test_label_studio_has_the_machine_claims_and_each_reviewers_labels(bench: Workbench) -> None:
    found, manifest = rows(bench, "label-studio")
    assert len(found[0]["predictions"][0]["result"]) >= 1
    assert [annotation["ground_truth"] for annotation in found[0]["annotations"]] == [False, True]
    assert '<Label value="contradicted"/>' in manifest["labelling_interface"]


def test_reported_issues_are_exported_with_severity_note_and_position(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "reported.db")
    for number in (1, 2):
        case = Case.model_validate(
            {"id": f"case-{number}", "query": "How long?", "answer": ANSWER, "evidence": [ROW]}
        )
        bench.cases.add_one(ADA, case)
        bench.audits.audit(ADA, case)
    bench.team.put_in_force(
        ADA, LabelTypes(types=(LabelType(name='<rude> & "red"'), *DEFAULT_LABEL_TYPES))
    )
    at = ANSWER.index("red")
    place = {"target": "span", "start": at, "end": at + 3, "text": "red"}
    labels = [
        TargetLabel.model_validate(
            {**place, "label": "fabricated citation", "severity": "critical", "note": "none"}
        ),
        TargetLabel.model_validate({**place, "label": '<rude> & "red"', "severity": "low"}),
        TargetLabel(target="answer", label="incomplete", severity="medium", note="no width"),
    ]
    decide(bench, "case-1", "reject", iteration=1, labels=labels)
    decide(bench, "case-2", "reject", iteration=1, labels=labels[2:])
    found, manifest = rows(bench, "labels")
    names = ("target", "start", "end", "text", "label", "severity", "note")
    assert [tuple(row[name] for name in names) for row in found[:3]] == [
        ("span", at, at + 3, "red", "fabricated citation", "critical", "none"),
        ("span", at, at + 3, "red", '<rude> & "red"', "low", ""),
        ("answer", None, None, "", "incomplete", "medium", "no width"),
    ]
    (row,), manifest = rows(bench, "spans")
    assert [(label["text"], label["label_type"]) for label in row["labels"]] == [
        ("red", "Evident Baseless Info")
    ]
    assert [issue["label"] for issue in row["reported"]] == [label.label for label in labels]
    # this issue has no position in the answer
    assert manifest["counts"]["left_out"] == {"no label": 1}
    decided, _ = rows(bench, "decided")
    assert decided[0]["labels"] == [label.model_dump(mode="json") for label in labels]
    (task, _), manifest = rows(bench, "label-studio")
    regions = task["annotations"][0]["result"]
    assert [region["type"] for region in regions] == ["labels", "labels", "choices"]
    assert regions[0]["meta"]["text"] == ["reviewer: Ada", "severity: critical", "note: none"]
    interface = ElementTree.fromstring(manifest["labelling_interface"])
    offered = {
        kind: [element.attrib["value"] for element in interface.iter(kind)]
        for kind in ("Label", "Choice")
    }
    assert {region["value"]["labels"][0] for region in regions[:2]} <= set(offered["Label"])
    assert "incomplete" in offered["Choice"]
    bench.close()


def test_ragas_has_a_reference_only_for_an_approved_or_corrected_answer(bench: Workbench) -> None:
    found, _ = rows(bench, "ragas")
    assert [row.get("reference") for row in found] == [GOOD, ANSWER, None, LONGER]
    assert found[0]["retrieved_context_ids"] == ["1", "survey"]
    assert found[0]["retrieved_context_sources"] == ["", "survey.pdf"]


def test_a_corrected_answer_lists_the_citations_it_keeps(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "given.db")
    answer = "The bridge is 120 metres long. It is red. Nobody knows why."
    given = [
        {
            "start": 0,
            "end": 30,
            "evidence_id": "1",
            "quote": "The bridge is 120 metres long.",
            "provider": "a",
        },
        {"start": 31, "end": 41, "evidence_id": "1"},
    ]
    case = {"query": "How long?", "answer": answer, "evidence": [ROW], "citations": given}
    for number in (1, 2, 3):
        bench.cases.add_one(ADA, Case.model_validate({"id": f"case-{number}", **case}))
        bench.audits.audit(ADA, bench.store.cases.get(f"case-{number}"))
    corrected = "Indeed. The bridge is 120 metres long. Nobody knows why."
    for number, verdict in ((1, "override"), (2, "approve"), (3, "reject")):
        given_answer = {"corrected_answer": corrected} if verdict == "override" else {}
        decide(bench, f"case-{number}", verdict, iteration=1, **given_answer)
    found, _ = rows(bench, "decided")
    assert [row["answer_citations"] for row in found] == [
        [{**given[0], "start": 8, "end": 38}],
        given,
        [],
    ]
    (kept,) = found[0]["answer_citations"]
    assert found[0]["answer"][kept["start"] : kept["end"]] == kept["quote"]
    bench.close()


def test_scores_link_to_the_trace_and_are_stable_across_exports(bench: Workbench) -> None:
    found, manifest = rows(bench, "langfuse-scores")
    assert {row["traceId"] for row in found} == {"trace-1"}
    assert next(row["value"] for row in found if row["name"] == "masis-decision") == "override"
    assert manifest["counts"]["left_out"] == {"no trace id": 3}
    assert rows(bench, "langfuse-scores")[0] == found


def test_the_queue_filters_narrow_an_export(bench: Workbench) -> None:
    found, manifest = rows(bench, "decided", Selection(CaseFilter(datasets=("other",))))
    assert [row["case"]["id"] for row in found] == ["case-4", "case-5"]
    assert found[1]["decision"] is None
    assert found[1]["claims"]
    assert manifest["filter"] == {"datasets": ["other"]}
    assert [
        row["case"]["id"]
        for row in rows(bench, "decided", Selection(CaseFilter(states=("rejected",))))[0]
    ] == ["case-3"]


def test_a_hugging_face_folder_has_splits_and_a_card_and_replaces_no_other_folder(
    bench: Workbench, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    first = bench.exports.write_file(ADA, folder, "hf")
    assert first.rows == 4
    again = bench.exports.write_file(ADA, folder, "hf")
    assert again == first
    written = [
        json.loads(line)
        for file in (folder / "data").iterdir()
        for line in file.read_text().splitlines()
    ]
    assert {row["id"] for row in written} == {f"case-{number}" for number in range(1, 5)}
    assert (folder / "README.md").read_text().startswith('---\nlicense: "CC-BY-4.0"\n')
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        bench.exports.write_file(ADA, other, "hf")
    assert (other / "thesis.txt").read_text() == "mine"


def test_each_row_of_a_hugging_face_folder_has_the_fields_and_types_that_its_card_declares(
    bench: Workbench, tmp_path: Path
) -> None:
    # With every state there are rows without a decision, labels, sources and a ground truth.
    bench.exports.write_file(ADA, tmp_path / "set", "hf", Selection(CaseFilter()))
    _, head, _ = (tmp_path / "set" / "README.md").read_text().split("---\n", 2)
    declared = yaml.safe_load(head)
    features = {field["name"]: feature_of(field) for field in declared["dataset_info"]["features"]}
    splits = {file["path"] for file in declared["configs"][0]["data_files"]}
    paths = sorted((tmp_path / "set" / "data").iterdir())
    assert {f"data/{path.name}" for path in paths if path.stat().st_size} <= splits
    written = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    assert [row["decision"] for row in written].count(None) == 1
    assert any(label["severity"] is None for row in written for label in row["labels"])
    for row in written:
        assert_fits(row, features)


def feature_of(field: dict[str, Any]) -> Any:
    """Return the type that a card declares: a name, a list of one type, or one for each name."""
    if "sequence" in field:
        return [field["sequence"]]
    if "list" in field:
        return [{part["name"]: feature_of(part) for part in field["list"]}]
    return field["dtype"]


def assert_fits(value: Any, declared: Any) -> None:
    """Check a value against a type as ``datasets`` casts it: any value may be null."""
    if isinstance(declared, dict):
        assert tuple(value) == tuple(declared)
        for name, part in value.items():
            assert_fits(part, declared[name])
    elif isinstance(declared, list):
        assert isinstance(value, list)
        for item in value:
            assert_fits(item, declared[0])
    else:
        assert value is None or type(value) is {"string": str, "int64": int}[declared]


def test_repeated_exports_are_byte_identical(bench: Workbench, tmp_path: Path) -> None:
    for encoding in ("jsonl", "csv", "parquet"):
        for name in ("one", "two"):
            bench.exports.write_file(ADA, tmp_path / name, "claims", encoding=encoding)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_nested_format_cant_be_written_as_a_table(bench: Workbench) -> None:
    with pytest.raises(
        InputError, match=r"can't be written as csv.*decided, claims, sentences, labels"
    ):
        bench.exports.write(ADA, io.BytesIO(), "sft", encoding="csv")


def test_splits_have_their_shares_and_together_hold_every_row(
    bench: Workbench,
) -> None:
    questions = [f"What are the side effects of drug{number}?" for number in range(3000)]
    sides = assign_splits(questions, SplitShares(60, 20, 20))
    for side, share in (("train", 0.6), ("validation", 0.2), ("test", 0.2)):
        assert abs(sides.count(side) / 3000 - share) < 0.08
    split = sum(
        len(rows(bench, "decided", Selection(split=side))[0])
        for side in ("train", "validation", "test")
    )
    assert split == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("When was the Golden Gate Bridge opened?", "when did the golden gate bridge open"),
        (
            "Which drugs lower blood pressure in adults?",
            "In adults, which drugs lower the blood pressure?",
        ),
        (
            "How long is the Firth of Forth railway bridge in metres?",
            "How long is the Firth of Forth railway bridge?",
        ),
    ],
)
def test_near_duplicate_questions_are_in_the_same_split(one: str, other: str) -> None:
    between = [f"Question {number} about subject {number * 31}?" for number in range(200)]
    found = assign_splits([one, *between, other], SplitShares(34, 33, 33))
    assert found[0] == found[-1]


def test_different_questions_of_one_template_are_split_independently() -> None:
    countries = (
        "France Spain Italy Norway Sweden Poland Greece Turkey Egypt Kenya Japan China Peru Chile"
        " Cuba".split()
    )
    assert (
        len(
            set(
                assign_splits(
                    [f"What is the capital of {country}?" for country in countries],
                    SplitShares(34, 33, 33),
                )
            )
        )
        == 3
    )


def test_adding_questions_moves_no_other_question() -> None:
    questions = [f"How many people live in town {number * 977}?" for number in range(300)]
    assert assign_splits([*questions, "Who wrote Faust?"])[:300] == assign_splits(questions)


def test_a_batch_of_cases_never_scans_a_table_that_grows_with_audits(
    bench: Workbench,
) -> None:
    asked: list[str] = []
    with bench.store.database.reading() as connection:
        connection.set_trace_callback(asked.append)
        try:
            assert len(list(bench.store.outcomes.iterate(CaseFilter()))) == 5
        finally:
            connection.set_trace_callback(None)
        (numbers,) = [
            sql for sql in asked if sql.startswith("SELECT seq FROM cases WHERE 1 AND")
        ]  # once for all batches
        plans = [
            (row[3], sql)
            for sql in asked
            if sql.lstrip().startswith(("SELECT", "WITH"))
            and sql != numbers
            and "count(*)" not in sql
            for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")
        ]
    assert [step for step, sql in plans if "job_parts" in sql and "SEARCH" in step]
    scanned = (
        "cases",
        "case_payloads",
        "jobs",
        "job_parts",
        "each",
        "decision_log",
        "log",
        "made",
        "written",
    )
    assert not [
        (step, sql)
        for step, sql in plans
        if step.split()[0] == "SCAN" and step.split()[1] in scanned
    ]


@pytest.mark.parametrize("form", ["decided", "spans", "hf", "label-studio", "ragas"])
def test_a_reimported_export_gives_the_same_cases(
    bench: Workbench, form: str, tmp_path: Path
) -> None:
    path = tmp_path / f"out{export_formats()[form].suffix}"
    exported = bench.exports.write_file(ADA, path, form, Selection(shares=SplitShares(100, 0, 0)))
    found = [
        record.case for record in read_any(path / "data" / "train.jsonl" if form == "hf" else path)
    ]
    assert None not in found
    again = {case.id: case for case in found if case is not None}
    assert len(again) == exported.manifest["counts"]["cases"] > 1
    for number, case in enumerate(again.values(), 1):
        stored = bench.store.cases.get(f"case-{number}")
        if form == "decided":
            assert case.digest() == stored.digest()
        assert (case.query, case.answer) == (stored.query, stored.answer)
        names = {"id", "text", "source"}
        chunks = [
            [chunk.model_dump(include=names) for chunk in kept.evidence] for kept in (case, stored)
        ]
        assert chunks[0] == chunks[1]
        assert case.id == stored.id or form == "ragas"


def test_spans_of_several_reviewers_are_reimported_as_one_case_with_all_labels(
    bench: Workbench, tmp_path: Path
) -> None:
    bench.exports.write_file(ADA, tmp_path / "spans.jsonl", "spans")
    first = next(read_any(tmp_path / "spans.jsonl")).case
    assert [claim.verdict for claim in first.labels.claims] == ["partial", "contradicted"]


def test_questions_of_any_length_are_read_whole(tmp_path: Path) -> None:
    questions = ["Why?", "é" * QUERY_SHOWN, "é" * (QUERY_SHOWN + 1), "Why " * 1_000]
    with Store.open(tmp_path / "long.db") as store:
        for number, question in enumerate(questions):
            store.cases.add(a_case(f"case-{number}", query=question))
        assert list(store.outcomes.queries(CaseFilter())) == questions


def test_the_docs_list_every_format_with_its_encodings() -> None:
    page = (Path(__file__).parents[3] / "docs" / "files.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z, -]+) \| .* \| (jsonl?[a-z, ]*) \|$", page, re.MULTILINE)
    documented = {name: encodings for names, encodings in rows for name in names.split(", ")}
    assert documented == {
        name: "jsonl, csv, parquet" if form.tabular else form.suffix[1:] or "jsonl"
        for name, form in export_formats().items()
    }


def test_label_studio_offers_every_label_a_reviewer_can_choose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LABEL_CHOICES, "claim", (*LABEL_CHOICES["claim"], "outdated"))
    offered = re.findall(r'<Label value="([^"]+)"/>', labelling_interface((), ()))
    corrections = [*LABEL_CHOICES["claim"], *LABEL_CHOICES["reference"]]
    assert offered == list(
        dict.fromkeys((*corrections, *(label.name for label in DEFAULT_LABEL_TYPES)))
    )


def test_claims_name_the_deciding_passage_and_who_named_it(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "passages.db")
    case = {"query": "How long?", "answer": GOOD, "evidence": [ROW]}
    for number in (1, 2):
        bench.cases.add_one(ADA, Case.model_validate({"id": f"case-{number}", **case}))
        bench.audits.audit(ADA, bench.store.cases.get(f"case-{number}"))
    passage = {"evidence_id": "1", "start": 14, "end": 24, "text": "120 metres"}
    label = {"target": "claim", "start": 0, "end": len(GOOD), "text": GOOD, "label": "supported"}
    named = TargetLabel.model_validate({**label, "evidence": [passage]})
    decide(bench, "case-1", "approve", iteration=1, labels=(named,))
    decide(bench, "case-2", "approve", iteration=1)
    (by_person, by_audit), _ = rows(bench, "claims")
    assert (by_person["passage_by"], by_person["passage_text"]) == ("reviewer", "120 metres")
    assert (by_person["passage_start"], by_person["passage_end"]) == (14, 24)
    assert by_audit["passage_by"] == "audit"
    start, end = by_audit["passage_start"], by_audit["passage_end"]
    assert ROW["text"][start:end] == by_audit["passage_text"] != ""
    assert by_audit["passage_stance"] == by_person["passage_stance"] == "supports"
    bench.close()


def test_a_fault_on_some_words_of_a_claim_is_in_its_row(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "faults.db")
    case = {"id": "case-1", "query": "How long?", "answer": ANSWER, "evidence": [ROW]}
    bench.cases.add_one(ADA, Case.model_validate(case))
    bench.audits.audit(ADA, bench.store.cases.get("case-1"))
    passage = {**ROW, "evidence_id": "1", "start": 0, "end": 30, "stance": "contradicts"}
    passage.pop("id")
    place = {"target": "span", "start": 14, "end": 16, "text": "12", "severity": "high"}
    label = {**place, "label": "fabricated citation", "evidence": [passage]}
    decide(bench, "case-1", "reject", iteration=1, labels=(TargetLabel.model_validate(label),))
    (first, second), _ = rows(bench, "claims")
    assert (first["label"], first["fault_labels"]) == (None, "fabricated citation")
    assert (first["cause"], first["passage_by"]) == ("citation", "reviewer")
    assert (second["fault_labels"], second["cause"]) == ("", None)
    bench.close()


def test_rows_have_the_system_the_failure_modes_and_every_note(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "modes.db")
    for number in (1, 2):
        case = {"id": f"case-{number}", "query": "How long?", "answer": ANSWER, "evidence": [ROW]}
        bench.cases.add_one(ADA, Case.model_validate(case).as_answer_of("birch"))
        bench.audits.audit(ADA, bench.store.cases.get(f"case-{number}:birch"))
    place = {"target": "span", "start": 14, "end": 16, "text": "12", "severity": "high"}
    label = {**place, "label": "contradicted", "note": "It says 120."}
    labels = (TargetLabel.model_validate(label),)
    decide(bench, "case-1:birch", "reject", iteration=1, note="A digit is missing.", labels=labels)
    for mode in (WRONG_DATE, WRONG_UNIT):
        bench.modes.add_mode(ADA, mode)
    bench.modes.code(ADA, "case-1:birch", ["wrong-date", "wrong-unit"])
    bench.modes.uncode(ADA, "case-1:birch", ["wrong-date"])
    bench.modes.code(ADA, "case-2:birch", ["wrong-date"])
    bench.modes.merge(ADA, ["wrong-unit"], "wrong-date")
    first, second = rows(bench, "claims")[0]
    for row in (first, second):
        assert (row["system"], row["modes"]) == ("birch", "Wrong date")
        assert row["decision_note"] == "A digit is missing."
    assert (first["fault_notes"], second["fault_notes"]) == ("It says 120.", "")
    (decided, undecided) = rows(bench, "decided", Selection(CaseFilter()))[0]
    mode = {"code": "wrong-date", "name": "Wrong date", "reviewers": ["Ada"]}
    assert (decided["system"], decided["modes"], undecided["modes"]) == ("birch", [mode], [mode])
    out = io.BytesIO()
    bench.exports.write(ADA, out, "decided", encoding="csv")
    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode()))
    assert (row["system"], row["modes"]) == ("birch", "Wrong date")
    bench.close()


def test_the_modes_of_a_shared_case_are_exported_once_it_is_settled(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "shared.db")
    bench.store.team.put_in_force("Ada", QueuePolicy(reviewers=2))
    bench.cases.add_one(ADA, a_case("case-1"))
    bench.audits.audit(ADA, bench.store.cases.get("case-1"))
    bench.modes.add_mode(ADA, WRONG_DATE)
    decide(bench, "case-1", "approve", iteration=1)
    bench.modes.code(ADA, "case-1", ["wrong-date"])
    (row,), _ = rows(bench, "decided", Selection(CaseFilter()))
    assert row["modes"] == []
    decide(bench, "case-1", "approve", "Ben", iteration=1)
    (row,), _ = rows(bench, "decided")
    assert [mode["code"] for mode in row["modes"]] == ["wrong-date"]
    bench.close()


def test_spans_say_who_wrote_an_imported_answer(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "authors.db")
    for name, metadata in (("case-1", {"model": "gpt-x"}), ("case-2", {})):
        case = {"id": name, "query": "How long?", "answer": GOOD, "evidence": [ROW]}
        bench.cases.add_one(ADA, Case.model_validate({**case, "metadata": metadata}))
        bench.audits.audit(ADA, bench.store.cases.get(name))
        decide(bench, name, "approve", iteration=1)
    assert [row["model"] for row in rows(bench, "spans")[0]] == ["gpt-x", "imported"]
    bench.close()


def test_claims_list_every_reviewers_label_and_the_merged_one(tmp_path: Path) -> None:
    bench = _one_case(tmp_path)
    decide(bench, "case-1", "reject", "Ben", iteration=1, labels=label_claim("partial"))
    decide(bench, "case-1", "reject", iteration=1, labels=label_claim("contradicted"))
    found, _ = rows(bench, "claims")
    both = [row for row in found if row["start"] == 0]
    assert [row["reviewer"] for row in both] == ["Ben", "Ada"]
    for row in both:
        assert row["labels"] == [
            {"reviewer": "Ben", "label": "partial"},
            {"reviewer": "Ada", "label": "contradicted"},
        ]
        # One label each is a tie.
        assert (row["merged_label"], row["merged_how"], row["merged_by"]) == (None, None, None)
    decide(bench, "case-1", "reject", "Cleo", iteration=1, labels=label_claim("partial"))
    row = rows(bench, "claims")[0][0]
    assert (row["merged_label"], row["merged_how"]) == ("partial", "majority")
    final = {"kind": "adjudication", "labels": label_claim("unsupported")}
    decide(bench, "case-1", "reject", "Dora", iteration=1, **final)
    row = rows(bench, "claims")[0][0]
    assert (row["merged_label"], row["merged_how"]) == ("unsupported", "adjudication")
    assert row["merged_by"] == "Dora"
    assert len(row["labels"]) == 3
    stream = io.BytesIO()
    bench.exports.write(ADA, stream, "claims", encoding="csv")
    cell = next(csv.DictReader(io.StringIO(stream.getvalue().decode())))["labels"]
    assert json.loads(cell) == row["labels"]
    bench.close()


def _one_case(tmp_path: Path, policy: QueuePolicy | None = None, **fields: Any) -> Workbench:
    """Return a workbench with one audited case, under a policy if there is one."""
    bench = Workbench.open(tmp_path / "one.db")
    if policy is not None:
        bench.team.put_in_force(ADA, policy)
    case = {"id": "case-1", "query": "How long?", "answer": ANSWER, "evidence": [ROW], **fields}
    bench.cases.add_one(ADA, Case.model_validate(case))
    bench.audits.audit(ADA, bench.store.cases.get("case-1"))
    return bench


EVIDENCE = [ROW, {"id": "other one", "text": "It is a road."}, {"id": "third", "text": "Unread."}]


def test_judged_chunks_are_exported_for_trec_and_beir(tmp_path: Path) -> None:
    bench = _one_case(tmp_path, evidence=EVIDENCE)
    chunk = TargetLabel(target="evidence", evidence_id="other one", label="irrelevant")
    passage = {"evidence_id": "1", "start": 14, "end": 24, "text": "120 metres"}
    (label,) = label_claim("contradicted")
    named = label.model_dump() | {"evidence": [{**passage, "stance": "contradicts"}]}
    decide(
        bench,
        "case-1",
        "reject",
        iteration=1,
        labels=(chunk, TargetLabel.model_validate(named)),
    )
    shares = Selection(shares=SplitShares(0, 100, 0))
    trec, beir = tmp_path / "trec", tmp_path / "beir"
    done = bench.exports.write_file(ADA, trec, "qrels", shares)
    assert done.manifest["class_balance"] == {"relevance": {"0": 1, "1": 1, "none": 1}}
    docs = [json.loads(line) for line in (trec / "docs.jsonl").read_text().splitlines()]
    (topic,) = map(json.loads, (trec / "topics.jsonl").read_text().splitlines())
    names = {doc["doc"]: doc["evidence_id"] for doc in docs}
    assert list(names.values()) == ["1", "other one", "third"]
    judged = [line.split() for line in (trec / "qrels.txt").read_text().splitlines()]
    assert [(line[0], line[1], names[line[2]], line[3]) for line in judged] == [
        (topic["topic"], "0", "1", "1"),
        (topic["topic"], "0", "other one", "0"),
    ]
    bench.exports.write_file(ADA, beir, "beir", shares)
    heading, *scores = (beir / "qrels" / "dev.tsv").read_text().splitlines()
    assert heading == "query-id\tcorpus-id\tscore"
    assert [score.split("\t")[1:] for score in scores] == [[line[2], line[3]] for line in judged]
    assert (beir / "qrels" / "train.tsv").read_text() == heading + "\n"
    corpus = [json.loads(line) for line in (beir / "corpus.jsonl").read_text().splitlines()]
    assert {doc["_id"]: doc["text"] for doc in corpus} == {doc["doc"]: doc["text"] for doc in docs}
    bench.close()


def test_a_misattributed_reference_is_a_hard_negative_and_the_right_one_positive(
    tmp_path: Path,
) -> None:
    bench = _one_case(tmp_path, evidence=EVIDENCE)
    at = ANSWER.index("[1]")
    label = {"target": "reference", "start": at, "end": at + 3, "text": "[1]"}
    label |= {"label": "misattributed", "right_reference": "other one"}
    decide(bench, "case-1", "reject", iteration=1, labels=(TargetLabel.model_validate(label),))
    found, _ = rows(bench, "attribution")
    assert [(row["attribution"], row["passage_evidence_id"]) for row in found] == [
        ("hard_negative", "1"),
        ("positive", "other one"),
    ]
    assert {row["text"] for row in found} == {"The bridge is 12 metres long [1]."}
    assert found[1]["passage_text"] == "It is a road."
    bench.close()


def test_pending_labels_of_a_shared_case_are_in_no_merged_label_and_judge_no_chunk(
    tmp_path: Path,
) -> None:
    policy = QueuePolicy(share=1.0, reviewers=2, rule="agree", agree=2)
    bench = _one_case(tmp_path, policy, evidence=EVIDENCE)
    chunk = TargetLabel(target="evidence", evidence_id="1", label="irrelevant")
    labels = (*label_claim("contradicted"), chunk)
    decide(bench, "case-1", "reject", "Ben", iteration=1, labels=labels)
    everything = Selection(CaseFilter())
    assert all(row["labels"] == [] for row in rows(bench, "claims", everything)[0])
    assert bench.exports.write_file(ADA, tmp_path / "beir", "beir", everything).rows == 0
    decide(bench, "case-1", "reject", iteration=1, labels=labels)
    assert any(row["labels"] for row in rows(bench, "claims", everything)[0])
    assert bench.exports.write_file(ADA, tmp_path / "beir", "beir", everything).rows == 3
    bench.close()
