"""Helpers that build SQL from our own names and return the bound values with it.

An empty field of a filter adds no condition, so it doesn't narrow the result.
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
    """Return the condition that a column has one of these values; without values, none."""
    return [(f"{column} IN ({', '.join('?' * len(values))})", values)] if values else []


def compare_column(column: str, operator: str, value: Any) -> list[Condition]:
    """Return a comparison of a column with a value, or no condition if the value is None."""
    return [] if value is None else [(f"{column} {operator} ?", (value,))]


def join_conditions(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return all conditions joined with AND and their values; the SQL is ``1`` without any."""
    parts = list(conditions)
    values = [value for _, bound in parts for value in bound]
    return " AND ".join(sql for sql, _ in parts) or "1", values


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert a row and return its number. Table and columns must be our own names."""
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
    return connection.execute(sql, [*row.values()]).lastrowid or 0


def append(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Append a row to a table whose rows are numbered without gaps (``guards.py``)."""
    sql = f"SELECT coalesce(max(seq), 0) FROM {table}"  # noqa: S608
    [last] = connection.execute(sql).fetchone()
    return insert(connection, table, {"seq": last + 1, **row})


def record_of(
    model: type[M], row: sqlite3.Row, *, parsed: Collection[str] = (), **fields: Any
) -> M:
    """Build a record from a row. ``parsed`` columns contain JSON or NULL; ``fields`` have no
    column.
    """
    read = {name: row[name] for name in model.model_fields if name not in fields}
    read |= {name: json.loads(read[name]) for name in parsed if read[name] is not None}
    return model(**read, **fields)
