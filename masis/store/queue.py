"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

What a person types reaches SQLite as bound values only. Pages are found by their numbers first, from indexes, and only
the rows of one page are read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from masis.store.records import CaseFilter, CasePage, CaseSummary, Facets

QUERY_SHOWN = 200
"""Characters of the question that a list shows."""

_WORDS_SEARCHED = 32
_WORD_LENGTH = 100
_MODULUS = 2_147_483_647
"""A prime above any number of cases: multiplying by a drawn factor modulo it shuffles them."""


class _Condition(NamedTuple):
    sql: str
    values: tuple[Any, ...]


def search(connection: sqlite3.Connection, wanted: CaseFilter) -> CasePage:
    """One page of the cases that match, and how many match."""
    conditions = [*_conditions(wanted)]
    where = " AND ".join(condition.sql for condition in conditions) or "1"
    values = [value for condition in conditions for value in condition.values]
    order, order_values = _order(wanted)
    offset = (wanted.page - 1) * wanted.size
    # every name in this text is ours; what the person gave is bound
    total = connection.execute(f"SELECT count(*) FROM cases WHERE {where}", values).fetchone()[0]  # noqa: S608
    found = connection.execute(
        f"SELECT seq FROM cases WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608
        [*values, *order_values, wanted.size, offset],
    )
    numbers = [row[0] for row in found]
    marks = ", ".join("?" * len(numbers))
    place = {seq: index for index, seq in enumerate(numbers)}
    rows = _rows(connection, f"cases.seq IN ({marks})", numbers)
    return CasePage(rows=tuple(_summary(row) for row in sorted(rows, key=lambda row: place[row["seq"]])), total=total)


def summaries(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[CaseSummary]:
    """The summaries of the cases that a condition of ours names."""
    return [_summary(row) for row in _rows(connection, f"cases.{where}", values)]


def _rows(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[sqlite3.Row]:
    return connection.execute(
        f"SELECT cases.*, runs.id AS run_id FROM cases LEFT JOIN runs ON runs.seq = run_seq WHERE {where}",  # noqa: S608
        values,
    ).fetchall()


def _summary(row: sqlite3.Row) -> CaseSummary:
    query = row["query_start"]
    return CaseSummary(
        query=query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…",
        flags=tuple(json.loads(row["flags"])),
        reasons=tuple(json.loads(row["reasons"])),
        **{name: row[name] for name in _PLAIN},
    )


_PLAIN = [name for name in CaseSummary.model_fields if name not in ("query", "flags", "reasons")]


def _conditions(wanted: CaseFilter) -> list[_Condition]:
    found = [
        _any_of(column, values)
        for column, values in (
            ("state", wanted.states),
            ("field", wanted.fields),
            ("dataset", wanted.datasets),
            ("reviewer", wanted.reviewers),
        )
        if values
    ]
    found += [
        _tagged(kind, values)
        for kind, values in (("flag", wanted.flags), ("reason", wanted.reasons), ("model", wanted.models))
        if values
    ]
    found += [
        _Condition(f"{column} {operator} ?", (bound,))
        for column, operator, bound in (
            ("quality", ">=", wanted.quality_from),
            ("quality", "<=", wanted.quality_to),
            ("confidence", ">=", wanted.confidence_from),
            ("confidence", "<=", wanted.confidence_to),
        )
        if bound is not None
    ]
    if wanted.text.strip():
        found.append(
            _Condition("seq IN (SELECT rowid FROM case_words WHERE case_words MATCH ?)", (match(wanted.text),))
        )
    return found


def _any_of(column: str, values: Sequence[str]) -> _Condition:
    return _Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))


def _tagged(kind: str, values: Sequence[str]) -> _Condition:
    marks = ", ".join("?" * len(values))
    return _Condition(
        f"seq IN (SELECT case_seq FROM case_tags WHERE kind = ? AND value IN ({marks}))",  # noqa: S608
        (kind, *values),
    )


def match(text: str) -> str:
    """What a person typed, as an FTS5 query that finds all its words; nothing in it is read as syntax.

    Each word is quoted; the last is found as a beginning too, since it may still be typed. Text without a letter or
    digit matches nothing. The first 32 words of at most 100 characters count.
    """
    words = [word[:_WORD_LENGTH] for word in text.replace("\x00", " ").split() if any(map(str.isalnum, word))]
    quoted = ['"' + word.replace('"', '""') + '"' for word in words[:_WORDS_SEARCHED]]
    return " AND ".join(quoted) + " *" if quoted else '""'


def _order(wanted: CaseFilter) -> tuple[str, tuple[int, ...]]:
    if wanted.order == "random":
        drawn = hashlib.sha256(str(wanted.seed).encode()).digest()
        factor, offset = (1 + int.from_bytes(part) % (_MODULUS - 1) for part in (drawn[:8], drawn[8:16]))
        return f"(seq * ? + ?) % {_MODULUS}", (factor, offset)
    return {
        "telling": "telling DESC, seq",
        "least_confident": "doubt DESC, seq",
        "oldest": "seq",
        "newest": "seq DESC",
    }[wanted.order], ()


def facets(connection: sqlite3.Connection) -> Facets:
    """Which values occur in the whole store, and how often."""
    columns = {"states": "state", "fields": "field", "datasets": "dataset", "reviewers": "reviewer"}
    counted = {
        name: connection.execute(
            f"SELECT {column}, count(*) FROM cases WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 1"  # noqa: S608
        ).fetchall()
        for name, column in columns.items()
    }
    tags = connection.execute("SELECT kind, value, count(*) FROM case_tags GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
    tagged = {f"{kind}s": {row[1]: row[2] for row in tags if row[0] == kind} for kind in ("model", "flag", "reason")}
    return Facets.model_validate({name: {row[0]: row[1] for row in rows} for name, rows in counted.items()} | tagged)
