"""Components of our own for elements that Streamlit doesn't have.

A component is a pair of a JavaScript and a CSS file in this folder. Shared code is in ``base.js``
and ``base.css``. Components write with ``textContent``, so that text from outside can't become
markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import streamlit as st

from masis.audit.markers import marker_end_pattern
from masis.ui.shell.streamlit_internals import script as streamlit_names

HERE = Path(__file__).parent
ROOT = '<div class="root"></div>'
"""The element that a component draws into."""


def sources(name: str, *parts: str) -> tuple[str, str]:
    """Return the joined styles and the joined script of a component.

    The shared files are first, then the ``parts``, then the component's own.

    Raises:
        FileNotFoundError: A part has neither a script nor styles.

    """
    styles: list[str] = []
    # How a citation marker ends, because scripts know no citation style
    scripts = [streamlit_names(), f"const MARKER_END = {json.dumps(marker_end_pattern())}"]
    for part in ("base", *parts, name):
        files = {".css": styles, ".js": scripts}
        present = [suffix for suffix in files if (HERE / f"{part}{suffix}").exists()]
        if not present:
            raise FileNotFoundError(f"{HERE} has neither {part}.js nor {part}.css.")
        for suffix in present:
            files[suffix].append((HERE / f"{part}{suffix}").read_text(encoding="utf-8"))
    return "\n".join(styles), "\n".join(scripts)


def register_component(name: str, *parts: str) -> Callable[..., Any]:
    """Register the component of ``name.js`` and ``name.css``.

    Call it once for each component, when its module is imported.

    Args:
        name: The name of the files.
        parts: The names of further scripts, styles or pairs of both that it needs.

    """
    css, js = sources(name, *parts)
    return st.components.v2.component(f"masis_{name}", html=ROOT, css=css, js=js)


MESSAGE_LASTS_S = 10.0
"""After this time, a message that no run has taken is about a page that the reader has left."""


def draw_and_listen(
    component: Callable[..., Any], messages: Sequence[str], *, data: object, key: str
) -> Mapping[str, Any]:
    """Draw a component and return the messages that it has sent, by their names.

    Each message is returned once. Streamlit itself gives a message only to the run that it starts,
    and another message can interrupt that run before it gets here. The message is therefore stored
    when it arrives, before the run begins.

    Args:
        component: What ``register_component`` returned.
        messages: The names of the messages that it can send.
        data: What it draws.
        key: The key of the element.

    """
    stored = f"messages-of-{key}"

    def store_message(name: str) -> Callable[[], None]:
        def store() -> None:
            # the state is gone if the message arrives while another page opens
            sent = (st.session_state.get(key) or {}).get(name)
            if sent is not None:
                st.session_state.setdefault(stored, {})[name] = (monotonic(), sent)

        return store

    component(data=data, key=key, **{f"on_{name}_change": store_message(name) for name in messages})
    earliest = monotonic() - MESSAGE_LASTS_S
    return {
        name: sent
        for name, (at, sent) in st.session_state.pop(stored, {}).items()
        if at >= earliest
    }
