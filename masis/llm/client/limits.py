"""Limits how many calls run at once at one address, for the whole process, in order of arrival."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from statistics import median

LOOK_AGAIN_S = 0.1
"""How often, in seconds, a waiting call checks whether it should still wait."""
LONGEST_HOLD_S = 10.0
"""The longest time that an overloaded server may block all calls, even if it asks for more."""


SLOWER = 1.5
"""A server is at its capacity when replies take this many times as long as the same kind of call
alone.
"""
SAMPLES_LEAST = 3
"""Replies timed at one limit before the limit moves; twice the limit if that is more."""
REMEMBERED = 50
"""The number of replies after which a limit that was too high is tried again."""


class Limiter:
    """Limits the number of concurrent calls; thread-safe, and ``most`` may be changed while in use.

    With ``adapts`` it starts with one call at a time and finds out how many the server handles in
    parallel. The limit doubles while replies are as fast as a call alone, returns to its previous
    value when they get slower, and grows by one from then on. It never exceeds ``most``. Every
    limiter halves after a timeout and grows back, because a server that queues calls lets all of
    them time out.
    """

    def __init__(self, most: int, *, adapts: bool = False) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[threading.Event] = collections.deque()
        self._most = most
        self._adapts = adapts
        self.now = 1 if adapts else most
        """The number of calls that may currently run at once."""
        self._alone_s: dict[str, float] = {}
        self._took: list[tuple[str, float]] = []
        self._doubles, self._before = True, 1
        self._ceiling, self._until_next_try = most, 0
        self._under_way = 0
        self._held_until = 0.0

    @property
    def most(self) -> int:
        """The highest number of calls that may run at once."""
        return self._most

    @most.setter
    def most(self, most: int) -> None:
        """Change the highest number of concurrent calls; running calls continue."""
        with self._lock:
            # A limit that was lowered by timeouts stays low. Only one that was at the old maximum
            # follows the new one.
            self.now = min(self.now, most) if self._adapts or self.now != self._most else most
            self._most = self._ceiling = most
            self._wake()

    def record_reply(self, seconds: float, kind: str = "") -> None:
        """Record how long a reply took; it is compared only with replies of the same kind."""
        with self._lock:
            self._until_next_try -= 1
            if self._until_next_try <= 0:
                self._ceiling = self._most
            # A limiter that is at its maximum and doesn't adapt has nothing to measure.
            if self.now == self._most and not self._adapts:
                return
            self._took.append((kind, seconds))
            # At a limit of n, the first n replies were still measured while the number of calls
            # grew. Waiting for twice as many leaves at least half of them at the full load.
            if len(self._took) >= max(SAMPLES_LEAST, 2 * self.now):
                self._move()
                self._wake()

    def timed_out(self) -> None:
        """Record a timeout and halve the number of concurrent calls."""
        with self._lock:
            self._doubles = False
            self._set_limit(max(1, self.now // 2), too_high=True)

    def _move(self) -> None:
        """Adjust the limit by the reply times measured at the current limit."""
        if self.now == 1:
            took: dict[str, list[float]] = collections.defaultdict(list)
            for kind, seconds in self._took:
                took[kind].append(seconds)
            self._alone_s |= {kind: median(times) for kind, times in took.items()}
        # Each reply is compared with its own kind, since a critique always takes longer than a
        # claim.
        slower = [
            seconds / self._alone_s[kind] for kind, seconds in self._took if self._alone_s.get(kind)
        ]
        if self.now > 1 and slower and median(slower) > SLOWER:
            back = self._before if self._doubles else self.now - 1
            self._doubles = False
            self._set_limit(back, too_high=True)
        else:
            self._before = self.now
            self._set_limit(min(2 * self.now if self._doubles else self.now + 1, self._ceiling))

    def _set_limit(self, now: int, *, too_high: bool = False) -> None:
        self.now = now
        self._took.clear()
        if too_high:
            self._ceiling, self._until_next_try = now, REMEMBERED

    def take_at_once(self) -> bool:
        """Acquire a slot if one is free and no other call is waiting; release it with ``give``."""
        with self._lock:
            free = self._free()
            self._under_way += free
            return free

    def take(self, still: Callable[[], bool]) -> bool:
        """Wait for a slot while ``still`` returns true, and return whether one was acquired;
        release it with ``give``.
        """
        if self.take_at_once():
            return True
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._wake()
        # A hold ends by the clock and not by an event, so each waiting call checks for it itself.
        while not turn.wait(LOOK_AGAIN_S):
            with self._lock:
                self._wake()
            if still():
                continue
            with self._lock:
                # _wake() may have handed the slot over between the timeout of wait() and this lock.
                if turn.is_set():
                    self._under_way -= 1
                    self._wake()
                else:
                    self._waiting.remove(turn)
            return False
        return True

    def give(self) -> None:
        """Release a slot and hand it to the call that has waited longest."""
        with self._lock:
            self._under_way -= 1
            self._wake()

    def hold(self, seconds: float) -> None:
        """Start no new call for this many seconds, because the server reported that it is
        overloaded.
        """
        with self._lock:
            self._held_until = max(
                self._held_until, time.monotonic() + min(seconds, LONGEST_HOLD_S)
            )

    @property
    def is_holding(self) -> bool:
        """Whether new calls are currently on hold."""
        return time.monotonic() < self._held_until

    def _free(self) -> bool:
        return self._under_way < self.now and not self.is_holding

    def _wake(self) -> None:
        while self._waiting and self._free():
            self._under_way += 1
            self._waiting.popleft().set()


_lock = threading.Lock()
_limiters: dict[str, Limiter] = {}


def limiter(address: str, most: int, *, adapts: bool = False) -> Limiter:
    """Return the limiter that all callers of an address share; the ``most`` of the latest call
    applies.
    """
    with _lock:
        found = _limiters.get(address)
        if found is None:
            found = _limiters[address] = Limiter(most, adapts=adapts)
    if found.most != most:
        found.most = most
    return found
