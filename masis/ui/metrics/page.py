"""The metrics page: rates of audits and of people, their course, distributions, tables, and the runs behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, get_args
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import Bin, Measure, MeasuredRun, MeasureFilter, MetricsReport, Period, Pick, Rates
from masis.services.trust import Own, TrustFilter
from masis.services.trust_summary import figure
from masis.settings import ROLES, Role
from masis.trust.agreement import Estimate
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import Cell, Column, Row, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown, served_database, served_workbench
from masis.views.charts import rate_chart, spread_chart
from masis.views.comparison import models_words
from masis.views.metrics import RATES, SPREADS, between, period_name, period_of, rate_course, share_of, spread_view
from masis.views.numbers import dollars, duration, in_unit, moment, number
from masis.views.words import MACHINE_HIDDEN, STOPPED, Word, label, model_words

PERIODS: tuple[Period, ...] = get_args(Period)
FILTERS = ("by", "since", "until", "role", "model", "dataset")
PICKED = ("show", "above", "most", "at", "of", "page")
RUNS_A_PAGE = 20
SPREAD_OVER = 5_000
"""Audits of which the distributions are drawn: sorting the figures of all of them would take ever longer."""
READ_AT_ONCE = 10_000
"""Entries of the decision log up to which the page reads what people did without being asked to."""
SPANS = {"7": "7 days", "30": "30 days", "90": "90 days", "": "All"}
LISTS: dict[str, str] = {"all": "All", **{rate: words.title for rate, words in RATES.items()}}


PERIODS_LISTED = 60
"""Periods that the table lists, the newest; the charts above it have all."""


Way = Callable[..., str]
"""Returns the address of the page with these parameters beside its filters."""

RATE_COLUMNS: list[Column] = [
    column("Audits", "figure"),
    *(column(words.title, "figure") for words in RATES.values()),
    column("Mean time", "figure", hide="hide-medium"),
    column("Mean quality", "figure", hide="hide-medium"),
    column("Cost", "figure", hide="hide-medium"),
]


def _rates_row(rates: Rates, name: str, way: Way, **group: str) -> Row:
    """Return the rates of some runs as a row; every count in it leads to its runs."""

    def link(text: str, **parameters: str) -> Cell:
        return {"text": text, "href": way(**group, **parameters), "open": urlencode({**group, **parameters})}

    cells = [link(f"{rates.runs:,}", show="all")]
    for rate in RATES:
        share = share_of(rates, rate)
        cells.append(link(share.words, show=rate) if share.held else {"text": share.words})
    return row(
        link(name, show="all"),
        *cells,
        duration(rates.critique_latency_ms),
        number(rates.quality),
        dollars(rates.cost_usd),
    )


def model_rows(report: MetricsReport, way: Way) -> list[Row]:
    """Return the rates by model of the role that the filter names."""
    return [
        _rates_row(each, model_words(each.name or "not reported"), way, of=each.name or "") for each in report.models
    ]


def period_rows(report: MetricsReport, way: Way) -> list[Row]:
    """Return the rates of the newest periods, the newest first."""
    newest = reversed(report.periods[-PERIODS_LISTED:])
    return [_rates_row(each, period_name(report.period, each.name or ""), way, at=each.name or "") for each in newest]


def run_columns(measure: Measure | None) -> list[Column]:
    """Return the columns of ``run_rows``; the metric that ``measure`` names is one of them."""
    return [
        column("Question", "main"),
        column("Finished", "figure"),
        *([column(SPREADS[measure].title, "figure")] if measure else []),
        column("Quality", "figure"),
        column("Iterations", "figure", hide="hide-medium"),
        column("Time", "figure", hide="hide-medium"),
        column("Judged by", hide="hide-narrow"),
        column("Ended because", hide="hide-medium"),
    ]


def run_rows(runs: Iterable[MeasuredRun], measure: Measure | None) -> list[Row]:
    """Return the runs behind a metric, each with the link to it; a run that was removed has none."""
    say = in_unit(SPREADS[measure].unit) if measure else None
    return [
        row(
            _question(run),
            moment(run.finished_at),
            *([say(run.value)] if say else []),
            number(run.quality),
            run.iterations,
            duration(run.loop_ms),
            models_words(run.models),
            STOPPED.get(run.termination, run.termination),  # type: ignore[call-overload]
            open=run.run_id if run.case_id is not None else None,
        )
        for run in runs
    ]


def _question(run: MeasuredRun) -> Cell:
    signs = [label(word) for word, holds in ((_HALLUCINATION, run.hallucination), (_REVIEW, run.needs_review)) if holds]
    if run.case_id is None:
        return {"pills": signs, "below": ["The run was removed; its metrics are stored."]}
    href = link("review", case=run.case_id, run=run.run_id)
    return {"text": run.query or "", "href": href, "open": run.run_id, "pills": signs}


_HALLUCINATION = Word("hallucination", "bad", RATES["hallucination"].meaning)
_REVIEW = Word("needs review", "warn", RATES["needs_review"].meaning)


def picked_words(pick: Pick, period: Period, at: str, of: str) -> str:
    """Say in a line which runs are listed."""
    what = "Audits"
    if pick.rate is not None:
        what = RATES[pick.rate].listed
    elif pick.measure is not None:
        spread = SPREADS[pick.measure]
        values = between(Bin(low=pick.above, high=pick.most, count=0), in_unit(spread.unit))
        what = f"Audits with {spread.title[0].lower()}{spread.title[1:]}: {values}"
    return ", ".join(part for part in (what, period_name(period, at) if at else "", of) if part)


def show_metrics(workbench: Workbench) -> None:
    """Draw the metrics of finished audits, and the runs behind one of them where the address names it."""
    if workbench.metrics.span() is None:
        st.title("Metrics")
        st.markdown(
            "**No audit has finished yet.** Each finished audit is counted here: how often answers contain something "
            "fabricated, how long critic and reviser take, what revisions improve, what it costs."
        )
        st.page_link("pages/new.py", label="Audit an answer", icon=":material/add_circle:")
        return
    blind = workbench.cases.hides_machine_from(actor())
    if workbench.cases.hides_figures_from(actor()):
        st.title("Metrics")
        st.markdown(f":material/visibility_off: {MACHINE_HIDDEN}")
        st.markdown("These figures are of all audits, those of cases that you have not decided among them.")
        st.page_link("pages/queue.py", label="Cases to decide", icon=":material/checklist:")
        return
    _controls(workbench)
    chosen = metrics_filter()
    newest = workbench.metrics.newest()
    found = _report(str(served_database()), newest, chosen.model_dump_json(), chosen_period())
    if not found.total.runs:
        st.markdown("**No audit matches.** Choose a longer time, or fewer filters.")
        st.button("Clear filters", on_click=address.clear, args=(FILTERS,))
        return
    if blind:
        st.caption(
            ":material/visibility_off: You see figures over all cases as a lead. The audits behind them are not listed "
            "while cases are left to decide: the queue's policy hides from you what each found."
        )
    _totals(found.total)
    _people(workbench)
    if not blind:
        shown = address.value("show")
        listed = shown if shown in LISTS and not address.value("at") else None
        keeps = _kept("show", listed, key="metrics-list")
        st.pills("List the audits", list(LISTS), format_func=LISTS.__getitem__, **keeps)
        if shown:
            _runs(workbench, chosen)
    _over_time(found)
    _distributions(found)
    _tables(found)
    st.caption(
        "Times are UTC. What was not scored or not measured is left out of rates and means. "
        f"{command_markdown('masis metrics')} prints the same metrics; with telemetry switched on, "
        "OpenTelemetry receives them too."
    )


def _kept(name: str, shows: object, default: object = None, *, key: str = "") -> dict[str, Any]:
    """What the address keeps of a filter; whichever runs were listed, they are not once it changes."""
    drops = tuple(each for each in PICKED if each != name)
    return address.kept(name, default, shows=shows, key=key or f"metrics-{name}", drops=drops)


def metrics_filter() -> MeasureFilter:
    """Return the runs that the address asks for."""
    since, until = address.day("since"), address.day("until")
    return MeasureFilter(
        since=since.isoformat() if since else None,
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        role=_role(),
        models=tuple(address.words("model")),
        datasets=tuple(address.words("dataset")),
    )


def chosen_period() -> Period:
    """Day, week or month, as the address says; else weeks."""
    return address.one_of("by", PERIODS, "week")


def _role() -> Role:
    return address.one_of("role", ROLES, "critic")


def pick() -> Pick:
    """Return which runs of those that match the address asks to list; a figure that is not known lists all."""
    show = address.value("show")
    if show in RATES:
        return Pick(rate=show)
    if show in SPREADS:
        return Pick(measure=show, above=_number("above"), most=_number("most"))
    return Pick()


def _number(name: str) -> float | None:
    text = address.value(name)
    try:
        found = float(text) if len(text) < 24 else None
    except ValueError:
        return None
    return found if found is not None and abs(found) < 1e15 else None


@st.cache_data(show_spinner=False, max_entries=50)
def _report(path: str, newest: int, chosen: str, period: Period) -> MetricsReport:
    """Return the metrics, computed again only when runs have finished since."""
    return served_workbench().metrics.report(MeasureFilter.model_validate_json(chosen), period, newest=SPREAD_OVER)


def _go(**way: str) -> None:
    """List the runs behind a metric: the address names it."""
    for name in PICKED:
        address.put(name, way.get(name, ""))


# --- the sections -------------------------------------------------------------------------------------------------


def _controls(workbench: Workbench) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="metrics-head"):
        st.title("Metrics", width="content")
        st.session_state["metrics-span"] = _span()
        st.segmented_control(
            "Time",
            list(SPANS),
            key="metrics-span",
            format_func=SPANS.__getitem__,
            on_change=_choose_span,
            label_visibility="collapsed",
        )
        st.segmented_control(
            "Period",
            PERIODS,
            format_func=lambda period: f"By {period}",
            required=True,
            label_visibility="collapsed",
            **_kept("by", chosen_period(), "week"),
        )
        used = sum(bool(address.value(name)) for name in FILTERS[1:])
        with st.popover(f"Filters ({used})" if used else "Filters", icon=":material/filter_list:"):
            for name, title in (("since", "From"), ("until", "To")):
                st.date_input(title, format="YYYY-MM-DD", **_kept(name, address.day(name)))
            st.selectbox("Role", ROLES, format_func=str.capitalize, **_kept("role", _role(), "critic"))
            _several("Model", "model", workbench.metrics.names(_role()))
            _several("Data set", "dataset", workbench.metrics.names("dataset"))
        st.page_link("pages/trust.py", label="How far the audit may be relied on", icon=":material/verified:")


def _several(title: str, name: str, known: dict[str, int]) -> None:
    chosen = address.words(name)
    options = [*known, *(each for each in chosen if each not in known)]
    if not options:
        return
    st.multiselect(
        title,
        options,
        format_func=lambda each: f"{each} ({known.get(each, 0):,})",
        placeholder="Any",
        **_kept(name, chosen, []),
    )


def _span() -> str | None:
    since, until = address.day("since"), address.day("until")
    if since is None and until is None:
        return ""
    days = (datetime.now(UTC).date() - since).days + 1 if since and until is None else 0
    return str(days) if str(days) in SPANS else None


def _choose_span() -> None:
    chosen = st.session_state["metrics-span"] or ""
    since = datetime.now(UTC).date() - timedelta(days=int(chosen) - 1) if chosen else None
    address.put("since", since.isoformat() if since else "")
    address.clear(("until", *PICKED))


def _totals(total: Rates) -> None:
    st.header("Audits", anchor=False)
    with st.container(horizontal=True, gap="small", key="metrics-totals"):
        _total("Audits", f"{total.runs:,}", "Finished runs that match")
        for rate, words in RATES.items():
            share = share_of(total, rate)
            _total(words.title, share.percent, f"{words.meaning}.", f"{share.held:,} of {share.base:,}")
        tokens = total.input_tokens + total.output_tokens
        _total("Mean time", duration(total.critique_latency_ms), "Mean time of an audit")
        _total("Claims per draft", number(total.claims_per_draft), "Mean number of claims")
        _total("Claim confidence", number(total.critique_confidence_avg), "Mean confidence of the verdicts on claims")
        _total(
            "Tokens", f"{tokens:,}", f"{total.input_tokens:,} in, {total.output_tokens:,} out", f"{total.calls:,} calls"
        )
        _total("Cost", dollars(total.cost_usd), "Sum over the calls whose price is known")


def _people(workbench: Workbench) -> None:
    """Draw what people did with what the audits found: all reviewers together, and one's own, over all time."""
    st.header("People", anchor=False)
    me, length = actor(), workbench.store.decisions.head().length
    if length > READ_AT_ONCE and not st.toggle(
        f"Read all {length:,} entries of the decision log", key="metrics-people-read", help="It takes a second or two."
    ):
        return
    work = workbench.trust.together(me)
    if not work.decisions:
        st.caption("Nobody has decided a case yet. How many are decided a day, and in what time, will be shown here.")
        return
    flagged = workbench.trust.compare(me, TrustFilter(blind_only=False)).answers.precision
    with st.container(horizontal=True, gap="small", key="metrics-people"):
        _total("Decisions", f"{work.decisions:,}", "Of all reviewers, over all time")
        _total("Decided a day", number(work.a_day), "On days on which somebody decided")
        _total("Time a case", _took(work), "Median, from opening the case to the decision")
        _share("Overrides", work.overrides, "Decisions that corrected the answer")
        _share("Alarms that were right", flagged, "Of the answers the audit accused, the share people found faulty")
    (own,) = workbench.trust.reviewers(me)
    overrides = round((own.overrides.value or 0) * own.overrides.n)
    mine = f"You: {counted(own.decisions, 'decision')}, {overrides:,} of them overrides, {_took(own)} a case."
    st.caption(" ".join(filter(None, (mine if own.decisions else "", workbench.trust.counts_in_words(me)))))


