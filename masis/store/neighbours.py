"""The next and the previous case of a queue, from any case, also from one that no longer matches the filter.

A decision often takes a case out of the queue it was opened from (the queue shows what needs review, the case is now
approved). So neighbours are found by where the case stands in the order, not by its place on a page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, NamedTuple

from masis.store import queue
from masis.store.records import CaseFilter

MOST_LEFT_OUT = 500
"""Cases that can be left out by name; SQLite binds a bounded number of values."""


class _Order(NamedTuple):
    """What a queue is sorted by before the number of the case, which way each goes; ``walk`` has SQLite keep to it."""

    key: str | None
    walk: str = ""
    key_falls: bool = False
    number_falls: bool = False
    values: tuple[int, ...] = ()


def beside(connection: sqlite3.Connection, wanted: CaseFilter, seq: int, *, forward: bool) -> str | None:
    """The case behind (or before) number ``seq`` in the order of ``wanted``; its page and size don't matter."""
    found = queue.matching(connection, wanted)
    return _Search(connection, wanted, found, ()).beside(seq, forward=forward) if found.total else None


def following(connection: sqlite3.Connection, wanted: CaseFilter, seq: int, without: Collection[str]) -> str | None:
    """The case behind number ``seq`` that is none of ``without``; behind the last one, the first of all."""
    found = queue.matching(connection, wanted)
    if not found.total:
        return None
    search = _Search(connection, wanted, found, without)
    return search.beside(seq, forward=True) or search.beside(None, forward=True)


class _Search:
    """Looks along one queue."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: CaseFilter, found: queue.Matching, without: Collection[str]
    ) -> None:
        self.connection, self.order = connection, _order(wanted)
        walkable = wanted.order != "random" and (found.words is None or found.words.quick)
        narrowed = bool(found.filters or found.words)
        self.walks = walkable and queue.worth_walking(connection, found.total, 1, narrowed)
        self.where, self.values = queue.conditions(found.filters, found.words, probe=self.walks)
        if left_out := list(without)[-MOST_LEFT_OUT:]:
            self.where += f" AND id NOT IN ({', '.join('?' * len(left_out))})"
            self.values += left_out

    def beside(self, seq: int | None, *, forward: bool) -> str | None:
        """The first case behind (or before) number ``seq``; without a number, the first of all."""
        key, values = self.order.key, list[Any](self.order.values)
        number_falls = self.order.number_falls == forward
        # a plus sign keeps SQLite from walking the index of the order where sorting the few that match is shorter
        plus = "" if self.walks else "+"
        where, bound = self.where, [*self.values]
        by = f"{plus}seq {'DESC' if number_falls else 'ASC'}"
        past_number = f"seq {'<' if number_falls else '>'} ?"
        if key is None:
            if seq is not None:
                where, bound = f"{where} AND {past_number}", [*bound, seq]
            return self._first(where, bound, by)
        key_falls = self.order.key_falls == forward
        if seq is not None:
            sign = "<" if key_falls else ">"
            row = self.connection.execute(f"SELECT {key} FROM cases WHERE seq = ?", [*values, seq])  # noqa: S608
            own = row.fetchone()[0]
            where += f" AND {plus}{key} {sign}= ? AND ({plus}{key} {sign} ? OR {past_number})"
            bound += [*values, own, *values, own, seq]
        by = f"{plus}{key} {'DESC' if key_falls else 'ASC'}, {by.removeprefix('+')}"
        return self._first(where, [*bound, *values], by)

    def _first(self, where: str, values: list[Any], by: str) -> str | None:
        # without being told, SQLite often takes an index of the filter and sorts all that match
        index = self.order.walk if self.walks else ""
        row = self.connection.execute(
            f"SELECT id FROM cases {index} WHERE {where} ORDER BY {by} LIMIT 1",  # noqa: S608 (every name is ours)
            values,
        ).fetchone()
        return None if row is None else str(row["id"])


def _order(wanted: CaseFilter) -> _Order:
    match wanted.order:
        case "telling":
            return _Order("telling", "INDEXED BY cases_telling", key_falls=True)
        case "least_confident":
            return _Order("doubt", "INDEXED BY cases_doubt", key_falls=True)
        case "oldest":
            return _Order(None, "NOT INDEXED")
        case "newest":
            return _Order(None, "NOT INDEXED", number_falls=True)
        case "random":
            shuffle = queue.shuffle(wanted.seed)
            return _Order(f"({shuffle.sorted})", values=shuffle.values)
