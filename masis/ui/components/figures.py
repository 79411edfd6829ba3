"""Figures one below the other: each with its base, a sentence that says how to read it, and the way to its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from masis.ui.components.linked_table import Cell, column, linked_table, row
from masis.ui.shell import address


class Figure(NamedTuple):
    """A figure in words with its base, how to read it, and the page and parameters of the cases behind it."""

    title: str
    value: str
    reads: str
    page: str = ""
    parameters: Mapping[str, str] = {}


def figure_table(
    figures: Sequence[Figure], *, key: str, description: str, here: str = "", keeps: Mapping[str, str] | None = None
) -> Figure | None:
    """Draw figures; a click on one opens the page behind it.

    Args:
        figures: What is drawn, in order.
        key: The name of the element.
        description: What the figures are of: the heading of their names.
        here: The page that draws them; a figure that leads to it keeps the parameters ``keeps`` and is returned.
        keeps: Parameters of this page's address that stay.

    """
    columns = [column(description, "main"), column("Figure", "figure"), column("How to read it", "text")]
    rows = []
    for each in figures:
        value: Cell = {"text": each.value}
        if each.page:
            kept = keeps if each.page == here and keeps else {}
            value |= {"href": address.link(each.page, **{**kept, **each.parameters}), "open": each.title}
        rows.append(row({"text": each.title}, value, {"quote": each.reads}, open=each.title if each.page else None))
    opened = linked_table(columns, rows, description=description, key=key)
    chosen = next((each for each in figures if each.page and each.title == opened), None)
    if chosen is not None and chosen.page != here:
        st.switch_page(f"pages/{chosen.page}.py", query_params=dict(chosen.parameters))
    return chosen
