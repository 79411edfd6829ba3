"""Waiting for something, for so long and no longer; what is waited for is named where it does not
happen.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.process import BaseProcess

PATIENCE_S = 60.0
"""What takes a second on an idle machine may take this long on a busy one."""


def until(
    holds: Callable[[], object], what: str, seconds: float = PATIENCE_S, every: float = 0.02
) -> None:
    """Wait until something holds. Raises AssertionError, naming it, if it does not within
    ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(every)


async def until_async(holds: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """``until`` in a coroutine: the event loop goes on meanwhile."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)


def run_at_once(workers: Sequence[threading.Thread | BaseProcess]) -> None:
    """Start threads or processes, and wait for all of them. Raises AssertionError if one does not
    end.
    """
    for worker in workers:
        worker.start()
    joined(workers)


def joined(threads: Iterable[threading.Thread | BaseProcess], seconds: float = PATIENCE_S) -> None:
    """Wait for threads to end. Raises AssertionError if one does not."""
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"{thread.name} does not end"
