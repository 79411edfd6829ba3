"""What every page shares: its icon, its styles, and what is shown when a page, the database or the
settings fail.
"""

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
"""The path of the browser tab's icon; a named icon would be fetched from another host."""

LONGEST_TITLE = 80
"""Characters of each part of a tab's title; browsers never show more."""


def tab_title(*parts: str) -> str:
    """Return the title of a browser tab: what is on the page comes first, since tabs are narrow."""
    return " · ".join(part[:LONGEST_TITLE] for part in (*parts, "MASIS Workbench") if part)


_STYLES = """<style>
@st-primary_button, @st-primary_submit { color: light-dark(#fff, #101417); }
:is(@st-button, @st-primary_button, @st-tertiary_button) kbd { opacity: 1; color: inherit; }
@st-caption, @st-caption p { opacity: 1; color: light-dark(#5b6168, #a3abb3) }
.st-key-search:has(input:placeholder-shown) @st-hint { display: none }
@st-main:focus-visible, @st-main:focus-visible::before { outline: none; box-shadow: none }
@st-toasts { top: auto !important; right: auto; bottom: 0; left: 0; } /* at the top it would lie over buttons */
@media (max-width: 1080px) { @st-navigation_link > span:has(@st-icon) { display: none } }
@media (max-width: 960px) { @st-navigation_link { padding-inline: 0.3rem !important; } }
</style>"""
# On narrow screens the names of all pages fit beside the reviewer's name only without their icons.


def add_styles() -> None:
    """Add the styles that the theme has no option for: contrast of buttons, of their keys and of
    captions.

    The page itself, which browsers focus where it is clicked, shows no outline when a key is
    pressed then.

    In the dark theme, white on the bright primary colour has a contrast of 2 to 1, and captions,
    drawn at six tenths of the text's colour, 4.2 to 1; 4.5 to 1 is needed.
    """
    st.html(with_selectors(_STYLES))


FAILED = "This page could not be drawn"


def demo_notice(workbench: Workbench) -> None:
    """Say above a page that cases are invented and reviewers simulated, where the demo simulated
    decisions.
    """
    if simulated := workbench.store.decisions.count_simulated():
        with st.container(key="demo-notice"):
            st.markdown(
                ":violet-background[:material/science: **Demo**] Invented cases, recorded replies"
                f" of a model, and {count_noun(simulated, 'decision')} by simulated reviewers, not by"
                " people."
            )


@contextmanager
def crash_page() -> Iterator[None]:
    """Show what to do where a page fails in an unforeseen way; the details go to the log."""
    try:
        yield
    except NotAllowed as error:
        show_refusal(error)
    except Exception as error:
        log.exception("A page could not be drawn")
        with st.container(key="page-failed"):
            st.title(FAILED)
            st.markdown(
                "An unexpected error occurred. Nothing that is stored was changed by drawing this"
                " page. Load it again; if it fails again, the server's log has the details."
            )
            st.text(f"{type(error).__name__}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
            with st.container(horizontal=True):
                st.button(
                    "Load it again", type="primary", icon=":material/refresh:", key="load-again"
                )
                st.page_link("pages/health.py", label="Health", icon=":material/health_and_safety:")


def show_refusal(error: Exception) -> bool:
    """Say what the person's role does not grant, where that is the error; returns
    whether it was.
    """
    if not isinstance(error, NotAllowed):
        return False
    st.error("Nothing was done.", icon=":material/block:")
    st.text(str(error))
    st.button("Back to the page", key="refused", icon=":material/arrow_back:")
    return True


@contextmanager
def database_errors() -> Iterator[Workbench]:
    """Yield the workbench; where the database or a setting can't be used, say why and
    end the page.
    """
    try:
        with explained_errors(served_database()):
            yield served_workbench()
    except SettingsError as error:
        st.title("A setting can't be used")
        st.text(str(error))
        st.markdown("Fix it and load this page again.")
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
