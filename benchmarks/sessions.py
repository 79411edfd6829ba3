"""Measure how long 20 concurrent users wait while two audits run; each acts every two seconds.

    python benchmarks/sessions.py [--sessions 20] [--seconds 60]

Sessions use the WebSocket protocol of a browser's page (tools/session.py), without rendering. Each
acts as a reviewer does: opens the queue, filters, sorts and turns pages, opens cases, changes the
iteration, and types into the decision. Measures the wall time from the request to the end of the
script, which is how long the person waits, and the server's CPU use. Meanwhile two audits of large
cases run in its worker processes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.schema.case import Case
from masis.services import ANONYMOUS, Workbench, demo_cases
from masis.store import Store
from masis.store.records import CaseFilter
from tools.serving import Served, serving
from tools.session import Answer, Session

INTERVAL_S = 2.0
TARGET_MS = 300.0
AUDITS = 2
LARGE = 3_000
"""Chunks of evidence in a case under audit, enough for an audit to take many seconds."""


def make_database(path: Path) -> list[str]:
    """Store the audited demo and large unaudited cases; return the ids of the audited ones."""
    bench = Workbench.open(path)
    bench.cases.add(ANONYMOUS, demo_cases())
    for case in demo_cases():
        if bench.audits.is_needed(case):
            bench.audits.audit(ANONYMOUS, case)
    bench.cases.add(ANONYMOUS, (large_case(number) for number in range(AUDITS * 40)))
    rows = bench.cases.find(CaseFilter(states=("needs_review", "accepted"), size=1000)).rows
    bench.store.close()
    return [row.id for row in rows]


def large_case(number: int) -> Case:
    """Return a case whose audit takes many seconds."""
    draw = random.Random(number)
    text = [
        "The ",
        "bridge ",
        "tower ",
        "harbour ",
        "is ",
        "was ",
        "rebuilt ",
        "opened ",
        "in ",
        "metres ",
    ]
    evidence = [
        {
            "id": f"chunk_{place}",
            "text": f"{''.join(draw.choices(text, k=12))} {draw.randrange(9999)} long.",
        }
        for place in range(LARGE)
    ]
    sentences = [
        f"The tower {place} is {draw.randrange(9999)} metres high [chunk_{place}]."
        for place in range(60)
    ]
    return Case.model_validate(
        {
            "id": f"large-{number:02}",
            "query": "How high are the towers?",
            "answer": " ".join(sentences),
            "evidence": evidence,
        }
    )


def actions(case_ids: list[str], seed: int) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the actions of one person without end: a name, a page and its parameters."""
    draw = random.Random(seed)
    while True:
        yield "queue", "queue", {"state": "needs_review"}
        yield (
            "filter",
            "queue",
            {"state": "needs_review", "flag": draw.choice(("uncited", "contradicted", "partial"))},
        )
        yield "sort", "queue", {"order": draw.choice(("least_confident", "newest", "random"))}
        yield "page", "queue", {"page": "2"}
        for _ in range(3):
            case_id = draw.choice(case_ids)
            yield "case", "review", {"case": case_id, "state": "needs_review"}
            yield (
                "iteration",
                "review",
                {"case": case_id, "state": "needs_review", "iteration": "2"},
            )
            yield "typing", "review", {"case": case_id}


async def run_person(
    base: str, case_ids: list[str], seed: int, until: float, durations: dict[str, list[float]]
) -> None:
    """Act as one person, starting at a random moment within the first two seconds."""
    await asyncio.sleep(INTERVAL_S * random.Random(seed).random())
    session = await Session.open(base)
    await session.go("queue")
    due = time.monotonic()
    for name, page, parameters in actions(case_ids, seed):
        due += INTERVAL_S
        if due > until:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if name == "typing":
            fields = {"verdict": "reject", "note": f"A note of {due:.0f}"}
            typed = {
                "case": parameters["case"],
                "mount": f"{seed}",
                "seq": int(due),
                "fields": fields,
            }
            answer: Answer = await session.post("decision-", "draft", typed)
        else:
            answer = await session.go(page, **parameters)
        if answer.failed:
            raise RuntimeError(f"{name}: the page shows an exception")
        durations[name].append(answer.seconds * 1000)
    await session.close()


async def keep_auditing(base: str, path: Path, until: float) -> int:
    """Keep two audits running, started from a page as a person would; return the total started."""
    session = await Session.open(base)
    started_audits = 0
    with Store.open(path) as store:
        while time.monotonic() < until:
            running = store.cases.search(CaseFilter(states=("running",))).total
            if running < AUDITS and started_audits < AUDITS * 40:
                await session.go("review", case=f"large-{started_audits:02}")
                await session.press("Audit now")
                started_audits += 1
            await asyncio.sleep(0.25)
    await session.close()
    return started_audits


async def measure(
    served: Served, path: Path, case_ids: list[str], sessions: int, seconds: float
) -> bool:
    """Print a line per kind of action; return whether the overall p95 meets the target."""
    warm = await Session.open(served.base)
    for page in ("queue", "review"):
        await warm.go(page, **({"case": case_ids[0]} if page == "review" else {}))
    await warm.close()
    durations: dict[str, list[float]] = defaultdict(list)
    started, before, until = time.monotonic(), served.cpu_seconds(), time.monotonic() + seconds
    audits, *_ = await asyncio.gather(
        keep_auditing(served.base, path, until),
        *(run_person(served.base, case_ids, seed, until, durations) for seed in range(sessions)),
    )
    duration = time.monotonic() - started
    print(f"{'milliseconds of wall time':<28} {'actions':>6} {'median':>8} {'p95':>8} {'max':>8}")
    all_times = list(itertools.chain.from_iterable(durations.values()))
    for name, times in [*sorted(durations.items()), ("all", all_times)]:
        print(
            f"{name:<28} {len(times):6} {statistics.median(times):8.0f} {p95(times):8.0f}"
            f" {max(times):8.0f}"
        )
    print(
        f"{len(all_times) / duration:.1f} actions per second; the server used"
        f" {(served.cpu_seconds() - before) / duration:.2f} of {os.cpu_count()} cores, load"
        f" {os.getloadavg()[0]:.1f}; {audits} large audits started meanwhile"
    )
    within_target = p95(all_times) <= TARGET_MS
    print(
        f"95th percentile {p95(all_times):.0f} ms, target {TARGET_MS:.0f} "
        f" {'' if within_target else 'MISSED'}"
    )
    return within_target


def p95(times: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)]


def main() -> int:
    """Run the benchmark; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        case_ids = make_database(folder / "sessions.db")
        with serving("serve", "--db", str(folder / "sessions.db"), folder=folder) as served:
            work = measure(served, folder / "sessions.db", case_ids, args.sessions, args.seconds)
            return 0 if asyncio.run(work) else 1


if __name__ == "__main__":
    sys.exit(main())
