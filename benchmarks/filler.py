"""Fills the database of a benchmark through the store's own functions, many records at a time.

A transaction for each record waits for the disk each time. Here a thousand records share one, which
waits once, because entries of a log can't be written in a transaction that isn't durable.
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
        store: A new store.
        records: What to write.
        write: Writes one record.
        name: What the records are, for the progress.

    """
    started, written = time.monotonic(), 0
    # Indexes of 100,000 cases don't fit into the default cache of 16 MB.
    store.database.execute("PRAGMA cache_size = -500000")
    remaining = iter(records)
    while batch := list(islice(remaining, AT_ONCE)):
        with store.transaction():
            for record in batch:
                write(record)
        written += len(batch)
        seconds = time.monotonic() - started
        print(f"\r{written:,} {name} in {seconds:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
