"""Time the pages with 100,000 cases in the store, and measure the memory of a session.

    python benchmarks/ui.py [--cases 100000] [--keep FOLDER]

Sends requests to a real server over its WebSocket (tools/session.py); nothing else runs in it.
Prints milliseconds from the request to the end of the script: the median and maximum wall time, and
the server's mean CPU time, which must meet the target. The database is built once and kept in
FOLDER (default: the system's temporary folder). It has copies of the demo cases with varied numbers
and scores, three in ten of them audited.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.api.audits import run_audit
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.services import demo_cases
from masis.store import Store
from masis.ui.shell.serve import SECONDS_UNTIL_IMPORTS
from tools.serving import Served, serving
from tools.session import Session

REPEATS = 9
SESSIONS = 20
AUDITED = 3
"""How many of ten cases are audited."""
IDLE_CPU_S = 0.02
"""A server that uses less CPU time than this in one second is idle."""

MEMORY_TARGET_MB = 5.0


class PageRequest(NamedTuple):
    """A page with its parameters, and the milliseconds that it may take."""

    name: str
    page: str
    parameters: dict[str, str]
    target_ms: float


def variant(case: Case, number: int) -> Case:
    """Return a copy of the case with other numbers, under another id."""
    text = case.model_dump_json()
    renumbered = re.sub(
        r"(?<![\w\[-])\d{3,4}(?=[ ,.])", lambda found: str(int(found.group()) + number % 997), text
    )
    return Case.model_validate_json(renumbered).model_copy(update={"id": f"{case.id}-{number:05}"})


def shift_scores(run: Run, case: Case, draw: random.Random) -> Run:
    """Return a copy of the run for this case, with its scores shifted so that sort keys vary."""
    offset = draw.uniform(-0.15, 0.15)

    def shift(score: float | None) -> float | None:
        return None if score is None else min(max(round(score + offset, 4), 0.0), 1.0)

    iterations = tuple(
        iteration.model_copy(
            update={
                "critique": iteration.critique.model_copy(
                    update={"confidence": shift(iteration.critique.confidence)}
                )
            }
        )
        for iteration in run.iterations
    )
    return run.model_copy(
        update={
            "id": f"run-{case.id}",
            "case_id": case.id,
            "case_digest": case.digest(),
            "iterations": iterations,
            "final_quality_score": shift(run.final_quality_score),
        }
    )


def fill(store: Store, count: int) -> None:
    """Store the cases, runs for three in ten of them, and decisions on a tenth of those."""
    started = time.process_time()
    originals = list(demo_cases())
    runs = [run_audit(case) for case in originals]
    draw = random.Random(5)
    numbers: Iterator[tuple[int, int]] = (divmod(place, len(originals)) for place in range(count))
    while batch := list(itertools.islice(numbers, 500)):
        made = [(variant(originals[which], number), runs[which]) for number, which in batch]
        with store.transaction():
            for case, run in made:
                store.cases.add(case)
                if draw.randrange(10) < AUDITED:
                    store.runs.finish(shift_scores(run, case, draw))
                    if draw.random() < 0.1:
                        store.decisions.append(
                            Decision(
                                reviewer=draw.choice(("Ada", "Grace")),
                                case_id=case.id,
                                run_id=f"run-{case.id}",
                                verdict="approve",
                            )
                        )
    print(f"stored {count:,} cases in {time.process_time() - started:.0f} s of CPU time")


def page_requests(case_id: str) -> list[PageRequest]:
    """Return the requests of the pages that a person opens."""

    def queue(name: str, **parameters: str) -> PageRequest:
        return PageRequest(name, "queue", parameters, 100)

    return [
        PageRequest("overview", "", {}, 100),
        queue("queue, opened"),
        queue("queue, needs review", state="needs_review"),
        queue("queue, a flag", flag="invalid_reference"),
        queue("queue, a field and a score range", field="Medicine", quality="0.2-0.6"),
        queue("queue, a model", model="offline"),
        queue("queue, a reviewer", reviewer="Ada"),
        queue("queue, least confident first", order="least_confident"),
        queue("queue, newest first", order="newest"),
        queue("queue, random order", order="random", seed="3"),
        queue("queue, search for a frequent word", q="the"),
        queue("queue, search for three frequent letters", q="com"),
        queue("queue, search for a name", q="Halvorsen"),
        queue("queue, page 2", page="2"),
        queue("queue, page 1,000", page="1000"),
        queue("queue, last page, newest first", page="5000", order="newest"),
        queue("queue, 100 a page", size="100"),
        PageRequest("case, opened", "review", {"case": case_id}, 150),
        PageRequest(
            "case, opened from a filtered queue",
            "review",
            {"case": case_id, "state": "needs_review"},
            150,
        ),
        PageRequest("case, not audited", "review", {"case": "docs-01-00001"}, 150),
        PageRequest("runs of a case", "compare", {"case": case_id}, 150),
        PageRequest("decisions", "decisions", {}, 100),
        PageRequest("settings", "settings", {}, 150),
        PageRequest("new audit", "new", {}, 100),
    ]


async def wait_until_idle(served: Served) -> None:
    """Wait until the server has finished its startup work, which would distort the measurement."""
    before, after = -1.0, served.cpu_seconds()
    while after - before > IDLE_CPU_S:
        await asyncio.sleep(1)
        before, after = after, served.cpu_seconds()


async def measure(served: Served, requests: list[PageRequest]) -> bool:
    """Print a line per request and return whether all met their targets."""
    session = await Session.open(served.base)
    await asyncio.sleep(SECONDS_UNTIL_IMPORTS)
    await wait_until_idle(served)
    within_target = True
    for request in requests:
        await session.go(request.page, **request.parameters)
        spent, cpu, size = [], [], 0
        for _ in range(REPEATS):
            before = served.cpu_seconds()
            answer = await session.go(request.page, **request.parameters)
            spent.append(answer.seconds * 1000)
            await asyncio.sleep(0.05)
            cpu.append((served.cpu_seconds() - before) * 1000)
            size = answer.size
            if answer.failed:
                raise RuntimeError(f"{request.name}: the page shows an exception")
        met = statistics.mean(cpu) <= request.target_ms
        within_target &= met
        print(
            f"{request.name:<42} {statistics.median(spent):8.0f} {max(spent):8.0f}"
            f" {statistics.mean(cpu):8.0f} {size / 1000:8.0f}   {request.target_ms:6.0f} "
            f" {'' if met else 'MISSED'}",
            flush=True,
        )
    await session.close()
    return within_target


async def measure_memory(served: Served, case_id: str) -> bool:
    """Print the memory that a session adds to the server, and return whether it meets its target.

    Each session has opened the queue and a case.
    """

    async def open_session() -> Session:
        session = await Session.open(served.base)
        await session.go("queue", state="needs_review")
        await session.go("review", case=case_id, state="needs_review")
        return session

    first = [await open_session() for _ in range(5)]
    before = served.memory_mb()
    more = [await open_session() for _ in range(SESSIONS)]
    per_session = (served.memory_mb() - before) / SESSIONS
    print(
        f"\na session uses {per_session:.2f} MB (target {MEMORY_TARGET_MB:g}; mean of {SESSIONS},"
        f" server {before:.0f} MB)"
    )
    for session in (*first, *more):
        await session.close()
    return per_session <= MEMORY_TARGET_MB


def make_database(folder: Path, count: int) -> Path:
    """Return the path of the database with ``count`` cases, and build it if it isn't there."""
    path = folder / f"ui-{count}.db"
    with Store.open(path) as store:
        if store.cases.count() < count:
            if store.cases.count():
                raise SystemExit(f"{path} is incomplete. Delete it and try again.")
            fill(store, count)
    return path


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()) / "masis-benchmark"
    )
    args = parser.parse_args()
    args.keep.mkdir(parents=True, exist_ok=True)
    path = make_database(args.keep, args.cases)
    case_id = _case_with_iterations(path)
    with serving("serve", "--db", str(path), folder=args.keep) as served:
        print(f"\n{'milliseconds':<42} {'median':>8} {'max':>8} {'CPU':>8} {'kB':>8}   CPU target")
        within_target = asyncio.run(measure(served, page_requests(case_id)))
        within_target &= asyncio.run(measure_memory(served, case_id))
    return 0 if within_target else 1


def _case_with_iterations(path: Path) -> str:
    """Return the id of a case with several iterations."""
    with Store.open(path) as store:
        return str(
            store.database.value(
                "SELECT id FROM cases WHERE iterations > 1 AND state = 'needs_review' ORDER BY seq"
                " LIMIT 1"
            )
        )


if __name__ == "__main__":
    sys.exit(main())
