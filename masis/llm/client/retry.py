"""The one policy for trying a failed request again: which failures, after which wait, and until
when.

Waits double from try to try and half of each is random, so that calls which failed together don't
return together. A server that asks for a longer wait (``Retry-After``) gets it. No wait is begun
that the time left has no room for, and every wait ends when the run is cancelled (REQ-CRITIC-032,
REQ-CRITIC-NFR-009). Whoever calls says which failures are worth another try.
"""

from __future__ import annotations

import datetime
import email.utils
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Again(NamedTuple):
    """That a failure is worth another try: after ``asked_s`` seconds where the server asked for so
    many, or at once.
    """

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
    """How often a request is tried again, and the waits before: ``base_s``, twice that ..., at most
    ``cap_s``.

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

    def backoff_s(self, retry: int) -> float:
        """Return the wait before a retry, counted from 1: half of it fixed, half random."""
        half = min(self.base_s * 2.0 ** (retry - 1), self.cap_s) / 2
        return half + random.uniform(0, half)

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
        retry = 0
        while True:
            try:
                return attempt()
            except Exception as error:
                retry += 1
                again = classify(error)
                if again is None or retry > self.retries:
                    raise
                wait_s = 0.0 if again.at_once else max(self.backoff_s(retry), again.asked_s or 0.0)
                if wait_s > left_s():
                    raise NoTimeToRetry(wait_s) from error
            on_retry(wait_s)
            if pause(wait_s) is False:
                raise RetryCancelled


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait: ``retry-after-ms``, or ``Retry-After`` as a number
    or a date.

    A date without a zone is in UTC, as all dates of HTTP are. None where the headers say nothing
    readable.
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
