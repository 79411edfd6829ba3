"""How long an act of a reviewer takes where 20 of them share one queue: to take a case, to open it,
to decide it.

    python benchmarks/team.py [--reviewers 20] [--cases 200] [--stored 10000] [--pause 1.0]

Two reviewers decide each case. Reviewers are threads of one process, as sessions of the server are,
each on the same workbench, and read for ``pause`` seconds on average before they decide. Prints
percentiles by the clock, and what was lost or doubled, which has to be nothing. Compare runs on an
otherwise idle machine only.
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
    """Store cases with a finished run each; ``waiting`` of them need review, the others are named
    differently.
    """
    case = next(iter(demo_cases()))
    bench.cases.add_one(ANONYMOUS, case)
    run = bench.audits.audit(ANONYMOUS, case)
    for first in range(0, stored, 500):
        with bench.store.transaction():
            for number in range(first, min(first + 500, stored)):
                field = "shared" if number < waiting else "other"
                content = {"id": f"case-{number}", "metadata": {"field": field}}
                own = Case.model_validate(case.to_json_dict() | content)
                bench.store.cases.add(own)
                update = {
                    "id": f"run-{number}",
                    "case_id": own.id,
                    "case_digest": own.digest(),
                    "needs_review": True,
                }
                bench.store.runs.finish(run.model_copy(update=update))


def review(
    bench: Workbench, number: int, pause: float, took: dict[str, list[float]], made: list[str]
) -> None:
    """Decide cases until none is left."""
    me, draw = Actor(name=f"reviewer {number}"), random.Random(number)
    queue, after = CaseFilter(fields=("shared",)), None
    while True:
        began = time.perf_counter()
        lease = bench.team.claim_next(me, queue, after)
        took["take"].append(time.perf_counter() - began)
        if lease is None:
            return
        began = time.perf_counter()
        view = bench.cases.open_for(me, lease.case_id)
        took["open"].append(time.perf_counter() - began)
        time.sleep(pause * draw.random() * 2)
        began = time.perf_counter()
        decision = Decision(
            reviewer=me.name,
            case_id=lease.case_id,
            run_id=view.run.id if view.run else None,
            iteration=1,
            verdict=draw.choice(("approve", "escalate")),
        )
        seen = seen_issues(bench.reviews.decided_answer(me, decision).serious)
        decision = decision.model_copy(update={"extra": seen})
        try:
            bench.reviews.submit(me, decision, seen_version=view.summary.version)
            made.append(lease.case_id)
        except (CaseHeld, StaleVersion):
            continue
        finally:
            took["decide"].append(time.perf_counter() - began)
        after = lease.case_id


def main() -> int:
    """Run the trial and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reviewers", type=int, default=20)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--pause", type=float, default=1.0)
    given = parser.parse_args()
    took: dict[str, list[float]] = defaultdict(list)
    made: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.open(Path(folder) / "team.db")
        fill(bench, given.cases, given.stored)
        bench.team.put_in_force(Actor(name="lead"), QueuePolicy(reviewers=2))
        work = (bench, given.pause, took, made)
        threads = [
            threading.Thread(target=review, args=(work[0], number, *work[1:]))
            for number in range(given.reviewers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        whole = bench.store.check().ok
        bench.close()
    took["any act"] = [each for times in took.values() for each in times]
    for name, unsorted in took.items():
        times = sorted(unsorted)
        middle, high, most = (
            times[int(share * (len(times) - 1))] * 1000 for share in (0.5, 0.95, 1.0)
        )
        print(
            f"{name:8} {len(times):6} times  median {middle:6.1f} ms  95% {high:6.1f} ms  most"
            f" {most:6.1f} ms"
        )
    wrong = {case: count for case, count in Counter(made).items() if count != 2}
    print(
        f"{len(made)} decisions on {len(set(made))} cases; not two: {wrong or 'none'}; database in"
        f" order: {whole}"
    )
    return 0 if whole and not wrong and len(set(made)) == given.cases else 1


if __name__ == "__main__":
    sys.exit(main())
