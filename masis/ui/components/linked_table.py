"""A table with links in its rows, for lists of cases, audits, abstracts and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypedDict
from urllib.parse import parse_qsl

import streamlit as st

from masis.ui.components import noop, register_component
from masis.ui.shell import address
from masis.views.words import LabelData

_TABLE = register_component("linked_table", "table", "row_choice", "row_keys")


class TableColumn(TypedDict):
    """A column: its title, the kind of its cells, and the window sizes in which it's hidden."""

    title: str
    kind: Literal["", "main", "figure", "pills", "text"]
    hide: Literal["", "hide-medium", "hide-narrow"]


class TableCell(TypedDict, total=False):
    """The content of a cell. The parts are drawn in the order of the attributes.

    Attributes:
        score: A score, drawn with a bar.
        text: The text.
        href: The address that the text links to.
        open: The value that the table returns when the link is clicked. Without it, the link opens
            the page of its ``href``.
        current: Whether the link leads to the record that is open.
        pills: Labels.
        quote: A quotation, of at most two lines in the main column.
        below: Small lines, which are cut at their end in the main column.

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
    """A row. A click outside of its links returns ``open``, unless that's None."""

    cells: list[TableCell | str | int | None]
    open: str | None
    marked: bool


def column(
    title: str,
    kind: Literal["", "main", "figure", "pills", "text"] = "",
    *,
    hide: Literal["", "hide-medium", "hide-narrow"] = "",
) -> TableColumn:
    """Return a column; ``main`` is the wide one that names the row, ``text`` is for sentences."""
    return {"title": title, "kind": kind, "hide": hide}


def row(
    *cells: TableCell | str | int | None,
    open: str | None = None,  # noqa: A002
    marked: bool = False,
) -> LinkedRow:
    """Return a row; a cell of None is drawn as a dash.

    Without ``open``, a click on the row follows its first link to a page.
    """
    return {
        "cells": list(cells),
        "open": open or next(filter(None, map(_page_address, cells)), None),
        "marked": marked,
    }


def _page_address(cell: TableCell | str | int | None) -> str | None:
    """Return the address of a link to a page; None for a link that the table returns."""
    return cell.get("href") if isinstance(cell, dict) and "open" not in cell else None


def linked_table(
    columns: Sequence[TableColumn],
    rows: Sequence[LinkedRow],
    *,
    description: str,
    key: str,
    sticky_header: bool = False,
) -> str | None:
    """Draw a table of links; text from outside is never parsed as markup.

    Args:
        columns: The columns, in order.
        rows: The rows, each with a cell for every column.
        description: What the table lists, for screen readers.
        key: The key of the element.
        sticky_header: Whether the titles stay in view while a long table is scrolled. The table
            must be as wide as the page.

    Returns:
        The ``open`` value of the link or row that was just clicked, or None.

    """
    return _draw_table(columns, rows, description, key, sticky_header=sticky_header).opened


class TableAction(NamedTuple):
    """A button for the selected rows: its name, which is returned, and its label."""

    name: str
    title: str


class TableChoice(NamedTuple):
    """Rows that a person has selected, and the action on them.

    ``rows`` has their ``open`` values. ``everything`` means all rows of the list, including those
    on other pages.
    """

    action: str
    rows: tuple[str, ...]
    everything: bool


class TableEvent(NamedTuple):
    """A click: the ``open`` value of a row, or an action on selected rows."""

    opened: str | None
    choice: TableChoice | None


def choosable_table(
    columns: Sequence[TableColumn],
    rows: Sequence[LinkedRow],
    *,
    description: str,
    key: str,
    actions: Sequence[TableAction],
    total: int,
    noun: str,
    scope: str,
) -> TableEvent:
    """Draw a table of links whose rows can be selected for an action, with a sticky header.

    The browser keeps the selection, so selecting a row doesn't run the page.

    Args:
        columns: The columns, in order.
        rows: The rows, each with a cell for every column.
        description: What the table lists, for screen readers.
        key: The key of the element.
        actions: The actions. Without one, rows can't be selected.
        total: The number of rows of the whole list.
        noun: The noun for a row, with which selected rows are counted.
        scope: Identifies the list. A different scope clears the selection.

    """
    choosing = {
        "actions": [action._asdict() for action in actions],
        "total": total,
        "noun": noun,
        "scope": scope,
    }
    return _draw_table(
        columns, rows, description, key, sticky_header=True, choosing=choosing if actions else None
    )


def _draw_table(
    columns: Sequence[TableColumn],
    rows: Sequence[LinkedRow],
    description: str,
    key: str,
    *,
    sticky_header: bool,
    choosing: Mapping[str, object] | None = None,
) -> TableEvent:
    data = {
        "columns": columns,
        "rows": rows,
        "description": description,
        "sticky_header": sticky_header,
        "choosing": choosing,
    }
    result = _TABLE(data=data, key=key, on_open_change=noop, on_act_change=noop)
    opened = result.open
    if opened and any(_page_address(cell) == opened for line in rows for cell in line["cells"]):
        # A link to another page is opened by Streamlit, which keeps the session. The browser would
        # start a new one.
        page, _, query = opened.partition("?")
        st.switch_page(f"pages/{page}.py", query_params=dict(parse_qsl(query)))
    # A browser posts the values, so they may be anything.
    return TableEvent(opened if isinstance(opened, str) else None, _parse_table_choice(result.act))


def _parse_table_choice(posted: object) -> TableChoice | None:
    if not isinstance(posted, Mapping) or not isinstance(posted.get("rows"), list):
        return None
    rows = tuple(row for row in posted["rows"] if isinstance(row, str))
    action = posted.get("action")
    return (
        TableChoice(action, rows, posted.get("everything") is True)
        if isinstance(action, str)
        else None
    )


class LinkedFigure(NamedTuple):
    """A figure with its base in words, an explanation, and a link to the cases behind it.

    ``share`` is its value if that is a share, which can be drawn as a bar.
    """

    title: str
    value: str
    reads: str
    page: str = ""
    parameters: Mapping[str, str] = {}
    share: float | None = None


def figure_table(
    figures: Sequence[LinkedFigure],
    *,
    key: str,
    description: str,
    here: str = "",
    kept_params: Mapping[str, str] | None = None,
) -> LinkedFigure | None:
    """Draw a table of figures. A click on one opens its page.

    Args:
        figures: The figures, in order.
        key: The key of the element.
        description: The title of the first column.
        here: The page that draws the table. A clicked figure that links to this page is returned.
        kept_params: Query parameters of this page that links to it keep.

    """
    columns = [
        column(description, "main"),
        column("Figure", "figure"),
        column("How to read it", "text"),
    ]
    rows = []
    for figure in figures:
        value: TableCell = {"text": figure.value}
        if figure.page:
            params = kept_params if figure.page == here and kept_params else {}
            value |= {
                "href": address.link(figure.page, **{**params, **figure.parameters}),
                "open": figure.title,
            }
        rows.append(
            row(
                {"text": figure.title},
                value,
                {"quote": figure.reads},
                open=figure.title if figure.page else None,
            )
        )
    opened = linked_table(columns, rows, description=description, key=key)
    chosen = next((figure for figure in figures if figure.page and figure.title == opened), None)
    if chosen is not None and chosen.page != here:
        st.switch_page(f"pages/{chosen.page}.py", query_params=dict(chosen.parameters))
    return chosen
