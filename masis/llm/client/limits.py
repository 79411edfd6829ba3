"""How many calls may be under way at one address, in the whole process; first come,
first served.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from statistics import median

LOOK_AGAIN_S = 0.1
"""How often a waiting call asks whether it should still wait."""
LONGEST_HOLD_S = 10.0
"""For how long a server that has too many calls may keep all others waiting, whatever
it asks for.
"""


SLOWER = 1.5
"""A server has no room for more at once where replies take so many times as long as the same kind
of call alone.
"""
SAMPLES_LEAST = 3
"""Replies at one limit that are timed before the limit moves; twice the limit where
that is more.
"""
REMEMBERED = 50
"""Replies after which a limit that was too high is tried again."""


class Limiter:
    """A limit on calls under way. Safe to use from several threads; ``most`` may be changed while
    in use.

    With ``adapts`` it begins with one call at a time and finds out how many the server serves side
    by side: it doubles while replies take no longer than alone, goes back to what it was where they
    do, from then on grows by one, and halves after a timeout; ``most`` is never passed. Every
    limiter halves after a timeout and grows back, since a server that queues calls lets them all
    run out of time.
    """

    def __init__(self, most: int, *, adapts: bool = False) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[threading.Event] = collections.deque()
        self._most = most
        self._adapts = adapts
        self.now = 1 if adapts else most
        """How many calls may be under way at the moment."""
        self._alone_s: dict[str, float] = {}
        self._took: list[tuple[str, float]] = []
        self._doubles, self._before = True, 1
        self._ceiling, self._until_next_try = most, 0
        self._under_way = 0
        self._held_until = 0.0

    @property
    def most(self) -> int:
        """How many calls may be under way."""
        return self._most

    @most.setter
    def most(self, most: int) -> None:
        """Let so many be under way from now on; those that are go on."""
        with self._lock:
            self.now = min(self.now, most) if self._adapts or self.now != self._most else most
            self._most = self._ceiling = most
            self._wake()

    def record_reply(self, seconds: float, kind: str = "") -> None:
        """Note how long a reply took that came; replies are held against those of the same kind
        alone.
        """
        with self._lock:
            self._until_next_try -= 1
            if self._until_next_try <= 0:
                self._ceiling = self._most
            if self.now == self._most and not self._adapts:
                return
            self._took.append((kind, seconds))
            if len(self._took) >= max(SAMPLES_LEAST, 2 * self.now):
                self._move()
                self._wake()

    def timed_out(self) -> None:
        """Note that no reply came in time: half as many calls at once from now on."""
        with self._lock:
            self._doubles = False
            self._set_limit(max(1, self.now // 2), too_high=True)

    def _move(self) -> None:
        """Set the limit by how long replies took at the one so far."""
        if self.now == 1:
            took: dict[str, list[float]] = collections.defaultdict(list)
            for kind, seconds in self._took:
                took[kind].append(seconds)
            self._alone_s |= {kind: median(each) for kind, each in took.items()}
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
        """A place, if one is free (which it is not while somebody waits); to be handed back with
        ``give``.
        """
        with self._lock:
            free = self._free()
            self._under_way += free
            return free

    def take(self, still: Callable[[], bool]) -> bool:
        """Wait for a place, as long as ``still`` says so; whether there is one, to be handed back
        with ``give``.
        """
        if self.take_at_once():
            return True
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._wake()
        while not turn.wait(LOOK_AGAIN_S):
            with self._lock:
                self._wake()
            if still():
                continue
            with self._lock:
                if turn.is_set():  # the place came in the same moment: hand it on
                    self._under_way -= 1
                    self._wake()
                else:
                    self._waiting.remove(turn)
            return False
        return True

    def give(self) -> None:
        """The call is over: its place goes to the one that waits longest."""
        with self._lock:
            self._under_way -= 1
            self._wake()

    def hold(self, seconds: float) -> None:
        """Let no further call begin for so long: the server has too many, and said how long it
        wants to have fewer.
        """
        with self._lock:
            self._held_until = max(
                self._held_until, time.monotonic() + min(seconds, LONGEST_HOLD_S)
            )

    @property
    def is_holding(self) -> bool:
        """Whether no call may begin at the moment."""
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
    """The limiter of an address, the same for all that call it; the last ``most`` asked
    for holds.
    """
    with _lock:
        found = _limiters.get(address)
        if found is None:
            found = _limiters[address] = Limiter(most, adapts=adapts)
    if found.most != most:
        found.most = most
    return found
