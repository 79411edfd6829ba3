"""Waiting for work on other threads."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from types import FrameType

import pytest

from masis.audit import concurrency
from masis.audit.concurrency import (
    Flag,
    awaited,
    flag,
    off_loop,
    run_concurrently,
    settled,
    start_in_background,
    start_on_loop,
)
from masis.errors import StepError
from tests.waiting import joined, until


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


def _waits(gate: threading.Event, under_way: list[str], name: str) -> str:
    """Work that waits for another's gate, without a thread of its own."""

    async def opened() -> None:
        while not gate.is_set():
            await asyncio.sleep(0.01)

    under_way.append(threading.current_thread().name)
    awaited(opened())
    return name


def test_hundreds_of_works_that_wait_share_one_thread() -> None:
    gate, under_way = threading.Event(), list[str]()
    before = threading.active_count()
    futures = [start_on_loop(partial(_waits, gate, under_way, str(number))) for number in range(300)]
    until(lambda: len(under_way) == 300, "all works wait at once")
    assert threading.active_count() <= before + 1
    assert set(under_way) == {"event loop"}
    gate.set()
    assert [settled(future) for future in futures] == [str(number) for number in range(300)]


def test_work_on_the_loop_keeps_its_own_context_and_raises_its_own_errors() -> None:
    place: ContextVar[str] = ContextVar("place", default="nowhere")

    def work(name: str) -> str:
        place.set(name)
        awaited(asyncio.sleep(0.02))
        if name == "bad":
            raise KeyError(place.get())
        return place.get()

    names = ["one", "two", "bad", "three"]
    futures = [start_on_loop(partial(work, name)) for name in names]
    assert [settled(future) for future, name in zip(futures, names, strict=True) if name != "bad"] == [
        "one",
        "two",
        "three",
    ]
    with pytest.raises(KeyError, match="bad"):
        settled(futures[2])
    assert place.get() == "nowhere"


def test_what_a_wait_on_the_loop_raises_reaches_the_work_that_waits() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise StepError("the server is gone")

    def work() -> str:
        try:
            awaited(fails())
        except StepError as error:
            return str(error)
        return "nothing"

    assert settled(start_on_loop(work)) == "the server is gone"
    with pytest.raises(StepError, match="the server is gone"):
        awaited(fails())


def test_tasks_side_by_side_on_the_loop_need_no_thread_and_return_their_errors() -> None:
    def task(number: int) -> int:
        awaited(asyncio.sleep(0.3))
        if number == 2:
            raise StepError("two")
        return number

    def work() -> list[object]:
        return list(run_concurrently([partial(task, number) for number in range(4)]))

    before, began = threading.active_count(), time.monotonic()
    zero, one, two, three = settled(start_on_loop(work))
    assert (zero, one, three) == (0, 1, 3)
    assert isinstance(two, StepError)
    assert threading.active_count() <= before + 1
    assert time.monotonic() - began < 4 * 0.3


def test_work_that_may_block_gets_a_thread_and_the_loop_goes_on() -> None:
    gate = threading.Event()
    blocked = start_on_loop(lambda: off_loop(lambda: gate.wait(20), "blocks"))
    beside = start_on_loop(lambda: start_in_background(lambda: gate.wait(20), "blocks"))
    assert not settled(start_on_loop(lambda: settled(beside).ended_within(0.05)))
    gate.set()
    assert settled(blocked)
    assert settled(start_on_loop(lambda: settled(beside).ended_within(20) and settled(beside).result()))


def test_a_flag_that_another_thread_sets_wakes_work_on_the_loop() -> None:
    made: list[Flag] = []

    def work() -> tuple[bool, bool]:
        made.append(flag())
        return made[0].wait(0.01), made[0].wait(20)

    future = start_on_loop(work)
    until(lambda: made, "the work waits")
    time_out = time.monotonic() + 0.05
    until(lambda: time.monotonic() > time_out, "the first wait is over")
    made[0].set()
    assert settled(future) == (False, True)


def test_threads_that_ask_for_the_loop_at_once_before_there_is_one_get_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    askers, made = 24, list[asyncio.AbstractEventLoop]()

    def slowly() -> asyncio.AbstractEventLoop:
        made.append(concurrency._new_loop())
        until(lambda: asking.n_waiting == 0, "all threads are past the barrier, and ask")
        return made[-1]

    asking = threading.Barrier(askers)
    monkeypatch.setattr(concurrency, "_loop", concurrency._Shared(slowly))
    served: list[int] = []

    async def here() -> None:
        served.append(id(asyncio.get_running_loop()))

    def ask(start: bool) -> None:
        asking.wait(20)
        if start:
            settled(start_on_loop(lambda: awaited(here())))
        else:
            awaited(here())

    threads = [threading.Thread(target=ask, args=(number % 2 == 0,)) for number in range(askers)]
    for thread in threads:
        thread.start()
    joined(threads)
    for loop in made:
        loop.call_soon_threadsafe(loop.stop)
        until(lambda loop=loop: not loop.is_running(), "the loop ends")
        loop.close()
    assert len(made) == 1
    assert served == [id(made[0])] * askers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_loop_of_its_own() -> None:
    awaited(asyncio.sleep(0))
    child = os.fork()
    if child == 0:
        try:
            os._exit(settled(start_on_loop(lambda: awaited(asyncio.sleep(0, 7)))))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
