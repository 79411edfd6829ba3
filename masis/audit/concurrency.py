"""Work beside other work: on threads, of which each kind of work has so many; calls to models on one event loop.

What waits for models is written without ``async``, since people and plugins write roles so: it waits on its thread, by
``awaited``, for a coroutine that runs on the event loop of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

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


class _Shared(Generic[T]):
    """What all runs of the process share: made on first use, once, however many threads ask for it at that moment.

    ``functools.cache`` calls its function again for each thread that asks before the first result is there. Of two
    event loops the first would go on with what was begun on it, and its work could wait for nothing of the second.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._lock = threading.Lock()

    def __call__(self) -> T:
        """Return it, made by whoever asks first."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def forget(self) -> None:
        """Make it again at the next use; with a new lock, since a fork may have copied one that stays locked."""
        self._made = None
        self._lock = threading.Lock()


def _new_pool() -> ThreadPoolExecutor:
    """Return the threads that calls run on side by side: starting one costs more than writing a prompt.

    There are more of them than any limit of calls, and no task starts another, so none waits for a thread in vain.
    """
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="calls")


_pool = _Shared(_new_pool)


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a running event loop, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop


_loop = _Shared(_new_loop)


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, which runs on the shared event loop; return what it does, or raise it."""
    return settled(asyncio.run_coroutine_threadsafe(coroutine, _loop()))


AUDITS_THAT_WAIT = 64
"""Audits that wait for models at the same time where callers await them; further ones wait for their turn."""

_waiting = _Shared(lambda: ThreadPoolExecutor(AUDITS_THAT_WAIT, thread_name_prefix="audit"))
_computing = _Shared(lambda: ThreadPoolExecutor((os.cpu_count() or 1) + 4, thread_name_prefix="audit"))


def start_audit(work: Callable[[], T], *, waits: bool) -> Future[T]:
    """Start an audit on a thread, in a copy of the current context.

    One that does not wait for models computes: more of them at once than there are cores would not be faster.
    """
    return (_waiting() if waits else _computing()).submit(contextvars.copy_context().run, work)


def _forget() -> None:
    """Let a forked child begin anew: it inherits no threads."""
    for shared in (_pool, _loop, _waiting, _computing):
        shared.forget()


os.register_at_fork(after_in_child=_forget)
