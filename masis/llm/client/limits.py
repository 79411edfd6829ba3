"""Limits how many calls run at once at one address, for the whole process, in order of arrival."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from statistics import median

POLL_S = 0.1
"""How often, in seconds, a waiting call checks whether it should still wait."""
LONGEST_PAUSE_S = 10.0
"""The longest time that an overloaded server may block all calls, even if it asks for more."""


SLOWDOWN = 1.5
"""A server is at its capacity if replies take this many times as long as the same kind of call
alone.
"""
MIN_SAMPLES = 3
"""The replies measured at one limit before it changes; twice the limit if that is more."""
RETRY_LIMIT_AFTER = 50
"""The number of replies after which a limit that was too high is tried again."""


class Limiter:
    """Limits the number of concurrent calls; thread-safe, and ``maximum`` may change while in use.

    With ``adapts`` it starts with one call at a time and finds out how many the server handles in
    parallel. The limit doubles while replies are as fast as a call alone, returns to its previous
    value when they get slower, and grows by one from then on. It never exceeds ``maximum``. Every
    limiter halves after a timeout and grows back, because a server that queues calls lets all of
    them time out.
    """

    def __init__(self, maximum: int, *, adapts: bool = False) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[threading.Event] = collections.deque()
        self._maximum = maximum
        self._adapts = adapts
        self.current = 1 if adapts else maximum
        """The number of calls that may currently run at once."""
        self._alone_s: dict[str, float] = {}
        self._reply_times: list[tuple[str, float]] = []
        self._doubles, self._previous = True, 1
        self._ceiling, self._until_next_try = maximum, 0
        self._running = 0
        self._paused_until = 0.0

    @property
    def maximum(self) -> int:
        """The highest number of calls that may run at once."""
        return self._maximum

    @maximum.setter
    def maximum(self, maximum: int) -> None:
        """Change the highest number of concurrent calls; running calls continue."""
        with self._lock:
            # A limit that was lowered by timeouts stays low. Only one that was at the old maximum
            # follows the new one.
            follows_maximum = not self._adapts and self.current == self._maximum
            self.current = maximum if follows_maximum else min(self.current, maximum)
            self._maximum = self._ceiling = maximum
            self._wake()

    def record_reply(self, seconds: float, kind: str = "") -> None:
        """Record how long a reply took; it is compared only with replies of the same kind."""
        with self._lock:
            self._until_next_try -= 1
            if self._until_next_try <= 0:
                self._ceiling = self._maximum
            # A limiter that is at its maximum and doesn't adapt has nothing to measure.
            if self.current == self._maximum and not self._adapts:
                return
            self._reply_times.append((kind, seconds))
            # At a limit of n, the first n replies were still measured while the number of calls
            # grew. Waiting for twice as many leaves at least half of them at the full load.
            if len(self._reply_times) >= max(MIN_SAMPLES, 2 * self.current):
                self._adjust()
                self._wake()

    def timed_out(self) -> None:
        """Record a timeout and halve the number of concurrent calls."""
        with self._lock:
            self._doubles = False
            self._set_limit(max(1, self.current // 2), too_high=True)

    def _adjust(self) -> None:
        """Adjust the limit by the reply times measured at the current limit."""
        if self.current == 1:
            seconds_by_kind: dict[str, list[float]] = collections.defaultdict(list)
            for kind, seconds in self._reply_times:
                seconds_by_kind[kind].append(seconds)
            self._alone_s |= {kind: median(times) for kind, times in seconds_by_kind.items()}
        # Each reply is compared with its own kind, since a critique always takes longer than a
        # claim.
        slowdowns = [
            seconds / self._alone_s[kind]
            for kind, seconds in self._reply_times
            if self._alone_s.get(kind)
        ]
        if self.current > 1 and slowdowns and median(slowdowns) > SLOWDOWN:
            previous = self._previous if self._doubles else self.current - 1
            self._doubles = False
            self._set_limit(previous, too_high=True)
        else:
            self._previous = self.current
            self._set_limit(
                min(2 * self.current if self._doubles else self.current + 1, self._ceiling)
            )

    def _set_limit(self, limit: int, *, too_high: bool = False) -> None:
        self.current = limit
        self._reply_times.clear()
        if too_high:
            self._ceiling, self._until_next_try = limit, RETRY_LIMIT_AFTER

    def try_acquire(self) -> bool:
        """Acquire a slot if one is free and no call is waiting; call ``release`` afterwards."""
        with self._lock:
            is_free = self._free()
            self._running += is_free
            return is_free

    def acquire(self, still_wanted: Callable[[], bool]) -> bool:
        """Wait for a slot while ``still_wanted`` returns true, and return whether one was acquired.

        Call ``release`` afterwards.
        """
        if self.try_acquire():
            return True
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._wake()
        # A pause ends by the clock and not by an event, so each waiting call checks for it itself.
        while not turn.wait(POLL_S):
            with self._lock:
                self._wake()
            if still_wanted():
                continue
            with self._lock:
                # _wake() may have handed the slot over between the timeout of wait() and this lock.
                if turn.is_set():
                    self._running -= 1
                    self._wake()
                else:
                    self._waiting.remove(turn)
            return False
        return True

    def release(self) -> None:
        """Release a slot and hand it to the call that has waited longest."""
        with self._lock:
            self._running -= 1
            self._wake()

    def pause(self, seconds: float) -> None:
        """Start no new call for this many seconds, because the server reported that it is
        overloaded.
        """
        with self._lock:
            self._paused_until = max(
                self._paused_until, time.monotonic() + min(seconds, LONGEST_PAUSE_S)
            )

    @property
    def is_paused(self) -> bool:
        """Whether new calls are currently paused."""
        return time.monotonic() < self._paused_until

    def _free(self) -> bool:
        return self._running < self.current and not self.is_paused

    def _wake(self) -> None:
        while self._waiting and self._free():
            self._running += 1
            self._waiting.popleft().set()


_lock = threading.Lock()
_limiters: dict[str, Limiter] = {}


def limiter(address: str, maximum: int, *, adapts: bool = False) -> Limiter:
    """Return the limiter that all callers of an address share; the ``maximum`` of the latest call
    applies.
    """
    with _lock:
        shared = _limiters.get(address)
        if shared is None:
            shared = _limiters[address] = Limiter(maximum, adapts=adapts)
    if shared.maximum != maximum:
        shared.maximum = maximum
    return shared
