"""Inputs that never lose text or choices, whatever the page does in the meantime.

Three things can lose an input in Streamlit, and this module handles each of them:

- A rerun replaces the content of a field with the server's value. ``typing_area`` replaces text
  only if its ``version`` changes, and never text that isn't stored yet. ``show_value`` sets a
  widget only if the value to show has changed.
- A message from the browser is lost, or the run that handles it is interrupted. The fields send
  their text again until the server confirms it, which it does only after ``on_text`` has returned.
  A callback that has started runs to its end (``streamlit_internals.let_clicks_finish``).
- The page rebuilds an element because an element above it appeared or disappeared. The browser
  remembers text that isn't stored yet and restores it. Pages draw optional elements inside a
  container that always exists.
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
    """Draw a text area that sends its text when typing pauses and when the field loses focus.

    Args:
        label: The name of the field.
        key: The key of the element; the browser stores unsaved text under it.
        text: The text as the server has it.
        version: Changes when the field should show ``text`` instead of what was typed.
        most: The maximum length in characters; longer texts are cut.
        rows: The height in lines; 1 draws a single-line field.
        on_text: Stores the text. It may be called again with the same text. A MasisError means
            that the text isn't stored.
        hint: A sentence below the label.
        placeholder: Shown in the empty field.
        optional: Whether the label says that the field may stay empty.

    """
    stored = f"{key}-stored"

    def take() -> None:
        posted: Any = st.session_state[key].get("typed") if key in st.session_state else None
        if not isinstance(posted, dict) or not isinstance(posted.get("text"), str):
            return
        # The same edit can arrive several times: the browser sends it until it is confirmed.
        receipt = {"mount": posted.get("mount"), "edit": posted.get("edit")}
        if receipt == st.session_state.get(stored):
            return
        try:
            with explained_errors(served_database()):
                on_text(posted["text"][:most])
        except MasisError as error:
            log.warning("the text of the field %s could not be stored: %s", key, error)
            return  # the browser still has the text and sends it again
        st.session_state[stored] = receipt

    st.session_state.setdefault(_FIELDS, {})[key] = take
    take()  # Streamlit may not call the callback if another run interrupts this one
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
    """Store the texts that the fields of this page have sent, before a button's callback uses them.

    Streamlit calls the callbacks of one run in no particular order, so a button's callback may run
    before the callback of the field that lost focus by the click.
    """
    for take in st.session_state.get(_FIELDS, {}).values():
        take()


def show_value(key: str, value: Any, take: Callable[[], None] | None = None) -> None:
    """Make the widget ``key`` show ``value``, unless the user just chose another one.

    Call it right before the widget is drawn. Assigning to the session state on every run would
    reset the widget to ``value`` even while a newer choice is on its way to the server.

    Args:
        key: Key of the widget.
        value: The value to show.
        take: The widget's ``on_change``. It is called here if its own call was lost.

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
