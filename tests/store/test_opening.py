"""Opening: ours, older, newer or something else; migrations whole or not at all."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from masis import version
from masis.errors import NewerDatabase, NotADatabase, OtherSchema, StoreError
from masis.store import Store
from masis.store.core import connections, guards, migrations
from masis.store.core.connections import connect, open_database
from masis.store.core.migrations import MIGRATIONS, applied, migrate
from tests.store.factories import a_case, a_decision, a_run
from tests.waiting import run_at_once

DRAFTS = 2000


def m002_made_up(db: object) -> None:
    """A step as a later version may append it: it changes a table, fills it row by row and loses a guard."""
    db.execute("ALTER TABLE drafts ADD COLUMN length INTEGER")  # type: ignore[attr-defined]
    for (reviewer,) in db.execute("SELECT reviewer FROM drafts").fetchall():  # type: ignore[attr-defined]
        db.execute("UPDATE drafts SET length = length(value) WHERE reviewer = ?", [reviewer])  # type: ignore[attr-defined]
    db.execute("DROP TRIGGER decision_log_no_update")  # type: ignore[attr-defined]


LATER = (*MIGRATIONS, m002_made_up)


def columns(connection: sqlite3.Connection) -> dict[str, str]:
    return {row["name"]: row["sql"] for row in connection.execute("SELECT name, sql FROM sqlite_master")}


def fill(path: Path) -> None:
    """A database of this version with something for a later step to read."""
    with Store.open(path) as store:
        case = a_case()
        store.cases.add(case)
        store.runs.finish(a_run(case))
        store.decisions.append(a_decision(case))
        with store.database.transaction() as connection:
            connection.executemany(
                "INSERT INTO drafts VALUES (?, 'case:1', 'note', 'half typed', 't')",
                [(f"r{n}",) for n in range(DRAFTS)],
            )


def test_a_new_database_makes_its_folders_and_opens_again(path: Path) -> None:
    with Store.open(path) as store:
        store.cases.add(a_case())
    with Store.open(path) as store:
        assert store.cases.count() == 1
        mode = store.database.value("PRAGMA journal_mode")
        assert mode == "wal"
        assert store.check().ok


def test_the_schema_is_made_whole_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir(parents=True)
    connection = connect(path)
    monkeypatch.setattr(guards, "arm", lambda connection: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        migrate(connection)
    assert columns(connection) == {}
    assert connection.execute("PRAGMA application_id").fetchone()[0] == 0
    connection.close()
    monkeypatch.undo()
    with Store.open(path) as store:
        assert store.cases.add(a_case()) == "added"


def test_a_later_step_keeps_what_the_database_holds_and_its_guards_are_armed_again(path: Path) -> None:
    fill(path)
    open_database(path, known=LATER).close()
    connection = connect(path)
    assert applied(connection) == migrations.names(LATER)
    assert connection.execute("SELECT DISTINCT length FROM drafts").fetchall()[0][0] == len("half typed")
    assert guards.missing(connection) == ()
    connection.close()


def test_a_later_step_that_fails_halfway_leaves_no_trace_and_is_completed_later(path: Path) -> None:
    fill(path)

    def fails(db: object) -> None:
        m002_made_up(db)
        raise RuntimeError("the power went")

    fails.__name__ = m002_made_up.__name__
    connection = connect(path)
    before = columns(connection)
    with pytest.raises(RuntimeError, match="the power went"):
        migrate(connection, (*MIGRATIONS, fails))
    assert columns(connection) == before
    assert applied(connection) == migrations.names()
    connection.close()
    with Store.open(path) as store:
        assert store.check().ok
    open_database(path, known=LATER).close()


def _migrate_until_killed(path: Path, under_way: Any) -> None:
    def stops(db: object) -> None:
        m002_made_up(db)
        under_way.set()
        time.sleep(60)

    stops.__name__ = m002_made_up.__name__
    open_database(path, known=(*MIGRATIONS, stops))


def test_a_later_step_that_is_killed_loses_no_row_and_is_completed_later(path: Path) -> None:
    fill(path)
    context = multiprocessing.get_context("fork")
    under_way = context.Event()
    process = context.Process(target=_migrate_until_killed, args=(path, under_way))
    process.start()
    assert under_way.wait(30)
    process.kill()
    process.join()
    with Store.open(path) as store:
        assert store.check().ok
        assert store.database.value("SELECT count(*) FROM drafts WHERE value = 'half typed'") == DRAFTS
    open_database(path, known=LATER).close()
    assert applied(connect(path)) == migrations.names(LATER)


def test_the_error_for_a_busy_database_says_that_another_program_may_be_migrating_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="held by another program, which may be bringing it up to date"):
        open_database(path, known=LATER)
    other.execute("ROLLBACK")
    other.close()
    open_database(path, known=LATER).close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE store_info SET value = 'of another schema.sql' WHERE key = 'schema'",
        "DELETE FROM store_info WHERE key = 'schema'",
        "UPDATE _sqlite_migrations SET name = 'm001_cases_runs_and_decisions'",
        "DROP TABLE _sqlite_migrations",
    ],
)
def test_a_database_of_a_development_version_is_refused_with_what_to_do_and_left_as_it_is(
    path: Path, change: str
) -> None:
    fill(path)
    with connect(path) as connection:
        connection.execute(change)
    connection.close()
    before = path.read_bytes()
    cure = r"`masis export --format cases` and import .*`--format decided` .*or start anew in another file"
    with pytest.raises(OtherSchema, match=rf"development version of the workbench \({version.APP}\).*{cure}"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_newer_database_is_refused_with_both_versions_named_and_left_as_it_is(path: Path) -> None:
    open_database(path, known=LATER).close()
    before = path.read_bytes()
    with pytest.raises(NewerDatabase, match=r"later version.*schema m002_made_up.*knows up to m001_schema.*--db"):
        Store.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "content", [b"hello", b"SQLite format 3\x00" + b"\xff" * 4000, b"SQLite format 3\x00", b'{"id": 1}\n' * 5000]
)
def test_a_file_that_is_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "notes.txt"
    other.write_bytes(content)
    with pytest.raises(NotADatabase, match=r"notes\.txt: .*--db"):
        Store.open(other)
    assert other.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "photos.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE photos (id)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(NotADatabase, match="of something else"):
        Store.open(other)
    assert other.read_bytes() == before


def test_a_folder_and_a_place_below_a_file_are_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(NotADatabase, match="is a folder"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="can't be used"):
        Store.open(tmp_path / "file" / "masis.db")


def _open(path: Path, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    with Store.open(path) as store:
        store.cases.add(a_case())


@pytest.mark.slow
def test_processes_that_open_a_new_file_at_once_agree_on_one(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    processes = [context.Process(target=_open, args=(path, barrier)) for _ in range(3)]
    run_at_once(processes)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with Store.open(path) as store:
        assert store.cases.count() == 1
        assert applied(connect(path)) == migrations.names()
