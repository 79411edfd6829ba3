"""Retries a failed request, with waits that respect the deadline and the end of the run.

Waits double from retry to retry, and half of each is random, so that calls which failed together
don't retry together. A server that asks for a longer wait (``Retry-After``) gets it. A wait starts
only if it fits into the time left, and it ends when the run is cancelled (REQ-CRITIC-032,
REQ-CRITIC-NFR-009). The SDKs' own retries are off, because they know neither limit.
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


class Retry(NamedTuple):
    """The decision to retry, after at least ``after_s`` seconds if the server asked for them, or at
    once.
    """

    after_s: float | None = None
    at_once: bool = False


class NoTimeToRetry(Exception):
    """The wait before the next try is longer than the time left."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"no time is left to wait {wait_s:.1f} s and try again")
        self.wait_s = wait_s


class RetryCancelled(Exception):
    """The run was cancelled during the wait for the next try."""


Classify = Callable[[BaseException], Retry | None]
OnRetry = Callable[[float], None]


@dataclass(frozen=True)
class RetryPolicy:
    """The number of retries, and the waits before them: ``base_s``, twice that and so on, at most
    ``cap_s``.
    """

    retries: int = 2
    base_s: float = 0.5
    cap_s: float = 8.0

    def backoff_s(self, retry: int) -> float:
        """Return the seconds to wait before a retry, counted from 1; half of it is random."""
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
        """Return the result of the first attempt that succeeds.

        Args:
            attempt: Makes one attempt. The error of the last one is raised.
            classify: Returns ``Retry`` for an error that is worth a retry, None for any other.
            left_s: Returns the seconds left for the wait and the attempts after it.
            pause: Waits for some seconds; returns False if the run was cancelled in the meantime.
            on_retry: Called with the seconds of each wait before it starts.

        Raises:
            NoTimeToRetry: The next wait is longer than the time left. Its cause is the failure.
            RetryCancelled: ``pause`` returned False.

        """
        retry = 0
        while True:
            try:
                return attempt()
            except Exception as error:
                retry += 1
                decision = classify(error)
                if decision is None or retry > self.retries:
                    raise
                wait_s = (
                    0.0 if decision.at_once else max(self.backoff_s(retry), decision.after_s or 0.0)
                )
                if wait_s > left_s():
                    raise NoTimeToRetry(wait_s) from error
            on_retry(wait_s)
            if pause(wait_s) is False:
                raise RetryCancelled


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, or None if its headers don't say.

    ``Retry-After`` is a number of seconds or a date, which is in UTC (RFC 9110, 10.2.3 and 5.6.7).
    OpenAI's SDK also reads ``retry-after-ms``, so its servers may send that instead.
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
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=datetime.UTC)
    return max(0.0, (date - datetime.datetime.now(datetime.UTC)).total_seconds())


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
