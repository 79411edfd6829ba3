"""Opening: ours, older, newer or something else; migrations whole or not at all."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from masis.errors import DatabaseBusy, NewerDatabase, NotADatabase, StoreError
from masis.store import CaseFilter, Store, Upgrade
from masis.store.core import connections, guards, migrations
from masis.store.core.connections import connect, open_database
from masis.store.core.migrations import MIGRATIONS, applied, migrate
from tests.store.factories import a_case, a_run, an_iteration

OLD_CASE = (
    '{"id": "old-1", "query": "Où est le pont?", "answer": "Ici [1].", "evidence": [{"id": "1", "text": "Là-bas"}]}'
)


def columns(connection: sqlite3.Connection) -> dict[str, str]:
    return {row["name"]: row["sql"] for row in connection.execute("SELECT name, sql FROM sqlite_master")}


def old_database(path: Path, upto: int) -> None:
    """A database as the first version left it: a case, a finished run, a decision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(path)
    migrate(connection, MIGRATIONS[:upto])
    connection.execute(
        """INSERT INTO cases (seq, id, digest, imported_at, updated_at, query_start, state, run_seq, flags, reasons)
           VALUES (1, 'old-1', 'd', 't', 't', 'Où est le pont?', 'needs_review', NULL, '["uncited"]', '["limit"]')"""
    )
    connection.execute("INSERT INTO case_payloads VALUES (1, ?)", [OLD_CASE])
    connection.execute(
        """
        INSERT INTO runs
            (seq, id, case_seq, case_digest, state, owner, started_at, seen_at, models, settings, settings_digest)
        VALUES (1, 'run-1', 1, 'd', 'finished', '{}', 't', 't', '{"critic": "offline"}', '{}', 's')
        """
    )
    connection.execute("UPDATE cases SET run_seq = 1")
    connection.close()


def test_a_new_database_makes_its_folders_and_opens_again(path: Path) -> None:
    with Store.open(path) as store:
        store.cases.add(a_case())
    with Store.open(path) as store:
        assert store.cases.count() == 1
        mode = store.database.value("PRAGMA journal_mode")
        assert mode == "wal"
        assert store.check().ok


def test_an_older_database_migrates_with_what_it_holds(path: Path) -> None:
    old_database(path, 1)
    with Store.open(path) as store:
        assert store.cases.get("old-1").answer == "Ici [1]."
        assert [row.id for row in store.cases.search(CaseFilter(text="là-bas")).rows] == ["old-1"]
        assert [row.id for row in store.cases.search(CaseFilter(text="OU est")).rows] == ["old-1"]
        assert store.cases.facets().flags == {"uncited": 1}
        assert store.cases.facets().reasons == {"limit": 1}
        assert applied(connect(path)) == migrations.names()
    with Store.open(path) as store:
        assert store.cases.count() == 1


@pytest.mark.parametrize("done", range(len(MIGRATIONS)))
def test_a_migration_that_fails_halfway_leaves_no_trace_and_is_made_good_later(path: Path, done: int) -> None:
    path.parent.mkdir(parents=True)
    connection = connect(path)
    migrate(connection, MIGRATIONS[:done])
    before = columns(connection)

    def fails(db: object) -> None:
        MIGRATIONS[done](db)  # type: ignore[arg-type]
        raise RuntimeError("the power went")

    fails.__name__ = MIGRATIONS[done].__name__
    with pytest.raises(RuntimeError, match="the power went"):
        migrate(connection, (*MIGRATIONS[:done], fails))
    after = columns(connection)
    after.pop("_sqlite_migrations", None)
    assert {name for name in after if "sqlite_migrations" not in name} == {
        name for name in before if "sqlite_migrations" not in name
    }
    assert applied(connection) == migrations.names(MIGRATIONS[:done])
    assert connection.execute("PRAGMA application_id").fetchone()[0] == (migrations.APPLICATION_ID if done else 0)
    connection.close()
    with Store.open(path) as store:
        assert store.cases.add(a_case()) == "added"


