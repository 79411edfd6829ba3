"""The keys of every page but an open case: its decision form listens itself."""

from __future__ import annotations

import uuid

import streamlit as st

from masis.ui.components import registered
from masis.ui.shell import address
from masis.ui.shell.keys import page_key_map

_KEYS = registered("page_keys", "key_sheet")


_FOCUS = "page-focus"


def focus_on(container: str) -> None:
    """Put the focus into the text field of a container once the page is drawn again, as where an act was refused."""
    st.session_state[_FOCUS] = {"field": container, "token": uuid.uuid4().hex}


def page_keys(page: str) -> None:
    """Listen for the keys of a page, and show them on H or ?; to be drawn after the page.

    Args:
        page: the last part of its address, empty for the overview.

    """
    about = {"focus": st.session_state.pop(_FOCUS, None), "case": address.value("case"), "page": address.value("page")}
    _KEYS(data={**page_key_map(page, about["case"]), **about}, key="page-keys")
