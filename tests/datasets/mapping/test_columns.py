"""Columns that a person chooses: what is offered, what is guessed, and what is read by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.loading import read_cases, suggest
from masis.datasets.mapping import formats_of, read_any
from masis.datasets.mapping.columns import (
    ColumnChoice,
    columns_key,
    columns_of,
    likely_choice,
    profile_of,
    profile_text,
    still_there,
)
from masis.datasets.mapping.profile import parse_profile
from masis.errors import InputError
from masis.schema.case import Case


def read(tmp_path: Path, row: dict[str, Any], choice: ColumnChoice) -> Case:
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([row]))
    (found,) = read_any(file, profile_of(choice, columns_of(row)))
    assert found.case is not None, found.problems
    return found.case


def test_columns_inside_of_objects_are_offered_with_the_beginning_of_what_they_hold() -> None:
    columns = columns_of({"in": {"the question": "Why?\n" * 40}, "docs": [{"nr": 7, "body": "So."}], "empty": None})
    assert [(column.shown, column.items) for column in columns] == [("in.the question", ()), ("docs", ("nr", "body"))]
    assert columns[0].sample.startswith("Why? Why?")
    assert len(columns[0].sample) == 60


def test_a_column_may_be_called_anything(tmp_path: Path) -> None:
    names = ('fra"ge', "back\\slash", "[].*", "naïve 😀", "a.b")
    row = {name: f"Text of {number}." for number, name in enumerate(names)}
    choice = ColumnChoice(query=names[0], answer=names[1], evidence=names[2:4], reference=names[4])
    case = read(tmp_path, row, choice)
    assert (case.query, case.answer) == ("Text of 0.", "Text of 1.")
    assert [chunk.text for chunk in case.evidence] == ["Text of 2.", "Text of 3."]
    assert case.metadata["reference_answer"] == "Text of 4."


def test_several_columns_of_evidence_are_read_in_order_and_empty_ones_left_out(tmp_path: Path) -> None:
    row = {"q": "Why?", "c2": "Two.", "c1": '["One.", "One and a half."]', "c3": "", "c4": None}
    case = read(tmp_path, row, ColumnChoice(query="q", evidence=("c1", "c2", "c3", "c4")))
    assert [chunk.text for chunk in case.evidence] == ["One.", "One and a half.", "Two."]


def test_text_and_id_of_a_chunk_are_read_from_the_names_chosen(tmp_path: Path) -> None:
    row = {"q": "Why?", "docs": [{"nr": 7, "inhalt": "So."}, {"nr": 8, "inhalt": "Or so."}]}
    choice = ColumnChoice(query="q", evidence=("docs",), chunk_text="inhalt", chunk_id="nr")
    assert [(chunk.id, chunk.text) for chunk in read(tmp_path, row, choice).evidence] == [("7", "So."), ("8", "Or so.")]


def test_columns_with_names_of_other_tools_are_guessed() -> None:
    row = {"qid": "1", "user_input": "Why?", "completion": "So.", "passages": [{"passage": "So.", "id": "p"}]}
    choice = likely_choice(columns_of(row))
    assert (choice.id, choice.query, choice.answer, choice.evidence) == (
        "qid",
        "user_input",
        "completion",
        ("passages",),
    )
    assert (choice.chunk_text, choice.chunk_id) == ("passage", "id")


def test_nothing_is_guessed_where_no_name_is_known() -> None:
    assert not likely_choice(columns_of({"x1": "Why?", "x2": "So."})).complete


def test_the_same_columns_in_another_order_are_the_same_set() -> None:
    assert columns_key({"a": 1, "b": 2}) == columns_key({"b": 3, "a": None}) != columns_key({"a": 1})


def test_columns_that_are_gone_are_no_longer_chosen() -> None:
    choice = ColumnChoice(query="q", answer="gone", evidence=("c", "gone"), chunk_text="gone")
    assert still_there(choice, columns_of({"q": "Why?", "c": [{"text": "So."}]})) == ColumnChoice(
        query="q", evidence=("c",)
    )


@pytest.mark.parametrize(
    ("content", "formats"),
    [
        ('{"id": "1", "query": "Why?", "evidence": []}', ("cases",)),
        ('{"question": "Why?", "contexts": ["So."], "answer": "So."}', ("hf-rag",)),
        ('{"question": "Why?", "passages": ["So."]}', ()),
        ('[{"query": "Why?", "evidence": ["So."]}]', ("cases",)),
    ],
)
def test_formats_are_recognised_by_the_first_row(content: str, formats: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text(content)
    assert formats_of(file).formats == formats


def test_a_file_without_a_row_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("question,contexts\n")
    with pytest.raises(InputError, match="holds no row that can be read"):
        formats_of(file)


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (
            {"q_text": "Why is it so?", "docs": ["So it is."], "out": "It is so, as [1] says."},
            ["q_text", "docs", "out"],
        ),
        (
            {"frage": "Wie lang ist sie?", "belege": [{"nr": 1, "inhalt": "120 Meter."}], "x": "Sie ist 120 m lang."},
            ["frage", "belege", "x"],
        ),
        (
            {"in": {"ask": "How long is it?"}, "ctx": "It is long. " * 30, "gpt": "It is 120 metres long."},
            ["in.ask", "ctx", "gpt"],
        ),
        (
            {"prompt": "Name the length", "response": "120 m", "context": "It is 120 m.", "gold": "120"},
            ["prompt", "context", "response"],
        ),
    ],
)
def test_a_map_is_proposed_from_names_types_and_values(row: dict[str, Any], names: list[str]) -> None:
    found = suggest([row])
    assert [found.names.get(field) for field in ("query", "evidence", "answer")] == names
    (case,) = read_cases([row], map=found.names)
    assert case.answer
    assert found.profile is not None
    assert parse_profile(profile_text(found.profile).encode()).query == found.profile.query


def test_rows_of_a_known_format_need_no_map_and_others_may_have_none() -> None:
    assert suggest([{"question": "Why?", "contexts": ["So."], "answer": "So."}]).format == "hf-rag"
    assert suggest([{"a": 1}]).profile is None


def test_several_answers_in_a_row_are_a_case_each() -> None:
    row = {"id": "q", "query": "Why?", "evidence": ["So."], "responses": ["So.", {"model": "m", "response": "Thus."}]}
    cases = read_cases([row])
    assert [(case.id, case.answer) for case in cases] == [("q-1", "So."), ("q-2", "Thus.")]
    assert cases[1].metadata == {"answer_of": {"model": "m"}}


def test_rows_of_a_tool_that_share_an_id_are_cases_of_their_own(tmp_path: Path) -> None:
    row = {"id": "x", "question": "Why?", "contexts": ["So."], "answer": "So."}
    first, second = read_cases([row, row | {"answer": "Thus."}, row])
    assert first.id == "x"
    assert second.id.startswith("x#")


def test_an_object_of_rows_by_id_is_read_row_by_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    row = {"query": "Why?", "evidence": ["So."], "answer": "So."}
    file.write_text(json.dumps({"a": row, "b": row | {"answer": "Thus."}}, indent=1))
    assert [case.id for case in read_cases(file)] == ["a", "b"]
