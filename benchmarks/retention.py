"""Time retention on a database of 10,000 runs, half of them decided, and check its result.

    PYTHONPATH=. python benchmarks/retention.py [--runs 10000]

Meanwhile another process saves a draft every 20 ms and prints how long its writes waited. Fails if
other runs are removed than the rule says, the chain doesn't verify, or the file doesn't shrink.
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
def simulate_typing(path: Path) -> Iterator[None]:
    """Save drafts from another process while the block runs."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    process = context.Process(target=_save_drafts, args=(path, stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join()


def _save_drafts(path: Path, stop: Event) -> None:
    waits: list[float] = []
    with Store.open(path) as store:
        while not stop.wait(0.02):
            started = time.perf_counter()
            store.drafts.save("Ada", "case:1", {"note": "typed"})
            waits.append((time.perf_counter() - started) * 1000)
    waits.sort()
    if waits:
        median, p99, longest = waits[len(waits) // 2], waits[int(len(waits) * 0.99)], waits[-1]
        figures = f"{median:.1f} ms (median), {p99:.0f} (p99), {longest:.0f} (max)"
        print(f"           {len(waits):,} concurrent writes waited {figures}")


def main() -> None:
    """Fill a database, plan and apply retention, shrink the file and verify it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "many.db") as store:
        started = time.process_time()

        def show(step: str) -> None:
            nonlocal started
            print(f"{time.process_time() - started:7.2f} s  {step}")
            started = time.process_time()

        fill(store, runs)
        store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        show(f"{runs:,} runs written, {store.path.stat().st_size / 1e6:.1f} MB")
        plan = store.retention.plan(RULE)
        show(
            f"dry run: {plan.runs:,} runs, {plan.parts.iterations:,} iterations,"
            f" {plan.bytes / 1e6:.1f} MB to remove"
        )
        with simulate_typing(store.path):
            purge = store.retention.remove(RULE, by="benchmark", how="command")
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
        assert purge is not None
        assert {removal.id for removal in store.purges.removals(purge.seq)} == undecided, (
            "the removed runs differ from those that the rule names"
        )
        assert check.ok, check.problems
        assert shrunk.after < shrunk.before * 0.75, shrunk


if __name__ == "__main__":
    main()
