"""Wait for a condition, with a time limit and a message that names the condition."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.process import BaseProcess

PATIENCE_S = 60.0
"""Seconds that a task of one second on an idle machine may take on a busy one."""


def until(
    holds: Callable[[], object], what: str, seconds: float = PATIENCE_S, every: float = 0.02
) -> None:
    """Wait until a condition is true; after ``seconds``, raise AssertionError with its name."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(every)


async def until_async(holds: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait like ``until``, but in a coroutine, without blocking the event loop."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)


def run_at_once(workers: Sequence[threading.Thread | BaseProcess]) -> None:
    """Start threads or processes and wait for all; raise AssertionError if one doesn't end."""
    for worker in workers:
        worker.start()
    join_all(workers)


def join_all(
    threads: Iterable[threading.Thread | BaseProcess], seconds: float = PATIENCE_S
) -> None:
    """Wait for threads to end; raise AssertionError if one doesn't."""
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"{thread.name} does not end"
