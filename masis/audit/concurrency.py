"""Work beside other work: on threads of its own, or side by side on the one event loop where it mostly waits.

What waits for models is written without ``async``, since people and plugins write roles so. ``awaited`` is where it
waits: on a thread it blocks the thread; in work begun by ``start_on_loop`` it hands the loop to others meanwhile (a
greenlet, as SQLAlchemy has it for its async engine), so that hundreds of audits wait on one thread. Such work must not
block in any other way: what computes for long, or may block, goes to a thread (``start_in_background``).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from greenlet import getcurrent, greenlet

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
    if on_loop():
        return awaited(_all([_driven(partial(guarded, task)) for task in tasks]))
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


_ON_LOOP = "on_loop"
"""The attribute that marks work on the event loop's thread which hands what it waits for to the loop."""


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a running event loop, on a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop


_loop = _Shared(_new_loop)


async def _driven(work: Callable[[], T]) -> T:
    """Do the work, awaiting in its place whatever it hands over."""
    doing = greenlet(work)
    setattr(doing, _ON_LOOP, True)
    doing.gr_context = contextvars.copy_context()
    result = doing.switch()
    while not doing.dead:
        try:
            value = await result
        except BaseException:  # noqa: BLE001 (it belongs to the work)
            result = doing.throw(*sys.exc_info())
        else:
            result = doing.switch(value)
    return result  # type: ignore[no-any-return]


async def _all(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    return list(await asyncio.gather(*works))


def on_loop() -> bool:
    """Whether this is work on the event loop, which must not block."""
    return hasattr(getcurrent(), _ON_LOOP)


def awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine, which runs on the shared event loop; return what it does, or raise it."""
    if on_loop():
        return getcurrent().parent.switch(coroutine)  # type: ignore[no-any-return]
    return settled(asyncio.run_coroutine_threadsafe(coroutine, _loop()))


def start_on_loop(work: Callable[[], T]) -> Future[T]:
    """Start work that waits by ``awaited`` alone, in a copy of the current context; it takes no thread."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # it ends by itself, as on a thread

    async def do() -> None:
        try:
            future.set_result(await _driven(work))
        except BaseException as error:  # noqa: BLE001 (whoever waits for the result raises it)
            future.set_exception(error)

    asyncio.run_coroutine_threadsafe(do(), _loop())
    return future


class Background(Generic[T]):
    """Work in the background, of which whoever began it looks now and then whether it has ended."""

    def __init__(self, future: Future[T] | asyncio.Task[T]) -> None:
        self._future = future

    def ended_within(self, seconds: float) -> bool:
        """Wait so long for its end; return whether it has ended."""
        if isinstance(self._future, asyncio.Task):
            awaited(_ended(self._future, seconds))
        else:
            wait([self._future], seconds)
        return self._future.done()

    def result(self) -> T:
        """Return what it gave once it has ended, or raise it."""
        return self._future.result()


async def _ended(task: asyncio.Task[Any], seconds: float) -> None:
    await asyncio.wait({task}, timeout=seconds)


def start_in_background(work: Callable[[], T], name: str, *, waits_only: bool = False) -> Background[T]:
    """Start work: on the event loop if it ``waits_only``, by ``awaited``, and this is on the loop; else on a thread."""
    if not on_loop():
        return Background(start_in_thread(work, name))
    doing: Awaitable[T] = _driven(work) if waits_only else asyncio.wrap_future(start_in_thread(work, name))
    task = asyncio.ensure_future(_of(doing))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may end when nobody looks any more
    return Background(task)


async def _of(doing: Awaitable[T]) -> T:
    return await doing


def off_loop(work: Callable[[], T], name: str) -> T:
    """Do work that computes for long: on a thread where this is on the loop, so that others are not kept waiting."""
    if not on_loop():
        return work()
    return awaited(_of(asyncio.wrap_future(start_in_thread(work, name))))


class Flag(Protocol):
    """What ``threading.Event`` is, as far as one waiter needs it."""

    def is_set(self) -> bool:
        """Whether it was set."""
        ...

    def set(self) -> None:
        """Set it and wake the waiter."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait for it so long; return whether it was set."""
        ...


class _LoopFlag:
    """A flag that is waited for on the event loop and set from any thread."""

    def __init__(self) -> None:
        self._loop, self._event, self._set = asyncio.get_running_loop(), asyncio.Event(), False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._loop.call_soon_threadsafe(self._event.set)

    def wait(self, timeout: float) -> bool:
        return self._set or awaited(self._wait(timeout))

    async def _wait(self, timeout: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        return self._set


def flag() -> Flag:
    """A flag that this work can wait for."""
    return _LoopFlag() if on_loop() else threading.Event()


_computing = _Shared(lambda: ThreadPoolExecutor((os.cpu_count() or 1) + 4, thread_name_prefix="audit"))


def computing() -> ThreadPoolExecutor:
    """Return the threads of audits that ask no model: they compute, and more of them at once would not be faster."""
    return _computing()


def _forget() -> None:
    """Let a forked child begin anew: it inherits no threads."""
    for shared in (_pool, _loop, _computing):
        shared.forget()


os.register_at_fork(after_in_child=_forget)
