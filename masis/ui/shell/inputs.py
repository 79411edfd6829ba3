"""Inputs whose contents belong to the person: what is typed or chosen is stored, and no rerun of
the page undoes it.

Three things can lose an input in Streamlit, and each is answered here:

- A rerun replaces what is in a field with what the server has. ``typing_area`` replaces text only
  when its ``version`` changes, and never text that is not stored yet; ``show_value`` sets a widget
  only when the value to show has changed.
- What the browser posts is lost on its way, or the run that takes it is cut short. The fields post
  their text again until the server says that it is stored, and the server says so only after
  ``on_text`` has returned. A callback that was begun runs to its end:
  ``streamlit_internals.let_callbacks_finish``.
- The page rebuilds an element, because another one above it came or went. The browser remembers
  text that is not stored yet and puts it back; pages draw what comes and goes inside a container
  that is always there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import streamlit as st

from masis.errors import MasisError
from masis.services.records import explained_errors
from masis.ui.components import register_component
from masis.ui.shell.served_database import served_database

log = logging.getLogger(__name__)

_TYPING = register_component("typing")
_FIELDS = "typing-fields"
_NOT_SHOWN = object()


def typing_area(
    label: str,
    *,
    key: str,
    text: str,
    version: str,
    most: int,
    rows: int,
    on_text: Callable[[str], None],
    hint: str = "",
    placeholder: str = "",
    optional: bool = False,
) -> None:
    """Draw a text area that posts what is typed when typing pauses and when the field is left.

    Args:
        label: Name of the field.
        key: Key of the element; the browser remembers text that is not stored yet under it.
        text: The text as the server has it.
        version: Changes when the field is to show ``text`` instead of what was typed.
        most: Longest text in characters; what is longer is cut.
        rows: Height in lines; 1 draws a field of a single line.
        on_text: Stores the text. It may be called again with the same text. A MasisError means that
            it is not stored.
        hint: A sentence under the label.
        placeholder: Shown in the empty field.
        optional: Whether the label says that the field may stay empty.

    """
    stored = f"{key}-stored"

    def take() -> None:
        posted: Any = st.session_state[key].get("typed") if key in st.session_state else None
        if not isinstance(posted, dict) or not isinstance(posted.get("text"), str):
            return
        receipt = {"mount": posted.get("mount"), "edit": posted.get("edit")}
        if receipt == st.session_state.get(stored):
            return
        try:
            with explained_errors(served_database()):
                on_text(posted["text"][:most])
        except MasisError as error:
            log.warning("what was typed into %s could not be stored: %s", key, error)
            return  # the browser still has it and posts it again
        st.session_state[stored] = receipt

    st.session_state.setdefault(_FIELDS, {})[key] = take
    take()  # a run that is cut short by the next one can lose its callback
    data = {
        "key": key,
        "label": label,
        "text": text,
        "version": version,
        "most": most,
        "rows": rows,
        "hint": hint,
        "placeholder": placeholder,
        "optional": optional,
        "stored": st.session_state.get(stored),
    }
    _TYPING(data=data, key=key, on_typed_change=take)


def store_typed() -> None:
    """Store what the fields of this page have posted, before a button's callback uses it.

    The callbacks of one run are called in no particular order: that of a button can come before
    that of the field that was left by clicking it.
    """
    for take in st.session_state.get(_FIELDS, {}).values():
        take()


def show_value(key: str, value: Any, take: Callable[[], None] | None = None) -> None:
    """Let the widget ``key``, drawn next, show ``value``, unless a person has just chosen another
    one.

    Assigning to the session state on every run would put the widget back to ``value`` even while a
    newer choice is on its way to the server.

    Args:
        key: Key of the widget.
        value: The value to show.
        take: The widget's ``on_change``, called here where its own call was lost.

    """
    shown = f"{key}-shown"
    current = st.session_state.get(key, _NOT_SHOWN)
    if current is _NOT_SHOWN or (
        current != value and st.session_state.get(shown, _NOT_SHOWN) != value
    ):
        st.session_state[key] = value
    elif current != value and take is not None:
        take()
    st.session_state[shown] = value
