"""Conditions in SQL from what a filter asks: text of ours, and beside it the values that it binds.

What a filter leaves empty gives no condition, so that it narrows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Condition = tuple[str, Sequence[Any]]


def any_of(column: str, values: Sequence[Any]) -> list[Condition]:
    """Return the condition that a column has one of these values; none without values."""
    return [(f"{column} IN ({', '.join('?' * len(values))})", values)] if values else []


def compared(column: str, operator: str, value: Any) -> list[Condition]:
    """Return the condition that a column compares so with a value; none where the value is None."""
    return [] if value is None else [(f"{column} {operator} ?", (value,))]


def joined(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return all conditions as one, and the values it binds; ``1`` where there is none."""
    found = list(conditions)
    return " AND ".join(sql for sql, _ in found) or "1", [value for _, bound in found for value in bound]
