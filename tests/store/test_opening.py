"""The file: opened, migrated whole or not at all, backed up while others write, verified, and
restored.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from masis import version
from masis.cli import main
from masis.errors import (
    DatabaseBusy,
    DatabaseFull,
    InputError,
    MasisError,
    NewerDatabase,
    NotADatabase,
    OtherSchema,
    StoreError,
)
from masis.services.maintenance.backups import BackupService, make_if_due
from masis.services.maintenance.health import check_backups
from masis.settings import Settings
from masis.store import Store
from masis.store.core import backup, connections, guards, migrations
from masis.store.core.connections import connect, open_database
from masis.store.core.migrations import MIGRATIONS, applied_migrations, migrate
from tests.cli.running import start
from tests.reviewing import ADA
from tests.store.factories import a_case, a_decision, an_audited_case
from tests.waiting import run_at_once
from tools import tamper

pytestmark = pytest.mark.usefixtures("migrated_databases")
DRAFTS = 2000


def m002_made_up(db: object) -> None:
    """A step as a later version may append it: it changes a table, fills it row by row and loses a
    guard.
    """
    db.execute("ALTER TABLE drafts ADD COLUMN length INTEGER")
    for (reviewer,) in db.execute("SELECT reviewer FROM drafts").fetchall():
        db.execute("UPDATE drafts SET length = length(value) WHERE reviewer = ?", [reviewer])
    db.execute("DROP TRIGGER decision_log_no_update")


LATER = (*MIGRATIONS, m002_made_up)


def columns(connection: sqlite3.Connection) -> dict[str, str]:
    return {
        row["name"]: row["sql"] for row in connection.execute("SELECT name, sql FROM sqlite_master")
    }


def fill_database(path: Path) -> None:
    """A database of this version with something for a later step to read."""
    with Store.open(path) as store:
        case = an_audited_case(store, a_case())
        store.decisions.append(a_decision(case))
        with store.database.transaction() as connection:
            connection.executemany(
                "INSERT INTO drafts VALUES (?, 'case:1', 'note', 'half typed', 't')",
                [(f"r{n}",) for n in range(DRAFTS)],
            )


def test_a_new_database_creates_its_folders(path: Path) -> None:
    with Store.open(path) as store:
        store.cases.add(a_case())
    with Store.open(path) as store:
        assert store.cases.count() == 1
        assert store.database.value("PRAGMA journal_mode") == "wal"
        assert store.check().ok


def test_opening_reads_triggers_and_migrations_a_few_times_however_many_there_are(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(path).close()
    reads: list[str] = []
    missing, applied = guards.missing, migrations.applied_migrations
    monkeypatch.setattr(
        guards, "missing", lambda *given: reads.append("triggers") or missing(*given)
    )
    monkeypatch.setattr(
        migrations, "applied_migrations", lambda given: reads.append("migrations") or applied(given)
    )
    Store.open(path).close()
    assert reads.count("triggers") == 1
    assert reads.count("migrations") <= 3


def test_creating_the_schema_is_atomic(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_migration_keeps_data_and_triggers(
    path: Path,
) -> None:
    fill_database(path)
    open_database(path, known=LATER).close()
    connection = connect(path)
    assert applied_migrations(connection) == migrations.migration_names(LATER)
    assert connection.execute("SELECT DISTINCT length FROM drafts").fetchall()[0][0] == len(
        "half typed"
    )
    assert guards.missing(connection) == ()
    connection.close()


def test_a_database_without_named_queues_opens_with_the_first_one(path: Path) -> None:
    """Decisions in the first queue are stored as before queues existed."""
    path.parent.mkdir(parents=True)
    connection = connect(path)
    before = MIGRATIONS[: migrations.migration_names().index("m052_queues")]
    migrate(connection, before)
    connection.close()
    with Store.open(path) as store:
        assert store.team.queues() == ()
        entry = store.decisions.append(a_decision(an_audited_case(store, a_case())))
        assert entry.decision is not None
        assert entry.decision.queue is None
        [payload] = store.database.row("SELECT payload FROM decision_payloads") or ()
        assert "queue" not in payload
        assert "held_by" not in payload
        tables = ("queue_states", "queue_work")
        assert [store.database.value(f"SELECT count(*) FROM {name}") for name in tables] == [0, 0]
        assert store.check().ok


def test_a_failed_migration_is_rolled_back_and_can_be_repeated(path: Path) -> None:
    fill_database(path)

    def fail(db: object) -> None:
        m002_made_up(db)
        raise RuntimeError("the power went")

    fail.__name__ = m002_made_up.__name__
    connection = connect(path)
    before = columns(connection)
    with pytest.raises(RuntimeError, match="the power went"):
        migrate(connection, (*MIGRATIONS, fail))
    assert columns(connection) == before
    assert applied_migrations(connection) == migrations.migration_names()
    connection.close()
    with Store.open(path) as store:
        assert store.check().ok
    open_database(path, known=LATER).close()


def _migrate_until_killed(path: Path, has_started: Any) -> None:
    def stops(db: object) -> None:
        m002_made_up(db)
        has_started.set()
        time.sleep(60)

    stops.__name__ = m002_made_up.__name__
    open_database(path, known=(*MIGRATIONS, stops))


def test_a_killed_migration_loses_no_row(path: Path) -> None:
    fill_database(path)
    context = multiprocessing.get_context("fork")
    has_started = context.Event()
    process = context.Process(target=_migrate_until_killed, args=(path, has_started))
    process.start()
    assert has_started.wait(30)
    process.kill()
    process.join()
    with Store.open(path) as store:
        assert store.check().ok
        assert (
            store.database.value("SELECT count(*) FROM drafts WHERE value = 'half typed'") == DRAFTS
        )
    open_database(path, known=LATER).close()
    assert applied_migrations(connect(path)) == migrations.migration_names(LATER)


def test_a_busy_database_error_mentions_migrations(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(path)
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        StoreError, match="held by another program, which may be bringing it up to date"
    ):
        open_database(path, known=LATER)
    other.execute("ROLLBACK")
    other.close()
    open_database(path, known=LATER).close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE store_info SET value = 'of another schema.sql' WHERE key = 'schema'",
        "DELETE FROM store_info WHERE key = 'schema'",
        "UPDATE _sqlite_migrations SET name = 'm001_of_old' WHERE name = 'm001_schema'",
        "DROP TABLE _sqlite_migrations",
    ],
)
def test_a_development_database_is_rejected_unchanged_with_a_hint(path: Path, change: str) -> None:
    fill_database(path)
    with connect(path) as connection:
        connection.execute(change)
    connection.close()
    before = path.read_bytes()
    hint = r"`masis export --format cases` and import .*`--format decided` .*or start a new file"
    with pytest.raises(
        OtherSchema, match=rf"development version of the workbench \({version.APP}\).*{hint}"
    ):
        Store.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_headline_that_was_stored_as_text_stays_readable(path: Path) -> None:
    fill_database(path)
    with connect(path) as connection:
        connection.execute("ALTER TABLE jobs ADD COLUMN worded TEXT")
        for table in ("cases", "jobs"):
            connection.execute(f"UPDATE {table} SET headline = ?", ["Cites [7]\n1 “more”"])
        connection.execute(
            "DELETE FROM _sqlite_migrations WHERE name = 'm002_structured_headlines'"
        )
    connection.close()
    with Store.open(path) as store:
        case_id = store.database.value("SELECT id FROM cases")
        assert store.cases.summary(case_id).headline == "Cites [7] · 1 “more”"
        assert store.check().ok


def test_a_newer_database_is_rejected_unchanged_with_both_versions(path: Path) -> None:
    open_database(path, known=LATER).close()
    before = path.read_bytes()
    with pytest.raises(
        NewerDatabase,
        match=rf"later version.*schema m002_made_up.*knows up to {migrations.migration_names()[-1]}.*--db",
    ):
        Store.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"SQLite format 3\x00" + b"\xff" * 4000,
        b"SQLite format 3\x00",
        b'{"id": 1}\n' * 5000,
    ],
)
def test_a_foreign_file_is_rejected_unchanged(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "notes.txt"
    other.write_bytes(content)
    with pytest.raises(NotADatabase, match=r"notes\.txt: .*--db"):
        Store.open(other)
    assert other.read_bytes() == content


def test_another_programs_database_is_rejected_unchanged(tmp_path: Path) -> None:
    other = tmp_path / "photos.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE photos (id)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(NotADatabase, match="of something else"):
        Store.open(other)
    assert other.read_bytes() == before


def test_invalid_database_paths_are_rejected_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(NotADatabase, match="is a folder"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="can't be used"):
        Store.open(tmp_path / "file" / "masis.db")


def _open(path: Path, barrier: object) -> None:
    barrier.wait()
    with Store.open(path) as store:
        store.cases.add(a_case())


@pytest.mark.slow
def test_concurrent_processes_create_one_database(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    processes = [context.Process(target=_open, args=(path, barrier)) for _ in range(3)]
    run_at_once(processes)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with Store.open(path) as store:
        assert store.cases.count() == 1
        assert applied_migrations(connect(path)) == migrations.migration_names()


# Backups: made while others write, verified before they count, restored, and made by themselves


def fill_with(store: Store, numbers: range) -> None:
    for number in numbers:
        case = an_audited_case(store, a_case(f"case-{number}"), f"run-{number}")
        store.decisions.append(a_decision(case, f"run-{number}"))


def content(path: Path) -> list[str]:
    """Every row of every table, as the SQL that would make it."""
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_a_lost_database_is_restored_from_its_backup(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(5))
    made = backup.back_up(store.database, tmp_path / "backup.db")
    before, head = content(store.path), store.decisions.head()
    assert (made.cases, made.runs, made.length, made.head) == (5, 5, *head)
    fill_with(store, range(5, 7))
    store.close()
    backup.remove(store.path)
    backup.restore(tmp_path / "backup.db", store.path)
    assert content(store.path) == before
    with Store.open(store.path) as restored:
        assert restored.check().ok
        assert restored.decisions.check_subjects().broken == ()
        fill_with(restored, range(5, 7))
        assert restored.decisions.verify().length == 7


def test_a_backup_is_consistent_during_writes(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(3))
    over = threading.Event()
    written = threading.Event()

    def write() -> None:
        number = 3
        while not over.is_set():
            with store.transaction():
                fill_with(store, range(number, number + 1))
            number += 1
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(30)
        made = [backup.back_up(store.database, tmp_path / f"{number}.db") for number in range(5)]
    finally:
        over.set()
        writer.join()
    for copy in made:
        assert copy.cases == copy.runs == copy.length >= 3, (
            "a case, its run and its decision are there or none is"
        )
        assert not list(tmp_path.glob("*.db-*")), "a backup is a single file"
    assert store.decisions.verify().intact


@pytest.mark.parametrize(
    "change", [tamper.edit_question, tamper.edit_reason, tamper.set_state, tamper.remove_entry]
)
def test_a_damaged_database_isnt_backed_up(
    original: Path, tmp_path: Path, change: tamper.Change
) -> None:
    altered = tamper.attack(original, tmp_path, change)
    with Store.open(altered) as store, pytest.raises(StoreError, match="no backup was made"):
        backup.back_up(store.database, tmp_path / "backup.db")
    assert not list(tmp_path.glob("backup.db*"))


def test_a_damaged_backup_isnt_restored(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(30))
    backup.back_up(store.database, tmp_path / "backup.db")
    before = content(store.path)
    store.close()
    with (tmp_path / "backup.db").open("r+b") as file:
        file.seek(60_000)
        file.write(b"\xff" * 20_000)
    with pytest.raises(StoreError):
        backup.restore(tmp_path / "backup.db", store.path, replace=True)
    assert content(store.path) == before
    (tmp_path / "notes.txt").write_text("not a database, " * 100)
    with pytest.raises(NotADatabase):
        backup.restore(tmp_path / "notes.txt", store.path, replace=True)
    with pytest.raises(InputError, match="no such file"):
        backup.restore(tmp_path / "none.db", store.path, replace=True)


def test_restoring_over_a_database_needs_a_flag_and_keeps_the_old_one(
    store: Store, tmp_path: Path
) -> None:
    fill_with(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    fill_with(store, range(2, 4))
    store.close()
    with pytest.raises(InputError, match="--replace"):
        backup.restore(tmp_path / "backup.db", store.path)
    _, aside = backup.restore(tmp_path / "backup.db", store.path, replace=True, stamp="now")
    assert aside is not None
    with Store.open(aside) as kept, Store.open(store.path) as restored:
        assert (kept.cases.count(), restored.cases.count()) == (4, 2)


def test_a_database_in_use_isnt_replaced(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    with sqlite3.connect(store.path) as other:
        other.execute("SELECT count(*) FROM cases").fetchone()
        with pytest.raises(DatabaseBusy, match="is in use"):
            backup.restore(tmp_path / "backup.db", store.path, replace=True)
    assert not list(tmp_path.glob("**/*.replaced*"))
    assert store.cases.count() == 2


def test_a_leftover_wal_file_isnt_applied_to_the_restored_database(
    store: Store, tmp_path: Path
) -> None:
    fill_with(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    fill_with(store, range(2, 6))
    left = store.path.with_name(store.path.name + "-wal")
    copy = left.read_bytes()
    store.close()
    store.path.unlink()
    left.write_bytes(copy)
    backup.restore(tmp_path / "backup.db", store.path)
    with Store.open(store.path) as restored:
        assert restored.cases.count() == 2
        assert restored.check().ok


def test_an_older_backup_is_verified_after_migration(store: Store, tmp_path: Path) -> None:
    def m002_made_up(db: Any) -> None:
        db.execute("ALTER TABLE drafts ADD COLUMN length INTEGER")

    fill_with(store, range(2))
    copy = tmp_path / "copy.db"
    backup.back_up(store.database, copy)
    before = copy.read_bytes()
    known = (*MIGRATIONS, m002_made_up)
    found = backup.verify(copy, known)
    assert (found.path, found.cases, found.problems) == (str(copy), 2, ())
    assert copy.read_bytes() == before
    open_database(copy, known=known).close()
    with pytest.raises(NewerDatabase, match="m002_made_up"):
        backup.restore(copy, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_only_the_newest_backups_are_kept(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(1))
    folder = tmp_path / "backups"
    folder.mkdir()
    others = [folder / name for name in ("masis-notes.db", "other-20260101T000000Z.db")]
    for other in others:
        other.write_text("mine")
    service, at = BackupService(store), datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(5):
        service.make(ADA, folder, keep=2, now=at + timedelta(days=day))
    assert [path.name for path in service.existing(folder, at + timedelta(days=9))] == [
        "masis-20260105T000000Z.db",
        "masis-20260104T000000Z.db",
    ]
    assert all(other.exists() for other in others)


def test_backups_are_found_if_the_name_of_the_database_has_brackets(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    with Store.open(tmp_path / "team [1]*.db") as store:
        service, at = BackupService(store), datetime(2026, 1, 1, tzinfo=UTC)
        partial = folder / "team [1]*-20250101T000000Z.db.part"
        partial.touch()
        for day in range(2):
            service.make(ADA, folder, keep=1, now=at + timedelta(days=day))
        assert [path.name for path in folder.iterdir()] == ["team [1]*-20260102T000000Z.db"]
        assert service.newest(folder, at + timedelta(days=1)) == at + timedelta(days=1)


def test_due_backups_are_made_and_missing_ones_reported(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(1))
    service, at = BackupService(store), datetime(2026, 1, 1, tzinfo=UTC)
    settings = Settings(backup_folder=str(tmp_path / "made" / "here"), backup_hours=24)
    [item] = check_backups(service, settings, at)
    assert not item.ok
    assert "there is none" in item.message
    assert make_if_due(service, settings, at) is not None
    assert make_if_due(service, settings, at + timedelta(hours=23)) is None
    assert [check.ok for check in check_backups(service, settings, at + timedelta(hours=47))] == [
        True
    ]
    assert [check.ok for check in check_backups(service, settings, at + timedelta(hours=49))] == [
        False
    ]
    assert make_if_due(service, settings, at + timedelta(hours=24)) is not None
    assert list(check_backups(service, Settings())) == []


def test_a_backup_without_space_leaves_nothing_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_with(store, range(3))
    connected = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connected(*arguments, **options)
        if str(arguments[0]).endswith(backup.PART):
            # SQLite then answers as it does on a full disk
            connection.execute("PRAGMA max_page_count = 10")
        return connection

    monkeypatch.setattr(backup.sqlite3, "connect", small)
    with pytest.raises(DatabaseFull, match=r"backup\.db\.part: its disk has no room left"):
        backup.back_up(store.database, tmp_path / "backup.db")
    assert not list(tmp_path.glob("backup.db*"))


@pytest.mark.slow
@pytest.mark.soak(smoke=4, full=200)
def test_a_killed_restore_leaves_the_old_or_the_new_database(
    store: Store, tmp_path: Path, rounds: int
) -> None:
    fill_with(store, range(3))
    backup.back_up(store.database, tmp_path / "backup.db")
    fill_with(store, range(3, 6))
    store.close()
    shutil.copy(store.path, tmp_path / "old.db")
    began = time.monotonic()
    backup.restore(tmp_path / "backup.db", tmp_path / "tried.db")
    whole, came_to = time.monotonic() - began, set()
    for number in range(rounds):
        shutil.copy(tmp_path / "old.db", store.path)
        arguments = {"replace": True, "stamp": str(number)}
        process = multiprocessing.get_context("fork").Process(
            target=backup.restore, args=(tmp_path / "backup.db", store.path), kwargs=arguments
        )
        process.start()
        time.sleep(whole * 1.2 * number / rounds)
        process.kill()
        process.join()
        with Store.open(store.path) as found:
            checked = found.decisions.verify()
            assert checked.intact
            came_to.add(checked.length)
    assert came_to <= {3, 6}


@pytest.mark.slow
def test_the_commands_back_up_verify_and_restore(store: Store, tmp_path: Path) -> None:
    fill_with(store, range(3))
    store.close()
    folder = tmp_path / "backups"
    folder.mkdir()

    def masis(*arguments: str | Path) -> tuple[int, str]:
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        return done.exit_code, done.stderr

    # here it would hold the database open
    process = start("db", "backup", folder, "--keep", "2", "--db", store.path)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 0, shown
    assert "3 cases, 3 runs, 3 entries of the decision log" in shown
    [made] = folder.iterdir()
    assert masis("db", "restore", made, "--check")[0] == 0
    status, shown = masis("db", "restore", made, "--db", store.path)
    assert status == 1
    assert "Say --replace" in shown
    status, shown = masis("db", "restore", made, "--db", store.path, "--replace", "--yes")
    assert status == 0, shown
    with Store.open(store.path) as restored:
        assert restored.decisions.verify().length == 3
    assert masis("db", "backup", made, "--db", store.path)[0] == 1
    shutil.copy(made, tmp_path / "damaged.db")
    with (tmp_path / "damaged.db").open("r+b") as file:
        file.truncate(40_000)
    status, shown = masis("db", "restore", tmp_path / "damaged.db", "--db", tmp_path / "new.db")
    assert status == 1
    assert "Traceback" not in shown
    assert not (tmp_path / "new.db").exists()
    assert issubclass(NotADatabase, MasisError)
