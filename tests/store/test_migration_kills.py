"""A migration killed at any moment: the database opens, holds every row, and is brought up to date by whoever opens it.

The database is one of the first schema, or of version 0.1, with as many cases, runs, iterations, events and decisions
as a trial wants. Every run of the tests kills a few migrations of a small one; ``make soak`` kills 100 of 10,000 runs.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import time
import zlib
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from masis.schema.case import Case
from masis.services import Workbench
from masis.store import Store, Upgrade
from masis.store.core import chained_log, migrations
from masis.store.core.connections import connect
from masis.store.core.migrations import MIGRATIONS, applied, migrate
from masis.store.records import LogHead

log = logging.getLogger(__name__)
CONTEXT = multiprocessing.get_context("fork")
WRITTEN_BY_0_1 = Path(__file__).parent / "data" / "written_by_0.1.db.gz"
RUNS_A_ROUND = 200
"""Runs of the database for each kill of the trial: few in the tests, 10,000 in ``make soak``."""

KEPT = (
    "SELECT * FROM case_payloads ORDER BY case_seq",
    "SELECT seq, id, case_seq, case_digest, state, started_at, ended_at, settings, payload FROM runs ORDER BY seq",
    "SELECT * FROM run_iterations ORDER BY run_seq, number",
    "SELECT * FROM run_events ORDER BY run_seq, seq",
    "SELECT * FROM decision_log ORDER BY seq",
    "SELECT * FROM decision_payloads ORDER BY entry_seq",
)
"""What no migration may change."""


def _old_database(path: Path, runs: int, upto: int) -> None:
    """Write a database of so many runs and decisions as it was after so many migrations."""
    template = path.with_name("template.db")
    template.write_bytes(gzip.decompress(WRITTEN_BY_0_1.read_bytes()))
    old, new = sqlite3.connect(template), connect(path)
    old.row_factory = sqlite3.Row
    migrate(new, MIGRATIONS[:1])
    (case_payload,) = old.execute("SELECT payload FROM case_payloads WHERE case_seq = 1").fetchone()
    case_row = dict(old.execute("SELECT * FROM cases WHERE seq = 1").fetchone())
    run_row = dict(old.execute("SELECT * FROM runs WHERE seq = 1").fetchone())
    del run_row["removed_by"]  # of a later step
    iterations = old.execute("SELECT number, payload FROM run_iterations WHERE run_seq = 1").fetchall()
    events = [row[0] for row in old.execute("SELECT payload FROM run_events WHERE run_seq = 1 ORDER BY seq")]
    entry = dict(old.execute("SELECT * FROM decision_log WHERE seq = 4").fetchone())
    (decision,) = old.execute("SELECT payload FROM decision_payloads WHERE entry_seq = 4").fetchone()
    old.close()
    template.unlink()
    head = LogHead(0, chained_log.NOTHING_BEFORE)
    new.execute("BEGIN")
    for seq in range(1, runs + 1):
        names = {"case_id": f"case-{seq}", "run_id": f"run-{seq}"}
        content = json.loads(case_payload) | {"id": names["case_id"]}
        digest = Case.model_validate(content).digest()
        own = {"seq": seq, "run_seq": None, "decision_seq": None}
        _insert(new, "cases", case_row | own | {"id": names["case_id"], "digest": digest})
        _insert(new, "case_payloads", {"case_seq": seq, "payload": json.dumps(content, ensure_ascii=False)})
        run = json.loads(zlib.decompress(run_row["payload"]))
        run |= {"id": names["run_id"], "case_id": names["case_id"], "case_digest": digest}
        own = {"seq": seq, "case_seq": seq, "id": names["run_id"], "case_digest": digest}
        _insert(new, "runs", run_row | own | {"payload": zlib.compress(json.dumps(run).encode(), 1)})
        for number, payload in iterations:
            _insert(new, "run_iterations", {"run_seq": seq, "number": number, "payload": payload})
        for number, event in enumerate(events, 1):
            text = json.dumps(json.loads(event) | names)
            _insert(new, "run_events", {"run_seq": seq, "seq": number, "payload": text})
        said = chained_log.canonical_json(json.loads(decision) | names | {"token": f"token-{seq}"})
        place = chained_log.place_after(head, entry["at"], chained_log.sha256(said))
        head = LogHead(seq, place.digest)
        own = {"case_seq": seq, "run_seq": seq, "token": f"token-{seq}"}
        _insert(new, "decision_log", entry | own | place._asdict())
        _insert(new, "decision_payloads", {"entry_seq": seq, "reviewer": "Ada", "payload": said})
    new.execute("UPDATE cases SET run_seq = seq, decision_seq = seq")
    new.execute("COMMIT")
    migrate(new, MIGRATIONS[:upto])
    new.execute("PRAGMA journal_mode = WAL")
    new.close()


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


class Content(NamedTuple):
    """What a database holds that no migration may change, and how far it was migrated."""

    rows: tuple[int, ...]
    digest: str
    migrated: tuple[str, ...]


def _content(path: Path) -> Content:
    """Read a database with plain SQLite, which migrates nothing."""
    connection = connect(path, create=False)
    digest, counts = hashlib.sha256(), list[int]()
    for query in KEPT:
        counts.append(0)
        for row in connection.execute(query):
            digest.update(repr(tuple(row)).encode())
            counts[-1] += 1
    (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    assert sound == "ok"
    found = Content(tuple(counts), digest.hexdigest(), applied(connection))
    connection.close()
    return found


def _open(path: Path, report: Connection) -> None:
    """Open a database as every command and page does, and report each step as it begins."""

    def heard(upgrade: Upgrade) -> None:
        if not upgrade.done:
            report.send((upgrade.step, time.monotonic()))

    Workbench.open(path, on_upgrade=heard).close()
    report.send((0, time.monotonic()))


def _steps(report: Connection) -> Iterator[tuple[int, float]]:
    try:
        while True:
            yield report.recv()
    except EOFError:
        return


def _migrating(path: Path) -> tuple[Any, Connection]:
    here, there = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_open, args=(path, there))
    process.start()
    there.close()
    return process, here


def _durations(path: Path) -> list[float]:
    """Migrate without a disturbance; return how long each step takes, in seconds."""
    process, report = _migrating(path)
    began: dict[int, float] = {}
    for step, at in _steps(report):
        began.setdefault(step, at)
    process.join()
    assert process.exitcode == 0
    times = [at for _, at in sorted(began.items(), key=lambda each: each[1])]
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.mark.parametrize("upto", [1, 12], ids=["the first schema", "version 0.1"])
@pytest.mark.soak(smoke=3, full=50)
@pytest.mark.timeout(3600)
def test_a_migration_killed_at_any_moment_loses_no_row_and_is_completed_later(
    tmp_path: Path, rounds: int, upto: int
) -> None:
    old, path, draw = tmp_path / "old.db", tmp_path / "killed.db", random.Random(upto)
    _old_database(old, rounds * RUNS_A_ROUND, upto)
    before = _content(old)
    assert before.rows[1] == before.rows[4] == rounds * RUNS_A_ROUND
    shutil.copy(old, path)
    durations = _durations(path)
    assert len(durations) == len(MIGRATIONS) - upto
    halfway = 0
    for kill in range(rounds):
        for file in path.parent.glob("killed.db*"):
            file.unlink()
        shutil.copy(old, path)
        step = draw.randrange(len(durations))
        process, report = _migrating(path)
        while report.recv()[0] <= step:
            pass
        time.sleep(draw.uniform(0, durations[step]))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        report.close()
        left = _content(path)
        assert left[:2] == before[:2], f"kill {kill}: a row is lost or changed"
        assert left.migrated == migrations.names()[: len(left.migrated)], f"kill {kill}: a step was left out"
        halfway += left.migrated != migrations.names()
        with Store.open(path) as store:
            assert store.decisions.verify().intact
            assert store.decisions.verify().length == before.rows[4]
            check = store.check()
            assert check.ok, f"kill {kill}: {check.problems}"
        after = _content(path)
        assert (after[:2], after.migrated) == (before[:2], migrations.names()), f"kill {kill}"
        log.info("kill %d: after %d of %d steps were done", kill + 1, len(left.migrated) - upto, len(durations))
    assert halfway, "no kill fell into a migration"
    log.info("%d kills, %d before the last step was done; rows %s", rounds, halfway, before.rows)
