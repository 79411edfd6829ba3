"""The one retry policy: what is tried again, how long is waited, and what ends it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from masis.audit.run_control import CancelToken
from masis.llm.client.retry import Again, NoTimeToRetry, RetryCancelled, RetryPolicy

POLICY = RetryPolicy(retries=2, base_s=0.01, cap_s=0.02)


class Failing:
    """Fails so many times, then returns the number of tries."""

    def __init__(self, times: int) -> None:
        self.times, self.tries = times, 0

    def __call__(self) -> int:
        self.tries += 1
        if self.tries <= self.times:
            raise ConnectionError(f"failure {self.tries}")
        return self.tries


def asked(seconds: float | None = None, *, at_once: bool = False) -> Callable[[BaseException], Again | None]:
    return lambda error: Again(seconds, at_once) if isinstance(error, ConnectionError) else None


def run(attempt: Failing, policy: RetryPolicy, again: object, left_s: float, token: CancelToken) -> int:
    return policy.run(attempt, again, left_s=lambda: left_s, pause=token.pause)  # type: ignore[arg-type]


@pytest.mark.spec("REQ-CRITIC-032")
def test_a_failure_that_passes_is_tried_again_up_to_the_limit() -> None:
    passing, lasting = Failing(2), Failing(9)
    assert run(passing, POLICY, asked(), 9.0, CancelToken()) == 3
    with pytest.raises(ConnectionError, match="failure 3"):
        run(lasting, POLICY, asked(), 9.0, CancelToken())
    assert lasting.tries == 3


def test_no_wait_is_begun_that_goes_past_the_deadline() -> None:
    attempt, began = Failing(1), time.monotonic()
    with pytest.raises(NoTimeToRetry, match=r"6\.0 s") as raised:
        run(attempt, POLICY, asked(6.0), 1.0, CancelToken())
    assert time.monotonic() - began < 0.9
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert attempt.tries == 1


def test_a_wait_ends_when_the_run_is_cancelled() -> None:
    token, attempt = CancelToken(), Failing(1)

    def again(error: BaseException) -> Again:
        token.cancel()
        return Again(5.0)

    began = time.monotonic()
    with pytest.raises(RetryCancelled):
        run(attempt, POLICY, again, 60.0, token)
    assert time.monotonic() - began < 4
    assert attempt.tries == 1


def test_what_is_worth_another_try_at_once_waits_for_nothing() -> None:
    slow = RetryPolicy(retries=1, base_s=30.0, cap_s=30.0)
    assert run(Failing(1), slow, asked(at_once=True), 1.0, CancelToken()) == 2


def test_any_other_failure_is_raised_as_it_is() -> None:
    def broken() -> int:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        POLICY.run(broken, asked(), left_s=lambda: 9.0, pause=CancelToken().pause)
