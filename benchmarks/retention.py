"""What retention does to a database of 10,000 runs half of which are decided, and how long it
takes.

    PYTHONPATH=. python benchmarks/retention.py [--runs 10000]

Another process saves what somebody types every 20 ms meanwhile, and tells how long that waited.
Fails where anything else goes than the rule says, the chain does not verify or the file does not
shrink.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

from masis.store import Store
from tests.store.test_retention import RULE, fill


@contextlib.contextmanager
def typing(path: Path) -> Iterator[None]:
    """Somebody types meanwhile."""
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    process = context.Process(target=_type, args=(path, over))
    process.start()
    try:
        yield
    finally:
        over.set()
        process.join()


def _type(path: Path, over: Event) -> None:
    waits: list[float] = []
    with Store.open(path) as store:
        while not over.wait(0.02):
            begun = time.perf_counter()
            store.drafts.save("Ada", "case:1", {"note": "typed"})
            waits.append((time.perf_counter() - begun) * 1000)
    waits.sort()
    if waits:
        middle, late, most = waits[len(waits) // 2], waits[int(len(waits) * 0.99)], waits[-1]
        figures = f"{middle:.1f} ms (median), {late:.0f} (99%), {most:.0f} (most)"
        print(f"           {len(waits):,} writes meanwhile waited {figures}")


def main() -> None:
    """Fill, look, purge, shrink, verify."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "many.db") as store:
        begun = time.process_time()

        def show(what: str) -> None:
            nonlocal begun
            print(f"{time.process_time() - begun:7.2f} s  {what}")
            begun = time.process_time()

        fill(store, runs)
        store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        show(f"{runs:,} runs written, {store.path.stat().st_size / 1e6:.1f} MB")
        plan = store.retention.plan(RULE)
        show(
            f"dry run: {plan.runs:,} runs, {plan.parts.iterations:,} iterations,"
            f" {plan.bytes / 1e6:.1f} MB go"
        )
        with typing(store.path):
            done = store.retention.remove(RULE, by="benchmark", how="command")
        show("removed and recorded")
        shrunk = store.shrink()
        show(
            f"file rewritten: {shrunk.before / 1e6:.1f} MB before, {shrunk.after / 1e6:.1f} MB"
            " after"
        )
        check = store.check()
        show(
            f"checked: chain of {check.log.length:,} entries"
            f" {'intact' if check.log.intact else 'BROKEN'}"
        )
        undecided = {f"run-{number}" for number in range(1, runs, 2)}
        assert done is not None
        assert {each.id for each in store.purges.removals(done.seq)} == undecided, (
            "other runs went than the rule says"
        )
        assert check.ok, check.problems
        assert shrunk.after < shrunk.before * 0.75, shrunk


if __name__ == "__main__":
    main()
