"""Questions and systems: two answers to one question are two cases, and no conflict."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.systems import SystemDetails, answer_id, checked_name, names_system
from masis.store import Store
from masis.store.core.connections import connect
from masis.store.core.migrations import MIGRATIONS, migrate
from masis.store.records import CaseFilter
from tests.store.factories import a_case


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "systems.db") as opened:
        yield opened


def add(store: Store, *cases: Case) -> list[str]:
    """Store cases and return the ids of their questions."""
    for case in cases:
        store.cases.add(case)
    sql = """SELECT questions.id FROM cases JOIN questions ON questions.seq = question_seq
        WHERE cases.id = ?"""
    return [store.database.value(sql, [case.id]) for case in cases]


def test_the_same_id_under_another_system_is_another_answer_to_one_question(store: Store) -> None:
    first = a_case("q1")
    second = a_case("q1", answer="In 1933 [1].").as_answer_of("v2")
    assert (second.id, second.question, second.system) == ("q1:v2", "q1", "v2")
    assert add(store, first, second) == ["q1", "q1"]
    assert store.cases.add(second) == "unchanged"
    assert [(system.name, system.cases) for system in store.systems.all()] == [
        ("unnamed", 1),
        ("v2", 1),
    ]


def test_a_record_that_names_its_system_gets_the_id_of_question_and_system() -> None:
    case = a_case("q1", system="v2")
    assert (case.id, case.question, case.system) == ("q1:v2", "q1", "v2")
    assert Case.model_validate(case.to_json_dict()) == case, "reading it again changes nothing"
    assert a_case("q1", system=3).id == "q1:3"


def test_a_record_that_names_its_question_keeps_its_own_id(store: Store) -> None:
    cases = [
        a_case("a1", question_id="Q7", system="v1"),
        a_case("a2", question_id="Q7", system="v2", query="When did the bridge open?"),
    ]
    assert [case.id for case in cases] == ["a1", "a2"]
    assert add(store, *cases) == ["Q7", "Q7"]


def test_a_system_prompt_under_the_key_system_names_no_system() -> None:
    prompt = "You are a helpful assistant."
    case = a_case("q1", system=prompt)
    assert (case.id, case.system, case.model_extra) == ("q1", "unnamed", {"system": prompt})
    assert not names_system("Answer briefly\nand cite.")


def test_questions_without_ids_are_equal_by_their_words(store: Store) -> None:
    old = a_case("trace-1", metadata={"system": "v1"}, query="When was  it opened?")
    new = a_case("trace-9", metadata={"system": "v2"}, query="when was it OPENED?")
    other = a_case("trace-10", metadata={"system": "v2"}, query="Who opened it?")
    assert add(store, old, new, other) == ["trace-1", "trace-1", "trace-10"]


def test_two_questions_in_the_same_words_stay_two_within_a_system(store: Store) -> None:
    one, two = a_case("q1"), a_case("q2")
    assert add(store, one, two) == ["q1", "q2"]
    by_id = [case.as_answer_of("v2") for case in (two, one)]
    assert add(store, *by_id) == ["q2", "q1"], "ids decide before words"


def test_superscripts_tell_questions_apart(store: Store) -> None:
    old = a_case("a", query="What is 10\u00b2?", metadata={"system": "v1"})
    new = a_case("b", query="What is 102?", metadata={"system": "v2"})
    assert add(store, old, new) == ["a", "b"]


def test_a_long_question_id_leaves_room_for_the_system() -> None:
    name = "v" * 100
    ids = {answer_id("q" * 499 + letter, name) for letter in "ab"}
    assert len(ids) == 2
    assert max(map(len, ids)) <= 500


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\x07b"])
def test_a_systems_name_is_one_short_line(name: str) -> None:
    with pytest.raises(InputError, match="name of a system"):
        checked_name(name)
    assert checked_name("  gpt \n 4o ") == "gpt 4o"


def test_a_system_is_described_later_and_starts_with_its_cases_model(store: Store) -> None:
    add(store, a_case("q1", system="v2", metadata={"model": "gpt-4o"}))
    assert store.systems.get("v2").model == "gpt-4o"
    changed = store.systems.change("v2", SystemDetails(model="o3", date="2026-05"), "Ada")
    assert (changed.model, changed.date, changed.changed_by) == ("o3", "2026-05", "Ada")
    assert store.systems.get("v2") == changed


def test_the_queue_lists_the_answers_of_a_system(store: Store) -> None:
    add(store, a_case("q1"), a_case("q1", system="v2"))
    found = store.cases.search(CaseFilter(systems=("v2",)))
    assert [row.id for row in found.rows] == ["q1:v2"]
    assert store.cases.values(CaseFilter(), "systems") == {"unnamed": 1, "v2": 1}


def test_an_older_database_gets_questions_and_the_system_unnamed(tmp_path: Path) -> None:
    path = tmp_path / "older.db"
    connection = connect(path)
    before = [step for step in MIGRATIONS if step.__name__ < "m040"]
    migrate(connection, before)
    stored = [
        a_case("q1"),
        a_case("q2"),
        a_case("t9", metadata={"system": "v2"}),
    ]
    for seq, case in enumerate(stored, 1):
        named = case.metadata.get("system")
        connection.execute(
            "INSERT INTO cases (seq, id, digest, imported_at, query_start, updated_at, system)"
            " VALUES (?, ?, ?, 't', ?, 't', ?)",
            [seq, case.id, case.digest(), case.query, named],
        )
        connection.execute("INSERT INTO case_payloads VALUES (?, ?)", [seq, case.model_dump_json()])
    connection.commit()
    connection.close()
    with Store.open(path) as store:
        rows = store.database.execute(
            "SELECT cases.id, system, questions.id, answer_length FROM cases"
            " JOIN questions ON questions.seq = question_seq ORDER BY cases.seq"
        )
        assert list(map(tuple, rows)) == [
            ("q1", "unnamed", "q1", 50),
            ("q2", "unnamed", "q2", 50),
            ("t9", "v2", "q1", 50),
        ]
        assert add(store, a_case("t10", metadata={"system": "v2"})) == ["q2"]


def test_a_redacted_question_keeps_no_digest_of_its_words(store: Store) -> None:
    add(store, a_case("q1"), a_case("q1", system="v2"))

    def digests() -> list[sqlite3.Row]:
        return [row[0] for row in store.database.execute("SELECT digest FROM questions")]

    store.redactions.redact_case("q1", by="Ada", reason="asked for")
    assert digests() != [""], "another answer still has the words"
    store.redactions.redact_case("q1:v2", by="Ada", reason="asked for")
    assert digests() == [""]


def test_answers_to_one_question_have_one_record_whatever_its_words(store: Store) -> None:
    store.cases.add(a_case("a1", question_id="Q7", system="v1", query="When was it opened?"))
    store.cases.add(a_case("a2", question_id="Q7", system="v2", query="Its opening date?"))
    store.cases.add(a_case("a3", system="v2", query="when  was it OPENED?"))
    # The same system answers the same words again, which is a question of its own.
    store.cases.add(a_case("a4", system="v1", query="When was it opened?"))
    store.cases.add(a_case("b1", system="v1", query="Who opened it?"))
    same = ("a1", "a2", "a3:v2", "a4:v1")
    records = store.systems.question_records([*same, "b1:v1", "unknown"])
    assert records == {**dict.fromkeys(same, "Q7"), "b1:v1": "b1"}
    for case, record in (
        (a_case("new", question_id="Q7", query="Another wording?"), "Q7"),
        (a_case("new", query="When was it  opened?"), "Q7"),
        (a_case("new", query="Why was it opened?"), "new"),
        (a_case("a2", query="Why was it opened?"), "Q7"),
    ):
        assert store.systems.question_record(case) == record
