"""How many at once: the limit holds, the longest waiting goes first, and a wait can be given up."""

from __future__ import annotations

import threading
import time

from masis.llm.client.limits import LONGEST_HOLD_S, Limiter, limiter
from tests.waiting import PATIENCE_S, joined, until


def test_first_come_first_served() -> None:
    gate = Limiter(1)
    assert gate.take(lambda: True)
    order: list[int] = []
    threads = []
    for number in range(5):
        thread = threading.Thread(target=lambda n=number: (gate.take(lambda: True), order.append(n), gate.give()))
        thread.start()
        threads.append(thread)
        until(lambda n=number: len(gate._waiting) > n, f"thread {number} waits")
    gate.give()
    joined(threads)
    assert order == [0, 1, 2, 3, 4]


def test_nobody_passes_those_who_wait() -> None:
    gate = Limiter(1)
    gate.take(lambda: True)
    thread = threading.Thread(target=lambda: gate.take(lambda: True))
    thread.start()
    until(lambda: gate._waiting, "the thread waits")
    assert not gate.take_at_once()
    gate.give()
    joined([thread])
    assert not gate.take_at_once()


def test_a_wait_that_is_given_up_takes_no_place() -> None:
    gate = Limiter(1)
    gate.take(lambda: True)
    assert not gate.take(lambda: False)
    gate.give()
    assert gate.take_at_once()


def test_a_limit_may_be_changed_while_calls_wait() -> None:
    gate = Limiter(1)
    gate.take(lambda: True)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (gate.take(lambda: True), done.set()))
    thread.start()
    gate.most = 2
    assert done.wait(PATIENCE_S)
    joined([thread])
    gate.most = 1
    gate.give()
    assert not gate.take_at_once()


def test_a_held_address_lets_nobody_begin_until_the_time_is_over() -> None:
    gate = Limiter(2)
    gate.hold(0.3)
    over = gate._held_until
    assert not gate.take_at_once()
    assert gate.take(lambda: True)
    assert time.monotonic() >= over
    assert gate.take_at_once()


def test_a_server_holds_others_for_so_long_and_no_longer() -> None:
    gate = Limiter(1)
    gate.hold(3600)
    assert gate._held_until - time.monotonic() <= LONGEST_HOLD_S


def test_all_that_call_an_address_share_its_limit() -> None:
    assert limiter("http://127.0.0.1:1/v1", 4) is limiter("http://127.0.0.1:1/v1", 5)
    assert limiter("http://127.0.0.1:1/v1", 6).most == 6
    assert limiter("http://127.0.0.1:2/v1", 4) is not limiter("http://127.0.0.1:1/v1", 6)


def test_the_limit_holds_under_many_threads() -> None:
    gate, under_way, most = Limiter(4), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        for _ in range(50):
            assert gate.take(lambda: True)
            with lock:
                under_way[0] += 1
                most[0] = max(most[0], under_way[0])
            time.sleep(0.0001)
            with lock:
                under_way[0] -= 1
            gate.give()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    joined(threads)
    assert most[0] <= 4
    assert gate.take_at_once()
