"""The pool of connections, nested transactions, several processes on one file, and errors of SQLite
in words.
"""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from masis.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseMissing,
    DatabaseReadOnly,
    DiskFailed,
    StoreError,
)
from masis.schema.screening import ScreeningDecision
from masis.store import Store
from masis.store.core import connections
from masis.store.core.connections import POOL_SIZE, connect, explained_errors
from tests.store.factories import a_case, a_decision, a_run, acceptance_of
from tests.waiting import PATIENCE_S, run_at_once


def test_many_threads_share_few_connections(store: Store) -> None:
    store.cases.add(a_case())
    seen: list[int] = []

    def rerun() -> None:
        store.cases.get("case-1")
        with store.transaction():
            store.drafts.save("Ada", "case:1", {"note": str(threading.get_ident())})
        seen.append(store.database.connections)

    for _ in range(10):  # one after another, as reruns of a page come
        thread = threading.Thread(target=rerun)
        thread.start()
        thread.join()
    assert max(seen) == 1
    threads = [threading.Thread(target=rerun) for _ in range(30)]
    run_at_once(threads)
    assert len(seen) == 40
    assert max(seen) <= POOL_SIZE


def test_readers_never_wait(store: Store) -> None:
    store.cases.add(a_case())
    inside, counted = threading.Barrier(4, timeout=60), list[int]()

    def read() -> None:
        with store.database.reading():
            inside.wait()
            counted.append(store.cases.count())
            inside.wait()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    with store.transaction():
        store.cases.add(a_case("case-2"))
        inside.wait()
        inside.wait()  # all of them have read while the write is in progress
    for thread in threads:
        thread.join()
    assert counted == [1, 1, 1]
    assert store.cases.count() == 2


def test_waiting_too_long_for_a_connection_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
    held, done = threading.Barrier(POOL_SIZE + 1, timeout=PATIENCE_S), threading.Event()

    def hold() -> None:
        with store.database.reading():
            held.wait()
            done.wait(PATIENCE_S)

    threads = [threading.Thread(target=hold) for _ in range(POOL_SIZE)]
    for thread in threads:
        thread.start()
    held.wait()
    try:
        with pytest.raises(DatabaseBusy, match="connections have been in use"):
            store.cases.count()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert store.cases.count() == 0


def test_closing_closes_idle_connections_now_and_used_ones_later(store: Store) -> None:
    with store.database.reading():
        store.close()
        assert store.database.connections == 1
    assert store.database.connections == 0
    assert store.cases.count() == 0


def test_a_file_that_was_replaced_is_reopened(store: Store, path: Path, tmp_path: Path) -> None:
    store.cases.add(a_case())
    with Store.open(tmp_path / "other.db") as other:
        other.cases.add(a_case("other"))
    store.close()
    assert store.cases.count() == 1
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    os.replace(tmp_path / "other.db", path)
    assert [case.id for case in store.cases.iterate()] == ["other"]
    path.unlink()
    with pytest.raises(DatabaseMissing, match="moved, removed or replaced"):
        store.cases.count()


def _child(store: Store, finished: object) -> None:
    store.cases.add(a_case("of the child"))
    finished.put(store.database.connections)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_opens_its_own_connections(store: Store) -> None:
    store.cases.add(a_case())
    context = multiprocessing.get_context("fork")
    finished = context.Queue()
    child = context.Process(target=_child, args=(store, finished))
    child.start()
    assert finished.get(timeout=30) == 1
    child.join(30)
    assert child.exitcode == 0
    store.cases.add(a_case("afterwards"))
    assert {case.id for case in store.cases.iterate()} == {"case-1", "of the child", "afterwards"}
    assert store.check().ok


# Transactions


def test_a_failed_nested_transaction_is_rolled_back_alone(store: Store) -> None:
    with store.transaction():
        store.cases.add(a_case("before"))
        with (  # noqa: PT012 (that the first write is undone)
            pytest.raises(ValueError, match="no"),
            store.transaction(),
        ):
            store.cases.add(a_case("inner"))
            raise ValueError("no")
        store.cases.add(a_case("after"))
    assert [case.id for case in store.cases.iterate()] == ["before", "after"]


def test_a_failed_transaction_rolls_back_nested_ones(store: Store) -> None:
    def fail() -> None:
        with store.transaction():
            with store.transaction():
                store.cases.add(a_case("inner"))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert store.cases.count() == 0


def test_a_full_disk_never_leaves_half_a_transaction(store: Store) -> None:
    with (  # noqa: PT012
        pytest.raises(StoreError, match="nothing of it was stored"),
        store.transaction(),
    ):
        store.cases.add(a_case("before"))
        with (  # noqa: PT012
            pytest.raises(sqlite3.OperationalError),
            store.database.transaction() as connection,
        ):
            # as SQLite does by itself on SQLITE_FULL or SQLITE_IOERR
            connection.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        store.cases.add(a_case("after"))
    assert store.cases.count() == 0


def test_a_write_transaction_starts_with_fresh_data(
    store: Store,
) -> None:
    with (
        store.database.reading(),
        pytest.raises(RuntimeError, match="begin it first"),
        store.transaction(),
    ):
        pass  # what SQLite would answer with SQLITE_BUSY_SNAPSHOT once another had written


# Durability


