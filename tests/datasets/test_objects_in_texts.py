"""JSON objects inside a text are parsed by profiles, maps and suggestions."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.datasets.mapping.profile import likely_choice, profile_of
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.schema.columns import columns_of

QUESTION, ANSWER = "How long is the bridge?", "It is 120 metres long [1] and red [2]."
CHUNKS = ["It is 120 metres long.", "It is quite red."]
SOURCES = [{"title": "survey", "text": text} for text in CHUNKS]


def opik() -> dict[str, Any]:
    output = {"answer": ANSWER, "contexts": CHUNKS}
    return {
        "id": "t1",
        "name": "rag",
        "input": json.dumps({"question": QUESTION}),
        "output": json.dumps(output),
    }


SHAPES: dict[str, dict[str, Any]] = {
    "AnythingLLM": {"prompt": QUESTION, "response": json.dumps({"text": ANSWER, "sources": SOURCES, "type": "chat"})},
    "Opik": opik(),
    "a chat log": {"log": json.dumps({"user_input": QUESTION, "model_answer": ANSWER, "docs": SOURCES})},
    "two levels": {"run": json.dumps({"in": {"question": QUESTION}, "out": {"answer": ANSWER, "documents": CHUNKS}})},
    "Python's dict": {"prompt": QUESTION, "result": repr({"completion": ANSWER, "passages": CHUNKS})},
    "RAGFlow": {"question": QUESTION, "answer": ANSWER, "reference": {"chunks": [{"id": "a", "content": CHUNKS[0]},
                                                                                {"id": "b", "content": CHUNKS[1]}]}},
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_suggested_map_and_the_suggested_columns_read_the_row(
    name: str, form: str, tmp_path: Path
) -> None:
    row, path = SHAPES[name], tmp_path / f"f.{form}"
    cells = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in row.items()
    }
    with path.open("w", newline="") as file:
        if form == "jsonl":
            file.write(json.dumps(row) + "\n")
        else:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
            writer.writerow(cells)
    with pytest.raises(InputError) as raised:
        masis.read_cases(path)
    named = re.search(r"in Python map=(\{.*?\})[;.]", str(raised.value))
    assert named, raised.value
    columns = columns_of(row if form == "jsonl" else cells)
    profile = profile_of(likely_choice(columns), columns)
    cases = [
        *masis.read_cases(path, map=json.loads(named[1])),
        *masis.read_cases(path, map=masis.suggest(path).names),
    ]
    cases += [record.case for record in read_any(path, profile) if record.case]
    assert len(cases) == 3
    for case in cases:
        assert (case.query, case.answer) == (QUESTION, ANSWER)
        assert [chunk.text for chunk in case.evidence] == CHUNKS


def test_a_langsmith_run_is_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "run_type", "trace_id", "inputs", "outputs"])
        output = {"answer": ANSWER, "documents": [{"page_content": text} for text in CHUNKS]}
        writer.writerow(
            ["r1", "chain", "t1", json.dumps({"question": QUESTION}), json.dumps(output)]
        )
    (case,) = masis.read_cases(path)
    assert (case.id, case.query, case.answer) == ("r1", QUESTION, ANSWER)
    assert [chunk.text for chunk in case.evidence] == CHUNKS


@pytest.mark.parametrize(
    "row",
    [
        {"topic": QUESTION, "references": ["d1", "d2"], "answer": ANSWER},
        {
            "question": QUESTION,
            "answer": ANSWER,
            "citations": ["https://a.example/1", "https://b.example/2"],
        },
        {
            "question": QUESTION,
            "answer": ANSWER,
            "spans": [{"id": "o1", "name": "retrieve"}, {"id": "o2", "name": "llm"}],
        },
    ],
)
def test_chunk_names_alone_are_never_suggested_as_evidence(row: dict[str, Any]) -> None:
    with pytest.raises(InputError) as raised:
        masis.read_cases([row])
    assert "evidence=" not in str(raised.value)
    assert "evidence" not in masis.suggest([row]).names


@pytest.mark.parametrize("key", ["testCases", "records", "cases"])
def test_the_rows_inside_an_object_are_found(key: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    rows = [{"input": QUESTION, "actualOutput": ANSWER, "retrievalContext": CHUNKS}]
    path.write_text(json.dumps({key: rows, "name": "run 7"}))
    (case,) = masis.read_cases(path)
    assert [chunk.text for chunk in case.evidence] == CHUNKS