def _took(work: Own) -> str:
    return duration(None if work.seconds is None else 1000 * work.seconds)


def _share(title: str, found: Estimate, meaning: str) -> None:
    value = "undefined" if found.value is None else f"{found.value:.0%}"
    _total(title, value, f"{meaning}: {figure(found)}", f"n = {found.n:,}")


def _total(title: str, value: str, meaning: str, base: str | None = None) -> None:
    st.metric(title, value, base, delta_color="off", delta_arrow="off", help=meaning, width="content")


def _over_time(found: MetricsReport) -> None:
    st.header("Rates over time")
    if len(found.periods) < 2:
        st.caption(f"All of these audits are of one {found.period}: there is no course over time to draw yet.")
        return
    st.caption("Click a point to list the audits of its period.")
    for box, (rate, words) in zip(_boxes(len(RATES)), RATES.items(), strict=True):
        with box:
            st.markdown(f"**{words.title}**: {share_of(found.total, rate).words} in all")
            rows = rate_course(found.periods, rate, found.period)
            if len(rows) < 2:
                st.caption("Known for fewer than two periods: nothing to draw.")
                continue
            key = f"metrics-rate-{rate}"
            draw_chart(
                rate_chart,
                rows=rows,
                description=f"{words.title} by {found.period}, as in the table below",
                key=key,
                on_select=partial(_pick, key, rate),
            )


