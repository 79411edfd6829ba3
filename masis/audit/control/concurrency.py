"""Work beside other work: on threads, of which each kind of work has so many; calls to models on
one event loop.

What waits for models is written without ``async``, since people and plugins write roles so: it
waits on its thread, by ``awaited``, for a coroutine that runs on the event loop of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, TypeVar

from masis.errors import StepError

T = TypeVar("T")
MAX_THREADS = 1024

POLL_INTERVAL_S = 0.1
"""How long the main thread waits without a look at its signals."""


def start_in_thread(
    work: Callable[[], T], name: str, then: Callable[[], None] = lambda: None
) -> Future[T]:
    """Start the work on a daemon thread, in a copy of the current context; ``then`` is called at
    its end.
    """
    future: Future[T] = Future()
    # who no longer waits for it can't take its result's place away
    future.set_running_or_notify_cancel()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (whoever waits for the result raises it)
            future.set_exception(error)
        finally:
            then()

    threading.Thread(
        target=contextvars.copy_context().run, args=(do,), name=name, daemon=True
    ).start()
    return future


def run_concurrently(tasks: Sequence[Callable[[], T]]) -> list[T | StepError]:
    """Run all tasks at once and return their results in order; a ``StepError`` is returned, not
    raised.
    """

    def guarded(task: Callable[[], T]) -> T | StepError:
        try:
            return task()
        except StepError as error:
            return error

    if len(tasks) < 2:
        return [guarded(task) for task in tasks]
    others = [_calls.submit(contextvars.copy_context().run, guarded, task) for task in tasks[1:]]
    first = guarded(tasks[0])
    return [first, *(wait_for_future(future) for future in others)]


def wait_for_future(future: Future[T]) -> T:
    """Return what the future gives, or raise it; Ctrl-C ends the wait at once.

    The main thread waits in short steps: a signal that comes just before a lock is waited for, or
    reaches another thread, does not wake it, and what Python does about the signal would wait for
    the future.
    """
    if threading.current_thread() is threading.main_thread():
        while not wait([future], POLL_INTERVAL_S).done:
            pass
    return future.result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return a running event loop, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop


def wait_for_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, which runs on the shared event loop; return what it does,
    or raise it.
    """
    # Several threads may ask before there is a loop. Of two, the first would go on with what was
    # begun on it, and its work could wait for nothing of the second.
    with _asking:
        loop = _loop()
    return wait_for_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


AUDITS_THAT_WAIT = 64
"""Audits that wait for models at the same time where callers await them; further ones wait for
their turn.
"""


def start_audit(work: Callable[[], T], *, calls_models: bool) -> Future[T]:
    """Start an audit on a thread, in a copy of the current context.

    One that does not wait for models computes: more of them at once than there are cores would not
    be faster.
    """
    return (_model_threads if calls_models else _cpu_threads).submit(
        contextvars.copy_context().run, work
    )


async def cancellable(
    work: Callable[[Callable[[], bool]], T], start: Callable[[Callable[[], T]], Future[T]]
) -> T:
    """Await work that ``start`` starts on a thread; the work receives what says that its task was
    cancelled.
    """
    gone = threading.Event()
    try:
        return await asyncio.wrap_future(start(partial(work, gone.is_set)))
    finally:
        gone.set()


_asking: threading.Lock
_calls: ThreadPoolExecutor
_model_threads: ThreadPoolExecutor
_cpu_threads: ThreadPoolExecutor


def _create_shared_state() -> None:
    """Make what all runs of the process share; anew in a forked child, which inherits
    no threads.
    """
    global _asking, _calls, _model_threads, _cpu_threads
    _asking = threading.Lock()
    _loop.cache_clear()
    # More than any limit of calls; and no call starts another, so that none waits for a thread in
    # vain.
    _calls = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="calls")
    _model_threads = ThreadPoolExecutor(AUDITS_THAT_WAIT, thread_name_prefix="audit")
    _cpu_threads = ThreadPoolExecutor((os.cpu_count() or 1) + 4, thread_name_prefix="audit")


_create_shared_state()
os.register_at_fork(after_in_child=_create_shared_state)
