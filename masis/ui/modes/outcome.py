"""What the last action on this page did, with its undo, and the choice of a mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError
from masis.schema.codebook import Codebook, FailureMode, code_from_name
from masis.schema.explain import explain
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.modes.service import CodedBatch
from masis.ui.queue.batch_dialog import open_undo_dialog
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown

_ERROR, _DONE, _BATCH, _MERGED = "modes-error", "modes-done", "modes-batch", "modes-merged"


class MergedMode(NamedTuple):
    """A mode that was merged into another one: its code, and what to say about it."""

    code: str
    text: str


def forget_outcome() -> None:
    """Clear the message about the last action, because another view is open or it was undone."""
    for name in (_ERROR, _DONE, _BATCH, _MERGED):
        st.session_state.pop(name, None)


def run_action(action: Callable[[], CodedBatch | MergedMode | str | None]) -> bool:
    """Run an action in a callback and remember what to show: what it did, or its error.

    Args:
        action: Returns the batch that it applied, the mode that it merged, or a sentence; None if
            the page shows by itself what was done.

    Returns:
        Whether it succeeded.

    """
    forget_outcome()
    try:
        done = action()
    except ValidationError as error:
        st.session_state[_ERROR] = str(explain(error))
    except MasisError as error:
        st.session_state[_ERROR] = str(error)
    else:
        if isinstance(done, CodedBatch):
            st.session_state[_BATCH] = done.batch
            done = f"Coded {count_noun(done.entries, 'row')} in {count_noun(done.cases, 'case')}."
        if isinstance(done, MergedMode):
            st.session_state[_MERGED] = done.code
            done = done.text
        st.session_state[_DONE] = done
        return True
    return False


def show_outcome(workbench: Workbench) -> None:
    """Draw what the last action did. A batch of codes and a merge can be undone."""
    batch = st.session_state.get(_BATCH)
    if batch and workbench.batches.get(actor(), batch).state in ("undoing", "undone"):
        forget_outcome()
    if error := st.session_state.pop(_ERROR, None):
        st.warning(escape_markdown(error))
    if done := st.session_state.get(_DONE):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(escape_markdown(done))
            if merged := st.session_state.get(_MERGED):
                st.button(
                    "Undo merge",
                    key="modes-undo-merge",
                    icon=":material/undo:",
                    on_click=unmerge,
                    args=(workbench, merged),
                    **button_state("oversee"),
                )
            if (batch := st.session_state.get(_BATCH)) and st.button(
                "Undo this batch",
                key="modes-undo",
                icon=":material/undo:",
                **button_state("decide"),
            ):
                open_undo_dialog(workbench, workbench.batches.get(actor(), batch))


def unmerge(workbench: Workbench, code: str) -> None:
    """Undo the merge of a mode, in a callback."""

    def unmerge_mode() -> str:
        book = workbench.modes.unmerge(actor(), code)
        mode = book.find(code)
        return f"“{mode.name if mode else code}” is a separate mode again."

    run_action(unmerge_mode)


def choose_mode(book: Codebook, label: str, key: str, *, new: bool = True) -> str | None:
    """Draw the choice of a mode. With ``new``, the name of a new one can be typed.

    A name that resembles those of modes asks whether one of them is meant.

    Returns:
        The code of a mode, or the name of a new one, or None.

    """
    names = {mode.code: mode.name for mode in book.in_use}
    typed = st.session_state.get(key)
    chosen: str | None = st.selectbox(
        label,
        [*names, *([typed] if new and typed and typed not in names else [])],
        index=None,
        format_func=lambda code: names.get(code, code),
        accept_new_options=new,
        placeholder="Choose one or type a new name" if new else "Choose one",
        key=key,
    )
    if chosen is None or chosen in names:
        return chosen
    alike = book.modes_like(chosen)
    if not alike or chosen.strip().casefold() == alike[0].name.casefold():
        return alike[0].code if alike else chosen
    meant: str | None = st.radio(
        "The codebook has a similar mode",
        [*(mode.code for mode in alike), chosen],
        index=None,
        format_func=lambda option: escape_markdown(names.get(option, f"Add “{option}”")),
        key=f"{key}-alike-{chosen}",
    )
    return meant


def ensure_mode(workbench: Workbench, chosen: str) -> str:
    """Return the code of a chosen mode. A new name is added to the codebook.

    Raises:
        ValidationError: The name is empty or too long.
        InputError: The codebook is full.

    """
    book = workbench.modes.codebook(actor())
    for mode in book.in_use:
        if chosen == mode.code or chosen.strip().casefold() == mode.name.casefold():
            return mode.code
    mode = FailureMode(code=code_from_name(chosen, [mode.code for mode in book.modes]), name=chosen)
    workbench.modes.add_mode(actor(), mode)
    return mode.code
