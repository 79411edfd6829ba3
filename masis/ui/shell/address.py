"""Read and write the parameters of the page's address.

Addresses are untrusted input, so invalid values are ignored. ``bind_query_param`` connects a widget
with a parameter, so that Back, reload and a copied link show the same state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, get_args
from urllib.parse import quote, unquote, urlencode

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.causes import CAUSES
from masis.schema.review import Standing
from masis.services.cases import AUDIT_STANDINGS
from masis.services.records import (
    DEFAULT_ORDER,
    NOT_DECIDED,
    ORDERS,
    STATE_OF_VERDICT,
    CaseFilter,
    ReviewQueue,
)
from masis.ui.shell.served_database import served_workbench
from masis.views.words import FLAG, REASON, SEVERITY, STANDING, STATE, Word

PAGE_SIZE = 20
PAGE_SIZES = (20, 50, 100)
PAGE_BUTTON_PX = 40
# Limits on what is read from an address, which anyone can write.
LONGEST_QUERY = 400
LONGEST_WORD = 200
MOST_WORDS = 50
LARGEST_SEED = 9_999_999
# a sentinel, because None is a value that a widget can show
_AS_IT_IS = object()
Known = TypeVar("Known", bound=str)
Record = TypeVar("Record")


class Filter(NamedTuple):
    """A filter of the queue. Address, widget, chips and query are all derived from this
    declaration.

    ``name`` is its parameter in the address and ``field`` its field of ``CaseFilter``. A ``known``
    filter accepts the keys of ``options``, ``words`` accepts any value, ``range`` two bounds from 0
    to 1, and ``id`` the ids of cases or imports, which only a link sets. ``machine`` filters depend
    on audit results.
    """

    name: str
    title: str
    kind: Literal["known", "words", "range", "id"]
    field: str
    options: Mapping[str, str] = {}
    machine: bool = False


def _label_texts(words: Mapping[Any, Word]) -> dict[str, str]:
    return {name: word.text for name, word in words.items()}


STANDINGS = Filter("standing", "Status", "known", "standings", _label_texts(STANDING))
SEVERITIES = Filter(
    "severity",
    "Worst issue",
    "known",
    "severities",
    {**_label_texts(SEVERITY), "none": "none"},
    machine=True,
)
FILTERED_STATES = ("needs_review", "needs_adjudication", *STATE_OF_VERDICT.values())
DRAWER: tuple[Filter, ...] = (
    Filter("flag", "Issue", "known", "flags", _label_texts(FLAG), machine=True),
    SEVERITIES,
    Filter("reason", "Reason for review", "known", "reasons", _label_texts(REASON), machine=True),
    Filter(
        "state",
        "State in detail",
        "known",
        "states",
        _label_texts({name: STATE[name] for name in FILTERED_STATES}),
    ),
    Filter("field", "Field", "words", "fields"),
    Filter("dataset", "Data set", "words", "datasets"),
    Filter("system", "System", "words", "systems"),
    Filter("model", "Model", "words", "models", machine=True),
    Filter("reviewer", "Decided by", "words", "reviewers"),
    Filter("assignee", "Assigned to", "words", "assignees"),
    Filter("tag", "Tag", "words", "tags"),
    Filter("similar", "Nearly the same answer as", "id", "similar_to"),
    Filter("mode", "Failure mode", "words", "modes"),
    Filter("cause", "Cause", "known", "causes", {name: row.name for name, row in CAUSES.items()}),
    Filter("imported", "Import", "id", "imports"),
    Filter("month", "Month of import", "words", "months"),
    Filter("quality", "Quality", "range", "quality", machine=True),
    Filter("confidence", "Confidence", "range", "confidence", machine=True),
)
"""Filters that a list shows on demand; ``STANDINGS`` is always visible."""

FILTERS = ("q", *(filter_.name for filter_ in (STANDINGS, *DRAWER)))
"""The parameters that exclude cases."""

_WITH_ALL_STANDINGS = ("state", "q", "similar", "imported")
"""The filters that list decided cases, too."""

LIST_PARAMETERS = (*FILTERS, "queue", "order", "seed", "page", "size", "view")
"""The parameters of the list from which a case was opened.

Links pass them on, so that back and next follow the same list.
"""


def value(name: str) -> str:
    """Return the value of a parameter, or "" if it is absent."""
    return st.query_params.get(name, "")


def set_param(name: str, text: str) -> None:
    """Set a parameter, or remove it if ``text`` is empty."""
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


def replace(parameters: Mapping[str, str]) -> None:
    """Replace all parameters by these."""
    st.query_params.from_dict(dict(parameters))


def clear(names: Iterable[str]) -> None:
    """Remove these parameters."""
    for name in names:
        set_param(name, "")


def bind_query_param(
    name: str,
    default: object = None,
    *,
    shows: object = _AS_IT_IS,
    key: str = "",
    drops: Collection[str] = ("page",),
    drawer: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a widget whose value is stored in the address.

    Example: ``st.selectbox(..., **bind_query_param("order"))``

    Args:
        name: The parameter.
        default: The value for which the parameter is omitted.
        shows: The value that the widget shows. If omitted, the caller sets it.
        key: Key of the widget, by default the parameter's name.
        drops: Parameters to remove when this one changes.
        drawer: Whether the widget is in a popover or expander that may be closed.

    """
    key = key or name
    if drawer:
        key = _drawer_key(key, shows)
    if shows is not _AS_IT_IS:
        # On every run, so that Back and Forward, which change only the address, change the widget
        # too.
        st.session_state[key] = shows
    return {"key": key, "on_change": _store_choice, "args": (key, name, default, tuple(drops))}


