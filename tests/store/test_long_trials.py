"""What only many repetitions show: processes killed at any moment, and many reviewers on one database.

Every run of the tests tries a few; ``make soak`` tries hundreds.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from masis.store import Store
from tests.store.factories import a_case, a_decision

ROOT = Path(__file__).resolve().parents[2]
EACH = 10
AT_WORK = """
import sys
from pathlib import Path
from masis.store import Store
from tests.store.factories import a_case
from tests.store.test_many_processes import audit
with Store.open(Path(sys.argv[1])) as store:
    for number in range(100_000):
        audit(store, a_case(f"{sys.argv[2]}-{number}"), f"run-{sys.argv[2]}-{number}")
        print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed otherwise here")
@pytest.mark.soak(smoke=3, full=300)
def test_a_process_killed_at_any_moment_leaves_a_sound_database_with_all_it_had_reported(
    path: Path, rounds: int
) -> None:
    moments = random.Random(7)
    for kill in range(rounds):
        process = subprocess.Popen(
            [sys.executable, "-c", AT_WORK, str(path), str(kill)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        time.sleep(moments.random() / 20)
        process.kill()
        finished = 1 + len(process.stdout.read().splitlines())
        process.wait()
        process.stdout.close()
        with Store.open(path) as store:
            check = store.check()
            assert check.ok, f"kill {kill}: {check.problems}"
            states = [store.cases.summary(f"{kill}-{number}").state for number in range(finished - 1)]
            assert states == ["accepted"] * len(states), f"kill {kill}"


@pytest.mark.soak(smoke=4, full=48)
def test_many_reviewers_who_decide_at_once_lose_nothing(path: Path, rounds: int) -> None:
    cases = [a_case(f"case-{number}") for number in range(EACH)]

    def review(reviewer: int) -> None:
        with Store.open(path) as store:
            for case in cases:
                store.decisions.append(a_decision(case, None, reviewer=f"reviewer {reviewer}"))

    with Store.open(path) as store:
        for case in cases:
            store.cases.add(case)
        with ThreadPoolExecutor(rounds) as pool:
            list(pool.map(review, range(rounds)))
        assert store.decisions.verify().length == rounds * EACH
        check = store.check()
        assert check.ok, check.problems
        entries = [entry.decision for entry in store.decisions.iterate()]
        for reviewer in range(rounds):
            decided = [each.case_id for each in entries if each and each.reviewer == f"reviewer {reviewer}"]
            assert decided == [case.id for case in cases]