def test_runs_that_stood_before_are_entered_in_the_log_of_executions(path: Path) -> None:
    with Store.open(path) as store:
        for case_id in ("a", "b"):
            store.cases.add(a_case(case_id))
        run = a_run(a_case("a"), "finished", iterations=(an_iteration(1, quality=0.4), an_iteration(2, quality=0.6)))
        store.runs.finish(run.model_copy(update={"improvement_percentage": 50.0}))
        case = a_case("b")
        store.runs.start("cut", case_id="b", case_digest=case.digest(), models={"critic": "m"}, settings={})
        store.runs.save_iteration("cut", an_iteration(1, quality=0.5))
        store.runs.save_iteration("cut", an_iteration(2, quality=0.4))
        store.runs.abandon("cut", "Ctrl-C")
        store.runs.start("under way", case_id="b", case_digest=case.digest(), models={}, settings={})
        made = list(store.executions.iterate())
        connection = connect(path)
        for table in ("executions", "purged", "purges"):
            for trigger in guards.GUARDS[table]:
                connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("DROP INDEX decisions_of_run")
        for table in ("runs", "screenings"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN removed_by")
        for table in ("executions", "purged", "purges"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM _sqlite_migrations WHERE name LIKE 'm012%'")
    with Store.open(path) as store:
        entered = list(store.executions.iterate())
        assert {each.run_id: each.termination for each in entered} == {"finished": "convergence", "cut": "abandoned"}
        versions = {"app": "", "rubric": ""}  # of a run that was cut short nobody wrote them down
        expected = {each.run_id: each for each in made}
        expected["cut"] = expected["cut"].model_copy(update=versions)
        assert {each.run_id: each for each in entered} == expected
        assert store.check().ok
        store.runs.abandon("under way", "Ctrl-C")
        assert store.executions.count() == 3


def test_who_waits_for_an_upgrade_hears_how_far_it_is_and_of_a_new_database_nothing(path: Path, tmp_path: Path) -> None:
    old_database(path, 11)
    heard: list[Upgrade] = []
    steps = len(MIGRATIONS) - 11
    counted = [Upgrade(1, steps), Upgrade(1, steps, 0, 1), Upgrade(1, steps, 1, 1)]
    open_database(path, on_upgrade=heard.append).close()
    assert heard == [*counted, *(Upgrade(step, steps) for step in range(2, steps + 1))]
    open_database(path, on_upgrade=heard.append).close()
    open_database(tmp_path / "new.db", on_upgrade=heard.append).close()
    assert len(heard) == steps + 2


def test_an_upgrade_that_is_broken_off_leaves_the_database_as_it_was(path: Path) -> None:
    old_database(path, 11)
    connection = connect(path)
    before = columns(connection)

    def stop(now: Upgrade) -> None:
        if now.total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_database(path, on_upgrade=stop)
    assert columns(connection) == before
    connection.close()
    with Store.open(path) as store:
        assert store.check().counts["runs"] == 1


def test_the_error_for_a_busy_database_says_that_another_program_may_be_migrating_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_database(path, 11)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
    other = connect(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="held by another program, which may be bringing it up to date"):
        open_database(path)
    other.execute("ROLLBACK")
    other.close()
    open_database(path).close()


def test_guards_that_a_migration_loses_are_armed_again(path: Path) -> None:
    Store.open(path).close()
    database = open_database(path, known=(*MIGRATIONS, m999_touch))
    assert applied(connect(path))[-1] == "m999_touch"
    assert guards.missing(connect(path)) == ()
    database.close()


def m999_touch(db: object) -> None:
    """A migration that loses a guard, as rebuilding a table does."""
    db.execute("DROP TRIGGER decision_log_no_update")  # type: ignore[attr-defined]


def test_a_newer_database_is_refused_with_both_versions_named(path: Path) -> None:
    open_database(path, known=(*MIGRATIONS, m999_touch)).close()
    newest = MIGRATIONS[-1].__name__
    with pytest.raises(NewerDatabase, match=rf"later version.*schema m999_touch.*knows up to {newest}.*--db"):
        Store.open(path)


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
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with Store.open(path) as store:
        assert store.cases.count() == 1
        assert applied(connect(path)) == migrations.names()


def test_writing_while_another_holds_the_lock_too_long_says_what_to_do(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr("masis.store.core.connections.BUSY_TIMEOUT_S", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy, match=r"held by another program .* close that, or try again"):
        store.cases.add(a_case())
    other.execute("ROLLBACK")
    other.close()
    assert store.cases.add(a_case()) == "added"
