"""Threads for audits and calls, and one event loop for model calls.

Code that waits for models is written without ``async``, because people and plug-ins write roles
that way. It waits on its thread, through ``wait_for_coroutine``, for a coroutine on the event loop
of the process.
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
"""Seconds that the main thread waits between two chances to handle signals."""


def start_in_thread(
    work: Callable[[], T], name: str, on_done: Callable[[], None] = lambda: None
) -> Future[T]:
    """Start the work on a daemon thread, in a copy of the current context.

    ``on_done`` is called when the work has ended, even with an error.
    """
    future: Future[T] = Future()
    # Make the future uncancellable, so that set_result can't raise.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (the waiting thread raises it)
            future.set_exception(error)
        finally:
            on_done()

    threading.Thread(
        target=contextvars.copy_context().run, args=(run,), name=name, daemon=True
    ).start()
    return future


def run_concurrently(tasks: Sequence[Callable[[], T]]) -> list[T | StepError]:
    """Run all tasks at once and return their results in order.

    A ``StepError`` is returned and not raised.
    """

    def guarded(task: Callable[[], T]) -> T | StepError:
        try:
            return task()
        except StepError as error:
            return error

    if len(tasks) < 2:
        return [guarded(task) for task in tasks]
    futures = [_calls.submit(contextvars.copy_context().run, guarded, task) for task in tasks[1:]]
    first_result = guarded(tasks[0])
    return [first_result, *(wait_for_future(future) for future in futures)]


def wait_for_future(future: Future[T]) -> T:
    """Return the result of the future, or raise its error; Ctrl-C ends the wait at once.

    The main thread waits in short steps. A signal that arrives just before it waits for a lock, or
    that another thread receives, doesn't wake it, and Python's handler would run only after the
    future.
    """
    if threading.current_thread() is threading.main_thread():
        while not wait([future], POLL_INTERVAL_S).done:
            pass
    return future.result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return a running event loop on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop


def wait_for_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine on the shared event loop, and return its result or raise its error."""
    # Without the lock, several threads could each create a loop. Work started on the first could
    # then wait forever for the second.
    with _loop_lock:
        loop = _loop()
    return wait_for_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


AUDITS_THAT_WAIT = 64
"""Maximum number of awaited audits that run at the same time; further ones wait in a queue."""


def start_audit(work: Callable[[], T], *, calls_models: bool) -> Future[T]:
    """Start an audit on a thread, in a copy of the current context.

    An audit without model calls is limited by the CPU, so running more of them than there are cores
    wouldn't be faster.
    """
    return (_model_threads if calls_models else _cpu_threads).submit(
        contextvars.copy_context().run, work
    )


async def cancellable(
    work: Callable[[Callable[[], bool]], T], start: Callable[[Callable[[], T]], Future[T]]
) -> T:
    """Await work that ``start`` starts on a thread.

    The work gets a function that returns whether its task was cancelled.
    """
    cancelled = threading.Event()
    try:
        return await asyncio.wrap_future(start(partial(work, cancelled.is_set)))
    finally:
        cancelled.set()


_loop_lock: threading.Lock
_calls: ThreadPoolExecutor
_model_threads: ThreadPoolExecutor
_cpu_threads: ThreadPoolExecutor


def _create_shared_state() -> None:
    """Create the state that all runs of the process share.

    It is created again in a forked child, which inherits no threads.
    """
    global _loop_lock, _calls, _model_threads, _cpu_threads
    _loop_lock = threading.Lock()
    _loop.cache_clear()
    # More threads than any limit of calls. Calls don't start calls, so none waits for a thread
    # forever.
    _calls = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="calls")
    _model_threads = ThreadPoolExecutor(AUDITS_THAT_WAIT, thread_name_prefix="audit")
    _cpu_threads = ThreadPoolExecutor((os.cpu_count() or 1) + 4, thread_name_prefix="audit")


_create_shared_state()
os.register_at_fork(after_in_child=_create_shared_state)
