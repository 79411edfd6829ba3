"""The numbers and dates of all evidence, each value once with the passages that have it."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Day, Fact, agree, number, reach


class _Occurrences(NamedTuple):
    """A value with the indices of the passages that have it."""

    fact: Fact
    where: list[int]


class FactTable:
    """The passages that state the same fact; lookups are cached.

    Values that can agree lie near each other or begin alike, so that few need to be compared.
    """

    def __init__(self, found: list[Passage]) -> None:
        """`found` are the passages in order; the table refers to them by index."""
        self._passages = found
        self._same: dict[Hashable, list[int]] = {}

    def holders(self, fact: Fact, allowed: frozenset[int] | None) -> list[int]:
        """Return the passages (of the allowed documents) that have an agreeing number or date."""
        key = _key_fields(fact)
        same = self._same.get(key)
        if same is None:
            near = self._near_number(fact) if fact.kind == "number" else self._near_date(fact)
            same = self._same[key] = sorted(_agreeing(fact, near))
        return same if allowed is None else [i for i in same if self._passages[i].document in allowed]

    @cached_property
    def _values(self) -> dict[str, list[_Occurrences]]:
        by_key_fields: dict[Hashable, _Occurrences] = {}
        for i, passage in enumerate(self._passages):
            for fact in passage.facts:
                by_key_fields.setdefault(_key_fields(fact), _Occurrences(fact, [])).where.append(i)
        return {
            kind: [entry for entry in by_key_fields.values() if entry.fact.kind == kind] for kind in ("number", "date")
        }

    @cached_property
    def _numbers(self) -> tuple[list[float], list[_Occurrences]]:
        ordered = sorted(self._values["number"], key=lambda entry: number(entry.fact))
        return [number(entry.fact) for entry in ordered], ordered

    def _near_number(self, fact: Fact) -> Sequence[_Occurrences]:
        values, ordered = self._numbers
        value = number(fact)
        return ordered[bisect_left(values, value - reach(value)) : bisect_right(values, value + reach(value))]

    @cached_property
    def _dates(self) -> dict[int, list[_Occurrences]]:
        by_year: dict[int, list[_Occurrences]] = {}
        for entry in self._values["date"]:
            by_year.setdefault(_year(entry.fact), []).append(entry)
        return by_year

    def _near_date(self, fact: Fact) -> Sequence[_Occurrences]:
        year = _year(fact)
        return [*self._dates.get(year, ()), *self._dates.get(0, ())] if year else self._values["date"]


def _agreeing(fact: Fact, near: Iterable[_Occurrences]) -> set[int]:
    return {i for other, where in near if agree(fact, other) for i in where}


def _key_fields(fact: Fact) -> Hashable:
    """Return the fields that decide whether two facts agree, as a key."""
    return (fact.kind, fact.text, fact.value, fact.dimension, fact.digits)


def _year(fact: Fact) -> int:
    assert isinstance(fact.value, Day)
    return fact.value.year
