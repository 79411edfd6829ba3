"""Every entry point reads a file the same: Python, commands, the import page, HTTP and MCP."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner

import masis
from masis.cli import main
from masis.datasets.mapping.reader import read_any
from masis.datasets.rows import read_rows
from masis.errors import InputError
from masis.schema.case import Case, case_of
from masis.schema.reading import FieldMap
from masis.services import Workbench
from masis.services.arrivals.ingestion import read_cases as read_body
from masis.store import Store
from tests.reviewing import ADA
from tests.rooms import HAS_INTEGRATIONS

ANSWER = "It is 120 metres long [1] and red [2]."
CHUNKS = ["It is 120 metres long.", "It is red."]
OWN: dict[str, Any] = {"query": "How long is it?", "answer": ANSWER}
RAGAS = {"user_input": "How long is it?", "response": ANSWER}


def table(cell: str, delimiter: str = ",") -> bytes:
    rows = [["query", "answer", "evidence"], ["How long is it?", ANSWER, cell]]
    quoted = (delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    return "\n".join(quoted).encode() + b"\n"


def workbook(cell: str) -> bytes:
    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in (["query", "answer", "evidence", None], ["How long is it?", ANSWER, cell, None]):
        book.active.append(row)
    book.save(content)
    return content.getvalue()


def line(row: dict[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"


TWO = [("chunk_1", CHUNKS[0]), ("chunk_2", CHUNKS[1])]
Expected = list[tuple[str, str]] | str
FILES: dict[str, tuple[str, bytes, FieldMap, Expected]] = {
    "texts": ("f.jsonl", line({**OWN, "evidence": CHUNKS}), {}, TWO),
    "numpy in JSON": ("f.jsonl", line({**OWN, "evidence": f"['{CHUNKS[0]}' '{CHUNKS[1]}']"}), {}, TWO),
    "numpy in a table": ("f.csv", table(f"['{CHUNKS[0]}'\n '{CHUNKS[1]}']"), {}, TWO),
    "numpy in a sheet": ("f.xlsx", workbook(f"['{CHUNKS[0]}'\n '{CHUNKS[1]}']"), {}, TWO),
    "a tuple": ("f.jsonl", line({**OWN, "evidence": repr(tuple(CHUNKS))}), {}, TWO),
    "documents": (
        "f.csv",
        table(f"[Document(page_content={CHUNKS[0]!r}), Document(page_content={CHUNKS[1]!r})]"),
        {},
        TWO,
    ),
    "one text": ("f.jsonl", line({**OWN, "evidence": CHUNKS[0]}), {}, TWO[:1]),
    "one text in a table": ("f.csv", table(CHUNKS[0], ";"), {}, TWO[:1]),
    "one text in a sheet": ("f.xlsx", workbook(CHUNKS[0]), {}, TWO[:1]),
    "ids that are numbers": (
        "f.jsonl",
        line({**OWN, "id": 7, "evidence": [{"id": 1, "text": CHUNKS[0]}, {"id": 2.0, "text": CHUNKS[1]}]}),
        {},
        [("1", CHUNKS[0]), ("2", CHUNKS[1])],
    ),
    "ids beside the texts": (
        "f.jsonl",
        line({**RAGAS, "retrieved_contexts": CHUNKS, "retrieved_context_ids": [1.0, 2.0]}),
        {},
        [("1", CHUNKS[0]), ("2", CHUNKS[1])],
    ),
    "a table in a chunk": ("f.jsonl", line({**OWN, "evidence": "| a | b |\n|---|---|\n| c | d |"}), {},
                           [("chunk_1", "| a | b |\n|---|---|\n| c | d |")]),
    "several, perhaps": ("f.jsonl", line({**OWN, "evidence": ";".join(CHUNKS)}), {}, "evidence.split"),
    "several, perhaps, in a table": ("f.csv", table(";".join(CHUNKS)), {}, "evidence.split"),
    "several, perhaps, in a sheet": ("f.xlsx", workbook("; ".join(CHUNKS)), {}, "evidence.split"),
    "several, as the map says": ("f.csv", table(";".join(CHUNKS)), {"evidence.split": ";"}, TWO),
    "one, as the map says": ("f.csv", table(";".join(CHUNKS)), {"evidence.split": None},
                             [("chunk_1", ";".join(CHUNKS))]),
    "a list that is cut off": ("f.jsonl", line({**OWN, "evidence": "['It is 120', 'It i"}), {}, "isn't closed"),
    "null among the chunks": ("f.jsonl", line({**RAGAS, "retrieved_contexts": [None, CHUNKS[0]]}), {}, "is null"),
    "an answer of another name": ("f.jsonl", line({"query": "Q?", "response": "A.", "evidence": CHUNKS}), {},
                                  'answer: is missing, and "response" may hold it'),
    "that name in the map": ("f.jsonl", line({"query": "Q?", "response": "A.", "evidence": CHUNKS}),
                             {"answer": "response"}, TWO),
}  # fmt: skip
Outcome = list[Case] | str
Way = Callable[[Path, FieldMap], Outcome | None]
"""Reads a file; returns None if this entry point doesn't support the file or map."""


def _of(read: Callable[[], list[Case]]) -> Outcome:
    try:
        return read()
    except InputError as error:
        return str(error)


def by_read_cases(path: Path, names: FieldMap) -> Outcome:
    return _of(lambda: masis.read_cases(path, map=names))


