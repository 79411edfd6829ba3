"""Rows as records: written under the names of their columns, read into the fields of a model that have these names."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Write a row; table and columns are names of ours. Returns its number."""
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608 (names of ours)
    return connection.execute(sql, [*row.values()]).lastrowid or 0


def append(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Write a row at the end of a table that only grows (``guards.py``), whose rows are numbered without a gap."""
    [last] = connection.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()  # noqa: S608
    return insert(connection, table, {"seq": last + 1, **row})


def record_of(model: type[M], row: sqlite3.Row, *, parsed: Collection[str] = (), **fields: Any) -> M:
    """Return a record from a row: ``parsed`` columns hold JSON or nothing, ``fields`` are those that no column has."""
    read = {name: row[name] for name in model.model_fields if name not in fields}
    read |= {name: json.loads(read[name]) for name in parsed if read[name] is not None}
    return model(**read, **fields)
