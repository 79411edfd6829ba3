"""How many calls may be under way at one address, in the whole process; first come, first served."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable

LOOK_AGAIN_S = 0.1
"""How often a waiting call asks whether it should still wait."""
LONGEST_HOLD_S = 10.0
"""For how long a server that has too many calls may keep all others waiting, whatever it asks for."""


class Limiter:
    """A limit on calls under way. Safe to use from several threads; ``most`` may be changed while in use."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[threading.Event] = collections.deque()
        self._most = most
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
            self._most = most
            self._wake()

    def take_at_once(self) -> bool:
        """A place, if one is free (which it is not while somebody waits); to be handed back with ``give``."""
        with self._lock:
            free = self._free()
            self._under_way += free
            return free

    def take(self, still: Callable[[], bool]) -> bool:
        """Wait for a place, as long as ``still`` says so; whether there is one, to be handed back with ``give``."""
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
        """Let no further call begin for so long: the server has too many, and said how long it wants to have fewer."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + min(seconds, LONGEST_HOLD_S))

    @property
    def held(self) -> bool:
        """Whether no call may begin at the moment."""
        return time.monotonic() < self._held_until

    def _free(self) -> bool:
        return self._under_way < self._most and not self.held

    def _wake(self) -> None:
        while self._waiting and self._free():
            self._under_way += 1
            self._waiting.popleft().set()


_lock = threading.Lock()
_limiters: dict[str, Limiter] = {}


def limiter(address: str, most: int) -> Limiter:
    """The limiter of an address, the same for all that call it; the last ``most`` asked for holds."""
    with _lock:
        found = _limiters.get(address)
        if found is None:
            found = _limiters[address] = Limiter(most)
    if found.most != most:
        found.most = most
    return found
