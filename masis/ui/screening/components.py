"""The elements of the screening page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masis.ui.components import registered

_ROUNDS = registered("screening_rounds")
_FLOW = registered("screening_flow")
_TABLE = registered("screening_table")
_ABSTRACT = registered("screening_abstract")
_LIST = registered("screening_list")


def screening_rounds(data: Mapping[str, Any], *, key: str) -> None:
    """The rounds: what was searched and why, how the abstracts voted, whether both rules held."""
    _ROUNDS(data=data, key=key)


def screening_flow(data: Mapping[str, Any], *, key: str) -> None:
    """The PRISMA flow from identified to kept."""
    _FLOW(data=data, key=key)


def screening_table(data: Mapping[str, Any], *, key: str) -> str | None:
    """A page of graded abstracts; returns the id of the one just opened, if one was."""
    return _text(_TABLE(data=data, key=key, on_open_change=_nothing).open)


def screening_abstract(data: Mapping[str, Any], *, key: str) -> None:
    """One abstract with the words its grade rests on, and every field with its reason."""
    _ABSTRACT(data=data, key=key)


def screening_list(data: Mapping[str, Any], *, key: str) -> str | None:
    """Screenings made before; returns the id of the one just opened, if one was."""
    return _text(_LIST(data=data, key=key, on_open_change=_nothing).open)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
