"""Fills the database of a benchmark through the store's own functions, many records at a time.

A transaction for each record waits for the disk and checks the free pages each time. Here a
thousand records share one, nothing waits for the disk, and pages stay in memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from masis.store import Store

T = TypeVar("T")

AT_ONCE = 1000


def fill_store(store: Store, records: Iterable[T], write: Callable[[T], object], name: str) -> None:
    """Write records in large transactions, and report the progress and the time on stderr.

    Args:
        store: A new store, which is lost if the machine fails meanwhile.
        records: What to write.
        write: Writes one record.
        name: What the records are, for the progress.

    """
    started, written = time.monotonic(), 0
    for pragma in ("synchronous = OFF", "cache_size = -500000", "temp_store = MEMORY"):
        store.database.execute(f"PRAGMA {pragma}")
    remaining = iter(records)
    while batch := list(islice(remaining, AT_ONCE)):
        with store.transaction():
            for record in batch:
                write(record)
        written += len(batch)
        seconds = time.monotonic() - started
        print(f"\r{written:,} {name} in {seconds:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
