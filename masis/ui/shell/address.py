"""Read and write the address of the page, in one place.

Addresses come from outside: what makes no sense in one is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, NoReturn, TypeVar, get_args
from urllib.parse import quote, unquote, urlencode

import streamlit as st

from masis.services.records import CaseFilter, QueueOrder
from masis.views.words import FLAG, REASON, STATES, TIER

PAGE_SIZE = 20
PAGE_SIZES = (20, 50, 100)
LONGEST_QUERY = 400
LONGEST_WORD = 200
MOST_WORDS = 50
LARGEST_SEED = 9_999_999
Known = TypeVar("Known", bound=str)
ORDER: QueueOrder = "risk"
"""The order of a list whose address names none."""
ORDERS: dict[QueueOrder, str] = {
    "risk": "Most likely faulty first",
    "disagreement": "Most disagreement first",
    "least_confident": "Least confident first",
    "newest": "Newest first",
    "oldest": "Oldest first",
    "random": "In random order",
}

LIST_PARAMETERS = (
    *("q", "state", "tier", "reason", "flag", "field", "dataset", "model", "reviewer", "quality", "confidence"),
    *("assignee", "tag", "order", "seed", "page", "size"),
)
"""What describes the list a case was opened from; links carry it on, so that back and next follow the same list."""

FILTERS = LIST_PARAMETERS[:13]
"""Those of them that leave cases out."""


class Bounds(NamedTuple):
    """A range of scores; None leaves a side open."""

    low: float | None
    high: float | None


def value(name: str) -> str:
    """Return the value of a parameter, empty where it is absent."""
    return st.query_params.get(name, "")


def put(name: str, text: str) -> None:
    """Set a parameter, or drop it where ``text`` is empty."""
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


def order() -> QueueOrder:
    """The order asked for, else what is most likely faulty first."""
    return next((known for known in get_args(QueueOrder) if known == value("order")), ORDER)


def several(name: str, known: Iterable[Known]) -> list[Known]:
    """The known values of a parameter that holds several, separated by commas."""
    wanted = set(words(name))
    return [each for each in known if each in wanted]


def words(name: str) -> list[str]:
    """The values of a parameter that holds several, whatever they are; a comma inside one is written ``%2C``."""
    found = (unquote(each).strip()[:LONGEST_WORD] for each in value(name).split(",")[:MOST_WORDS])
    return list(dict.fromkeys(each for each in found if each))


def put_words(name: str, chosen: Iterable[str]) -> None:
    """Set a parameter that holds several values, or drop it where there are none."""
    put(name, in_words(chosen))


def in_words(chosen: Iterable[str]) -> str:
    """Return several values as one parameter holds them."""
    return ",".join(quote(each, safe=" /:@+&=") for each in chosen)


def number(name: str, default: int = 1) -> int:
    """Return a parameter as an integer of at least 1."""
    text = value(name)
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 8 else default


def bounds(name: str) -> Bounds:
    """Return a parameter as a range of scores: ``0.2-0.8``, ``0.5-`` or ``-0.5``."""
    low, _, high = value(name).partition("-")
    found = Bounds(_share(low), _share(high))
    return Bounds(None, None) if None not in found and found.low > found.high else found  # type: ignore[operator]


def put_bounds(name: str, low: float, high: float) -> None:
    """Set a range of scores; the full range is no filter and is dropped."""
    put(name, "" if (low, high) == (0.0, 1.0) else f"{low:g}-{high:g}")


def _share(text: str) -> float | None:
    try:
        found = float(text) if len(text) < 10 else math.nan
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


def case_filter() -> CaseFilter:
    """Return the filter that the address describes; a value that no case has matches none."""
    quality, confidence = bounds("quality"), bounds("confidence")
    size = number("size", PAGE_SIZE)
    return CaseFilter(
        text=value("q")[:LONGEST_QUERY],
        states=tuple(several("state", STATES)),
        tiers=tuple(several("tier", TIER)),
        reasons=tuple(several("reason", REASON)),
        flags=tuple(several("flag", FLAG)),
        fields=tuple(words("field")),
        datasets=tuple(words("dataset")),
        models=tuple(words("model")),
        reviewers=tuple(words("reviewer")),
        assignees=tuple(words("assignee")),
        tags=tuple(words("tag")),
        quality_from=quality.low,
        quality_to=quality.high,
        confidence_from=confidence.low,
        confidence_to=confidence.high,
        order=order(),
        seed=number("seed", 0),
        page=number("page"),
        size=size if size in PAGE_SIZES else PAGE_SIZE,
    )


def open_case(case_id: str) -> NoReturn:
    """Go to the page of a case."""
    st.switch_page("pages/review.py", query_params={**list_parameters(), "case": case_id})


def leave_case() -> NoReturn:
    """Go back to the list the case was opened from."""
    st.switch_page("pages/queue.py", query_params=list_parameters())


def list_parameters() -> dict[str, str]:
    """Return the list parameters that the address has."""
    return {name: value(name) for name in LIST_PARAMETERS if value(name)}


def link(page: str, /, **parameters: str) -> str:
    """Return the address of a page within the workbench; empty parameters are left out."""
    filled = {name: text for name, text in parameters.items() if text}
    return f"{page}?{urlencode(filled)}" if filled else page or "."
