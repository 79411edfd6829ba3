"""A text area that posts what is typed once it has rested and when it is left, so that it is kept as it is typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from masis.ui.components import registered

_TYPING = registered("typing")


def typing_area(
    label: str,
    *,
    key: str,
    text: str,
    version: int,
    most: int,
    rows: int,
    on_text: Callable[[str], None],
    hint: str = "",
    placeholder: str = "",
    optional: bool = False,
) -> None:
    """Draw the area; ``on_text`` is called with what was typed, cut to ``most`` characters.

    The text in the page is the person's: ``text`` replaces it only when ``version`` changes.
    """
    taken = f"{key}-taken"

    def posted() -> None:
        given: Any = st.session_state[key].get("typed")
        if isinstance(given, dict) and isinstance(given.get("text"), str):
            st.session_state[taken] = given
            on_text(given["text"][:most])

    # A run that is cut short by the next one can lose its callback: what was posted is taken all the same.
    if key in st.session_state and st.session_state[key].get("typed") != st.session_state.get(taken):
        posted()

    data = {
        "label": label,
        "text": text,
        "version": version,
        "most": most,
        "rows": rows,
        "hint": hint,
        "placeholder": placeholder,
        "optional": optional,
    }
    _TYPING(data=data, key=key, on_typed_change=posted)
