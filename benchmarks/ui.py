"""What the pages cost with 100,000 cases in the store, and what a session keeps in memory.

    python benchmarks/ui.py [--cases 100000] [--keep FOLDER]

A real server is asked over its web socket (tools/session.py); nothing else runs in it. Milliseconds
from asking to the end of the script: median and worst of the repeats by the clock, and the server's
own processor time (on a busy machine the better figure), which must meet the target. The database
is made once and kept in FOLDER (the system's temporary folder unless given): the demo cases over
and over with other numbers and scores, three in ten of them audited.
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
"""Of ten cases."""
AT_REST = 0.02
"""Seconds of processor time that a server uses in one second at rest, at most."""

MEMORY_TARGET_MB = 5.0


class Asked(NamedTuple):
    """An address, and the milliseconds it may take."""

    name: str
    page: str
    parameters: dict[str, str]
    target_ms: float


def variant(case: Case, number: int) -> Case:
    """The same case about other figures, under another id."""
    text = case.model_dump_json()
    moved = re.sub(
        r"(?<![\w\[-])\d{3,4}(?=[ ,.])", lambda found: str(int(found.group()) + number % 997), text
    )
    return Case.model_validate_json(moved).model_copy(update={"id": f"{case.id}-{number:05}"})


def rescored(run: Run, case: Case, draw: random.Random) -> Run:
    """The run as if of this case, its scores moved a little, so that what lists sort by
    is spread.
    """
    shift = draw.uniform(-0.15, 0.15)

    def moved(score: float | None) -> float | None:
        return None if score is None else min(max(round(score + shift, 4), 0.0), 1.0)

    iterations = tuple(
        each.model_copy(
            update={
                "critique": each.critique.model_copy(
                    update={"confidence": moved(each.critique.confidence)}
                )
            }
        )
        for each in run.iterations
    )
    return run.model_copy(
        update={
            "id": f"run-{case.id}",
            "case_id": case.id,
            "case_digest": case.digest(),
            "iterations": iterations,
            "final_quality_score": moved(run.final_quality_score),
        }
    )


def fill(store: Store, count: int) -> None:
    """The cases, runs for three in ten, decisions on a tenth of those."""
    began = time.process_time()
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
                    store.runs.finish(rescored(run, case, draw))
                    if draw.random() < 0.1:
                        store.decisions.append(
                            Decision(
                                reviewer=draw.choice(("Ada", "Grace")),
                                case_id=case.id,
                                run_id=f"run-{case.id}",
                                verdict="approve",
                            )
                        )
    print(f"made {count:,} cases in {time.process_time() - began:.0f} s of processor time")


def questions(case_id: str) -> list[Asked]:
    """What a person does, as addresses."""

    def queue(name: str, **parameters: str) -> Asked:
        return Asked(name, "queue", parameters, 100)

    return [
        Asked("overview", "", {}, 100),
        queue("queue, opened"),
        queue("queue, needs review", state="needs_review"),
        queue("queue, a flag", flag="invalid_reference"),
        queue("queue, a field and a score range", field="Medicine", quality="0.2-0.6"),
        queue("queue, a model", model="offline"),
        queue("queue, a reviewer", reviewer="Ada"),
        queue("queue, least confident first", order="least_confident"),
        queue("queue, newest first", order="newest"),
        queue("queue, random order", order="random", seed="3"),
        queue("queue, search for a word of many", q="the"),
        queue("queue, search for three letters of many", q="com"),
        queue("queue, search for a name", q="Halvorsen"),
        queue("queue, page 2", page="2"),
        queue("queue, page 1,000", page="1000"),
        queue("queue, last page, newest first", page="5000", order="newest"),
        queue("queue, 100 a page", size="100"),
        Asked("case, opened", "review", {"case": case_id}, 150),
        Asked(
            "case, opened from a filtered queue",
            "review",
            {"case": case_id, "state": "needs_review"},
            150,
        ),
        Asked("case, not audited", "review", {"case": "docs-01-clean-00001"}, 150),
        Asked("runs of a case", "compare", {"case": case_id}, 150),
        Asked("decisions", "decisions", {}, 100),
        Asked("settings", "settings", {}, 150),
        Asked("new audit", "new", {}, 100),
    ]


async def at_rest(served: Served) -> None:
    """Wait for what a server does after its start, imports and a look at the database: it would be
    measured, too.
    """
    before, after = -1.0, served.cpu_seconds()
    while after - before > AT_REST:
        await asyncio.sleep(1)
        before, after = after, served.cpu_seconds()


async def measured(served: Served, asked: list[Asked]) -> bool:
    """Print a line a question; whether all met their targets."""
    session = await Session.open(served.base)
    await asyncio.sleep(SECONDS_UNTIL_IMPORTS)
    await at_rest(served)
    kept = True
    for each in asked:
        await session.go(each.page, **each.parameters)
        spent, own, size = [], [], 0
        for _ in range(REPEATS):
            before = served.cpu_seconds()
            answer = await session.go(each.page, **each.parameters)
            spent.append(answer.seconds * 1000)
            await asyncio.sleep(0.05)
            own.append((served.cpu_seconds() - before) * 1000)
            size = answer.size
            if answer.failed:
                raise RuntimeError(f"{each.name}: the page shows an exception")
        met = statistics.mean(own) <= each.target_ms
        kept &= met
        print(
            f"{each.name:<42} {statistics.median(spent):8.0f} {max(spent):8.0f}"
            f" {statistics.mean(own):8.0f} {size / 1000:8.0f}   {each.target_ms:6.0f} "
            f" {'' if met else 'MISSED'}",
            flush=True,
        )
    await session.close()
    return kept


async def memory(served: Served, case_id: str) -> bool:
    """What a session adds to the server, with a queue seen and a case open; whether it is within
    its target.
    """

    async def one() -> Session:
        session = await Session.open(served.base)
        await session.go("queue", state="needs_review")
        await session.go("review", case=case_id, state="needs_review")
        return session

    first = [await one() for _ in range(5)]
    before = served.memory_mb()
    more = [await one() for _ in range(SESSIONS)]
    each = (served.memory_mb() - before) / SESSIONS
    print(
        f"\na session keeps {each:.2f} MB (target {MEMORY_TARGET_MB:g}; mean of {SESSIONS}, server"
        f" {before:.0f} MB)"
    )
    for session in (*first, *more):
        await session.close()
    return each <= MEMORY_TARGET_MB


def database(folder: Path, count: int) -> Path:
    """The database of so many cases, made unless it is there."""
    path = folder / f"ui-{count}.db"
    with Store.open(path) as store:
        if store.cases.count() < count:
            if store.cases.count():
                raise SystemExit(f"{path} was left half made: remove it")
            fill(store, count)
    return path


def main() -> int:
    """Run it all; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()) / "masis-benchmark"
    )
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    path = database(given.keep, given.cases)
    case_id = _telling(path)
    with serving("serve", "--db", str(path), folder=given.keep) as served:
        print(
            f"\n{'milliseconds':<42} {'median':>8} {'worst':>8} {'server':>8} {'kB':>8}   target of"
            " the server's own"
        )
        kept = asyncio.run(measured(served, questions(case_id)))
        kept &= asyncio.run(memory(served, case_id))
    return 0 if kept else 1


def _telling(path: Path) -> str:
    """A case with several iterations."""
    with Store.open(path) as store:
        return str(
            store.database.value(
                "SELECT id FROM cases WHERE iterations > 1 AND state = 'needs_review' ORDER BY seq"
                " LIMIT 1"
            )
        )


if __name__ == "__main__":
    sys.exit(main())