def by_page(path: Path, names: FieldMap) -> Outcome:
    """Return the cases that the import page previews."""
    workbench = Workbench.open(path.parent / "page.db")
    look = workbench.imports.preview(
        ADA, path.rename(path.parent / "held"), None, names, name=path.name
    )
    (path.parent / "held").rename(path)
    workbench.close()
    return "\n".join(map(str, look.problems)) or list(look.cases)


def by_import(path: Path, names: FieldMap) -> Outcome:
    maps = [part for field, key in names.items() for part in ("--map", f"{field}={key or ''}")]
    database = path.parent / "import.db"
    result = CliRunner().invoke(main, ["import", str(path), *maps, "--db", str(database)])
    if result.exit_code:
        return result.output
    store = Store.open(database)
    cases = list(store.cases.iterate())
    store.close()
    return cases


def by_stdin(path: Path, names: FieldMap) -> Outcome:
    maps = [part for field, key in names.items() for part in ("--map", f"{field}={key or ''}")]
    database = path.parent / "stdin.db"
    result = CliRunner().invoke(
        main, ["import", "-", *maps, "--db", str(database)], input=path.read_bytes()
    )
    if result.exit_code:
        return result.output
    store = Store.open(database)
    cases = list(store.cases.iterate())
    store.close()
    return cases


def by_http(path: Path, names: FieldMap) -> Outcome | None:
    if names or path.suffix != ".jsonl":
        return None
    profile = "ragas" if b"user_input" in path.read_bytes() else "cases"
    found = list(read_body("ndjson", path.read_bytes(), profile))
    errors = [str(item) for item in found if isinstance(item, InputError)]
    return "\n".join(errors) or [item for item in found if isinstance(item, Case)]


def by_record(make: Callable[[dict[str, Any], FieldMap], Case]) -> Way:
    """Read a single record with our own field names, as programs and MCP send it."""

    def read(path: Path, names: FieldMap) -> Outcome | None:
        if path.suffix != ".jsonl" or b"user_input" in path.read_bytes():
            return None
        return _of(lambda: [make(json.loads(path.read_bytes()), names)])

    return read


def _without_map(make: Callable[[dict[str, Any]], Case]) -> Way:
    read = by_record(lambda record, _: make(record))
    return lambda path, names: None if names else read(path, names)


def by_mcp(record: dict[str, Any]) -> Case:
    """The tool ``run_audit`` validates a record with this model and passes it to ``case_of``."""
    from masis.integrations.mcp.tools import InlineCase

    return case_of(InlineCase.model_validate(record).model_dump(exclude_unset=True))


WAYS: dict[str, Way] = {
    "read_cases": by_read_cases,
    "page": by_page,
    "import": by_import,
    "stdin": by_stdin,
    "http": by_http,
    "run_audit": by_record(lambda record, names: case_of(record, "case", names)),
    **({"mcp": _without_map(by_mcp)} if HAS_INTEGRATIONS else {}),
    "Case": _without_map(lambda record: Case(**record)),
    "model_validate": _without_map(Case.model_validate),
    "model_validate_json": _without_map(
        lambda record: Case.model_validate_json(json.dumps(record))
    ),
    "rows": lambda path, names: _of(
        lambda: masis.read_cases([row.value for row in read_rows(path)], map=names)
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_every_entry_point_reads_a_file_the_same(name: str, tmp_path: Path) -> None:
    file, content, names, expected = FILES[name]
    path = tmp_path / file
    path.write_bytes(content)
    found = {way: read(path, names) for way, read in WAYS.items()}
    taken = {way: outcome for way, outcome in found.items() if outcome is not None}
    assert len(taken) >= 5
    for way, outcome in taken.items():
        if isinstance(expected, str):
            assert isinstance(outcome, str), way
            assert expected in outcome, way
        else:
            assert isinstance(outcome, list), (way, outcome)
            (case,) = outcome
            assert [(chunk.id, chunk.text) for chunk in case.evidence] == expected, way
    cases = {way: outcome[0] for way, outcome in taken.items() if isinstance(outcome, list)}
    first = cases.get("read_cases")
    assert all(case == first for case in cases.values())


def test_a_mapped_field_outranks_the_path_of_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(
        line(
            {
                "frage": "How long?",
                "alt": {"text": "Old."},
                "neu": {"text": "New [7]."},
                "quellen": [{"nr": 7, "w": "So."}],
            }
        )
    )
    own = tmp_path / "my own.toml"
    own.write_text(
        'query = "frage"\nanswer = "alt.text"\nevidence = "quellen"\n[chunk]\nid = "nr"\ntext ='
        ' "w"\n'
    )
    arguments = [
        "import",
        str(path),
        "--map",
        str(own),
        "--map",
        "answer=neu.text",
        "--db",
        str(tmp_path / "m.db"),
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    store = Store.open(tmp_path / "m.db")
    (case,) = store.cases.iterate()
    store.close()
    assert (case.answer, case.evidence[0].id, case.evidence[0].text) == ("New [7].", "7", "So.")
    (other,) = masis.read_cases(path, own, map={"evidence.id": "w", "query": "neu.text"})
    assert (other.query, other.answer, other.evidence[0].id) == ("New [7].", "Old.", "So.")
    (ragas,) = masis.read_cases(
        [RAGAS | {"retrieved_contexts": CHUNKS, "better": "B."}], "ragas", map={"answer": "better"}
    )
    assert ragas.answer == "B."
    missing = list(read_any(path, None, {"answer": "nowhere"}))
    assert "no row has 'nowhere'" in str(missing[-1].problems[0])
