"""What all workers of a job share: who writes which shard, what is spent, and which cases ended a worker.

A plain object; the job makes an actor of it, which lives on the driver's node and ends with the driver.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

Begin = Literal["audit", "stop", "set_aside"]


class Begun(NamedTuple):
    """A try at a shard: its number, and the rows that were under way when an earlier try ended without writing."""

    token: int
    suspects: tuple[int, ...]


class Totals(NamedTuple):
    """What the job has done so far; ``size`` in bytes of the input, ``cost_usd`` of what has a price.

    ``exhausted`` says that ``--max-cost`` lets no further audit begin.
    """

    accepted: int = 0
    needs_review: int = 0
    failed: int = 0
    incomplete: int = 0
    size: int = 0
    shards: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    exhausted: bool = False

    @property
    def cases(self) -> int:
        """How many rows are written: audited, or set aside with their error."""
        return self.accepted + self.needs_review + self.failed


class Spent(NamedTuple):
    """What an audit that ended used; ``outcome`` is its folder's."""

    outcome: str
    incomplete: bool = False
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Ledger:
    """See the module. ``tries`` is how often an audit may end its worker, ``max_cost`` in US dollars."""

    def __init__(self, tries: int, max_cost: float | None) -> None:
        self._most_tries, self._max_cost = tries, max_cost
        self._tokens: Counter[str] = Counter()
        self._under_way: dict[str, Counter[int]] = {}
        self._costing = self._ended = 0
        self._counts: Counter[str] = Counter()
        self._unwritten: dict[str, Counter[str]] = {}
        self._cost = 0.0
        self._stopped = self._exhausted = False
        self._errors: list[str] = []

    def start(self, shard: str) -> Begun:
        """Begin a try at a shard. Audits of an earlier one no longer count as under way: its worker is gone."""
        self._tokens[shard] += 1
        rows = self._under_way.setdefault(shard, Counter())
        if self._tokens[shard] > 1:
            self._costing -= min(len(rows), self._costing)
            self._counts.subtract(self._unwritten.pop(shard, Counter()))
        return Begun(self._tokens[shard], tuple(sorted(rows)))

    def may_write(self, shard: str, token: int) -> bool:
        """Return whether this try is the newest one: a worker that was taken for dead must not write over another."""
        return self._tokens[shard] == token

    def begin(self, shard: str, row: int, estimate_usd: float) -> tuple[Begin, int]:
        """Ask to audit a row; returns what to do, and how often it was begun, this time included."""
        rows = self._under_way.setdefault(shard, Counter())
        if self._stopped:
            return "stop", rows[row]
        if rows[row] >= self._most_tries:
            return "set_aside", rows[row]
        if self._max_cost is not None:
            each = self._cost / self._ended if self._ended else estimate_usd
            if self._cost + (self._costing + 1) * each > self._max_cost:
                self._exhausted = True
                return "stop", rows[row]
        self._costing += 1
        rows[row] += 1
        return "audit", rows[row]

    def ended(self, shard: str, row: int, spent: Spent) -> None:
        """Note that an audit came to its end, however that was."""
        self._under_way.get(shard, Counter()).pop(row, None)
        self._costing = max(0, self._costing - 1)
        self._ended += 1
        self._cost += spent.cost_usd
        self._count(shard, spent.outcome, incomplete=spent.incomplete)
        self._counts["calls"] += spent.calls
        self._counts["tokens"] += spent.tokens

    def again(self, shard: str) -> None:
        """Note that an audit raised and is begun again."""
        self._costing = max(0, self._costing - 1)

    def set_aside(self, shard: str, row: int, error: str) -> None:
        """Note a row that is written with its error and was not audited."""
        self._under_way.get(shard, Counter()).pop(row, None)
        self._count(shard, "failed")
        self.failed(error)

    def failed(self, error: str) -> None:
        """Keep a message for the person who waits, up to a limit."""
        if len(self._errors) < _MESSAGES:
            self._errors.append(error)

    def written(self, shard: str) -> None:
        """Note that what ended is written: it will not be audited again."""
        self._unwritten.pop(shard, None)

    def complete(self, shard: str, size: int) -> None:
        """Note that a shard is complete, and how many bytes of the input that was."""
        self._under_way.pop(shard, None)
        self._counts["size"] += size
        self._counts["shards"] += 1

    def _count(self, shard: str, outcome: str, *, incomplete: bool = False) -> None:
        more = Counter({outcome: 1, "incomplete": int(incomplete)})
        self._counts.update(more)
        self._unwritten.setdefault(shard, Counter()).update(more)

    def stop(self) -> None:
        """Let no further audit begin."""
        self._stopped = True

    def totals(self) -> Totals:
        """Return what is done so far."""
        names = ("accepted", "needs_review", "failed", "incomplete", "size", "shards", "calls", "tokens")
        return Totals(**{name: self._counts[name] for name in names}, cost_usd=self._cost, exhausted=self._exhausted)

    def errors(self) -> list[str]:
        """Return the messages since the last time, oldest first."""
        taken, self._errors = self._errors, []
        return taken


_MESSAGES = 100
