"""Icon, styles and error messages of all pages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import streamlit as st

from masis.errors import NotAllowed, RecordDamaged, SettingsError, StoreError
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.records import explained_errors
from masis.ui.components import HERE
from masis.ui.shell.served_database import served_database, served_workbench
from masis.ui.shell.streamlit_internals import with_selectors

log = logging.getLogger(__name__)


PAGE_ICON = str(HERE / "icon.svg")
"""Path of the browser tab's icon. A named icon would be fetched from another host."""

LONGEST_TITLE = 80
"""Longest part of a tab's title in characters; browsers never show more."""


def tab_title(*parts: str) -> str:
    """Return the title of a browser tab, with the page's content first because tabs are narrow."""
    return " · ".join(part[:LONGEST_TITLE] for part in (*parts, "MASIS Workbench") if part)


_STYLES = """<style>
@st-primary_button, @st-primary_submit { color: light-dark(#fff, #101417); }
:is(@st-button, @st-primary_button, @st-tertiary_button) kbd { opacity: 1; color: inherit; }
@st-caption, @st-caption p { opacity: 1; color: light-dark(#5b6168, #a3abb3) }
.st-key-search:has(input:placeholder-shown) @st-hint { display: none }
@st-main:focus-visible, @st-main:focus-visible::before { outline: none; box-shadow: none }
/* At the top, toasts would cover buttons. */
@st-toasts { top: auto !important; right: auto; bottom: 0; left: 0; }
:root { --links: 50rem; }
@media (max-width: 980px) { :root { --links: 40rem; }
  @st-navigation_link > span:has(@st-icon) { display: none }
  @st-navigation_link { padding-inline: 0.3rem !important; } }
</style>"""
# On narrow screens the links fit beside the reviewer's name only without their icons. --links is
# their width as measured, from the left edge of the window.


def add_styles() -> None:
    """Add styles that the theme has no option for: the contrast of buttons, their keys and
    captions.

    In the dark theme, white on the bright primary colour has a contrast of 2 to 1, and captions,
    which are drawn at 60% of the text's colour, 4.2 to 1. WCAG 2.1 (AA) requires 4.5 to 1.

    The styles also remove the outline around the whole page, which browsers focus when it is
    clicked.
    """
    st.html(with_selectors(_STYLES))


FAILED = "This page couldn't be displayed"


def demo_notice(workbench: Workbench) -> None:
    """Show a notice on the demo's pages that cases are invented and reviewers simulated."""
    if simulated := workbench.store.decisions.count_simulated():
        with st.container(key="demo-notice"):
            st.markdown(
                ":violet-background[:material/science: **Demo**] Invented cases, recorded replies"
                f" of a model, and {count_noun(simulated, 'decision')} by simulated reviewers, not"
                " by people."
            )


@contextmanager
def crash_page() -> Iterator[None]:
    """Show a message if a page fails unexpectedly; the details go to the log."""
    try:
        yield
    except NotAllowed as error:
        show_refusal(error)
    except Exception as error:
        log.exception("A page could not be drawn")
        with st.container(key="page-failed"):
            st.title(FAILED)
            st.markdown(
                "An unexpected error occurred. Displaying this page didn't change any stored data."
                " Load it again. If it fails again, the details are in the server's log."
            )
            st.text(f"{type(error).__name__}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
            with st.container(horizontal=True):
                st.button(
                    "Load it again", type="primary", icon=":material/refresh:", key="load-again"
                )
                st.page_link("pages/health.py", label="Health", icon=":material/health_and_safety:")


def show_refusal(error: Exception) -> bool:
    """Show a message if the error is a missing permission, and return whether it is."""
    if not isinstance(error, NotAllowed):
        return False
    st.error("The action failed, and nothing was changed.", icon=":material/block:")
    st.text(str(error))
    st.button("Back to the page", key="refused", icon=":material/arrow_back:")
    return True


@contextmanager
def database_errors() -> Iterator[Workbench]:
    """Yield the workbench; if the database or a setting can't be used, say why and stop."""
    try:
        with explained_errors(served_database()):
            yield served_workbench()
    except SettingsError as error:
        st.title("A setting can't be used")
        st.text(str(error))
        st.markdown("Fix it and load this page again.")
        # st.stop raises an exception, so the context manager needn't yield.
        st.stop()
    except RecordDamaged as error:
        st.title("A stored result can't be read")
        st.text(str(error))
        st.page_link("pages/health.py", label="Health", icon=":material/health_and_safety:")
        st.stop()
    except StoreError as error:
        st.title("The database can't be used")
        st.text(str(error))
        st.caption("Database")
        st.text(str(served_database()))
        st.stop()
