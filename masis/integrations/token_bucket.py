"""How many requests a door takes: a token bucket, for the servers over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """``burst`` requests at once, and so many a second after that. To be used from one thread."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._most, self._clock = per_second, float(burst), clock
        self._left, self._at = float(burst), clock()

    def take(self) -> float:
        """Take one request; returns 0, or in how many seconds there is one."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate
