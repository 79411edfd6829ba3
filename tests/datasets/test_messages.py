"""Conversations: the last answer is audited, earlier turns are stored and shown, and unknown
formats stay unchanged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.mapping.reader import read_any
from masis.schema.case import Case, Message

EVIDENCE = [{"id": "1", "text": "The bridge is 120 metres long."}]
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which bridge is the longest?"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "The Tay bridge."}, {"type": "image_url"}],
    },
    {"role": "user", "content": "How long is it?", "name": "Ana"},
    {"role": "assistant", "content": "It is 120 metres long [1]."},
]


def read(**given: Any) -> Case:
    (row,) = read_any([{"id": "c", "evidence": EVIDENCE, **given}])
    assert row.case is not None, row.problems
    return row.case


def test_the_last_question_and_answer_of_a_conversation_are_audited() -> None:
    case = read(messages=TURNS)
    assert (case.query, case.answer) == ("How long is it?", "It is 120 metres long [1].")
    assert [(turn.role, turn.text) for turn in case.earlier_turns] == [
        ("system", "Be brief."),
        ("user", "Which bridge is the longest?"),
        ("assistant", "The Tay bridge.\n[image_url]"),
    ]


def test_explicit_query_and_answer_outrank_the_conversation() -> None:
    case = read(query="How long is the bridge?", answer="120 metres.", messages=TURNS)
    assert (case.query, case.answer) == ("How long is the bridge?", "120 metres.")
    assert len(case.earlier_turns) == 5


def test_a_conversation_ending_with_a_question_has_no_answer() -> None:
    case = read(messages=TURNS[:4])
    assert (case.query, case.answer) == ("How long is it?", None)
    assert [turn.role for turn in case.earlier_turns] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    "messages",
    [
        "a text",
        {"role": "user"},
        [1, 2],
        [{"content": "no role"}],
        [{"role": "user", "content": 3}],
        None,
        7,
        [],
        [[]],
    ],
)
def test_an_unknown_messages_format_is_preserved_unchanged(
    messages: Any,
) -> None:
    given = {"id": "c", "query": "How long?", "evidence": EVIDENCE, "messages": messages}
    case = Case.model_validate(given)
    assert case.to_json_dict() == given
    assert case.earlier_turns == ()
    named_otherwise = Case.model_validate({**given, "messages_": messages}).to_json_dict()
    assert named_otherwise == {**given, "messages_": messages}


def test_a_conversation_round_trips_with_unknown_keys() -> None:
    given = {"id": "c", "query": "How long is it?", "evidence": EVIDENCE, "messages": TURNS}
    case = Case.from_stored(given)
    assert isinstance(case.messages, tuple)
    assert all(isinstance(turn, Message) for turn in case.messages)
    assert case.to_json_dict() == given
    assert Case.from_stored(json.dumps(case.to_json_dict())).digest() == case.digest()


def test_a_validated_record_takes_its_answer_from_the_conversation() -> None:
    given = {"id": "c", "query": "How long is it?", "evidence": EVIDENCE, "messages": TURNS}
    for case in (Case.model_validate(given), Case.model_validate_json(json.dumps(given))):
        assert case == Case(**given)
        assert case.answer


def test_an_unknown_messages_format_is_noted_on_import(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    case = {"id": "c", "query": "How long?", "answer": "120 metres [1].", "evidence": EVIDENCE}
    file.write_text(
        "\n".join(
            json.dumps({**case, "id": str(n), "messages": m})
            for n, m in enumerate(["a text", TURNS])
        )
    )
    notes = [note for row in read_any(file) for note in row.notes]
    assert [(note.field, note.line) for note in notes] == [("messages", 1)]
    assert "isn't a conversation" in str(notes[0])
