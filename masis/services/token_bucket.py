"""A token bucket that limits the request rate of the HTTP servers."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """Allows ``burst`` requests at once and ``per_second`` after that. Not thread-safe."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._most, self._clock = per_second, float(burst), clock
        self._left, self._at = float(burst), clock()

    def take(self) -> float:
        """Count one request. Returns 0 if it's allowed, otherwise the seconds until the next one
        is.
        """
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate
