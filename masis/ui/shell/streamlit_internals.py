"""All that the workbench uses of Streamlit beyond its documented API, in one place.

None of it is promised to stay, so pyproject.toml allows no minor version of Streamlit later than ``TESTED``, and
tests/browser/test_streamlit_internals.py names what a new version no longer has. To move to one: raise ``TESTED`` and
the bound in pyproject.toml, run that test, and change what it names here.
"""

from __future__ import annotations

import json

TESTED = "1.67"
"""The last minor version of Streamlit that everything here was tested with."""

ELEMENTS: dict[str, str] = {
    "app": "stApp",
    "button": "stBaseButton-secondary",
    "caption": "stCaptionContainer",
    "column": "stColumn",
    "columns": "stHorizontalBlock",
    "container": "stVerticalBlock",
    "dialog": "stDialog",
    "icon": "stIconMaterial",
    "navigation_link": "stTopNavLink",
    "primary_button": "stBaseButton-primary",
    "primary_submit": "stBaseButton-primaryFormSubmit",
    "tertiary_button": "stBaseButton-tertiary",
    "wrapper": "stLayoutWrapper",
}
"""The elements that styles and scripts refer to: our name, and the ``data-testid`` that Streamlit gives them."""

PAGE_STATE = {
    "connection": "testConnectionState",
    "connected": "CONNECTED",
    "script": "testScriptState",
    "idle": "notRunning",
}
"""Names in the ``app`` element's data set, and the values they have when the page is connected and drawn."""


def selector(name: str) -> str:
    """Return the CSS selector of an element of ``ELEMENTS``."""
    return f"[data-testid={ELEMENTS[name]}]"


def with_selectors(styles: str) -> str:
    """Replace ``@st-NAME`` in a style sheet by the selector of that element."""
    for name in sorted(ELEMENTS, key=len, reverse=True):
        styles = styles.replace(f"@st-{name}", selector(name))
    return styles


def script() -> str:
    """Return the JavaScript that gives the page's own elements the same names: ``STREAMLIT``."""
    names = {"elements": {name: selector(name) for name in ELEMENTS}, "state": PAGE_STATE}
    return f"const STREAMLIT = {json.dumps(names)}"


def is_no_pages_folder_app() -> None:
    """Tell Streamlit that the folder ``pages/`` is not its own kind of multipage application.

    It takes it for one until app.py has run once, and a deep link would then show its page without the frame.
    """
    from streamlit.runtime.pages_manager import PagesManager

    PagesManager.uses_pages_directory = False
