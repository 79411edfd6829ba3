"""One rate of calls for a provider across all workers, found by its refusals (HTTP 429).

``Permits`` is a plain object; the job makes one named actor of those of all addresses. ``ClusterGate`` is what calls
of a worker pass (``masis.llm.client.limits.Gate``).

Until the first refusal there is no limit but that of calls at once. Then calls go out evenly, a little below the rate
at which the provider answered, and nobody calls while it asks to wait. A rate that held for a while is tried a little
higher, step by step, until the next refusal.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

BELOW = 0.98
"""A refusal lowers the rate to this share of what was answered of late."""
LEAST_SHARE = 0.5
"""A refusal lowers the rate by half at most."""
LEAST_RATE = 0.1
"""Calls a second below which the rate does not fall."""
RISE = 1.02
"""How the rate rises each second while it is looked for."""
REMEMBERED_S = 20.0
"""For how long a rate that was too high is not tried again."""
NEAR = 0.98
"""How near to a rate that was refused is near enough to wait."""
ONE_EVENT_S = 1.0
"""Refusals within so many seconds of a lowering are of calls that were sent before it."""
MEASURED_S = 5.0
"""Seconds over which answers and refusals are counted."""
LONGEST_WAIT_S = 0.5
"""A caller that has to wait longer asks again: the rate may be another by then."""
LONGEST_HOLD_S = 30.0
"""For how long a refusal may keep everybody waiting, whatever the provider asks for."""


class Permits:
    """The permits of one provider. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rate: float | None = None
        self._refused_at_rate = 0.0
        self._quiet_until = self._held_until = self._lowered = self._risen = 0.0
        self._next = 0.0
        self._calls: deque[tuple[float, bool]] = deque()

    def take(self) -> tuple[bool, float]:
        """Ask for a permit; returns whether there is one, and the seconds to wait: before the call, or to ask again."""
        now = self._clock()
        if now < self._held_until:
            return False, min(self._held_until - now, LONGEST_WAIT_S)
        if self._rate is None:
            return True, 0.0
        self._rise(now, self._rate)
        turn = max(now, self._next)
        if turn - now > LONGEST_WAIT_S:
            return False, LONGEST_WAIT_S / 2  # back before the turns that are given run out, so that none is lost
        self._next = turn + 1.0 / self._rate
        return True, turn - now

    def answered(self) -> None:
        """Note a reply."""
        self._ended(True)

    def refused(self, retry_after_s: float | None) -> None:
        """Note a refusal: nobody calls for as long as the provider asks, and then at a lower rate."""
        now = self._clock()
        self._ended(False)
        if retry_after_s:
            self._held_until = max(self._held_until, now + min(retry_after_s, LONGEST_HOLD_S))
        if self._rate is not None and now - self._lowered < ONE_EVENT_S + (retry_after_s or 0.0):
            return
        answers = sum(answered for _, answered in self._calls)
        if self._rate is None:  # calls came in a burst: what was answered of it is a first guess, which rises from here
            self._rate, self._quiet_until = max(1.0, answers / max(1.0, now - self._calls[0][0])), now
        else:
            self._refused_at_rate, self._quiet_until = self._rate, now + REMEMBERED_S
            self._rate = max(self._rate * BELOW * max(answers / len(self._calls), LEAST_SHARE), LEAST_RATE)
        self._lowered = self._risen = now

    def rate(self) -> float | None:
        """Return the calls a second that are let through; None while there is no limit."""
        return self._rate

    def _rise(self, now: float, rate: float) -> None:
        """Let the rate rise once a second, up to where it was refused; past that when the refusal is forgotten."""
        if now - self._risen < 1.0:
            return
        self._risen = now
        near = rate >= NEAR * self._refused_at_rate
        if not near or now >= self._quiet_until:
            self._rate = rate * RISE

    def _ended(self, answered: bool) -> None:
        """Note a call, and forget those that are no longer of late."""
        now = self._clock()
        self._calls.append((now, answered))
        while now - self._calls[0][0] > MEASURED_S:
            self._calls.popleft()


class AllPermits:
    """The permits of every provider, by the address that is called: what the named actor is."""

    def __init__(self) -> None:
        self._permits: defaultdict[str, Permits] = defaultdict(Permits)

    def take(self, address: str) -> tuple[bool, float]:
        """See ``Permits.take``."""
        return self._permits[address].take()

    def answered(self, address: str) -> None:
        """See ``Permits.answered``."""
        self._permits[address].answered()

    def refused(self, address: str, retry_after_s: float | None) -> None:
        """See ``Permits.refused``."""
        self._permits[address].refused(retry_after_s)

    def rates(self) -> dict[str, float]:
        """Return the calls a second that are let through, by address, where there is a limit."""
        return {address: rate for address, each in self._permits.items() if (rate := each.rate()) is not None}


class Remote(Protocol):
    """The permits of an address, wherever they are kept."""

    def take(self) -> tuple[bool, float]:
        """See ``Permits.take``."""
        ...

    def answered(self) -> None:
        """See ``Permits.answered``."""
        ...

    def refused(self, retry_after_s: float | None) -> None:
        """See ``Permits.refused``."""
        ...


class ClusterGate:
    """The gate of one provider's calls in a worker: each try asks the permits that all workers share."""

    def __init__(self, permits: Remote, sleep: Callable[[float], Any] = time.sleep) -> None:
        self._permits, self._sleep = permits, sleep

    def enter(self, still: Callable[[], bool]) -> bool:
        """Wait for a permit as long as ``still`` says so; returns whether there is one."""
        while still():
            permitted, wait_s = self._permits.take()
            if wait_s > 0:
                self._sleep(wait_s)
            if permitted:
                return True
        return False

    def answered(self) -> None:
        """Note a reply."""
        self._permits.answered()

    def refused(self, retry_after_s: float | None) -> None:
        """Note a refusal."""
        self._permits.refused(retry_after_s)
