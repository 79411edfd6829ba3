"""The metrics page: what the audits came to, by period and by model, and the runs behind each figure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, cast, get_args

import streamlit as st

from masis.services import Workbench
from masis.services.metrics import SPREADS
from masis.services.records import MeasureFilter, Period, Pick
from masis.settings import ROLES, Role
from masis.ui.metrics.components import metrics_board, metrics_runs
from masis.ui.metrics.view import RATES, MetricsView, period_of, picked_words, run_rows, view
from masis.ui.shell import address
from masis.ui.shell.served_database import command_markdown, served_database, served_workbench

PERIODS: tuple[Period, ...] = get_args(Period)
FILTERS = ("by", "since", "until", "role", "model", "dataset")
PICKED = ("show", "above", "most", "at", "of", "page")
RUNS_A_PAGE = 20
SPANS = {"7": "7 days", "30": "30 days", "90": "90 days", "": "All"}


def show_metrics(workbench: Workbench) -> None:
    """The page of figures; of the runs behind one where the address names it."""
    st.title("Metrics")
    span = workbench.metrics.span()
    if span is None:
        _show_none_yet()
        return
    _controls(workbench)
    wanted = metrics_filter()
    if address.value("show"):
        _runs(workbench, wanted)
    board = _board(
        str(served_database()), workbench.metrics.newest(), wanted.model_dump_json(), chosen_period(), _kept()
    )
    if not board["rates"][0]["from"]:
        st.markdown("**No audit matches.** Choose a longer time, or fewer filters.")
        st.button("Clear filters", on_click=_clear, args=(FILTERS,))
        return
    if way := metrics_board(cast("dict[str, Any]", board), key="metrics-board"):
        _go(way)
    st.caption(
        "Times are UTC. What was not scored or not measured is counted nowhere. "
        f"{command_markdown('masis metrics')} prints the same figures; with telemetry switched on, "
        "OpenTelemetry gets them too."
    )


def metrics_filter() -> MeasureFilter:
    """The runs that the address asks for."""
    since, until = _day("since"), _day("until")
    return MeasureFilter(
        since=since.isoformat() if since else None,
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        role=_role(),
        models=tuple(address.words("model")),
        datasets=tuple(address.words("dataset")),
    )


def chosen_period() -> Period:
    """Day, week or month, as the address says; else weeks."""
    return next((each for each in PERIODS if each == address.value("by")), "week")


def pick() -> Pick:
    """Which runs of those that match the address asks to list; a figure that is not known lists all."""
    show = address.value("show")
    if show in RATES:
        return Pick(rate=show)
    if show in SPREADS:
        return Pick(measure=show, above=_number("above"), most=_number("most"))
    return Pick()


@st.cache_data(show_spinner=False, max_entries=50)
def _board(path: str, newest: int, wanted: str, period: Period, kept: dict[str, str]) -> MetricsView:
    """The figures, reckoned again only when new ones have come in."""
    return view(served_workbench().metrics.report(MeasureFilter.model_validate_json(wanted), period), kept)


def _kept() -> dict[str, str]:
    return {name: address.value(name) for name in FILTERS if address.value(name)}


def _go(way: dict[str, str]) -> None:
    for name in PICKED:
        address.put(name, way.get(name, ""))
    st.rerun()


def _runs(workbench: Workbench, wanted: MeasureFilter) -> None:
    """The runs behind a figure."""
    picked, period, at, of = pick(), chosen_period(), address.value("at"), address.value("of")[: address.LONGEST_WORD]
    if bounds := period_of(period, at) if at else None:
        since, until = (each.isoformat() for each in bounds)
        narrower = {"since": max(since, wanted.since or since), "until": min(until, wanted.until or until)}
        wanted = wanted.model_copy(update=narrower)
    if of:
        wanted = wanted.model_copy(update={"models": (of,)})
    page = workbench.metrics.runs(wanted, picked, page=address.number("page"), size=RUNS_A_PAGE)
    pages = max(1, -(-page.total // RUNS_A_PAGE))
    if address.number("page") > pages:
        address.put("page", str(pages) if pages > 1 else "")
        st.rerun()
    with st.container(border=True):
        words, close = st.columns([6, 1], vertical_alignment="center")
        words.text(f"{picked_words(picked, period, at if bounds else '', of)}: {page.total:,}")
        close.button("Close", icon=":material/close:", key="close-runs", on_click=_clear, args=(PICKED,))
        if not page.total:
            st.caption("No run of these is here.")
            return
        opened = metrics_runs(run_rows(page.rows, picked.measure), key="metrics-runs")
        if opened and opened.get("case"):
            st.switch_page("pages/review.py", query_params={"case": opened["case"], "run": opened["run"]})
        if pages > 1:
            st.session_state["runs-page"] = address.number("page")
            st.pagination(pages, key="runs-page", on_change=_turn_page)


def _controls(workbench: Workbench) -> None:
    by, span, since, until = st.columns([3, 4, 2, 2], vertical_alignment="bottom")
    with by:
        st.session_state["metrics-by"] = chosen_period()
        st.segmented_control(
            "Period", PERIODS, key="metrics-by", format_func=str.capitalize, required=True, on_change=_choose_period
        )
    with span:
        st.session_state["metrics-span"] = _span()
        st.segmented_control(
            "Time", list(SPANS), key="metrics-span", format_func=SPANS.__getitem__, on_change=_choose_span
        )
    for place, name, title in ((since, "since", "From"), (until, "until", "To")):
        with place:
            st.session_state[f"metrics-{name}"] = _day(name)
            st.date_input(title, key=f"metrics-{name}", format="YYYY-MM-DD", on_change=_choose_day, args=(name,))
    role, model, dataset = st.columns([2, 5, 4], vertical_alignment="bottom")
    with role:
        st.session_state["metrics-role"] = _role()
        st.selectbox("Model of the", ROLES, key="metrics-role", format_func=str.capitalize, on_change=_choose_role)
    with model:
        _several("Model", "model", workbench.metrics.names(_role()), "Any model")
    datasets = workbench.metrics.names("dataset")
    if datasets or address.words("dataset"):
        with dataset:
            _several("Data set", "dataset", datasets, "Any data set")


def _several(title: str, name: str, known: dict[str, int], nothing: str) -> None:
    chosen = address.words(name)
    st.session_state[f"metrics-{name}"] = chosen
    st.multiselect(
        title,
        [*known, *(each for each in chosen if each not in known)],
        key=f"metrics-{name}",
        format_func=lambda each: f"{each} ({known.get(each, 0):,})",
        placeholder=nothing,
        on_change=_choose_several,
        args=(name,),
    )


def _show_none_yet() -> None:
    st.markdown(
        "**No audit has finished yet.** Each one leaves its figures here: how often answers make something up, how "
        "long critic and reviser take, what revisions improve, what it costs."
    )
    st.page_link("pages/new.py", label="Audit an answer", icon=":material/add_circle:")


def _role() -> Role:
    return next((each for each in ROLES if each == address.value("role")), "critic")


def _day(name: str) -> date | None:
    try:
        return date.fromisoformat(address.value(name))
    except ValueError:
        return None


def _number(name: str) -> float | None:
    text = address.value(name)
    try:
        found = float(text) if len(text) < 24 else None
    except ValueError:
        return None
    return found if found is not None and abs(found) < 1e15 else None


def _today() -> date:
    return datetime.now(UTC).date()


def _span() -> str | None:
    since, until = _day("since"), _day("until")
    if since is None and until is None:
        return ""
    days = (_today() - since).days + 1 if since and until is None else 0
    return str(days) if str(days) in SPANS else None


def _choose_period() -> None:
    chosen = st.session_state["metrics-by"]
    address.put("by", "" if chosen == "week" else chosen)
    _clear(PICKED)


def _choose_span() -> None:
    chosen = st.session_state["metrics-span"] or ""
    address.put("since", (_today() - timedelta(days=int(chosen) - 1)).isoformat() if chosen else "")
    address.put("until", "")
    _clear(PICKED)


def _choose_day(name: str) -> None:
    chosen = st.session_state[f"metrics-{name}"]
    address.put(name, chosen.isoformat() if chosen else "")
    _clear(PICKED)


def _choose_role() -> None:
    chosen = st.session_state["metrics-role"]
    address.put("role", "" if chosen == "critic" else chosen)
    address.put("model", "")
    _clear(PICKED)


def _choose_several(name: str) -> None:
    address.put_words(name, st.session_state[f"metrics-{name}"])
    _clear(PICKED)


def _turn_page() -> None:
    number = st.session_state["runs-page"]
    address.put("page", str(number) if number > 1 else "")


def _clear(names: tuple[str, ...]) -> None:
    for name in names:
        address.put(name, "")