def _drawer_key(key: str, shows: object) -> str:
    """Return the key of a widget in a drawer, with a number that changes with the address.

    A browser keeps the value of a widget whose drawer is closed, and would send it again with the
    next action. The number increases if the widget's value no longer matches the address.
    """
    generation: int = st.session_state.get(f"drawn-{key}", 0)
    generation += st.session_state.get(f"{key}-{generation}", shows) != shows
    st.session_state[f"drawn-{key}"] = generation
    return f"{key}-{generation}"


def _store_choice(key: str, name: str, default: object, drops: tuple[str, ...]) -> None:
    chosen = st.session_state[key]
    set_param(name, "" if chosen in (None, default) else to_query(chosen))
    clear(drops)


def to_query(chosen: object) -> str:
    """Return a widget's value as it is written in the address."""
    match chosen:
        case bool():
            return "yes" if chosen else "no"
        # The whole range excludes nothing, so the parameter is left out.
        case (float() as low, float() as high):
            return "" if (low, high) == (0.0, 1.0) else f"{low:g}-{high:g}"
        case list() | tuple():
            return in_words(chosen)
        case date():
            return chosen.isoformat()
    return str(chosen).strip()


def queue() -> ReviewQueue | None:
    """Return the named queue in the address, or None for the first queue or an unknown one."""
    queue_id = value("queue")
    if not queue_id:
        return None
    queues = served_workbench().store.team.queues()
    return next((queue for queue in queues if queue.id == queue_id), None)


def default_order() -> str:
    """Return the order of a list without one in the address: that of its queue."""
    chosen = queue()
    return chosen.cases.order if chosen else DEFAULT_ORDER


def order() -> str:
    """Return the name of the order in the address, or else of the default order."""
    return one_of("order", ORDERS, default_order())


def one_of(name: str, known: Iterable[Known], default: Known) -> Known:
    """Return the value of a parameter if it is one of the known values, or else the default."""
    return next((name_ for name_ in known if name_ == value(name)), default)


def several(name: str, known: Iterable[Known]) -> list[Known]:
    """Return the known values of a parameter that holds several, separated by commas."""
    # In the order of the known values, regardless of the order in the address.
    chosen = set(words(name))
    return [option for option in known if option in chosen]


def words(name: str) -> list[str]:
    """Return all values of a parameter that holds several; ``%2C`` is a comma inside a value."""
    # Split before decoding, because a value may contain an encoded comma.
    parts = (unquote(word).strip()[:LONGEST_WORD] for word in value(name).split(",")[:MOST_WORDS])
    return list(dict.fromkeys(word for word in parts if word))


def in_words(chosen: Iterable[str]) -> str:
    """Return several values as one parameter."""
    return ",".join(quote(text, safe=" /:@+&=") for text in chosen)


def number(name: str, default: int = 1) -> int:
    """Return a parameter as an integer of at least 1."""
    # isdigit() is also true of characters such as "²", which int() refuses.
    text = value(name)
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 8 else default


def bounds(name: str) -> tuple[float | None, float | None]:
    """Return a parameter as a range of scores, for example ``0.2-0.8``, ``0.5-`` or ``-0.5``.

    None means that a side is open.
    """
    low, high = (_share_in_address(text) for text in value(name).partition("-")[::2])
    return (None, None) if low is not None and high is not None and low > high else (low, high)


def _share_in_address(text: str) -> float | None:
    try:
        share = float(text) if len(text) < 10 else math.nan
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None  # also None for NaN, which compares as false


def day(name: str) -> date | None:
    """Return a parameter as a date."""
    try:
        return date.fromisoformat(value(name))
    except ValueError:
        return None


def standings(*, with_state: bool = False) -> tuple[Standing, ...]:
    """Return the statuses of the listed cases: those in the address, or else all that aren't
    decided.

    A search, or a filter by state, by a case's answer or by import, includes all statuses.
    ``with_state`` acts as if the address had such a filter.
    """
    chosen = several("standing", get_args(Standing))
    if "to_review" in chosen:  # replaces the audit's statuses for reviewers who decide blind
        chosen = [
            standing
            for standing in get_args(Standing)
            if standing in chosen or standing in AUDIT_STANDINGS
        ]
    return tuple(standing for standing in chosen if standing != "to_review") or (
        () if with_state or any(map(value, _WITH_ALL_STANDINGS)) else NOT_DECIDED
    )


