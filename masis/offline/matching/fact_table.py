"""The numbers and dates of all evidence, each value once with the passages that have it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Day, Fact, agree, number, reach

_Key = tuple[str, str, float | Day, str, int]
"""What decides whether two facts agree: kind, text, value, dimension and digits."""


class _Occurrences(NamedTuple):
    """A value with the indices of the passages that have it."""

    fact: Fact
    where: list[int]


class FactTable:
    """The passages that state the same fact; lookups are cached."""

    def __init__(self, found: Sequence[Passage]) -> None:
        """`found` are the passages in order; the table refers to them by index."""
        self._passages = found
        self._same: dict[_Key, list[int]] = {}

    def holders(self, fact: Fact, allowed: frozenset[int] | None) -> list[int]:
        """Return the passages (of the allowed documents) that have an agreeing number or date."""
        key = _key(fact)
        same = self._same.get(key)
        if same is None:
            near = self._near(fact) if fact.kind == "number" else self._values["date"]
            same = self._same[key] = sorted({i for other in near if agree(fact, other.fact) for i in other.where})
        return same if allowed is None else [i for i in same if self._passages[i].document in allowed]

    @cached_property
    def _values(self) -> dict[str, list[_Occurrences]]:
        by_key: dict[_Key, _Occurrences] = {}
        for i, passage in enumerate(self._passages):
            for fact in passage.facts:
                by_key.setdefault(_key(fact), _Occurrences(fact, [])).where.append(i)
        found = {kind: [entry for entry in by_key.values() if entry.fact.kind == kind] for kind in ("number", "date")}
        found["number"].sort(key=lambda entry: number(entry.fact))
        return found

    def _near(self, fact: Fact) -> Sequence[_Occurrences]:
        """Return the numbers close enough to agree: of many thousands, few need to be compared."""
        ordered, value = self._values["number"], number(fact)
        first = bisect_left(ordered, value - reach(value), key=lambda entry: number(entry.fact))
        last = bisect_right(ordered, value + reach(value), key=lambda entry: number(entry.fact))
        return ordered[first:last]


def _key(fact: Fact) -> _Key:
    return (fact.kind, fact.text, fact.value, fact.dimension, fact.digits)
