"""Work on threads of its own: one piece in the background, or several side by side."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

from masis.errors import StepError

T = TypeVar("T")
MOST_THREADS = 1024

LOOK_AGAIN_S = 0.1
"""How long the main thread waits without a look at its signals."""


def start_in_thread(work: Callable[[], T], name: str, then: Callable[[], None] = lambda: None) -> Future[T]:
    """Start the work on a daemon thread, in a copy of the current context; ``then`` is called at its end."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # who no longer waits for it can't take its result's place away

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (whoever waits for the result raises it)
            future.set_exception(error)
        finally:
            then()

    threading.Thread(target=contextvars.copy_context().run, args=(do,), name=name, daemon=True).start()
    return future


def run_concurrently(tasks: Sequence[Callable[[], T]]) -> list[T | StepError]:
    """Run all tasks at once and return their results in order; a ``StepError`` is returned, not raised."""

    def guarded(task: Callable[[], T]) -> T | StepError:
        try:
            return task()
        except StepError as error:
            return error

    if len(tasks) < 2:
        return [guarded(task) for task in tasks]
    others = [_pool().submit(contextvars.copy_context().run, guarded, task) for task in tasks[1:]]
    first = guarded(tasks[0])
    return [first, *(settled(future) for future in others)]


def settled(future: Future[T]) -> T:
    """Return what the future gives, or raise it; Ctrl-C ends the wait at once.

    The main thread waits in short steps: a signal that comes just before a lock is waited for, or reaches another
    thread, does not wake it, and what Python does about the signal would wait for the future.
    """
    if threading.current_thread() is threading.main_thread():
        while not wait([future], LOOK_AGAIN_S).done:
            pass
    return future.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that all runs of the process share: starting one costs more than writing a prompt.

    There are more of them than any limit of calls, and no task starts another, so none waits for a thread in vain.
    """
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="calls")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child inherits no threads
