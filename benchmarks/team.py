"""Measure how long it takes to claim, open and decide a case when 20 reviewers share one queue.

    python benchmarks/team.py [--reviewers 20] [--cases 200] [--stored 10000] [--pause 1.0]

Two reviewers decide each case. Reviewers are threads of one process and share a workbench, as the
server's sessions do, and read for ``pause`` seconds on average before they decide. Prints
percentiles of the wall time, and fails if a decision was lost or duplicated. Compare results only
from an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.errors import CaseHeld, StaleVersion
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import ANONYMOUS, Actor, Workbench, demo_cases
from masis.services.decision_rules import seen_issues
from masis.services.records import CaseFilter

TARGET_MS = 300


def fill(bench: Workbench, waiting: int, stored: int) -> None:
    """Store cases with one finished run each; ``waiting`` of them are in the shared field."""
    case = next(iter(demo_cases()))
    bench.cases.add_one(ANONYMOUS, case)
    run = bench.audits.audit(ANONYMOUS, case)
    for first in range(0, stored, 500):
        with bench.store.transaction():
            for number in range(first, min(first + 500, stored)):
                field = "shared" if number < waiting else "other"
                content = {"id": f"case-{number}", "metadata": {"field": field}}
                copy = Case.model_validate(case.to_json_dict() | content)
                bench.store.cases.add(copy)
                update = {
                    "id": f"run-{number}",
                    "case_id": copy.id,
                    "case_digest": copy.digest(),
                    "needs_review": True,
                }
                bench.store.runs.finish(run.model_copy(update=update))


def review(
    bench: Workbench,
    number: int,
    pause: float,
    durations: dict[str, list[float]],
    decided_cases: list[str],
) -> None:
    """Decide cases as one reviewer until none is left."""
    me, draw = Actor(name=f"reviewer {number}"), random.Random(number)
    queue, after = CaseFilter(fields=("shared",)), None
    while True:
        started = time.perf_counter()
        lease = bench.team.claim_next(me, queue, after)
        durations["claim"].append(time.perf_counter() - started)
        if lease is None:
            return
        started = time.perf_counter()
        view = bench.cases.open_for(me, lease.case_id)
        durations["open"].append(time.perf_counter() - started)
        time.sleep(pause * draw.random() * 2)
        started = time.perf_counter()
        decision = Decision(
            reviewer=me.name,
            case_id=lease.case_id,
            run_id=view.run.id if view.run else None,
            iteration=1,
            verdict=draw.choice(("approve", "escalate")),
        )
        acknowledged = seen_issues(bench.reviews.decided_answer(me, decision).serious)
        decision = decision.model_copy(update={"extra": acknowledged})
        try:
            bench.reviews.submit(me, decision, seen_version=view.summary.version)
            decided_cases.append(lease.case_id)
        except (CaseHeld, StaleVersion):
            continue
        finally:
            durations["decide"].append(time.perf_counter() - started)
        after = lease.case_id


def main() -> int:
    """Run the benchmark; return 1 if a decision was lost or duplicated."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reviewers", type=int, default=20)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=1.0)
    args = parser.parse_args()
    durations: dict[str, list[float]] = defaultdict(list)
    decided_cases: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.open(Path(folder) / "team.db")
        fill(bench, args.cases, args.stored)
        bench.team.put_in_force(Actor(name="lead"), QueuePolicy(reviewers=2))
        work = (bench, args.pause, durations, decided_cases)
        threads = [
            threading.Thread(target=review, args=(work[0], number, *work[1:]))
            for number in range(args.reviewers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        is_intact = bench.store.check().ok
        bench.close()
    durations["any"] = [seconds for times in durations.values() for seconds in times]
    for name, unsorted in durations.items():
        times = sorted(unsorted)
        median, high, longest = (
            times[int(share * (len(times) - 1))] * 1000 for share in (0.5, 0.95, 1.0)
        )
        print(
            f"{name:8} {len(times):6} times  median {median:6.1f} ms  p95 {high:6.1f} ms  max"
            f" {longest:6.1f} ms"
        )
    miscounted = {case: count for case, count in Counter(decided_cases).items() if count != 2}
    print(
        f"{len(decided_cases)} decisions on {len(set(decided_cases))} cases; cases without exactly"
        f" two: {miscounted or 'none'}; database intact: {is_intact}"
    )
    return 0 if is_intact and not miscounted and len(set(decided_cases)) == args.cases else 1


if __name__ == "__main__":
    sys.exit(main())
