"""What the page's address says, read and written in one place.

Addresses come from outside: what makes no sense in one is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar, get_args

import streamlit as st

from masis.store.records import CaseFilter, QueueOrder
from masis.ui.words import FLAG, STATES

PAGE_SIZE = 20
LONGEST_QUERY = 400
Known = TypeVar("Known", bound=str)
ORDERS: dict[QueueOrder, str] = {
    "telling": "Most telling first",
    "least_confident": "Least confident first",
    "newest": "Newest first",
    "oldest": "Oldest first",
    "random": "In random order",
}


def value(name: str) -> str:
    """The value of a parameter, empty where it is absent."""
    return st.query_params.get(name, "")


def put(name: str, text: str) -> None:
    """Set a parameter, or drop it where ``text`` is empty."""
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


def order() -> QueueOrder:
    """The order asked for, else the most telling first."""
    return next((known for known in get_args(QueueOrder) if known == value("order")), "telling")


def several(name: str, known: Iterable[Known]) -> list[Known]:
    """The known values of a parameter that holds several, separated by commas."""
    wanted = set(value(name).split(","))
    return [each for each in known if each in wanted]


def number(name: str, default: int = 1) -> int:
    """A parameter as a whole number from 1 on."""
    text = value(name)
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 8 else default


def case_filter(fields: Iterable[str]) -> CaseFilter:
    """The filter the address describes; ``fields`` are those the store has."""
    return CaseFilter(
        text=value("q")[:LONGEST_QUERY],
        states=tuple(several("state", STATES)),
        flags=tuple(several("flag", FLAG)),
        fields=tuple(field for field in fields if field == value("field")),
        order=order(),
        page=number("page"),
        size=PAGE_SIZE,
    )


LIST_PARAMETERS = ("q", "state", "flag", "field", "order", "page")
"""What describes the list a case was opened from: kept on the way, so that back and next lead along the same list."""


def open_case(case_id: str) -> NoReturn:
    """Go to the desk of a case."""
    st.switch_page("pages/review.py", query_params={**list_parameters(), "case": case_id})


def leave_case() -> NoReturn:
    """Go back to the list the case was opened from."""
    st.switch_page("pages/queue.py", query_params=list_parameters())


def list_parameters() -> dict[str, str]:
    """The filter of the address."""
    return {name: value(name) for name in LIST_PARAMETERS if value(name)}
