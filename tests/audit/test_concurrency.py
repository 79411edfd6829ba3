"""Threads wait for work on other threads and on the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from functools import cache, partial
from types import FrameType

import pytest

from masis.audit.control import concurrency
from masis.audit.control.concurrency import (
    AUDITS_THAT_WAIT,
    run_concurrently,
    start_audit,
    wait_for_coroutine,
    wait_for_future,
)
from masis.errors import StepError
from tests.waiting import run_at_once, until


class Interrupted(Exception):
    """Raised by the signal handler of these tests."""


@pytest.fixture
def interruptible() -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    previous_handler = signal.signal(signal.SIGUSR1, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, previous_handler)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_on_another_thread_ends_the_main_threads_wait() -> None:
    future: Future[None] = Future()
    finished = threading.Event()

    def receive_signal() -> None:
        # This signal doesn't wake a main thread that waits for a lock.
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        if not finished.wait(20):
            future.set_result(None)

    thread = threading.Timer(0.3, receive_signal)
    thread.start()
    start_time = time.monotonic()
    try:
        with pytest.raises(Interrupted):
            wait_for_future(future)
    finally:
        finished.set()
        thread.join()
    assert time.monotonic() - start_time < 10


def test_errors_of_the_work_are_raised_to_the_waiting_caller() -> None:
    future: Future[int] = Future()
    future.set_exception(TimeoutError("the work's own"))
    with pytest.raises(TimeoutError, match="the work's own"):
        wait_for_future(future)
    results: list[int] = []
    pending_future: Future[int] = Future()
    waiter = threading.Thread(target=lambda: results.append(wait_for_future(pending_future)))
    waiter.start()
    pending_future.set_result(7)
    waiter.join()
    until(lambda: results == [7], "the waiting thread has the result")


def test_awaited_audits_are_queued_and_keep_their_context() -> None:
    context_name: ContextVar[str] = ContextVar("place", default="nowhere")
    gate, started = threading.Event(), list[str]()

    def work(name: str) -> str:
        context_name.set(name)
        started.append(name)
        assert gate.wait(20)
        if name == "bad":
            raise KeyError(context_name.get())
        return context_name.get()

    names = ["bad", *map(str, range(2 * AUDITS_THAT_WAIT))]
    futures = [start_audit(partial(work, name), calls_models=True) for name in names]
    until(lambda: len(started) == AUDITS_THAT_WAIT, "all threads are busy")
    assert wait_for_future(start_audit(lambda: "computed", calls_models=False)) == "computed"
    assert len(started) == AUDITS_THAT_WAIT
    gate.set()
    assert [wait_for_future(future) for future in futures[1:]] == names[1:]
    with pytest.raises(KeyError, match="bad"):
        wait_for_future(futures[0])
    assert context_name.get() == "nowhere"


def test_errors_of_a_coroutine_reach_the_waiting_thread() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise StepError("the server is gone")

    with pytest.raises(StepError, match="the server is gone"):
        wait_for_coroutine(fail())


def test_parallel_tasks_return_their_errors() -> None:
    def task(number: int) -> int:
        wait_for_coroutine(asyncio.sleep(0.3))
        if number == 2:
            raise StepError("two")
        return number

    start_time = time.monotonic()
    zero, one, two, three = run_concurrently([partial(task, number) for number in range(4)])
    assert (zero, one, three) == (0, 1, 3)
    assert isinstance(two, StepError)
    assert time.monotonic() - start_time < 4 * 0.3


def test_concurrent_threads_get_the_same_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread_count, created_loops = 24, list[asyncio.AbstractEventLoop]()

    def create_loop_slowly() -> asyncio.AbstractEventLoop:
        created_loops.append(start())
        until(lambda: barrier.n_waiting == 0, "all threads have passed the barrier")
        return created_loops[-1]

    barrier = threading.Barrier(thread_count)
    start = concurrency._loop.__wrapped__
    monkeypatch.setattr(concurrency, "_loop", cache(create_loop_slowly))
    used_loops: list[int] = []

    async def record_loop() -> None:
        used_loops.append(id(asyncio.get_running_loop()))

    def ask() -> None:
        barrier.wait(20)
        wait_for_coroutine(record_loop())

    threads = [threading.Thread(target=ask) for _ in range(thread_count)]
    run_at_once(threads)
    for loop in created_loops:
        loop.call_soon_threadsafe(loop.stop)
        until(lambda loop=loop: not loop.is_running(), "the loop ends")
        loop.close()
    assert len(created_loops) == 1
    assert used_loops == [id(created_loops[0])] * thread_count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_its_own_loop() -> None:
    wait_for_future(start_audit(lambda: wait_for_coroutine(asyncio.sleep(0)), calls_models=True))
    child = os.fork()
    if child == 0:
        try:
            os._exit(
                wait_for_future(
                    start_audit(lambda: wait_for_coroutine(asyncio.sleep(0, 7)), calls_models=True)
                )
            )
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
