"""What every page shares: its icon, and what a person reads when database or settings can't be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from masis.errors import SettingsError, StoreError
from masis.ui.place import served_database, workbench
from masis.workbench import Workbench


def page_icon() -> str:
    """The icon of the browser tab, a file of our own: a named icon would be fetched from another host."""
    return str(Path(__file__).parent / "components" / "icon.svg")


@contextmanager
def guarded() -> Iterator[Workbench]:
    """The workbench for a page; where database or settings can't be used, that is said in words and the page ends."""
    try:
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