def _distributions(found: MetricsReport) -> None:
    st.header("Distributions")
    of = f" Of the newest {found.spread_over:,} audits that match." if found.spread_over else ""
    st.caption(f"Click a bar to list its audits.{of}")
    measured = [each for each in found.distributions if each.count]
    for box, each in zip(_boxes(len(measured)), measured, strict=True):
        shown = spread_view(each)
        with box:
            st.markdown(f"**{shown.title}**")
            if shown.bars:
                key = f"metrics-spread-{each.measure}"
                draw_chart(
                    spread_chart,
                    SPREADS[each.measure].unit,
                    SPREADS[each.measure].counted,
                    rows=shown.bars,
                    marks=shown.marks,
                    description=f"{shown.title}: {shown.numbers}",
                    key=key,
                    on_select=partial(_pick, key, each.measure),
                )
            st.caption(f"{shown.numbers}.".replace("$", r"\$"))
            if shown.limit:
                sign = ":green[:material/check:]" if shown.held else ":red[:material/close:]"
                st.caption(f"{sign} {shown.limit}")


def _boxes(count: int) -> Iterator[DeltaGenerator]:
    """Yield bordered boxes, three in a row and as high as their neighbours."""
    for first in range(0, count, 3):
        for place in st.columns(3, gap="medium")[: count - first]:
            yield place.container(border=True, height="stretch")


