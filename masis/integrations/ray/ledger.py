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
    """The work and the usage of the job so far.

    ``size`` is in bytes of the input, ``cost_usd`` only includes calls with a known price, and
    ``exhausted`` means that ``--max-cost`` is reached.
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
        """The number of rows that are audited, or set aside with their error."""
        return self.accepted + self.needs_review + self.failed


class SpentUsage(NamedTuple):
    """The usage of a finished audit. ``outcome`` is the name of its folder."""

    outcome: str
    incomplete: bool = False
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Ledger:
    """The shared state. ``tries`` is how often an audit may kill its worker, and ``max_cost`` is in
    US dollars.
    """

    def __init__(self, tries: int, max_cost: float | None) -> None:
        self._most_tries, self._max_cost = tries, max_cost
        self._starts: Counter[str] = Counter()
        self._tries: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._running: defaultdict[str, set[int]] = defaultdict(set)
        self._ended: defaultdict[str, dict[int, SpentUsage]] = defaultdict(dict)
        self._counts: Counter[str] = Counter()
        """The outcomes of completed shards, and the calls and tokens of all audits."""
        self._cost_usd, self._audits = 0.0, 0
        self._stopped = self._exhausted = False
        self._errors: list[str] = []

    def start(self, shard: str) -> int:
        """Begin a try at a shard and return its number. Audits of an earlier try are discarded."""
        self._starts[shard] += 1
        self._running.pop(shard, None)
        return self._starts[shard]

    def may_write(self, shard: str, number: int) -> bool:
        """Return whether this try is the newest one.

        A worker that Ray assumed dead must not overwrite the shard of its successor.
        """
        return self._starts[shard] == number

    def begin(self, shard: str, row: int, estimate_usd: float) -> tuple[Begin, int]:
        """Decide whether a row may be audited. Returns the decision and the number of tries,
        including this one.
        """
        tries = self._tries[shard]
        if not self._stopped and tries[row] >= self._most_tries:
            return "set_aside", tries[row]
        over = False
        if self._max_cost is not None:
            # Audits in progress haven't reported their cost yet, so count them with the mean.
            mean = self._cost_usd / self._audits if self._audits else estimate_usd
            unreported = 1 + sum(map(len, self._running.values()))
            over = self._cost_usd + unreported * mean > self._max_cost
            self._exhausted |= over
        if self._stopped or over:
            return "stop", tries[row]
        self._running[shard].add(row)
        tries[row] += 1
        return "audit", tries[row]

    def record_end(self, shard: str, row: int, spent: SpentUsage | None, error: str = "") -> None:
        """Record the end of an audit. ``spent`` is None if it raised and will be tried again."""
        self._running[shard].discard(row)
        if spent is None:
            return
        if error and len(self._errors) < _MESSAGES:
            self._errors.append(error)
        self._ended[shard][row] = spent
        self._audits += spent.calls > 0 or not error
        self._cost_usd += spent.cost_usd
        self._counts.update(calls=spent.calls, tokens=spent.tokens)

    def complete(self, shard: str, size: int) -> None:
        """Record a completed shard, with its bytes of the input."""
        self._counts.update(_count_outcomes(self._ended[shard]), size=size)
        # Only counts are kept, so the ledger's memory doesn't grow with the input.
        for by_shard in (self._running, self._tries, self._ended):
            by_shard.pop(shard, None)

    def stop(self) -> None:
        """Stop further audits from beginning."""
        self._stopped = True

    def totals(self) -> Totals:
        """Return the totals so far. A row that was audited twice counts once, but costs twice."""
        counts = sum(map(_count_outcomes, self._ended.values()), self._counts)
        return Totals(**counts, cost_usd=self._cost_usd, exhausted=self._exhausted)

    def errors(self) -> list[str]:
        """Return the messages since the previous call, oldest first."""
        errors, self._errors = self._errors, []
        return errors


def _count_outcomes(ended: Mapping[int, SpentUsage]) -> Counter[str]:
    audits = ended.values()
    return Counter(spent.outcome for spent in audits) + Counter(
        incomplete=sum(spent.incomplete for spent in audits)
    )
