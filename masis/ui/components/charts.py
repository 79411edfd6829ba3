"""Charts, described with Altair once per process and drawn again and again with other rows.

Building and checking a chart takes Altair some 50 ms, drawing a finished specification 1 ms: a page
with fifteen charts shows the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import altair as alt
import streamlit as st

Build = Callable[..., alt.TopLevelMixin]
Rows = Sequence[Mapping[str, Any]]


@cache
def _specification(build: Build, *arguments: Any) -> dict[str, Any]:
    specification: dict[str, Any] = build(*arguments).to_dict()
    specification.pop("config", None)  # Streamlit's own theme follows light and dark
    return specification


def draw_chart(
    build: Build,
    *arguments: Any,
    rows: Rows,
    description: str,
    key: str | None = None,
    on_select: Callable[[], None] | None = None,
    **more: Rows,
) -> None:
    """Draw the chart that ``build(*arguments)`` describes.

    Args:
        build: makes the chart on ``ROWS``; called once for the same arguments.
        arguments: what the chart's description depends on, hashable.
        rows: its data.
        description: what the chart shows, for screen readers.
        key: names the chart's selection in the session state; needed with ``on_select``.
        on_select: called when a mark is clicked.
        more: further data sets, by the name the chart gives them.

    """
    specification = {**_specification(build, *arguments), "datasets": {"rows": list(rows), **more}}
    st.vega_lite_chart(
        specification, key=key, on_select=on_select or "ignore", alt=description, width="stretch"
    )
