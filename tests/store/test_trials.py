"""Processes that audit, decide, import, ingest, purge and back up at once: killed at random
moments, or side by side.

Audits are by the offline roles and by models, which a scripted server on loopback stands for. What
a killed process had begun is resumed, and must come to what an audit comes to that was never cut
short. Every run of the tests tries little of it; ``make soak`` kills 500 times and has eight
processes work for two minutes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.services.records import ReceivedRequest
from masis.settings import Settings
from masis.store.core import backup
from tests.store.factories import a_case

log = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[2]
KINDS = {"import": 4, "audit": 3, "ask": 4, "decide": 6, "ingest": 4, "purge": 1, "backup": 1}
"""What a process does, and how often beside the others; ``ask`` is an audit by models."""

ANSWERS = {
    "revised": "It was opened in 1932 [1]. It is painted grey [7].",
    "unchanged": "The bridge opened on 19 March 1932 [1]. It is painted grey [7].",
    "drafted": None,
}
"""What is audited: an answer that the models rewrite, one that they revise without a change, and
one they write.
"""

CONTEXT = multiprocessing.get_context("fork")
ROLES = ("drafter", "verifier", "critic", "reviser", "evaluator")
OFFLINE = Settings()
"""What every process would spend its first second on, were it not loaded before they are forked."""


@pytest.fixture
def models() -> Iterator[Settings]:
    """Settings that ask a scripted server in a process of its own, which is in no hurry and finds
    fault every time.
    """
    command = [
        sys.executable,
        "-m",
        "tests.serving_models",
        "--latency-ms",
        "40",
        "--issues",
        "always",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            scripted = {"kind": "openai", "address": server.stdout.readline().strip()}
            roles = dict.fromkeys(ROLES, "scripted:m")
            yield Settings.model_validate({"providers": {"scripted": scripted}, **roles})
        finally:
            server.kill()


def _work(
    path: Path,
    models: Settings,
    kinds: dict[str, int],
    number: int,
    seconds: float,
    report: Connection,
) -> None:
    """Do one thing after another; report each once it was acknowledged, with how long it took, and
    every error.
    """
    workbench, who = Workbench.open(path), Actor(name=f"Worker {number}")
    draw = random.Random(f"{number} {os.getpid()}")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        kind, name = draw.choices(list(kinds), list(kinds.values()))[0], uuid.uuid4().hex
        began = time.monotonic()
        try:
            done = _one(workbench, models, who, kind, f"{draw.choice(list(ANSWERS))}-{name}", path)
        except Exception as error:  # noqa: BLE001 (every error is reported, and fails the trial)
            report.send(("error", f"{kind}: {type(error).__name__}: {error}", 0.0))
            return
        report.send((kind, done, time.monotonic() - began))
    report.send(("end", "", 0.0))


def _to_audit(name: str) -> Case:
    """Return the case that a name begins with: what its audit comes to follows from
    that beginning.
    """
    return a_case(name, answer=ANSWERS[name.partition("-")[0]])


def _one(
    workbench: Workbench, models: Settings, who: Actor, kind: str, name: str, path: Path
) -> str:
    match kind:
        case "import":
            workbench.cases.add(who, [a_case(name)])
            return name
        case "audit" | "ask":
            case = _to_audit(name)
            workbench.cases.add_one(who, case)
            return workbench.audits.audit(
                who, case, settings=models if kind == "ask" else OFFLINE
            ).id
        case "decide":
            workbench.cases.add_one(who, a_case(name))
            decision = Decision(reviewer=who.name, case_id=name, run_id=None, verdict="approve")
            return workbench.reviews.submit(who, decision).digest
        case "ingest":
            body = a_case(name).model_dump_json().encode()
            workbench.ingestion.receive([ReceivedRequest(name, "trial", name, name, "json", body)])
            if len(workbench.store.inbox.waiting(21)) > 20:
                workbench.ingestion.read_waiting({})
            return name
        case "purge":
            workbench.retention.purge(who, rule_of(1), how="command", shrink=False)
        case "backup":
            target = path.with_name(f"{name}.db")
            workbench.backups.make(who, target)
            target.unlink()
    return name


def _came_to(run: Run) -> dict[str, Any]:
    """Return what an audit came to, without what differs from one audit to the next of the same
    answer.
    """
    own = {
        "id",
        "case_id",
        "case_digest",
        "started_at",
        "finished_at",
        "spot_check",
        "settings",
        "usage",
    }
    whole = run.model_dump(exclude={*own, "iterations", "draft", "loose_calls"})
    iterations = [
        iteration.model_dump(exclude={"step_ms", "calls"}) for iteration in run.iterations
    ]
    return {**whole, "iterations": iterations, "draft": run.draft and run.draft.answer}


def _never_cut_short(path: Path, models: Settings, report: Connection) -> None:
    """Report what audits of each answer come to, offline and by models."""
    workbench, who = Workbench.open(path), Actor(name="Nobody")
    for start in ANSWERS:
        case = _to_audit(f"{start}-whole")
        workbench.cases.add_one(who, case)
        for settings in (OFFLINE, models):
            run = workbench.audits.audit(who, case, settings=settings)
            report.send((start, settings.critic, _came_to(run)))


def _results(
    path: Path, models: Settings, work: Callable[[Path, Settings, Connection], None]
) -> list[tuple[Any, ...]]:
    """Let a process of its own do the work, and return what it reports.

    Audits by models start threads, and a process with threads had better not be forked, as this one
    is again and again.
    """
    here, there = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=work, args=(path, models, there))
    process.start()
    there.close()
    reports = list(_receive_all(here))
    process.join()
    assert process.exitcode == 0
    return reports


class Audits:
    """What became of the audits that were cut short, beside what audits come to that never were."""

    def __init__(self, path: Path, models: Settings) -> None:
        self._models, self.resumed = models, Counter[str]()
        whole = _results(path, models, _never_cut_short)
        self._expected = {(start, critic): result for start, critic, result in whole}

    def resume(self, path: Path) -> None:
        """Resume all that were cut short, and compare."""
        for start, critic, result, kept in _results(path, self._models, _resume_all):
            assert result == self._expected[start, critic], f"{start}, {critic}"
            self.resumed[f"{critic}, {'after its first step' if kept else 'from the start'}"] += 1


def _resume_all(path: Path, models: Settings, report: Connection) -> None:
    """Resume every audit that was cut short; report what each came to."""
    workbench, who = Workbench.open(path), Actor(name="Nobody")
    for cut_short in map(workbench.runs.summary, workbench.store.runs.in_state("interrupted")):
        settings = models if cut_short.models["critic"] == models.critic else OFFLINE
        before = workbench.runs.progress(cut_short.id)
        run = workbench.audits.audit(
            who, workbench.store.cases.get(cut_short.case_id), settings=settings
        )
        assert run.id == cut_short.id, "it went on, and did not begin anew"
        kept = bool(before.draft or before.steps or before.iterations)
        report.send((run.case_id.partition("-")[0], settings.critic, _came_to(run), kept))


def _compare(path: Path, acknowledged: list[tuple[str, str]]) -> None:
    """Hold what was acknowledged against what is stored."""
    for part in path.parent.glob("*.part*"):
        part.unlink()
    for whole in set(path.parent.glob("*.db")) - {path}:
        assert backup.verify(whole).problems == (), (
            "a file that has the name of a backup is a whole one"
        )
        backup.remove(whole)
    workbench = Workbench.open(path)
    while workbench.ingestion.read_waiting({}):
        pass
    cases = [case.id for case in workbench.store.cases.iterate()]
    runs = {
        row[0]
        for row in workbench.store.database.execute("SELECT id FROM runs WHERE state = 'finished'")
    }
    entries = {entry.digest for entry in workbench.store.decisions.iterate()}
    for kind, name in acknowledged:
        there = {
            "import": cases,
            "ingest": cases,
            "audit": runs,
            "ask": runs,
            "decide": entries,
        }.get(kind)
        assert there is None or name in there, f"{kind} {name} was acknowledged and is lost"
    for doubled in (
        "runs",
        "decision_log WHERE kind = 'decision'",
    ):  # each case was audited or decided by one worker, once
        counted = f"SELECT count(*) AS times FROM {doubled} GROUP BY case_seq"
        assert (
            workbench.store.database.value(f"SELECT coalesce(max(times), 1) FROM ({counted})") == 1
        )
    check = workbench.store.check()
    assert check.ok, check.problems
    assert workbench.store.decisions.check_subjects().broken == ()
    assert not workbench.store.database.value("SELECT count(*) FROM runs WHERE state = 'running'")
    workbench.close()


def _receive_all(report: Connection) -> Iterator[tuple[Any, ...]]:
    try:
        while True:
            yield report.recv()
    except EOFError:
        return


@pytest.mark.soak(smoke=3, full=500)
@pytest.mark.timeout(3600)
def test_kills_lose_no_acknowledged_write(tmp_path: Path, models: Settings, rounds: int) -> None:
    path, draw = tmp_path / "trial.db", random.Random(17)
    acknowledged: list[tuple[str, str]] = []
    Workbench.open(path).close()
    audits = Audits(tmp_path / "whole.sqlite", models)
    for kill in range(rounds):
        here, there = CONTEXT.Pipe(duplex=False)
        kinds = (
            KINDS if kill % 3 else {"ask": 1}
        )  # most of an audit is waiting: beside other work few kills fall into one
        process = CONTEXT.Process(target=_work, args=(path, models, kinds, kill, 600.0, there))
        process.start()
        there.close()
        assert here.poll(60)
        time.sleep(draw.uniform(0.0, 0.6))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        for kind, name, _ in _receive_all(here):
            assert kind != "error", name
            acknowledged.append((kind, name))
        if kill % 25 == 24 or kill == rounds - 1:
            audits.resume(path)
            _compare(path, acknowledged)
            log.info(
                "%d kills, %d acknowledged, none lost; resumed: %s",
                kill + 1,
                len(acknowledged),
                audits.resumed,
            )


@pytest.mark.soak(smoke=1, full=120)
@pytest.mark.timeout(3600)
def test_eight_concurrent_processes_lose_nothing(
    tmp_path: Path, models: Settings, rounds: int
) -> None:
    path = tmp_path / "trial.db"
    Workbench.open(path).close()
    pipes = []
    for number in range(8):
        here, there = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(
            target=_work, args=(path, models, KINDS, number, float(rounds), there)
        )
        process.start()
        there.close()
        pipes.append((here, process))
    acknowledged: list[tuple[str, str]] = []
    waits: dict[str, list[float]] = {}
    for here, process in pipes:
        for kind, name, seconds in _receive_all(here):
            assert kind != "error", name
            if kind != "end":
                acknowledged.append((kind, name))
                waits.setdefault(kind, []).append(seconds)
        process.join()
    _compare(path, acknowledged)
    longest = {kind: round(max(seconds), 2) for kind, seconds in waits.items()}
    log.info(
        "%d acknowledged by eight processes, none lost; longest in seconds: %s",
        len(acknowledged),
        longest,
    )
