"""The elements of the metrics page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masis.ui.components import registered

_BOARD = registered("metrics")
_RUNS = registered("metrics_runs")


def metrics_board(data: Mapping[str, Any], *, key: str) -> dict[str, str] | None:
    """Rates, distributions and tables; returns the way to the runs behind the figure just clicked, if one was."""
    return _way(_BOARD(data=data, key=key, on_open_change=_nothing).open)


def metrics_runs(data: Mapping[str, Any], *, key: str) -> dict[str, str] | None:
    """The runs behind a figure; returns the case and the run just opened, if one was."""
    return _way(_RUNS(data=data, key=key, on_open_change=_nothing).open)


def _way(value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    return {str(name): str(text) for name, text in value.items() if text is not None}


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
