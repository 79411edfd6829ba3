"""Every entry point reads a record the same or rejects it with the same message.

``RECORDS`` are records as users provide them. Every entry point reads them with
``masis.schema.reading``; docs/files.md repeats its table.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import masis
from masis.api import audits, batch
from masis.cli import main
from masis.cli import output as cli_output
from masis.datasets.mapping.profile import OWN_FORMAT, import_profiles
from masis.datasets.mapping.reader import read_any
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.case import Case, case_of
from masis.schema.reading import id_text
from masis.services.arrivals.ingestion import read_cases as read_body
from masis.services.workbench import Workbench
from masis.store import Store

LONG = "The bridge over the Marle was opened in the spring of the year 1931 by the mayor."
CHUNK = {"id": "1", "text": "So."}
GOOD: dict[str, Any] = {"id": "a", "query": "Why?", "answer": "So [1].", "evidence": [CHUNK]}
TURNS = [
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": [{"type": "text", "text": "So."}]},
]
CITATION = {"start": 0, "end": 2, "evidence_id": "1"}


def record(**changes: Any) -> dict[str, Any]:
    """Return the valid record with some fields replaced; ``...`` removes a field."""
    return {key: value for key, value in (GOOD | changes).items() if value is not ...}


def read(**fields: Any) -> dict[str, Any]:
    """Return the relevant fields of a case."""
    return {"query": "Why?", "answer": "So [1].", "evidence": [("1", "So.")]} | fields


def missing_message(field: str, key: str, option: str | None = None) -> str:
    return (
        f'{field}: is missing, and "{key}" may hold it. Map it: --map'
        f" {option or shlex.quote(f'{field}={key}')}"
    )


def empty(field: str, key: str) -> str:
    return f'{field}: is empty, and "{key}" may hold it. Map it: --map {field}={key}'


Expected = dict[str, Any] | str
RECORDS: list[tuple[str, dict[str, Any], Expected]] = [
    # valid
    ("whole", record(), read()),
    ("no answer", record(answer=...), read(answer=None)),
    ("an answer of null", record(answer=None), read(answer=None)),
    ("no id", record(id=...), read()),
    ("evidence as texts", record(evidence=["So.", "Thus."]),
     read(evidence=[("chunk_1", "So."), ("chunk_2", "Thus.")])),
    ("evidence as a text and a chunk", record(evidence=["So.", CHUNK]),
     read(evidence=[("chunk_1", "So."), ("1", "So.")])),
    ("a chunk without an id", record(evidence=[{"text": "So."}]), read(evidence=[("chunk_1", "So.")])),
    ("a chunk as LangChain writes it", record(evidence=[{"page_content": "So."}]),
     read(evidence=[("chunk_1", "So.")])),
    *(
        (f"a chunk with {key}", record(evidence=[{"id": "x", key: "So."}]), read(evidence=[("x", "So.")]))
        for key in ("content", "snippet", "body")
    ),
    ("a chunk with an address only", record(evidence=[{"id": "1", "source": "http://a"}]), read(evidence=[("1", "")])),
    ("messages alone", record(query=..., answer=..., messages=TURNS), read(answer="So.")),
    ("messages beside", record(messages=TURNS), read()),
    ("messages that end with a question", record(answer=..., messages=TURNS[:1]), read(answer=None)),
    ("messages of another shape", record(messages="a text"), read()),
    ("citations beside", record(citations=[CITATION]), read()),
    ("citations of another shape", record(citations="none"), read()),
    ("an unknown short key", record(field="law"), read()),
    ("an unknown long key beside an answer", record(notes=LONG), read()),
    ("another answer beside the answer", record(response="Other."), read()),
    ("a short note without an answer", record(answer=..., topic="bridges"), read(answer=None)),
    ("a long text in metadata", record(answer=..., metadata={"notes": LONG}), read(answer=None)),
    ("labels", record(labels={"clean": True}), read()),
    ("reasoning steps", record(reasoning_steps=["a", "b"]), read()),
    ("a key of a chunk", record(evidence=[{**CHUNK, "page": 7}]), read()),
    ("a short note in a chunk", record(evidence=[{"id": "1", "source": "u", "x": "y"}]), read(evidence=[("1", "")])),
    ("evidence as one text", record(evidence="So."), read(evidence=[("chunk_1", "So.")])),
    ("evidence as a list in a text", record(evidence="['So.' 'Thus.']"),
     read(evidence=[("chunk_1", "So."), ("chunk_2", "Thus.")])),
    ("a number for a chunk id", record(evidence=[{"id": 1, "text": "So."}]), read(evidence=[("1", "So.")])),
    ("a float for a chunk id", record(evidence=[{"id": 1.0, "text": "So."}]), read(evidence=[("1", "So.")])),
    ("a number for the id", record(id=5), read()),
    ("a float for the id", record(id=6.0), read()),
    # an answer, question or evidence under another key
    *(
        (f"the answer as {key}", record(answer=..., **{key: "So."}), missing_message("answer", key))
        for key in (
            "response",
            "output",
            "completion",
            "generated_text",
            "model_answer",
            "Response",
            "llm-response",
            "anwser",
        )
    ),
    ("an empty answer and a response", record(answer="", response="So."), empty("answer", "response")),
    ("a blank answer and a response", record(answer=" ", output="So."), empty("answer", "output")),
    ("an answer of null and a response", record(answer=None, response="So."), missing_message("answer", "response")),
    ("the answer inside of an object", record(answer=..., outputs={"response": "So."}),
     missing_message("answer", "outputs.response")),
    ("a long text that nothing reads", record(answer=..., notes=LONG), missing_message("answer", "notes")),
    ("a long text in an object", record(answer=..., trace={"step": {"said": LONG}}),
     missing_message("answer", "trace.step.said")),
    ("a long text in a list", record(answer=..., parts=[{"said": LONG}]), missing_message("answer", "parts[0].said")),
    *(
        (f"the question as {key}", record(query=..., **{key: "Why?"}), missing_message("query", key))
        for key in ("question", "prompt", "q")
    ),
    ("a blank question and a question", record(query=" ", question="Why?"), empty("query", "question")),
    ("evidence as contexts", record(evidence=..., contexts=["So."]), missing_message("evidence", "contexts")),
    ("evidence as one context", record(evidence=..., context="So."), missing_message("evidence", "context")),
    ("empty evidence and documents", record(evidence=[], documents=["So."]), empty("evidence", "documents")),
    ("evidence under no known name", record(evidence=..., facts=[LONG]), missing_message("evidence", "facts")),
    ("all under other names", {"question": "Why?", "passages": ["So."], "response": "So."},
     missing_message("query", "question", "query=question --map answer=response --map evidence=passages")),
    ("text of a chunk", record(evidence=[{"id": "1", "passage": "So."}]),
     missing_message("evidence[0].text", "passage", "evidence.text=")),
    ("a long text of a chunk", record(evidence=[{"id": "1", "x": LONG}]),
     missing_message("evidence[0].text", "x", "evidence.text=")),
    # invalid
    ("no question", record(query=...), 'query: is missing. Add the question as "query"'),
    ("a blank question", record(query=" "), "query: is blank. Add the question"),
    ("an empty question", record(query=""), "query: is empty. Add the question"),
    ("a number for the question", record(query=5), "query: is a number, must be text. Put it in quotes."),
    ("no evidence", record(evidence=...), "evidence: is missing. Add the retrieved chunks."),
    ("empty evidence", record(evidence=[]), "evidence: is empty. Add the retrieved chunks."),
    ("evidence as a number", record(evidence=5), "evidence: is a number, not a list of chunks. Give a list."),
    ("a chunk of null", record(evidence=[CHUNK, None]), "evidence[1]: isn't a chunk of evidence."),
    ("a repeated chunk id", record(evidence=[CHUNK, CHUNK]), "evidence[1].id: repeats the id '1' of evidence[0]."),
    ("a number for the text", record(evidence=[{"id": "1", "text": 5}]),
     "evidence[0].text: is a number, must be text."),
    ("true for the id", record(id=True), "id: is true, must be text. Put it in quotes."),
    ("an id too long", record(id="x" * 501), "id: is longer than 500 characters. Shorten it."),
    ("a list for the answer", record(answer=["So."]), "answer: is a list, must be text."),
    ("metadata as a list", record(metadata=["x"]), "metadata: is a list, must be an object."),
    ("a citation outside", record(citations=[CITATION | {"end": 99}]),
     "citations[0]: covers characters 0 to 99, but the answer has 7."),
    ("a null byte", record(query="W\x00?"), "query: contains a null byte at character 2."),
]  # fmt: skip
Outcome = Case | str


def by_case(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    return [_outcome(lambda given=record: Case(**given)) for record in records]  # type: ignore[misc]


def by_run_audit(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    """``run_audit`` and ``audit_many`` read their input with ``case_of`` first."""
    assert audits.case_of is batch.case_of is case_of
    return [_outcome(lambda given=record: case_of(given)) for record in records]  # type: ignore[misc]


def by_read_cases(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    return [
        _outcome(lambda given=record: masis.read_cases([given], profile=OWN_FORMAT)[0])
        for record in records
    ]  # type: ignore[misc]


def by_frame(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    """A frame can't represent a missing key."""
    frames = [pd.DataFrame({key: [value] for key, value in record.items()}) for record in records]
    return [
        _outcome(lambda given=frame: masis.read_cases(given, profile=OWN_FORMAT)[0])
        for frame in frames
    ]  # type: ignore[misc]