def _pick(key: str, show: str) -> None:
    """List what was clicked in a chart."""
    picked = st.session_state[key].selection.get("picked") or []
    if picked:
        mark = picked[0]
        _go(show=show, at=mark.get("at", ""), above=mark.get("low", ""), most=mark.get("high", ""))


def _tables(found: MetricsReport) -> None:
    filters = {name: address.value(name) for name in FILTERS if address.value(name)}

    def way(**parameters: str) -> str:
        return address.link("metrics", **{**filters, **parameters})

    role, period = found.wanted.role, found.period
    st.header(f"By model of the {role}")
    first = column(role.capitalize())
    opened = linked_table([first, *RATE_COLUMNS], model_rows(found, way), description="Rates by model", key="by-model")
    st.header(f"By {period}")
    if len(found.periods) > PERIODS_LISTED:
        st.caption(f"The newest {PERIODS_LISTED} of {len(found.periods):,}; the charts above have all.")
    first = column(period.capitalize())
    columns, rows = [first, *RATE_COLUMNS], period_rows(found, way)
    opened = linked_table(columns, rows, description=f"Rates by {period}", key="by-period") or opened
    if opened:
        _go(**dict(parse_qsl(opened)))
        st.rerun()


def _runs(workbench: Workbench, chosen: MeasureFilter) -> None:
    """List the runs behind a metric."""
    picked, period, at, of = pick(), chosen_period(), address.value("at"), address.value("of")[: address.LONGEST_WORD]
    if bounds := period_of(period, at) if at else None:
        since, until = (each.isoformat() for each in bounds)
        narrower = {"since": max(since, chosen.since or since), "until": min(until, chosen.until or until)}
        chosen = chosen.model_copy(update=narrower)
    if of:
        chosen = chosen.model_copy(update={"models": (of,)})
    page = workbench.metrics.runs(chosen, picked, page=address.number("page"), size=RUNS_A_PAGE)
    with st.container(border=True, key="metrics-listed"):
        words, close = st.columns([6, 1.2], vertical_alignment="center")
        words.text(f"{picked_words(picked, period, at if bounds else '', of)}: {page.total:,}")
        close.button(
            "Close the list", icon=":material/close:", key="close-runs", on_click=address.clear, args=(PICKED,)
        )
        if not page.total:
            st.caption("No audit is in this list.")
            return
        opened = linked_table(
            run_columns(picked.measure),
            run_rows(page.rows, picked.measure),
            description="Audits behind the metric",
            key="metrics-runs",
        )
        if run := next((run for run in page.rows if opened and run.run_id == opened), None):
            st.switch_page("pages/review.py", query_params={"case": run.case_id or "", "run": run.run_id})
        address.show_pages(page.total, RUNS_A_PAGE, key="runs-page")
