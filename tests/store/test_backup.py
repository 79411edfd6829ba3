"""Backups: made while others write, verified before they count, restored, and made by themselves."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from masis.cli import main
from masis.errors import DatabaseBusy, DatabaseFull, InputError, MasisError, NewerDatabase, NotADatabase, StoreError
from masis.services.backups import BackupService, make_if_due
from masis.services.health import of_backups
from masis.settings import Settings
from masis.store import Store
from masis.store.core import backup
from masis.store.core.connections import open_database
from masis.store.core.migrations import MIGRATIONS
from tests.cli.running import start
from tests.reviewing import ADA
from tests.store.factories import a_case, a_decision, a_run
from tools import tamper


def fill(store: Store, numbers: range) -> None:
    for number in numbers:
        case = a_case(f"case-{number}")
        store.cases.add(case)
        store.runs.finish(a_run(case, f"run-{number}"))
        store.decisions.append(a_decision(case, f"run-{number}"))


def content(path: Path) -> list[str]:
    """Every row of every table, as the SQL that would make it."""
    with sqlite3.connect(path) as connection:
        return list(connection.iterdump())


def test_the_drill_a_lost_database_comes_back_as_it_was_at_the_backup(store: Store, tmp_path: Path) -> None:
    fill(store, range(5))
    made = backup.back_up(store.database, tmp_path / "backup.db")
    before, head = content(store.path), store.decisions.head()
    assert (made.cases, made.runs, made.length, made.head) == (5, 5, *head)
    fill(store, range(5, 7))
    store.close()
    backup.remove(store.path)
    backup.restore(tmp_path / "backup.db", store.path)
    assert content(store.path) == before
    with Store.open(store.path) as restored:
        assert restored.check().ok
        assert restored.decisions.check_subjects().broken == ()
        fill(restored, range(5, 7))
        assert restored.decisions.verify().length == 7


def test_a_backup_is_of_one_moment_while_others_write(store: Store, tmp_path: Path) -> None:
    fill(store, range(3))
    over = threading.Event()
    written = threading.Event()

    def write() -> None:
        number = 3
        while not over.is_set():
            with store.transaction():
                fill(store, range(number, number + 1))
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
    for each in made:
        assert each.cases == each.runs == each.length >= 3, "a case, its run and its decision are there or none is"
        assert not list(tmp_path.glob("*.db-*")), "a backup is a single file"
    assert store.decisions.verify().intact


@pytest.mark.parametrize("change", [tamper.edit_question, tamper.edit_reason, tamper.set_state, tamper.remove_entry])
def test_a_database_that_is_not_in_order_is_not_backed_up(tmp_path: Path, change: tamper.Change) -> None:
    tamper.build(tmp_path / "original.db")
    with Store.open(tmp_path / "original.db") as store:
        store.settle()
    altered = tamper.attack(tmp_path / "original.db", tmp_path, change)
    with Store.open(altered) as store, pytest.raises(StoreError, match="no backup was made"):
        backup.back_up(store.database, tmp_path / "backup.db")
    assert not list(tmp_path.glob("backup.db*"))


def test_a_damaged_backup_is_not_restored_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, range(30))
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


def test_a_database_is_replaced_only_on_request_and_kept(store: Store, tmp_path: Path) -> None:
    fill(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    fill(store, range(2, 4))
    store.close()
    with pytest.raises(InputError, match="--replace"):
        backup.restore(tmp_path / "backup.db", store.path)
    _, aside = backup.restore(tmp_path / "backup.db", store.path, replace=True, stamp="now")
    assert aside is not None
    with Store.open(aside) as kept, Store.open(store.path) as restored:
        assert (kept.cases.count(), restored.cases.count()) == (4, 2)


def test_a_database_in_use_is_not_replaced(store: Store, tmp_path: Path) -> None:
    fill(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    with sqlite3.connect(store.path) as other:
        other.execute("SELECT count(*) FROM cases").fetchone()
        with pytest.raises(DatabaseBusy, match="is in use"):
            backup.restore(tmp_path / "backup.db", store.path, replace=True)
    assert not list(tmp_path.glob("**/*.replaced*"))
    assert store.cases.count() == 2


def test_the_write_ahead_log_of_a_lost_database_is_not_mistaken_for_the_restored_one(
    store: Store, tmp_path: Path
) -> None:
    fill(store, range(2))
    backup.back_up(store.database, tmp_path / "backup.db")
    fill(store, range(2, 6))
    left = store.path.with_name(store.path.name + "-wal")
    copy = left.read_bytes()
    store.close()
    store.path.unlink()
    left.write_bytes(copy)
    backup.restore(tmp_path / "backup.db", store.path)
    with Store.open(store.path) as restored:
        assert restored.cases.count() == 2
        assert restored.check().ok


def test_a_backup_of_an_earlier_version_is_verified_as_it_will_be_when_it_was_migrated(
    store: Store, tmp_path: Path
) -> None:
    def m002_made_up(db: Any) -> None:
        db.execute("ALTER TABLE drafts ADD COLUMN length INTEGER")

    fill(store, range(2))
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


def test_only_the_newest_are_kept_and_other_files_are_left(store: Store, tmp_path: Path) -> None:
    fill(store, range(1))
    folder = tmp_path / "backups"
    folder.mkdir()
    others = [folder / name for name in ("masis-notes.db", "other-20260101T000000Z.db")]
    for other in others:
        other.write_text("mine")
    service, at = BackupService(store), datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(5):
        service.make(ADA, folder, keep=2, now=at + timedelta(days=day))
    assert [path.name for path in service.existing(folder)] == [
        "masis-20260105T000000Z.db",
        "masis-20260104T000000Z.db",
    ]
    assert all(other.exists() for other in others)


def test_a_backup_is_made_when_it_is_due_and_health_says_where_none_was(store: Store, tmp_path: Path) -> None:
    fill(store, range(1))
    service, at = BackupService(store), datetime(2026, 1, 1, tzinfo=UTC)
    settings = Settings(backup_folder=str(tmp_path / "made" / "here"), backup_hours=24)
    [item] = of_backups(service, settings, at)
    assert not item.ok
    assert "there is none" in item.message
    assert make_if_due(service, settings, at) is not None
    assert make_if_due(service, settings, at + timedelta(hours=23)) is None
    assert [each.ok for each in of_backups(service, settings, at + timedelta(hours=47))] == [True]
    assert [each.ok for each in of_backups(service, settings, at + timedelta(hours=49))] == [False]
    assert make_if_due(service, settings, at + timedelta(hours=24)) is not None
    assert list(of_backups(service, Settings())) == []


def test_where_there_is_no_room_nothing_is_left_and_the_error_names_the_place(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, range(3))
    connected = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connected(*arguments, **options)  # type: ignore[call-overload]
        if str(arguments[0]).endswith(backup.PART):
            connection.execute("PRAGMA max_page_count = 10")  # SQLite then answers as it does on a full disk
        return connection

    monkeypatch.setattr(backup.sqlite3, "connect", small)
    with pytest.raises(DatabaseFull, match=r"backup\.db\.part: its disk has no room left"):
        backup.back_up(store.database, tmp_path / "backup.db")
    assert not list(tmp_path.glob("backup.db*"))


@pytest.mark.slow
def test_the_commands_back_up_check_and_restore(store: Store, tmp_path: Path) -> None:
    fill(store, range(3))
    store.close()
    folder = tmp_path / "backups"
    folder.mkdir()

    def masis(*arguments: str | Path) -> tuple[int, str]:
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        return done.exit_code, done.stderr

    process = start("db", "backup", folder, "--keep", "2", "--db", store.path)  # here it would hold the database open
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