def synchronous(store: Store) -> list[int]:
    """What each commit from now on waits for: 2 the disk (FULL), 1 not (NORMAL)."""
    found: list[int] = []
    with store.database.reading() as connection:  # given back, it is the one lent next

        def look(sql: str) -> None:
            if sql == "COMMIT":
                found.append(2 if connection.durable else 1)

        connection.set_trace_callback(look)
    found.clear()
    return found


def test_log_writes_are_synced_and_imports_arent(store: Store) -> None:
    commits = synchronous(store)
    case = a_case()
    store.cases.add(case)
    assert commits == [1]
    commits.clear()
    store.decisions.append(a_decision(case, None))
    assert commits == [2]
    assert store.database.value("PRAGMA synchronous") == 2
    commits.clear()
    store.screening_log.append(
        ScreeningDecision(kind="memory_reset", reviewer="Ada", screening_id=None, reason="drift")
    )
    assert commits == [2]
    commits.clear()
    store.drafts.save("Ada", "case:1", {"note": "x"})
    assert commits == [1]
    commits.clear()
    with store.transaction():
        run = a_run(case, needs_review=False)
        store.runs.finish(run)
        store.decisions.append(acceptance_of(run))
    assert commits == [2]


def test_durable_writes_need_a_synced_transaction(store: Store) -> None:
    store.cases.add(a_case())
    with store.database.transaction(durable=False), pytest.raises(RuntimeError, match="durable"):
        store.decisions.append(a_decision(a_case(), None))


# Errors


@pytest.mark.parametrize(
    ("name", "raised", "words"),
    [
        ("SQLITE_BUSY", DatabaseBusy, "held by another program"),
        ("SQLITE_LOCKED_SHAREDCACHE", DatabaseBusy, "held by another program"),
        ("SQLITE_CORRUPT", DatabaseDamaged, "masis export"),
        ("SQLITE_NOTADB", DatabaseDamaged, "masis export"),
        ("SQLITE_FULL", DatabaseFull, "no room left"),
        ("SQLITE_READONLY_DBMOVED", DatabaseReadOnly, "writable"),
        ("SQLITE_CANTOPEN", DatabaseMissing, "Put it back"),
        ("SQLITE_IOERR_FSYNC", DiskFailed, "disk fails"),
    ],
)
def test_each_file_error_has_a_hint(
    path: Path, name: str, raised: type[StoreError], words: str
) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorname = name
    with pytest.raises(raised, match=rf"masis\.db: .*{words}"), explained_errors(path):
        raise error


def test_a_statement_error_isnt_reported_as_file_damage(store: Store) -> None:
    with pytest.raises(sqlite3.OperationalError, match="malformed JSON"):
        store.database.execute("SELECT json('{')")


def test_a_damaged_file_is_reported(store: Store, path: Path) -> None:
    for number in range(200):
        store.cases.add(a_case(f"case-{number}"))
    store.settle()
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4096)
    path.write_bytes(content)
    with pytest.raises(DatabaseDamaged, match="is damaged"):
        list(store.cases.iterate())


def test_an_unwritable_file_is_reported(store: Store, path: Path) -> None:
    store.database.execute("PRAGMA query_only = ON")  # whoever runs as root may write any file
    with pytest.raises(DatabaseReadOnly, match="Make file and folder writable"):
        store.cases.add(a_case())
    connection = connect(path)
    assert connection.execute("SELECT count(*) FROM cases").fetchone()[0] == 0
    connection.close()


ROOT = Path(__file__).resolve().parents[2]


ADD = "import sys; from masis.store import Store; from tests.store.factories import a_case\n"
ADD += "with Store.open(sys.argv[1]) as store: store.cases.add(a_case(sys.argv[2]))"


@pytest.mark.slow
def test_opening_a_database_twice_keeps_its_locks_against_other_processes(path: Path) -> None:
    # A lock goes with the first handle a process closes on the file, whoever opened it: without its
    # locks this process reads on in a log that the other one has deleted, and writes into it.
    with Store.open(path) as store:
        store.cases.add(a_case("ours"))
        with Store.open(path) as again:
            again.cases.count()
        subprocess.run([sys.executable, "-c", ADD, str(path), "theirs"], check=True, cwd=ROOT)
        assert store.cases.count() == 2
        store.cases.add(a_case("ours too"))
    with Store.open(path) as store:
        assert store.cases.count() == 3
        assert store.check().ok


@pytest.mark.slow
def test_concurrent_submits_of_one_form_make_one_decision(store: Store) -> None:
    store.cases.add(a_case())
    barrier, ids = threading.Barrier(6), set[str]()

    def submit() -> None:
        barrier.wait()
        ids.add(store.decisions.append(a_decision(a_case(), None, token="form-1")).id)

    threads = [threading.Thread(target=submit) for _ in range(6)]
    run_at_once(threads)
    assert (len(ids), store.decisions.head().length) == (1, 1)


def test_a_file_size_limit_is_reported_as_such(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from masis.errors import DatabaseFull
from masis.store import Store
from tests.store.factories import a_case
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Store.open(sys.argv[1]) as store:
    store.cases.add(a_case())
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    try:
        for number in range(100):
            store.cases.add(a_case(f"more-{number}", query="x" * 100_000))
    except DatabaseFull as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "limited.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "this process may write no larger file" in done.stdout