def by_file(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    rows = read_any(_write_records(records, folder), OWN_FORMAT, name="f")
    return [row.case or re.sub(r"^f, line \d+, ", "", str(row.problems[0])) for row in rows]


def by_ingestion(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    found = [next(iter(read_body("json", json.dumps(record).encode()))) for record in records]
    return [
        item if isinstance(item, Case) else re.sub(r"^body.json, line 1, ", "", str(item))
        for item in found
    ]


def by_import(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    return _by_command(["import", "--as", "cases"], records, folder)


def by_audit(records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    return _by_command(["audit", "--as", "cases", "--set", "max_iterations=1"], records, folder)


def _by_command(command: list[str], records: list[dict[str, Any]], folder: Path) -> list[Outcome]:
    """Match each case by its id and each error by its line."""
    file, database = _write_records(records, folder), folder / "w.db"
    result = CliRunner().invoke(main, [*command, str(file), "--db", str(database)])
    assert result.exit_code == 1, result.output
    errors = dict(
        re.findall(
            r"^.*?f\.jsonl, line (\d+), ((?:(?!Shown once).)*)$", result.stderr, re.MULTILINE
        )
    )
    store = Store.open(database)
    stored = {case.id: case for case in store.cases.iterate()}
    store.close()
    (keyless,) = (case for case in stored.values() if len(case.id) == 20)
    return [
        errors.get(str(number)) or stored.get(str(id_text(record.get("id", keyless.id))), "")
        for number, record in enumerate(records, 1)
    ]


def _write_records(records: list[dict[str, Any]], folder: Path) -> Path:
    file = folder / "f.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def _outcome(make: Callable[[], Case]) -> Outcome:
    try:
        return make()
    except InputError as error:
        return re.sub(r"^(\w+, line \d+|case)[,.] ?", "", str(error))


DOORS = [by_case, by_run_audit, by_read_cases, by_frame, by_file, by_ingestion, by_import, by_audit]


def test_there_are_at_least_sixty_records() -> None:
    assert len(RECORDS) >= 60
    assert len({name for name, _, _ in RECORDS}) == len(RECORDS)


OTHERWISE_IN_A_FRAME = {
    *("an answer of null and a response", "a chunk of null"),
}


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_entry_point_reads_a_record_the_same(
    door: Callable[[list[dict[str, Any]], Path], list[Outcome]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli_output, "MAX_ERRORS_SHOWN", 100)
    wrong: list[str] = []
    found_by_door = door(_distinct(), tmp_path)
    for (name, given, expected), found in zip(RECORDS, found_by_door, strict=True):
        if door is by_frame and name in OTHERWISE_IN_A_FRAME:
            continue
        if isinstance(expected, str):
            if not isinstance(found, str) or not found.startswith(expected):
                wrong.append(f"{name}: {expected!r}, not {found!r}")
        elif not isinstance(found, Case) or _content_of(found) != expected:
            wrong.append(
                f"{name}: {expected!r}, not {_content_of(found) if isinstance(found, Case) else found!r}"
            )
        elif "id" not in given and not re.fullmatch("[0-9a-f]{20}", found.id):
            wrong.append(f"{name}: id {found.id}")
    assert wrong == []


def _distinct() -> list[dict[str, Any]]:
    """Return the records with unique ids, because entry points also reject repeated ids."""
    return [
        given | {"id": f"n{n}"} if given.get("id") == "a" else given
        for n, (_, given, _) in enumerate(RECORDS)
    ]


def _content_of(case: Case) -> dict[str, Any]:
    chunks = [(chunk.id, chunk.text) for chunk in case.evidence]
    return {"query": case.query, "answer": case.answer, "evidence": chunks}


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        pytest.param(
            record(answer=..., response="So [1]."), {"answer": "response"}, read(), id="a key"
        ),
        pytest.param(
            record(answer=..., o={"x": [{"said": "So [1]."}]}),
            {"answer": "o.x[0].said"},
            read(),
            id="a path",
        ),
        pytest.param(
            record(answer=..., response="So."),
            {"answer": None},
            read(answer=None),
            id="drafted on purpose",
        ),
        pytest.param(
            record(evidence=..., ctx="So."),
            {"evidence": "ctx"},
            read(evidence=[("chunk_1", "So.")]),
            id="one text",
        ),
        pytest.param(
            record(evidence=..., ctx='[{"nr": 1, "said": "So."}]'),
            {"evidence": "ctx", "evidence.id": "nr", "evidence.text": "said"},
            read(),
            id="keys of a chunk, in JSON inside of a text",
        ),
        pytest.param(
            record(evidence=..., ctx=""),
            {"evidence": "ctx"},
            "evidence: is empty",
            id="an empty text",
        ),
        pytest.param(
            record(response="Other."),
            {"answer": "response"},
            "answer: is in the record, but the map names",
            id="twice",
        ),
        pytest.param(
            record(),
            {"anser": "x"},
            "map: 'anser' isn't a field of a case. Map one of: id, query",
            id="no field",
        ),
        pytest.param(record(), {"answer": 5}, "map: names a number for answer.", id="no key"),
    ],
)
def test_a_field_map_locates_a_field(given: dict[str, Any], names: Any, expected: Expected) -> None:
    found = _outcome(lambda: case_of(given, "", names))
    assert (
        found.startswith(expected)
        if isinstance(expected, str) and isinstance(found, str)
        else _content_of(found) == expected
    )  # type: ignore[arg-type]


def test_the_map_suggested_by_an_error_reads_the_record(tmp_path: Path) -> None:
    """The hint is tried as written, in Python and on the command line."""
    for number, (name, given, expected) in enumerate(RECORDS):
        if not isinstance(expected, str) or "may hold it" not in expected:
            continue
        with pytest.raises(InputError) as raised:
            case_of(given)
        written = re.search(r"in Python map=(\{.*?\})", raised.value.hint)
        assert written, name
        case = case_of(given, "", json.loads(written[1]))
        assert case.query, name
        file, database = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.db"
        file.write_text(json.dumps(given) + "\n")
        _, arguments = raised.value.hint.partition(", in Python")[0].split(": ", 1)
        result = CliRunner().invoke(
            main,
            ["import", str(file), "--as", "cases", "--db", str(database), *shlex.split(arguments)],
        )
        assert result.exit_code == 0, (name, result.output)
        store = Store.open(database)
        (stored,) = store.cases.iterate()
        store.close()
        assert _content_of(stored) == _content_of(case), name


def test_two_records_with_one_id_are_rejected_by_every_entry_point(tmp_path: Path) -> None:
    twice = [GOOD, GOOD | {"query": "How?"}]
    for read_both in (
        lambda: masis.read_cases(twice),
        lambda: masis.audit_many(twice, progress=False),
    ):
        with pytest.raises(
            InputError, match=r"id: has the same id as .* \('a'\) but different content"
        ):
            read_both()
    assert [case.id for case in masis.read_cases([GOOD, GOOD])] == ["a"]
    ids = [case.id for case in masis.read_cases(twice, map={"id": None})]
    assert ids == [run.case_id for run in masis.audit_many(twice, progress=False, map={"id": None})]
    assert len({"a", *ids}) == 3


def test_several_chunk_columns_are_read_and_suggested_together(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(
        {
            "Customer asked": ["Why do we do so?", "How?"],
            "Bot said": ["So [1]. And thus [2].", "Thus [2]."],
            "Snippet A": ["So.", ""],
            "Snippet B": ["And thus.", "Thus."],
        }
    )
    names = {"query": "Customer asked", "answer": "Bot said", "evidence": "Snippet A + Snippet B"}
    assert masis.suggest(frame).names == names
    file = tmp_path / "mine.csv"
    frame.to_csv(file, index=False)
    for source in (frame, file):
        first, second = masis.read_cases(source, map=names)
        assert [(chunk.id, chunk.text) for chunk in first.evidence] == [
            ("chunk_1", "So."),
            ("chunk_2", "And thus."),
        ]
        # [2] refers to the second column
        assert [(chunk.id, chunk.text) for chunk in second.evidence] == [("chunk_2", "Thus.")]
    refused = CliRunner().invoke(main, ["audit", str(file), "--db", str(tmp_path / "m.db")])
    assert (
        "--map 'query=Customer asked' --map 'answer=Bot said' --map 'evidence=Snippet A +"
        " Snippet B'" in refused.output
    )
    maps = ("query=Customer asked", "answer=Bot said", "evidence=Snippet A", "evidence=Snippet B")
    arguments = [part for mapping in maps for part in ("--map", mapping)]
    imported = CliRunner().invoke(
        main, ["import", str(file), "--db", str(tmp_path / "m.db"), *arguments]
    )
    assert "2 cases imported" in imported.output
    with pytest.raises(
        InputError, match="names the column 'Snippet C' for evidence, which doesn't exist"
    ):
        masis.read_cases(frame, map=names | {"evidence": "Snippet A + Snippet C"})


def test_numeric_markers_are_read_as_positions_if_the_map_says_so(tmp_path: Path) -> None:
    chunks = [
        {"id": f"doc-{number}", "text": text} for number, text in ((17, "So."), (23, "Thus."))
    ]
    given = GOOD | {"answer": "So [1]. Thus [2].", "evidence": chunks}
    settings, names = masis.Settings(max_iterations=1), {"evidence.id": None}
    suggestions = {
        issue.suggestion for issue in masis.run_audit(given, settings).iterations[0].issues
    }
    assert any('map={"evidence.id": None}' in suggestion for suggestion in suggestions)
    named = (
        masis.run_audit(given | {"answer": "So [doc-17]. Thus [2]."}, settings).iterations[0].issues
    )
    # a marker with a full id shows that markers are ids
    assert not any("evidence.id" in issue.suggestion for issue in named)
    run = masis.run_audit(given, settings, map=names)
    assert run.iterations[0].citation_audit.invalid_citations == ()
    foreign = {
        "user_input": "Why?",
        "response": "So [1].",
        "retrieved_contexts": ["So."],
        "retrieved_context_ids": ["d7"],
    }
    for rows in ([given], [foreign]):
        (case,) = masis.read_cases(rows, map=names)
        assert [chunk.id for chunk in case.evidence] == [
            f"chunk_{n}" for n, _ in enumerate(case.evidence, 1)
        ]
        assert case.evidence[0].model_dump()["given_id"] in ("doc-17", "d7")


TWO = "It is red [1]. It is blue [2]."
PASSAGES = "Name the separator of the chunks: --map 'evidence.split="


def _evidence_of_cell(
    text: str, answer: str, folder: Path, names: dict[str, str | None]
) -> list[list[tuple[str, str]]]:
    """Read the same evidence text from a file, a frame with our names, a frame with its own names,
    and mapped rows.
    """
    own = pd.DataFrame([{"query": "Which colour?", "answer": answer, "evidence": text}])
    frame = own.rename(columns={"query": "frage", "answer": "antwort", "evidence": "beleg"})
    own.to_csv(folder / "own.csv", index=False)
    renamed = names | {"query": "frage", "answer": "antwort", "evidence": "beleg"}
    found = [
        *(masis.read_cases(folder / "own.csv", map=names), masis.read_cases(own, map=names)),
        *(
            masis.read_cases(frame, map=renamed),
            masis.read_cases(frame.to_dict("records"), map=renamed),
        ),
    ]
    return [[(chunk.id, chunk.text) for chunk in case.evidence] for (case,) in found]


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("[1] It is red. [2] It is blue.", "Red [1].", [("1", "It is red."), ("2", "It is blue.")]),
        ("[1] red [2] blue", TWO, [("1", "red"), ("2", "blue")]),
        ("[1] See [2] of it", "Red [1].", [("chunk_1", "[1] See [2] of it")]),
        (
            "It is red.\n---\nIt is blue.",
            "Red [1].",
            [("chunk_1", "It is red."), ("chunk_2", "It is blue.")],
        ),
        ("A heading\n---\nIt is red.", "Red [1].", [("chunk_1", "A heading\n---\nIt is red.")]),
        ("It is red. | It is blue.", TWO, [("chunk_1", "It is red."), ("chunk_2", "It is blue.")]),
        ("Name | Age", "Red [1].", [("chunk_1", "Name | Age")]),
        ("It is red.\n\nIt is blue.", "Red [1].", [("chunk_1", "It is red.\n\nIt is blue.")]),
        ("It is red.", TWO, [("chunk_1", "It is red.")]),
    ],
)
def test_several_chunks_in_one_text_are_split_if_unambiguous(
    text: str, answer: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert _evidence_of_cell(text, answer, tmp_path, {}) == [expected] * 4


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("It is red. | It is blue. | Or not.", "|"),
        ("red\n\nblue", "\n\n"),
        ("It is red.\nIt is blue.", "\n"),
    ],
)
def test_ambiguous_chunks_in_one_text_are_split_by_the_map(
    text: str, separator: str, tmp_path: Path
) -> None:
    with pytest.raises(
        masis.errors.InputError, match=re.escape(PASSAGES + json.dumps(separator)[1:-1] + "'")
    ):
        _evidence_of_cell(text, TWO, tmp_path, {})
    for written in (separator, json.dumps(separator)[1:-1]):  # as written in Python and in a shell
        for found in _evidence_of_cell(text, TWO, tmp_path, {"evidence.split": written}):
            assert [chunk for _, chunk in found] == text.split(
                f" {separator} " if separator == "|" else separator
            )
    assert (
        _evidence_of_cell(text, TWO, tmp_path, {"evidence.split": None})
        == [[("chunk_1", text)]] * 4
    )
    rows = [{"frage": "Which colour?", "antwort": TWO, "beleg": text}]
    assert masis.suggest(rows).names["evidence.split"] == separator
    assert len(masis.read_cases(rows, map=masis.suggest(rows).names)[0].evidence) >= 2


@pytest.mark.parametrize(
    "names", [("frage", "antwort", "beleg"), ("question", "response", "context")]
)
def test_json_chunks_with_ids_are_cited_by_position_as_suggested(
    names: tuple[str, str, str], tmp_path: Path
) -> None:
    chunks = [
        {"doc_id": "kb-7", "content": "It is red."},
        {"doc_id": "kb-9", "content": "It is blue."},
    ]
    row = dict(zip(names, ("Which colour?", TWO, json.dumps(chunks)), strict=True))
    found = masis.suggest([row])
    assert found.names["evidence.id"] == ""
    explained = dict(zip(("query", "answer", "evidence"), names, strict=True))
    for given in (found.names, explained | {"evidence.id": None}):
        (case,) = masis.read_cases(pd.DataFrame([row]), map=given)
        assert [(chunk.id, chunk.text) for chunk in case.evidence] == [
            ("chunk_1", "It is red."),
            ("chunk_2", "It is blue."),
        ]
        assert case.evidence[0].model_dump()["given_id"] == "kb-7"
    (read,) = read_any([row], None, explained)
    assert "--map evidence.id=" in str(read.notes[0])
    (named,) = read_any([row | {names[1]: "It is red [kb-7]."}], None, explained)
    assert named.notes == ()


def test_an_unknown_key_is_an_error_and_the_rows_are_still_read(tmp_path: Path) -> None:
    rows = list(read_any([GOOD], None, {"labels": "nothing"}, name="f"))
    assert [row.case is not None for row in rows] == [True, False]
    assert str(rows[1].problems[0]).startswith("f, map: no row has 'nothing'. Check the name")


class _Dataset(list[dict[str, Any]]):
    """Imitates a Hugging Face dataset: rows, and the names and types of its columns."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__(frame.to_dict("records"))
        self.column_names, self.features = list(frame.columns), dict(frame.dtypes)


def test_a_frame_is_read_and_audited_row_by_row() -> None:
    frame = pd.DataFrame(
        {
            "frage": ["Why?", "How?"],
            "antwort": ["So [1].", float("nan")],
            "ctx": [["So."], ["Thus."]],
        },
        index=[7, 9],
    )
    names = {"query": "frage", "answer": "antwort", "evidence": "ctx"}
    cases = masis.read_cases(frame, map=names)
    assert [(case.query, case.answer) for case in cases] == [("Why?", "So [1]."), ("How?", None)]
    runs = masis.audit_many(frame, masis.Settings(max_iterations=1), progress=False, map=names)
    assert [run.case_id for run in runs] == [case.id for case in cases]
    joined = frame.join(masis.runs_to_pandas(runs, index=frame.index))
    assert list(joined.index) == [7, 9]
    assert list(joined["case_id"]) == [case.id for case in cases]
    assert joined["cost_usd"].dtype == float
    assert (joined["seconds"] > 0).all()
    for other in (pa.Table.from_pandas(frame, preserve_index=False), _Dataset(frame)):
        assert masis.read_cases(other, map=names) == cases
        again = masis.audit_many(other, masis.Settings(max_iterations=1), progress=False, map=names)
        assert [run.case_id for run in again] == [run.case_id for run in runs]
    claims = masis.runs_to_pandas(runs, of="claims", index=frame.index)
    assert set(claims.index) <= {7, 9}
    with pytest.raises(InputError, match="index: has 1 labels for 2 runs"):
        masis.runs_to_pandas(runs, index=[7])
    with pytest.raises(
        InputError, match=r"map: names the column 'antwrt' for answer.*Did you mean 'antwort'"
    ):
        masis.read_cases(frame, map=names | {"answer": "antwrt"})
    with pytest.raises(
        InputError,
        match=r"Its keys are 'frage', 'antwort', 'ctx'\. .* masis\.suggest\(cases\)\.names",
    ):
        masis.audit_many(frame, progress=False)
    with pytest.raises(InputError, match=r"Audit its rows with masis\.audit_many\(frame\)"):
        masis.run_audit(frame)


def test_an_ndjson_body_and_a_list_of_cases_are_read_the_same(tmp_path: Path) -> None:
    lines = "".join(json.dumps(GOOD | {"id": case_id}) + "\n" for case_id in "ab").encode()
    one = json.dumps({"cases": [GOOD | {"id": case_id} for case_id in "ab"]}).encode()
    assert list(read_body("ndjson", lines)) == list(read_body("json", one))
    assert [row.case for row in read_any(io.BytesIO(lines))] == list(read_body("json", one))


def test_a_preview_rejects_the_same_records_as_an_import(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "w.db")
    look = workbench.imports.preview(
        Actor(name="Ada"), _write_records(_distinct(), tmp_path), OWN_FORMAT, name="f"
    )
    workbench.close()
    assert look.refused == sum(isinstance(expected, str) for _, _, expected in RECORDS)


DOCUMENTED = {
    "evidence: a text": "evidence as texts",
    "evidence: an object without `id`": "a chunk without an id",
    "evidence: one text in place of a list": "evidence as one text",
    "an id that is a number: `7`, `7.0`": "a float for the id",
    "evidence: `content`, `page_content`, `snippet`, `body` in place of `text`": (
        "a chunk with snippet"
    ),
    "two chunks with one id": "a repeated chunk id",
    "no `id`": "no id",
    "`messages` without `query` or `answer`": "messages alone",
    # tested in tests/datasets/test_answers.py
    "reasoning: `<think>`, gpt-oss channels, parts of type `thinking` or with `thought: true`, "
    "`reasoning_content` of a message": (""),
    # tested there too
    "no answer, and a refusal, a filter, a token limit, an `error` or a status of 400 or more says why": (
        ""
    ),
    "the same record twice": "",  # test_two_records_with_one_id_are_rejected_by_every_entry_point
    "question, answer or evidence is absent or empty, and an unread key is a known synonym "
    "(`response`, `question`, `contexts`, ...) or has a text of 60 characters or more outside "
    "`metadata`": ("the answer as response"),
    "another unknown key": "an unknown short key",
}
"""The record above that demonstrates each row of the table in docs/files.md."""


def test_the_import_page_documents_every_accepted_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    table = page.split("| in the record | read as |", 1)[1].split("\n\n", 1)[0]
    rows = [
        line.split(" | ")[0].removeprefix("| ")
        for line in table.splitlines()
        if line.startswith("| ")
    ]
    assert rows == list(DOCUMENTED)
    assert set(DOCUMENTED.values()) - {""} <= {name for name, _, _ in RECORDS}
    assert {f"`{name}`" for name in import_profiles()} <= set(re.findall(r"`[a-z-]+`", page))
