"""SQL of names of ours, and beside it the values that it binds: conditions from what a filter asks,
rows from records.

What a filter leaves empty gives no condition, so that it narrows nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)
Condition = tuple[str, Sequence[Any]]


def any_of(column: str, values: Sequence[Any]) -> list[Condition]:
    """Return the condition that a column has one of these values; none without values."""
    return [(f"{column} IN ({', '.join('?' * len(values))})", values)] if values else []


def compare_column(column: str, operator: str, value: Any) -> list[Condition]:
    """Return the condition that a column compares so with a value; none where the value is None."""
    return [] if value is None else [(f"{column} {operator} ?", (value,))]


def join_conditions(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return all conditions as one, and the values it binds; ``1`` where there is none."""
    found = list(conditions)
    return " AND ".join(sql for sql, _ in found) or "1", [
        value for _, bound in found for value in bound
    ]


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Write a row; table and columns are names of ours. Returns its number."""
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608 (names of ours)
    return connection.execute(sql, [*row.values()]).lastrowid or 0


def append(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Write a row at the end of a table that only grows (``guards.py``), whose rows are numbered
    without a gap.
    """
    [last] = connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()  # noqa: S608
    return insert(connection, table, {"seq": last + 1, **row})


def record_of(
    model: type[M], row: sqlite3.Row, *, parsed: Collection[str] = (), **fields: Any
) -> M:
    """Return a record from a row: ``parsed`` columns hold JSON or nothing, ``fields`` are those
    that no column has.
    """
    read = {name: row[name] for name in model.model_fields if name not in fields}
    read |= {name: json.loads(read[name]) for name in parsed if read[name] is not None}
    return model(**read, **fields)
