"""What every page shares: its icon, its dress, and what a person reads when database or settings can't be used."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from masis.errors import SettingsError, StoreError
from masis.services import Workbench
from masis.store.core.connections import damage_told
from masis.ui.shell.served_database import served_database, workbench

log = logging.getLogger(__name__)


def page_icon() -> str:
    """The icon of the browser tab, a file of our own: a named icon would be fetched from another host."""
    return str(Path(__file__).parent / "components" / "icon.svg")


LONGEST_TITLE = 80
"""Of what a browser tab is called; more is never seen."""


def tab_title(*parts: str) -> str:
    """What the tab of a page is called: what is on it comes first, since tabs are narrow."""
    return " · ".join(part[:LONGEST_TITLE] for part in (*parts, "MASIS Workbench") if part)


_DRESS = """<style>
[data-testid^=stBaseButton-primary] { color: light-dark(#fff, #101417); }
[data-testid^=stBaseButton] kbd { opacity: 1; color: inherit; }
[data-testid=stCaptionContainer], [data-testid=stCaptionContainer] p { opacity: 1; color: light-dark(#5b6168, #a3abb3) }
@media (max-width: 1080px) { [data-testid=stTopNavLink] > span:has([data-testid=stIconMaterial]) { display: none } }
</style>"""
# narrow, the names of all pages fit beside the reviewer's, without their icons


def dress() -> None:
    """What the theme can't say, once a page: text of buttons, of their keys and of captions had too little contrast.

    (In the dark, white on the bright primary colour is 2 to 1; captions at six tenths of the text's colour 4.2 to 1.)
    """
    st.html(_DRESS)


FAILED = "This page could not be drawn"


@contextmanager
def surviving() -> Iterator[None]:
    """Around a page: where it fails in a way nobody foresaw, the log gets the details and the person what to do."""
    try:
        yield
    except Exception as error:
        log.exception("A page could not be drawn")
        with st.container(key="page-failed"):
            st.title(FAILED)
            st.markdown(
                "Something happened that the workbench does not foresee. Drawing a page changes nothing that is kept. "
                "Load it again; if that does not help, the log of the server says what happened."
            )
            st.text(f"{type(error).__name__}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
            with st.container(horizontal=True):
                st.button("Load it again", type="primary", icon=":material/refresh:", key="load-again")
                st.page_link("pages/health.py", label="Health", icon=":material/health_and_safety:")


@contextmanager
def guarded() -> Iterator[Workbench]:
    """The workbench for a page; where database or settings can't be used, that is said in words and the page ends."""
    try:
        with damage_told(served_database()):
            yield workbench()
    except SettingsError as error:
        st.title("A setting can't be used")
        st.text(str(error))
        st.markdown("Put it right and load this page again.")
        st.stop()
    except StoreError as error:
        st.title("The database can't be used")
        st.text(str(error))
        st.caption("Database")
        st.text(str(served_database()))
        st.stop()
