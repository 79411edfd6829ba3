"""Waiting for work on other threads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import FrameType

import pytest

from masis.audit.concurrency import settled
from tests.waiting import until


class Interrupted(Exception):
    """What the handler of these tests raises."""


@pytest.fixture
def interruptible() -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_that_another_thread_took_ends_the_main_threads_wait() -> None:
    future: Future[None] = Future()
    over = threading.Event()

    def take_the_signal() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)  # the main thread's lock is not woken by it
        if not over.wait(20):
            future.set_result(None)

    thread = threading.Timer(0.3, take_the_signal)
    thread.start()
    began = time.monotonic()
    try:
        with pytest.raises(Interrupted):
            settled(future)
    finally:
        over.set()
        thread.join()
    assert time.monotonic() - began < 10


def test_what_the_work_raises_is_raised_to_whoever_waits() -> None:
    future: Future[int] = Future()
    future.set_exception(TimeoutError("the work's own"))
    with pytest.raises(TimeoutError, match="the work's own"):
        settled(future)
    given: list[int] = []
    late: Future[int] = Future()
    waiter = threading.Thread(target=lambda: given.append(settled(late)))
    waiter.start()
    late.set_result(7)
    waiter.join()
    until(lambda: given == [7], "the result is handed on")
