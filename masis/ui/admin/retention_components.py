"""The elements of retention: what would go, what went, and the log of executions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masis.ui.components import registered

_PLAN = registered("purge_plan")
_HISTORY = registered("purge_history")
_EXECUTIONS = registered("execution_log")


def purge_plan(data: Mapping[str, Any], *, key: str) -> None:
    """What would go, how much of it, what stays and why, and the first of the records by name."""
    _PLAN(data=data, key=key)


def purge_history(data: Mapping[str, Any], *, key: str) -> None:
    """Every removal: when, who, by which rule, how much."""
    _HISTORY(data=data, key=key)


def execution_log(data: Mapping[str, Any], *, key: str) -> None:
    """Executions of the loop, one a line."""
    _EXECUTIONS(data=data, key=key)
