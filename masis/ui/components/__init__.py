"""Components of our own for elements that Streamlit doesn't have.

A component is a pair of a JavaScript and a CSS file in this folder. Shared code is in ``base.js``
and ``base.css``. Components write with ``textContent``, so that text from outside can't become
markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from masis.audit.markers import marker_end_pattern
from masis.ui.shell.streamlit_internals import script as streamlit_names

HERE = Path(__file__).parent
ROOT = '<div class="root"></div>'
"""The element that a component draws into."""


def sources(name: str, *parts: str, folder: Path = HERE) -> tuple[str, str]:
    """Return the joined styles and the joined script of a component.

    The shared files are first, then the ``parts``, then the component's own, from ``folder``.

    Raises:
        FileNotFoundError: A part has neither a script nor styles.

    """
    styles: list[str] = []
    # How a citation marker ends, because scripts know no citation style
    scripts = [streamlit_names(), f"const MARKER_END = {json.dumps(marker_end_pattern())}"]
    for path in (*(HERE / part for part in ("base", *parts)), folder / name):
        files = {".css": styles, ".js": scripts}
        present = [suffix for suffix in files if path.with_suffix(suffix).exists()]
        if not present:
            raise FileNotFoundError(
                f"{path.parent} has neither {path.name}.js nor {path.name}.css."
            )
        for suffix in present:
            files[suffix].append(path.with_suffix(suffix).read_text(encoding="utf-8"))
    return "\n".join(styles), "\n".join(scripts)


def register_component(name: str, *parts: str, folder: Path = HERE) -> Callable[..., Any]:
    """Register the component of ``name.js`` and ``name.css``.

    Call it once for each component, when its module is imported.

    Args:
        name: The name of the files.
        parts: The names of further scripts, styles or pairs of both that it needs.
        folder: The folder of its own files.

    """
    css, js = sources(name, *parts, folder=folder)
    return st.components.v2.component(f"masis_{name}", html=ROOT, css=css, js=js)


def noop() -> None:
    """Do nothing.

    Streamlit delivers a component's trigger only if a callback is registered for it.
    """
