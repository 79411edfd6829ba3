"""The state that all workers of a job share: shard ownership, spending, and cases that killed a
worker.

The ledger is a plain object. The job makes an actor of it, which lives on the driver's node and
ends with the driver.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Literal, NamedTuple

Begin = Literal["audit", "stop", "set_aside"]
_MESSAGES = 100


class Totals(NamedTuple):
    """What the job has done so far; ``size`` in bytes of the input, ``cost_usd`` of what has a
    price.

    ``exhausted`` says that ``--max-cost`` lets no further audit begin.
    """

    accepted: int = 0
    needs_review: int = 0
    failed: int = 0
    incomplete: int = 0
    size: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    exhausted: bool = False

    @property
    def cases(self) -> int:
        """How many rows are written: audited, or set aside with their error."""
        return self.accepted + self.needs_review + self.failed


class SpentUsage(NamedTuple):
    """What an audit that ended used; ``outcome`` is its folder's."""

    outcome: str
    incomplete: bool = False
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Ledger:
    """See the module. ``tries`` is how often an audit may end its worker, ``max_cost`` in US
    dollars.
    """

    def __init__(self, tries: int, max_cost: float | None) -> None:
        self._most_tries, self._max_cost = tries, max_cost
        self._starts: Counter[str] = Counter()
        self._tries: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._under_way: defaultdict[str, set[int]] = defaultdict(set)
        self._ended: defaultdict[str, dict[int, SpentUsage]] = defaultdict(dict)
        self._counts: Counter[str] = Counter()
        """Of shards that are complete; calls, tokens and cost of all that was audited."""
        self._cost_usd, self._audits = 0.0, 0
        self._stopped = self._exhausted = False
        self._errors: list[str] = []

    def start(self, shard: str) -> int:
        """Begin a try at a shard and return its number. The worker of an earlier one is gone, with
        its audits.
        """
        self._starts[shard] += 1
        self._under_way.pop(shard, None)
        return self._starts[shard]

    def may_write(self, shard: str, number: int) -> bool:
        """Return whether this try is the newest one: a worker that was taken for dead must not
        write over another.
        """
        return self._starts[shard] == number

    def begin(self, shard: str, row: int, estimate_usd: float) -> tuple[Begin, int]:
        """Ask to audit a row; returns what to do, and how often it was begun, this time
        included.
        """
        tries = self._tries[shard]
        if not self._stopped and tries[row] >= self._most_tries:
            return "set_aside", tries[row]
        over = False
        if self._max_cost is not None:
            each = self._cost_usd / self._audits if self._audits else estimate_usd
            costing = 1 + sum(map(len, self._under_way.values()))
            over = self._cost_usd + costing * each > self._max_cost
            self._exhausted |= over
        if self._stopped or over:
            return "stop", tries[row]
        self._under_way[shard].add(row)
        tries[row] += 1
        return "audit", tries[row]

    def record_end(self, shard: str, row: int, spent: SpentUsage | None, error: str = "") -> None:
        """Note that an audit came to its end; ``spent`` is None where it raised and is
        begun again.
        """
        self._under_way[shard].discard(row)
        if spent is None:
            return
        if error and len(self._errors) < _MESSAGES:
            self._errors.append(error)
        self._ended[shard][row] = spent
        self._audits += spent.calls > 0 or not error
        self._cost_usd += spent.cost_usd
        self._counts.update(calls=spent.calls, tokens=spent.tokens)

    def complete(self, shard: str, size: int) -> None:
        """Note that a shard is complete, and how many bytes of the input that was."""
        self._counts.update(_count_outcomes(self._ended[shard]), size=size)
        for held in (self._under_way, self._tries, self._ended):
            held.pop(shard, None)

    def stop(self) -> None:
        """Let no further audit begin."""
        self._stopped = True

    def totals(self) -> Totals:
        """Return what is done so far; a row that is audited a second time counts once, and costs
        twice.
        """
        counts = sum(map(_count_outcomes, self._ended.values()), self._counts)
        return Totals(**counts, cost_usd=self._cost_usd, exhausted=self._exhausted)

    def errors(self) -> list[str]:
        """Return the messages since the last time, oldest first."""
        taken, self._errors = self._errors, []
        return taken


def _count_outcomes(ended: Mapping[int, SpentUsage]) -> Counter[str]:
    found = ended.values()
    return Counter(each.outcome for each in found) + Counter(
        incomplete=sum(each.incomplete for each in found)
    )
