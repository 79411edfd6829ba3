"""A table whose rows lead somewhere, for the lists of cases, audits, abstracts and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from masis.ui.components import nothing, registered
from masis.views.words import LabelData

_TABLE = registered("linked_table")


class Column(TypedDict):
    """A column: its title, how its cells are drawn, and in which windows it gives way to the others."""

    title: str
    kind: Literal["", "main", "figure", "pills", "text"]
    hide: Literal["", "hide-medium", "hide-narrow"]


class Cell(TypedDict, total=False):
    """What a cell holds, drawn in this order: a score with its bar, text (a link with ``href``), labels, a quotation,
    small lines. A quotation takes as many lines as it needs; a small line of the main column is cut at its end.

    ``open`` is what the table returns when the link is clicked; ``current`` says that the link leads to what is open.
    """

    score: float | None
    text: str
    href: str
    open: str
    current: bool
    pills: Sequence[LabelData]
    quote: str
    below: Sequence[str]


class Row(TypedDict):
    """A row; a click beside its links returns ``open``, unless that is None."""

    cells: list[Cell | str | int | None]
    open: str | None
    marked: bool


def column(
    title: str,
    kind: Literal["", "main", "figure", "pills", "text"] = "",
    *,
    hide: Literal["", "hide-medium", "hide-narrow"] = "",
) -> Column:
    """Describe a column; ``main`` is the wide one that a row is known by, ``text`` holds sentences."""
    return {"title": title, "kind": kind, "hide": hide}


def row(*cells: Cell | str | int | None, open: str | None = None, marked: bool = False) -> Row:  # noqa: A002
    """Describe a row; a cell of None is drawn as a dash."""
    return {"cells": list(cells), "open": open, "marked": marked}


def linked_table(columns: Sequence[Column], rows: Sequence[Row], *, description: str, key: str) -> str | None:
    """Draw a table of links; text from outside stays text.

    Args:
        columns: its columns, in order.
        rows: its rows, each with a cell for every column.
        description: what the table lists, for screen readers.
        key: the name of the element.

    Returns:
        What the link or row clicked just now opens, None where none was.

    """
    opened = _TABLE(
        data={"columns": columns, "rows": rows, "description": description}, key=key, on_open_change=nothing
    ).open
    return opened if isinstance(opened, str) else None