def case_filter() -> CaseFilter:
    """Return the filter that the address describes."""
    fields: dict[str, Any] = {}
    for filter_ in DRAWER:
        if filter_.kind == "range":
            fields[f"{filter_.field}_from"], fields[f"{filter_.field}_to"] = bounds(filter_.name)
        else:
            fields[filter_.field] = tuple(
                several(filter_.name, filter_.options) if filter_.options else words(filter_.name)
            )
    size = number("size", PAGE_SIZE)
    chosen, shown = queue(), standings()
    if chosen is not None:
        # The queue has its own status of each case, so its list has those that wait there.
        waits = shown == NOT_DECIDED and not value("standing")
        fields |= {"queue": chosen.id, "waits_in_queue": waits}
        shown = () if waits else shown
    return CaseFilter(
        text=value("q")[:LONGEST_QUERY],
        standings=shown,
        **fields,
        order=order(),
        seed=number("seed", 0),
        page=number("page"),
        size=size if size in PAGE_SIZES else PAGE_SIZE,
    )


def filter_parameters(case_filter: CaseFilter) -> dict[str, str]:
    """Return the parameters of a list with a filter's words, values, ranges and order."""
    parameters = {"q": case_filter.text}
    for filter_ in DRAWER:
        if filter_.kind == "range":
            low = getattr(case_filter, f"{filter_.field}_from")
            high = getattr(case_filter, f"{filter_.field}_to")
            if (low, high) != (None, None):
                bound = ["" if share is None else f"{share:g}" for share in (low, high)]
                parameters[filter_.name] = "-".join(bound)
        else:
            parameters[filter_.name] = in_words(getattr(case_filter, filter_.field))
    if case_filter.order != DEFAULT_ORDER:
        parameters["order"] = case_filter.order
    if case_filter.seed:
        parameters["seed"] = str(case_filter.seed)
    return {name: text for name, text in parameters.items() if text}


def filters_without_parameter(case_filter: CaseFilter) -> list[str]:
    """Return the fields of a queue's filter that no parameter of a list can express."""
    ranges = [f"{filter_.field}_{end}" for filter_ in DRAWER for end in ("from", "to")]
    known = {"text", "order", "seed", *ranges, *(filter_.field for filter_ in DRAWER)}
    return [name for name in case_filter.model_dump(exclude_defaults=True) if name not in known]


def choose_several(
    title: str,
    name: str,
    counts: Mapping[str, int],
    worded: Callable[[str], str] = str,
    **keeps: Any,
) -> None:
    """Draw the choice of a parameter's values with their counts.

    ``keeps`` are further arguments of ``bind_query_param``.
    """
    chosen = words(name)
    # Streamlit raises an error if a chosen value isn't one of the options, and an address can hold
    # any value.
    options = list(dict.fromkeys((*counts, *chosen)))
    st.multiselect(
        title,
        options,
        format_func=lambda option: f"{worded(option)} ({counts.get(option, 0):,})",
        placeholder="Any" if options else "None",
        disabled=not options,
        **bind_query_param(name, [], shows=chosen, drawer=True, **keeps),
    )


def show_pages(total: int, size: int, *, key: str) -> None:
    """Draw the page numbers of a list with several pages.

    If the address names a page after the last one, the last page is shown.
    """
    # Negating twice rounds the quotient up.
    pages = max(1, -(-total // size))
    if number("page") > pages:
        set_param("page", str(pages) if pages > 1 else "")
        st.rerun()
    if pages > 1:
        # In a row, Streamlit makes the widget as narrow as possible, so it omits page numbers.
        width = PAGE_BUTTON_PX * (min(pages, 7) + 2)
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            st.pagination(
                pages,
                width=width,
                **bind_query_param("page", 1, shows=number("page"), key=key, drops=()),
            )
            st.caption(f"{number('page'):,} of {pages:,}", width="content")


def find_by_id(read: Callable[[str], Record], record_id: str) -> Record | None:
    """Return the record with an id from the address, or None if the id is empty or unknown."""
    try:
        return read(record_id) if record_id else None
    except UnknownRecord:
        return None


def open_case(case_id: str) -> NoReturn:
    """Open the page of a case."""
    st.switch_page("pages/review.py", query_params={**list_parameters(), "case": case_id})


def leave_case() -> NoReturn:
    """Return to the list from which the case was opened."""
    st.switch_page("pages/queue.py", query_params=list_parameters())


def list_parameters() -> dict[str, str]:
    """Return the list parameters in the address."""
    return {name: value(name) for name in LIST_PARAMETERS if value(name)}


def compared_pair() -> dict[str, str]:
    """Return the parameters of the pair on Compare from which a case was opened, if it was."""
    names = ("first", "second", "list", "pair")
    known = {name: value(name)[:LONGEST_WORD] for name in names if value(name)}
    return known if {"first", "second", "pair"} <= known.keys() else {}


def link(page: str, /, **parameters: str) -> str:
    """Return the address of a page within the workbench, without empty parameters."""
    filled = {name: text for name, text in parameters.items() if text}
    # The overview has an empty name, and "." is its address from every page.
    return f"{page}?{urlencode(filled)}" if filled else page or "."
