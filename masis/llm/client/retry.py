"""The one policy for trying a failed request again: which failures, after which wait, and until when.

Waits double from try to try and half of each is random, so that calls which failed together don't return together. A
server that asks for a longer wait (``Retry-After``) gets it. No wait is begun that the time left has no room for, and
every wait ends when the run is cancelled (REQ-CRITIC-032, REQ-CRITIC-NFR-009). The waits are tenacity's; whoever calls
says which failures are worth another try.
"""

from __future__ import annotations

import datetime
import email.utils
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from tenacity import RetryCallState, Retrying, wait_exponential, wait_random_exponential
from tenacity.wait import wait_base

T = TypeVar("T")


class Again(NamedTuple):
    """That a failure is worth another try: after ``asked_s`` seconds where the server asked for so many, or at once."""

    asked_s: float | None = None
    at_once: bool = False


class NoTimeToRetry(Exception):
    """The wait before the next try is longer than the time left."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"no time is left to wait {wait_s:.1f} s and try again")
        self.wait_s = wait_s


class RetryCancelled(Exception):
    """The run was cancelled during the wait for the next try."""


Classify = Callable[[BaseException], Again | None]
OnRetry = Callable[[float], None]


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is tried again, and the waits before: ``base_s``, twice that ..., at most ``cap_s``.

    Args:
        attempt: Makes one try; what it raises last is raised.
        classify: Returns ``Again`` for a failure worth another try, None for any other.
        left_s: Seconds left for the wait and the tries after it.
        pause: Waits so many seconds; returns False where the run was cancelled meanwhile.
        on_retry: Called with the seconds of each wait before it begins.

    Raises:
        NoTimeToRetry: The next wait is longer than the time left. Its cause is the failure.
        RetryCancelled: ``pause`` returned False.

    """

    retries: int = 2
    base_s: float = 0.5
    cap_s: float = 8.0

    def backoff(self) -> wait_base:
        """Return the policy's own waits: half of each fixed, half random."""
        half, cap = self.base_s / 2, self.cap_s / 2
        return wait_exponential(multiplier=half, max=cap) + wait_random_exponential(multiplier=half, max=cap)

    def run(
        self,
        attempt: Callable[[], T],
        classify: Classify,
        *,
        left_s: Callable[[], float],
        pause: Callable[[float], object],
        on_retry: OnRetry = lambda wait_s: None,
    ) -> T:
        """Return what the first try that succeeds returns."""
        backoff, again = self.backoff(), Again()

        # What tenacity asks after a failed try, in this order: worth_it, wait, stop; then it sleeps.
        def worth_it(state: RetryCallState) -> bool:
            nonlocal again
            error = state.outcome.exception() if state.outcome else None
            found = None if error is None else classify(error)
            again = found or Again()
            return found is not None

        def wait(state: RetryCallState) -> float:
            return 0.0 if again.at_once else max(float(backoff(state)), again.asked_s or 0.0)

        def stop(state: RetryCallState) -> bool:
            if state.attempt_number > self.retries:
                return True
            if state.upcoming_sleep > left_s():
                raise NoTimeToRetry(state.upcoming_sleep) from (state.outcome.exception() if state.outcome else None)
            return False

        def sleep(seconds: float) -> None:
            if pause(float(seconds)) is False:
                raise RetryCancelled

        return Retrying(
            retry=worth_it,
            wait=wait,
            stop=stop,
            sleep=sleep,
            before_sleep=lambda state: on_retry(state.upcoming_sleep),
            reraise=True,  # the last failure itself, not a RetryError around it
        )(attempt)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait: ``retry-after-ms``, or ``Retry-After`` as a number or a date.

    A date without a zone is in UTC, as all dates of HTTP are. None where the headers say nothing readable.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if not value:
        return None
    if (seconds := _seconds(value)) is not None:
        return seconds
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    return max(0.0, (at - datetime.datetime.now(datetime.UTC)).total_seconds())


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
