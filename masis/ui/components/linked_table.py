"""A table whose rows lead somewhere, for the lists of cases, audits, abstracts, figures and the
like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypedDict
from urllib.parse import parse_qsl

import streamlit as st

from masis.ui.components import noop, register_component
from masis.ui.shell import address
from masis.views.words import LabelData

_TABLE = register_component("linked_table")


class TableColumn(TypedDict):
    """A column: its title, how its cells are drawn, and in which windows it gives way to the
    others.
    """

    title: str
    kind: Literal["", "main", "figure", "pills", "text"]
    hide: Literal["", "hide-medium", "hide-narrow"]


class TableCell(TypedDict, total=False):
    """What a cell holds, drawn in this order: a score with its bar, text (a link with ``href``),
    labels, a quotation, small lines. A quotation takes as many lines as it needs; a small line of
    the main column is cut at its end.

    ``open`` is what the table returns when the link is clicked; a link without it leads to the page
    of its ``href``. ``current`` says that the link leads to what is open.
    """

    score: float | None
    text: str
    href: str
    open: str
    current: bool
    pills: Sequence[LabelData]
    quote: str
    below: Sequence[str]


class LinkedRow(TypedDict):
    """A row; a click beside its links returns ``open``, unless that is None."""

    cells: list[TableCell | str | int | None]
    open: str | None
    marked: bool


def column(
    title: str,
    kind: Literal["", "main", "figure", "pills", "text"] = "",
    *,
    hide: Literal["", "hide-medium", "hide-narrow"] = "",
) -> TableColumn:
    """Describe a column; ``main`` is the wide one that a row is known by, ``text``
    holds sentences.
    """
    return {"title": title, "kind": kind, "hide": hide}


def row(
    *cells: TableCell | str | int | None,
    open: str | None = None,  # noqa: A002
    marked: bool = False,
) -> LinkedRow:
    """Describe a row; a cell of None is drawn as a dash. Without ``open`` it leads where its first
    such link does.
    """
    return {
        "cells": list(cells),
        "open": open or next(filter(None, map(_leads_to, cells)), None),
        "marked": marked,
    }


def _leads_to(cell: TableCell | str | int | None) -> str | None:
    """Return the address that a link opens by itself; None where the table returns what
    it opens.
    """
    return cell.get("href") if isinstance(cell, dict) and "open" not in cell else None


def linked_table(
    columns: Sequence[TableColumn],
    rows: Sequence[LinkedRow],
    *,
    description: str,
    key: str,
    head_stays: bool = False,
) -> str | None:
    """Draw a table of links; text from outside stays text.

    Args:
        columns: its columns, in order.
        rows: its rows, each with a cell for every column.
        description: what the table lists, for screen readers.
        key: the name of the element.
        head_stays: whether the titles stay in view while a long table that is as wide as the page
            is scrolled.

    Returns:
        What the link or row clicked just now opens, None where none was.

    """
    data = {"columns": columns, "rows": rows, "description": description, "head_stays": head_stays}
    opened = _TABLE(data=data, key=key, on_open_change=noop).open
    if opened and any(_leads_to(cell) == opened for each in rows for cell in each["cells"]):
        page, _, query = opened.partition("?")
        st.switch_page(f"pages/{page}.py", query_params=dict(parse_qsl(query)))
    return opened if isinstance(opened, str) else None


class LinkedFigure(NamedTuple):
    """A figure in words with its base, how to read it, and the page and parameters of the cases
    behind it.
    """

    title: str
    value: str
    reads: str
    page: str = ""
    parameters: Mapping[str, str] = {}


def figure_table(
    figures: Sequence[LinkedFigure],
    *,
    key: str,
    description: str,
    here: str = "",
    keeps: Mapping[str, str] | None = None,
) -> LinkedFigure | None:
    """Draw figures; a click on one opens the page behind it.

    Args:
        figures: What is drawn, in order.
        key: The name of the element.
        description: What the figures are of: the heading of their names.
        here: The page that draws them; a figure that leads to it keeps the parameters ``keeps`` and
            is returned.
        keeps: Parameters of this page's address that stay.

    """
    columns = [
        column(description, "main"),
        column("Figure", "figure"),
        column("How to read it", "text"),
    ]
    rows = []
    for each in figures:
        value: TableCell = {"text": each.value}
        if each.page:
            kept = keeps if each.page == here and keeps else {}
            value |= {
                "href": address.link(each.page, **{**kept, **each.parameters}),
                "open": each.title,
            }
        rows.append(
            row(
                {"text": each.title},
                value,
                {"quote": each.reads},
                open=each.title if each.page else None,
            )
        )
    opened = linked_table(columns, rows, description=description, key=key)
    chosen = next((each for each in figures if each.page and each.title == opened), None)
    if chosen is not None and chosen.page != here:
        st.switch_page(f"pages/{chosen.page}.py", query_params=dict(chosen.parameters))
    return chosen
