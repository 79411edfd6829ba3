"""Processes that audit, decide, import, ingest, purge and back up at once: killed at random moments, or side by side.

Every run of the tests tries little of it; ``make soak`` kills 500 times and has eight processes work for two minutes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import time
import uuid
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.records import Received
from masis.services.retention import rule_of
from masis.store.core import backup
from tests.store.factories import a_case

log = logging.getLogger(__name__)
KINDS = ("import", "audit", "decide", "ingest", "purge", "backup")


def _work(path: Path, number: int, seconds: float, report: Connection) -> None:
    """Do one thing after another; report each once it was acknowledged, with how long it took, and every error."""
    workbench, who = Workbench.open(path), Actor(name=f"Worker {number}")
    draw = random.Random(f"{number} {os.getpid()}")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        kind, name = draw.choices(KINDS, (4, 3, 6, 4, 1, 1))[0], uuid.uuid4().hex
        began = time.monotonic()
        try:
            done = _one(workbench, who, kind, name, path)
        except Exception as error:  # noqa: BLE001 (every error is reported, and fails the trial)
            report.send(("error", f"{kind}: {type(error).__name__}: {error}", 0.0))
            return
        report.send((kind, done, time.monotonic() - began))
    report.send(("end", "", 0.0))


def _one(workbench: Workbench, who: Actor, kind: str, name: str, path: Path) -> str:
    match kind:
        case "import":
            workbench.cases.add(who, [a_case(name)])
            return name
        case "audit":
            case = a_case(name)
            workbench.cases.add_one(who, case)
            return workbench.audits.audit(who, case).id
        case "decide":
            workbench.cases.add_one(who, a_case(name))
            decision = Decision(reviewer=who.name, case_id=name, run_id=None, verdict="approve")
            return workbench.reviews.submit(who, decision).digest
        case "ingest":
            body = a_case(name).model_dump_json().encode()
            workbench.ingestion.receive([Received(name, "trial", name, name, "json", body)])
            if workbench.ingestion.count_waiting() > 20:
                workbench.ingestion.read_waiting({})
            return name
        case "purge":
            workbench.retention.purge(who, rule_of(1), how="command", shrink=False)
        case "backup":
            target = path.with_name(f"{name}.db")
            workbench.backups.make(who, target)
            target.unlink()
    return name


def _compared(path: Path, acknowledged: list[tuple[str, str]]) -> None:
    """Hold what was acknowledged against what is stored."""
    for part in path.parent.glob("*.part*"):
        part.unlink()
    for whole in set(path.parent.glob("*.db")) - {path}:
        assert backup.verify(whole).problems == (), "a file that has the name of a backup is a whole one"
        backup.remove(whole)
    workbench = Workbench.open(path)
    while workbench.ingestion.read_waiting({}):
        pass
    cases = [case.id for case in workbench.cases.iterate()]
    runs = {row[0] for row in workbench.store.database.execute("SELECT id FROM runs WHERE state = 'finished'")}
    entries = {entry.digest for entry in workbench.reviews.iterate()}
    for kind, name in acknowledged:
        there = {"import": cases, "ingest": cases, "audit": runs, "decide": entries}.get(kind)
        assert there is None or name in there, f"{kind} {name} was acknowledged and is lost"
    assert len(cases) == len(set(cases))
    check = workbench.store.check()
    assert check.ok, check.problems
    assert workbench.reviews.check_subjects().broken == ()
    assert not workbench.store.database.value("SELECT count(*) FROM runs WHERE state = 'running'")
    workbench.close()


def _received(report: Connection) -> Iterator[tuple[str, str, float]]:
    try:
        while True:
            yield report.recv()
    except EOFError:
        return


@pytest.mark.soak(smoke=2, full=500)
@pytest.mark.timeout(3600)
def test_processes_killed_at_any_moment_lose_nothing_that_was_acknowledged(tmp_path: Path, rounds: int) -> None:
    path, context, draw = tmp_path / "trial.db", multiprocessing.get_context("fork"), random.Random(17)
    acknowledged: list[tuple[str, str]] = []
    Workbench.open(path).close()
    for kill in range(rounds):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(path, kill, 600.0, there))
        process.start()
        there.close()
        assert here.poll(60)
        time.sleep(draw.uniform(0.0, 0.6))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        for kind, name, _ in _received(here):
            assert kind != "error", name
            acknowledged.append((kind, name))
        if kill % 25 == 24 or kill == rounds - 1:
            _compared(path, acknowledged)
    log.info("%d kills, %d acknowledged, none lost", rounds, len(acknowledged))


@pytest.mark.soak(smoke=4, full=120)
@pytest.mark.timeout(3600)
def test_eight_processes_at_once_lose_nothing_and_meet_no_error(tmp_path: Path, rounds: int) -> None:
    path, context = tmp_path / "trial.db", multiprocessing.get_context("fork")
    Workbench.open(path).close()
    pipes = []
    for number in range(8):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(path, number, float(rounds), there))
        process.start()
        there.close()
        pipes.append((here, process))
    acknowledged: list[tuple[str, str]] = []
    waits: dict[str, list[float]] = {}
    for here, process in pipes:
        for kind, name, seconds in _received(here):
            assert kind != "error", name
            acknowledged.append((kind, name))
            waits.setdefault(kind, []).append(seconds)
        process.join()
    _compared(path, acknowledged)
    longest = {kind: round(max(each), 2) for kind, each in waits.items() if kind != "end"}
    log.info("%d acknowledged by eight processes, none lost; longest in seconds: %s", len(acknowledged), longest)
