"""Many reviewers on one database that several server processes share, as behind a proxy with sticky sessions."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from masis.errors import CaseHeld, StaleVersion
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Actor, Workbench
from masis.services.records import CaseFilter
from tests.store.factories import a_case, a_run
from tests.waiting import run_at_once

SERVERS = 2
HUMAN_PACE_S = 4.0
"""Mean seconds that a reviewer reads in the full trial: short for a person, which makes the trial the harder."""


def review(workbench: Workbench, name: str, pace_s: float, made: list[tuple[str, str]], saw: list[str]) -> None:
    """Decide cases under a name until none is left; ``saw`` receives decisions of others that were shown too early."""
    me, draw, reading = Actor(name=name), random.Random(name), threading.Event()
    while (lease := workbench.team.claim_next(me, CaseFilter(order="random", seed=draw.randrange(99)))) is not None:
        view = workbench.cases.open_for(me, lease.case_id)
        saw += [f"{name}: {entry.id}" for entry in view.history if entry.decision and entry.decision.reviewer != name]
        reading.wait(pace_s * 2 * draw.random())
        decision = Decision(
            reviewer=name,
            case_id=lease.case_id,
            run_id=view.run.id if view.run else None,
            iteration=1,
            verdict=draw.choice(("approve", "reject")),
            reason="why",
        )
        try:
            workbench.reviews.submit(me, decision, seen_version=view.summary.version)
        except (CaseHeld, StaleVersion):
            continue
        made.append((name, lease.case_id))


def serve(database: str, names: list[str], pace_s: float) -> None:
    """Be one server: a workbench that all its sessions share, a thread for each; prints what was decided."""
    workbench = Workbench.open(Path(database))
    made: list[tuple[str, str]] = []
    saw: list[str] = []
    problems: list[str] = []

    def session(name: str) -> None:
        try:
            review(workbench, name, pace_s, made, saw)
        except BaseException as error:
            problems.append(f"{name}: {error!r}")
            raise

    threads = [threading.Thread(target=session, args=(name,)) for name in names]
    run_at_once(threads)
    workbench.close()
    sys.stdout.write(json.dumps({"made": made, "saw": saw, "problems": problems}))


@pytest.mark.timeout(900)
@pytest.mark.soak(smoke=6, full=60)
def test_reviewers_of_two_server_processes_share_one_queue_and_lose_double_and_unblind_nothing(
    tmp_path: Path, rounds: int
) -> None:
    """As many reviewers as rounds, half of them with each server; two decide each case."""
    path, cases = tmp_path / "shared.db", 2 * rounds if rounds < 60 else 300
    opened = Workbench.open(path)
    for number in range(cases):
        case = a_case(f"case-{number}")
        opened.store.cases.add(case)
        opened.store.runs.finish(a_run(case, f"run-{number}", needs_review=True))
    opened.team.set(Actor(name="lead"), QueuePolicy(reviewers=2))
    names = [f"reviewer {number}" for number in range(rounds)]
    pace_s = HUMAN_PACE_S if rounds >= 60 else 0.0
    code = f"from {__name__} import serve; import sys, json; serve(*json.loads(sys.argv[1]))"
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", code, json.dumps([str(path), names[number::SERVERS], pace_s])],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        for number in range(SERVERS)
    ]
    found = [json.loads(server.communicate()[0]) for server in servers]
    assert [each["problems"] for each in found] == [[]] * SERVERS
    assert [each["saw"] for each in found] == [[]] * SERVERS
    made = [tuple(each) for one in found for each in one["made"]]
    assert len(set(made)) == len(made)
    assert Counter(case_id for _, case_id in made) == {f"case-{number}": 2 for number in range(cases)}
    entries = [each.decision for each in opened.reviews.iterate()]
    in_log = [(each.reviewer, each.case_id) for each in entries if each and each.kind == "decision"]
    assert sorted(in_log) == sorted(made)
    assert opened.store.check().ok
    assert opened.store.team.leases() == ()
    assert opened.store.team.counted("decided") == Counter(name for name, _ in made)
    opened.close()
