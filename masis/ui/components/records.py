"""The elements of the overview, the decision log, the comparison and the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from masis.ui.components import registered

_LOG = registered("decision_log")
_HEAD = registered("overview_head")
_HISTORY = registered("run_history")
_COMPARISON = registered("run_comparison")
_SETTINGS = registered("settings_table")
_HEALTH = registered("health")


class LogClick(NamedTuple):
    """What was clicked in the log: a case to open, an entry to unfold ("" folds it up), an address to go to."""

    case: str | None
    entry: str | None
    href: str | None


def decision_log(data: Mapping[str, Any], *, key: str) -> LogClick:
    """Entries of the decision log, whole or brief; returns what was just clicked."""
    found = _LOG(data=data, key=key, on_open_change=_nothing, on_entry_change=_nothing)
    opened = found.open if isinstance(found.open, Mapping) else {}
    return LogClick(_text(opened.get("case")), _text(found.entry), _text(opened.get("href")))


def overview_head(data: Mapping[str, Any], *, key: str) -> str | None:
    """What the store holds, by state; returns the state just clicked, if one was."""
    return _text(_HEAD(data=data, key=key, on_open_change=_nothing).open)


def run_history(data: Mapping[str, Any], *, key: str) -> str | None:
    """The runs of a case; returns the id of the run just opened, if one was."""
    return _text(_HISTORY(data=data, key=key, on_open_change=_nothing).open)


def run_comparison(data: Mapping[str, Any], *, key: str) -> None:
    """Two runs side by side."""
    _COMPARISON(data=data, key=key)


def settings_table(data: Mapping[str, Any], *, key: str) -> None:
    """Every setting with its value, what it does and who said so."""
    _SETTINGS(data=data, key=key)


def health_list(data: Mapping[str, Any], *, key: str) -> None:
    """What was looked at, and whether it is in order."""
    _HEALTH(data=data, key=key)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
