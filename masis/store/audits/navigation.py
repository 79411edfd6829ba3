"""The next and the previous case of a queue, from any case, also from one that no longer matches the filter.

A decision often takes a case out of the queue it was opened from (the queue shows what needs review, the case is now
approved). So neighbours are found by where the case stands in the order, not by its place on a page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, NamedTuple

from masis.store.audits import queue
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


class _Behind(NamedTuple):
    """Which cases stand on one side of another one, in SQL, and the values it binds."""

    sql: str
    values: list[Any]


class _Search:
    """Looks along one queue."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: CaseFilter, found: queue.Matching, without: Collection[str]
    ) -> None:
        self.connection, self.order, self.found = connection, _order(wanted), found
        self.narrowed = bool(found.filters or found.words)
        self.walks = wanted.order != "random" and queue.worth_walking(connection, found, 1)
        self.left_out = list(without)[-MOST_LEFT_OUT:]

    def beside(self, seq: int | None, *, forward: bool) -> str | None:
        """The first case behind (or before) number ``seq``; without a number, the first of all."""
        if self.walks:
            further = self._behind(seq, forward)
            end = self._end(further, forward) if self.narrowed else None
            upto = self._behind(end, not forward) if end is not None else _Behind("1", [])
            found = self._first(further, upto, forward, walks=True)
            if found is not None or end is None:
                return found
        return self._first(self._behind(seq, forward), _Behind("1", []), forward, walks=False)

    def _behind(self, seq: int | None, forward: bool) -> _Behind:
        """Which cases stand behind (or before) number ``seq``."""
        key, values = self.order.key, list[Any](self.order.values)
        past_number = f"seq {'<' if self.order.number_falls == forward else '>'} ?"
        if seq is None:
            return _Behind("1", [])
        if key is None:
            return _Behind(past_number, [seq])
        sign = "<" if self.order.key_falls == forward else ">"
        own = self.connection.execute(f"SELECT {key} FROM cases WHERE seq = ?", [*values, seq]).fetchone()[0]  # noqa: S608
        return _Behind(f"{key} {sign}= ? AND ({key} {sign} ? OR {past_number})", [*values, own, *values, own, seq])

    def _by(self, forward: bool) -> str:
        key, number = self.order.key, f"seq {'DESC' if self.order.number_falls == forward else 'ASC'}"
        return f"{key} {'DESC' if self.order.key_falls == forward else 'ASC'}, {number}" if key else number

    def _end(self, further: _Behind, forward: bool) -> int | None:
        """The number of the case where a walk is given up: what matches may all stand at the far end of the order."""
        row = self.connection.execute(
            f"SELECT seq FROM cases {self.order.walk} WHERE {further.sql} "  # noqa: S608 (every name is ours)
            f"ORDER BY {self._by(forward)} LIMIT 1 OFFSET ?",
            [*further.values, queue.reach(self.found)],
        ).fetchone()
        return None if row is None else int(row[0])

    def _first(self, further: _Behind, upto: _Behind, forward: bool, *, walks: bool) -> str | None:
        where, values = queue.conditions(self.found.filters, self.found.words, probe=walks)
        left_out = f" AND id NOT IN ({', '.join('?' * len(self.left_out))})" if self.left_out else ""
        # Left alone, SQLite often takes an index of the filter and sorts all that match where walking is shorter, and
        # walks along the order where sorting the few that match is: so either the walk is told, or what matches.
        source, rest = f"cases {self.order.walk}", f"{where} AND "
        if self.order.walk and not walks:
            source, rest = f"(SELECT seq, id, disagreement, doubt FROM cases WHERE {where} LIMIT -1)", ""  # noqa: S608
        key_values = self.order.values if self.order.key else ()
        row = self.connection.execute(
            f"SELECT id FROM {source} WHERE {rest}{further.sql} AND {upto.sql}{left_out} "  # noqa: S608
            f"ORDER BY {self._by(forward)} LIMIT 1",
            [*values, *further.values, *upto.values, *self.left_out, *key_values],
        ).fetchone()
        return None if row is None else str(row["id"])


def _order(wanted: CaseFilter) -> _Order:
    match wanted.order:
        case "disagreement":
            return _Order("disagreement", "INDEXED BY cases_disagreement", key_falls=True)
        case "least_confident":
            return _Order("doubt", "INDEXED BY cases_doubt", key_falls=True)
        case "oldest":
            return _Order(None, "NOT INDEXED")
        case "newest":
            return _Order(None, "NOT INDEXED", number_falls=True)
        case "random":
            shuffle = queue.shuffle(wanted.seed)
            return _Order(f"({shuffle.sorted})", values=shuffle.values)
