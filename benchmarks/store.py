"""Time the queue with many cases, both in the store and as pages of a real server.

    python benchmarks/store.py [--cases 100000] [--keep FOLDER]
    PYTHONPATH=../before python benchmarks/store.py ...      # measure another checkout, to compare

Writes the database directly, without the services: a million cases in a few minutes. The cases have
the columns that audits and decisions would fill, but no audits. Something is written before each
query, so that caches can't answer it. Prints the median and maximum wall time and the median CPU
time in milliseconds, and the target for the wall time: 100 ms up to 100,000 cases, 1 s up to a
million. On a busy machine, compare CPU times.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# append instead of insert, so that PYTHONPATH can name another checkout
sys.path.append(str(Path(__file__).resolve().parent.parent))

from masis.schema.actor import Actor
from masis.schema.review import Decision
from masis.services import Workbench
from masis.services.records import NOT_DECIDED, CaseFilter
from masis.ui.shell.address import DRAWER
from tools.serving import Served, serving
from tools.session import Session

VOCABULARY = 20_000
"""Number of words. The n-th is drawn with weight 1/n, as in natural language (Zipf's law)."""

FIELDS = ("Medicine", "Law", "Engineering", "History", "Strategy", "Documentation")
ADA = Actor(name="Ada")
REPEATS = 7
BATCH = 10_000

_CASE = (
    *(
        "seq",
        "id",
        "digest",
        "imported_at",
        "query_start",
        "field",
        "dataset",
        "state",
        "updated_at",
        "reviewer",
    ),
    *(
        "quality",
        "confidence",
        "iterations",
        "models",
        "flags",
        "reasons",
        "disagreement",
        "doubt",
        "tier",
        "risk",
    ),
)


def word(number: int) -> str:
    """Return the ``number``-th made-up word. Frequent words, which have low numbers, are short."""
    syllables = ("ri", "ver", "ta", "lo", "men", "su", "pa", "ne", "ki", "do")
    return "".join(syllables[int(digit)] for digit in str(number + 10))


def fill(path: Path, count: int) -> None:
    """Write the cases: nine in ten audited, three in ten accepted, a quarter decided."""
    started = time.perf_counter()
    Workbench.open(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("synchronous = OFF", "foreign_keys = OFF", "cache_size = -400000"):
        connection.execute(f"PRAGMA {pragma}")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name"
        " = 'cases'"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    numbers = iter(_texts(count))
    draw = random.Random(7)
    while batch := list(itertools.islice(numbers, BATCH)):
        connection.execute("BEGIN")
        rows = [_case(seq, query, draw) for seq, query, _, _ in batch]
        marks = ", ".join("?" * len(_CASE))
        connection.executemany(f"INSERT INTO cases ({', '.join(_CASE)}) VALUES ({marks})", rows)
        connection.executemany(
            "INSERT INTO case_payloads VALUES (?, ?)",
            (
                (
                    seq,
                    json.dumps(
                        {
                            "id": row[1],
                            "query": query,
                            "answer": answer,
                            "evidence": [{"id": "1", "text": e}],
                        }
                    ),
                )
                for (seq, query, answer, e), row in zip(batch, rows, strict=True)
            ),
        )
        connection.executemany(
            "INSERT INTO case_words (rowid, id, query, answer, evidence) VALUES (?, ?, ?, ?, ?)",
            (
                (seq, row[1], query, answer, e)
                for (seq, query, answer, e), row in zip(batch, rows, strict=True)
            ),
        )
        reviewer = _CASE.index("reviewer")
        connection.executemany(
            "INSERT INTO case_work VALUES (?, 'decided', ?, ?)",
            ((row[0], row[reviewer], row[0]) for row in rows if row[reviewer]),
        )
        connection.execute("COMMIT")
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    print(
        f"{count:,} cases in {time.perf_counter() - started:.0f} s,"
        f" {path.stat().st_size / 1e6:,.0f} MB"
    )


def _texts(count: int) -> Iterator[tuple[int, str, str, str]]:
    """Yield the number, question, answer and evidence of each case."""
    words = np.array([word(number) for number in range(VOCABULARY)], dtype=object)
    weights = np.cumsum(1 / (np.arange(VOCABULARY) + 1))
    draw = np.random.default_rng(7)
    for first in range(1, count + 1, BATCH):
        for offset, text in enumerate(
            words[np.searchsorted(weights / weights[-1], draw.random((BATCH, 44)))]
        ):
            if first + offset <= count:
                question, answer, evidence = (
                    " ".join(part) for part in (text[:10], text[10:26], text[26:])
                )
                yield first + offset, f"What about {question}?", f"{answer} [1].", evidence


def _case(seq: int, query: str, draw: random.Random) -> tuple[Any, ...]:
    part, bad = draw.randrange(20), draw.random() < 0.3
    audited = part < 18
    state = (
        "new"
        if not audited
        else "approved"
        if part < 4
        else "rejected"
        if part < 5
        else "needs_review"
    )
    state = "accepted" if 5 <= part < 11 else state
    chances = {"invalid_reference": 0.2, "uncited": 0.4, "unsupported_claim": 0.1}
    flags = [flag for flag, chance in chances.items() if audited and draw.random() < chance]
    waits = audited and state != "accepted"
    reasons = ["serious_issue" if bad else "unconfirmed_claim"] if waits else []
    tier = ("must_look" if bad else "not_certified") if waits else None
    quality, confidence, disagreement = draw.random(), draw.random(), draw.random()
    risk = disagreement + {"must_look": 2, "not_certified": 1, None: 0}[tier]
    scores = (quality, confidence, 1) if audited else (None, None, None)
    return (
        *(seq, f"case-{seq - 1:06}", f"{seq:064}", "2026-01-01T00:00:00.000Z", query),
        *(draw.choice(FIELDS), f"set-{seq % 4}", state, "2026-01-01T00:00:00.000Z"),
        draw.choice(("Ada", "Grace", "Hedy")) if state in ("approved", "rejected") else None,
        *(
            *scores,
            json.dumps(["offline"] if audited else []),
            json.dumps(flags),
            json.dumps(reasons),
        ),
        *((disagreement, 1 - confidence, tier, risk) if audited else (-1.0, -1.0, None, -1.0)),
    )


COUNTED_FIELDS = tuple(control.field for control in DRAWER if control.kind != "range")
"""The fields whose values the queue's filter drawer counts when it is opened."""


def store_queries(bench: Workbench, count: int) -> list[tuple[str, Callable[[], object]]]:
    """Return the queries that the pages send, by name."""

    def queue(**criteria: Any) -> Callable[[], object]:
        return lambda: bench.cases.find_for(ADA, CaseFilter(**criteria))

    def find_next(**criteria: Any) -> Callable[[], object]:
        return lambda: bench.team.next_open(ADA, CaseFilter(**criteria), f"case-{count // 2:06}")

    of_all = {
        "fields": ("Law", "Medicine"),
        "flags": ("uncited",),
        "quality_from": 0.1,
        "states": ("needs_review",),
    }
    return [
        ("queue, most likely faulty first", queue()),
        ("queue, what needs review", queue(states=("needs_review",))),
        ("queue, everything undecided", queue(standings=NOT_DECIDED)),
        ("queue, where something is wrong", queue(standings=("wrong",))),
        ("queue, wrong or not confirmed", queue(standings=("wrong", "not_confirmed"))),
        ("queue, undecided, one field", queue(standings=NOT_DECIDED, fields=("Law",))),
        ("queue, most disagreement first", queue(order="disagreement")),
        (
            "queue, least confident of two states",
            queue(order="least_confident", states=("needs_review", "new")),
        ),
        ("queue, newest", queue(order="newest")),
        ("queue, random", queue(order="random", seed=3)),
        ("filter: field", queue(fields=("Law",))),
        (
            "filter: field, dataset, state",
            queue(fields=("Law",), datasets=("set-1",), states=("approved",)),
        ),
        ("filter: flag", queue(flags=("uncited",))),
        ("filter: model", queue(models=("offline",))),
        ("filter: reviewer", queue(reviewers=("Ada",))),
        (
            "filter: score range, random order",
            queue(quality_from=0.2, quality_to=0.6, order="random"),
        ),
        ("filter: everything at once", queue(**of_all, text="verri")),
        ("search: a word in most cases", queue(text="verri")),
        ("search: two words", queue(text="verri verver")),
        ("search: a word in few cases", queue(text=word(3_000))),
        ("search: three letters most cases have", queue(text="ver")),
        ("search: six letters most cases have", queue(text="verrir")),
        ("search: one case by its id", queue(text="case-000777")),
        ("search: nothing found", queue(text="zebra")),
        ("page 1,000 of the queue", queue(page=min(1000, count // 50))),
        ("last page of a field", queue(fields=("Law",), page=count // 400)),
        ("next that needs review", find_next(states=("needs_review",))),
        ("next in random order", find_next(order="random", seed=3)),
        ("next search result", find_next(text="verri")),
        (
            "previous in the queue",
            lambda: bench.cases.neighbor(f"case-{count // 2:06}", CaseFilter(), forward=False),
        ),
        ("how many this reviewer may decide", lambda: bench.team.count_open(ADA, CaseFilter())),
        ("counts by status", lambda: bench.cases.facets_for(ADA)),
        (
            "counts of every filter in the drawer",
            lambda: [
                bench.cases.values_for(ADA, CaseFilter(standings=NOT_DECIDED), field)
                for field in COUNTED_FIELDS
            ],
        ),
        (
            "a decision",
            lambda: bench.store.decisions.append(
                Decision(reviewer="Ada", case_id="case-000009", run_id=None, verdict="approve")
            ),
        ),
    ]


PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    *(("queue", {}), ("queue", {"standing": "wrong"}), ("queue", {"order": "random", "seed": "3"})),
    *(
        ("queue", {"field": "Law", "flag": "uncited"}),
        ("queue", {"q": "verri"}),
        ("", {}),
        ("team", {}),
    ),
)
"""Pages and their parameters; the page without a name is the overview."""


def print_times(name: str, clock: list[float], cpu: list[float], target: float) -> bool:
    """Print a line and return whether the median wall time meets the target."""
    within_target = statistics.median(clock) <= target
    print(
        f"{name:<48} {statistics.median(clock):8.1f} {max(clock):8.1f}"
        f" {statistics.median(cpu):8.1f}   {target:5.0f}  {'' if within_target else 'MISSED'}",
        flush=True,
    )
    return within_target


def measure_store(bench: Workbench, count: int, target: float) -> bool:
    """Measure the queries; the first round is a warm-up."""
    within_target = []
    for name, work in store_queries(bench, count):
        clock, cpu = list[float](), list[float]()
        for number in range(REPEATS + 1):
            _write(bench, number)
            started, started_cpu = time.perf_counter(), time.process_time()
            work()
            if number:
                clock.append((time.perf_counter() - started) * 1000)
                cpu.append((time.process_time() - started_cpu) * 1000)
        within_target.append(print_times(name, clock, cpu, target))
    return all(within_target)


def _write(bench: Workbench, number: int) -> None:
    bench.store.drafts.save("Ada", "benchmark", {"note": str(number)})


async def measure_pages(served: Served, bench: Workbench, target: float) -> bool:
    """Measure whole pages of a server session, from the request to the end of the script."""
    session, within_target = await Session.open(served.base), []
    for page, parameters in PAGES:
        clock, cpu = list[float](), list[float]()
        for number in range(REPEATS + 1):
            _write(bench, number)
            before = served.cpu_seconds()
            answer = await session.go(page, **parameters)
            if answer.failed:
                raise RuntimeError(f"{page} {parameters}: the page shows an exception")
            if number:
                clock.append(answer.seconds * 1000)
                cpu.append((served.cpu_seconds() - before) * 1000)
        query_text = " ".join(f"{name}={value}" for name, value in parameters.items())
        within_target.append(
            print_times(f"page: {page or 'overview'} {query_text}", clock, cpu, target)
        )
    await session.close()
    return all(within_target)


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument(
        "--keep", type=Path, help="keep the database in this folder, and use it if it is there"
    )
    args = parser.parse_args()
    target = 100.0 if args.cases <= 100_000 else 1000.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        path = folder / f"store-{args.cases}.db"
        if not path.exists():
            fill(path, args.cases)
        bench = Workbench.open(path)
        print(f"\n{'milliseconds':<48} {'median':>8} {'max':>8} {'CPU':>8}   target")
        within_target = measure_store(bench, args.cases, target)
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n")
        with serving("serve", "--db", str(path), folder=Path(temporary)) as served:
            within_target &= asyncio.run(measure_pages(served, bench, target))
        bench.close()
    return 0 if within_target else 1


if __name__ == "__main__":
    sys.exit(main())
