"""Elements of the pages that Streamlit has not got, and helpers for those it has.

A component is a pair of files beside this one; what they share is in ``base.js`` and ``base.css``.
They write with ``textContent``, so that text from outside can't become markup.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from masis.ui.shell.streamlit_internals import script as streamlit_names

HERE = Path(__file__).parent
ROOT = '<div class="root"></div>'
"""What a component draws in."""


def sources(name: str, *parts: str) -> tuple[str, str]:
    """The styles and the script of a component, joined: what it shares with others, its ``parts``,
    its own.
    """

    def source(file: str) -> str:
        return (HERE / file).read_text(encoding="utf-8")

    styles = [
        source(f"{each}.css") for each in ("base", *parts, name) if (HERE / f"{each}.css").exists()
    ]
    return "\n".join(styles), "\n".join(
        (streamlit_names(), *(source(f"{each}.js") for each in ("base", *parts, name)))
    )


def register_component(name: str, *parts: str) -> Callable[..., Any]:
    """Register the component of ``name.js`` and ``name.css``; to be called once, when a module is
    imported.

    ``parts`` are further scripts that it needs, each with its styles where it has any.
    """
    css, js = sources(name, *parts)
    return st.components.v2.component(f"masis_{name}", html=ROOT, css=css, js=js)


def noop() -> None:
    """Do nothing: a component's trigger is delivered only where a callback is named for it."""
