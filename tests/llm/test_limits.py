"""How many at once: the limit holds, the longest waiting goes first, and a wait can be given up."""

from __future__ import annotations

import threading
import time

import pytest

from masis.llm.client.limits import LONGEST_HOLD_S, Limiter, limiter
from masis.llm.endpoints import endpoint
from masis.settings import Settings
from tests.waiting import PATIENCE_S, joined, run_at_once, until


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
    run_at_once(threads)
    assert most[0] <= 4
    assert gate.take_at_once()


def served(limiter: Limiter, slots: int, calls: int) -> list[int]:
    """The limit after each of so many replies of a server that serves ``slots`` calls at once, a second each."""
    seen = []
    for _ in range(calls):
        limiter.answered(max(1.0, limiter.now / slots))
        seen.append(limiter.now)
    return seen


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_limit_that_adapts_finds_how_many_calls_a_server_serves_side_by_side(slots: int) -> None:
    limiter = Limiter(16, adapts=True)
    assert limiter.now == 1
    seen = served(limiter, slots, 120)
    assert all(slots <= now <= 2 * slots for now in seen[60:])


def test_a_limit_that_adapts_reaches_the_most_that_is_allowed_and_no_more() -> None:
    limiter = Limiter(4, adapts=True)
    assert max(served(limiter, 100, 200)) == limiter.now == 4


def test_a_timeout_halves_any_limit_and_replies_in_time_let_it_grow_back() -> None:
    limiter = Limiter(8)
    limiter.timed_out()
    assert limiter.now == 4
    limiter.timed_out()
    limiter.timed_out()
    limiter.timed_out()
    assert limiter.now == 1
    assert served(limiter, 100, 400)[-1] == 8


def test_a_lower_most_holds_at_once_and_a_higher_one_does_not_undo_what_was_found_out() -> None:
    limiter = Limiter(8)
    limiter.timed_out()
    limiter.most = 2
    assert limiter.now == 2
    fixed = Limiter(2)
    fixed.most = 5
    assert fixed.now == 5


@pytest.mark.parametrize(
    ("table", "adapts"),
    [
        ({"address": "http://127.0.0.1:8081/v1"}, True),
        ({"address": "http://192.168.1.20:8080/v1"}, True),
        ({"address": "http://workstation:8080/v1"}, True),
        ({"address": "http://host.docker.internal:8080/v1"}, True),
        ({"address": "https://llm.example.org/v1"}, False),
        ({"address": "http://8.8.8.8/v1"}, False),
        ({"address": "http://127.0.0.1:8081/v1", "adapts": False}, False),
        ({"address": "https://llm.example.org/v1", "adapts": True}, True),
    ],
)
def test_a_server_of_ones_own_begins_with_one_call_where_it_is_local_or_a_person_says_so(
    table: dict[str, object], adapts: bool
) -> None:
    settings = Settings.model_validate({"providers": {"own": table, "vllm": {}}})
    assert endpoint("own", settings).adapts is adapts
    assert not endpoint("vllm", settings).adapts


def test_calls_of_different_length_are_held_against_calls_of_their_own_kind() -> None:
    """A critic's reply takes ten times as long as a list of claims, alone as well as beside others."""
    limiter = Limiter(16, adapts=True)
    for _ in range(60):
        limiter.answered(1.0, "claims")
        limiter.answered(10.0, "critic")
    assert limiter.now == 16
