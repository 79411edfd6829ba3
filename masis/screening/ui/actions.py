"""Shared parts of the screening pages: the reviewer's name and error messages."""

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
"""Parameters of the address that belong to a single screening."""
PROBLEM_KEY = "screening-problem"
"""Session state key of an error message about a screening as a whole."""


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
    """Return the result of ``do``; a MasisError is kept for ``show_problem``, and None returned."""
    try:
        return do()
    except MasisError as error:
        st.session_state[slot] = str(error)
        return None


def show_problem(slot: str, show: Callable[..., object] = st.warning) -> None:
    """Show an error message once, in a container that always exists, so that nothing moves."""
    with st.container():
        if problem := st.session_state.pop(slot, ""):
            show(problem, icon=":material/error:")


def open_screening(screening_id: str | None) -> None:
    """Open a screening, or the list if the id is empty; None (a failed attempt) does nothing."""
    if screening_id is not None:
        address.clear(SCREENING_PARAMETERS)
        address.set_param("screening", screening_id)
