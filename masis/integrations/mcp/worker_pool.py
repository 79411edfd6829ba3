"""The work of calls, on threads: audits in one pool, what only reads in another, so that neither waits for the other.

A pool has a few threads, each with a connection to the database of its own, and takes a bounded number of calls that
wait. Whoever waits for a call may go away; the work is signalled, and its thread is free again once it has noticed.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from masis.errors import MasisError

T = TypeVar("T")

READERS = 4
MOST_WAITING = 64


class Busy(MasisError):
    """More calls wait than the server takes."""


class Pool:
    """Some threads and the calls they work at."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads, self._name = threads, name
        self._under_way: dict[Future[Any], threading.Event] = {}

    async def do(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """The work, done on a thread; it is handed what tells whether its caller has gone. Raises Busy.

        Cancelling the task lets go of the work, which ends by itself when it next asks.
        """
        if len(self._under_way) >= self._threads + MOST_WAITING:
            raise Busy(f"{MOST_WAITING} calls of this kind wait already. Try again when some of them are done.")
        gone = threading.Event()
        future = self._pool.submit(contextvars.copy_context().run, work, gone.is_set)
        self._under_way[future] = gone
        future.add_done_callback(lambda ended: self._under_way.pop(ended, None))
        try:
            return await asyncio.wrap_future(future)
        finally:
            gone.set()

    def close(self, patience_s: float) -> None:
        """Tell all work under way that its callers have gone, and wait so long for it to notice."""
        for gone in list(self._under_way.values()):
            gone.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(list(self._under_way), timeout=patience_s)
