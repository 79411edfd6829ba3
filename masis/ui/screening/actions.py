"""What the parts of these pages share: the reviewer's name, and problems in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from masis.errors import MasisError
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell import address
from masis.ui.shell.reviewer import name_reviewer, reviewer
from masis.ui.shell.served_database import served_workbench

T = TypeVar("T")
SCREENING_PARAMETERS = ("abstract", "show", "order", "page")
"""What the address says of one screening only."""
PROBLEM_KEY = "screening-problem"
"""Where what went wrong with a screening as a whole waits to be shown."""


def name_field(key: str, **shown: Any) -> None:
    """Draw a field for the reviewer's name, unless it is known."""
    if reviewer() is None:
        st.text_input("Your name", key=key, max_chars=LONGEST_NAME, **shown)


def has_reviewer_name(*keys: str) -> bool:
    """Return whether the reviewer's name is known, or was just typed into one of these fields."""
    for key in keys:
        if reviewer() is None:
            name_reviewer(served_workbench(), st.session_state.get(key, ""))
    return reviewer() is not None


def attempt(do: Callable[[], T], slot: str = PROBLEM_KEY) -> T | None:
    """Return what ``do`` gives; where it raises a MasisError, leave its words to be shown and
    return None.
    """
    try:
        return do()
    except MasisError as error:
        st.session_state[slot] = str(error)
        return None


def show_problem(slot: str, show: Callable[..., object] = st.warning) -> None:
    """Show what went wrong, once, in a container that is always there: what is drawn below it stays
    where it is.
    """
    with st.container():
        if problem := st.session_state.pop(slot, ""):
            show(problem, icon=":material/error:")


def open_screening(screening_id: str | None) -> None:
    """Let the address name another screening, or none where the id is empty; None, which could not
    be made, is none.
    """
    if screening_id is not None:
        address.clear(SCREENING_PARAMETERS)
        address.set_param("screening", screening_id)
