"""The metrics of audits as plain data and charts: rates, their course over time, distributions, the runs behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import altair as alt

from masis.services.metrics import SPREADS, MetricsReport
from masis.services.records import Bin, Distribution, Measure, MeasuredRun, Period, Pick, Rate, Rates
from masis.ui.components.charts import ROWS
from masis.ui.components.linked_table import Cell, Column, Row, column, row
from masis.ui.review.comparison import models_words
from masis.ui.review.story import moment
from masis.ui.shell.address import link
from masis.ui.shell.wording import STOPPED, Word, label

PERIODS_LISTED = 60
"""Periods that the table lists, the newest; the charts above it have all."""


class RateWords(NamedTuple):
    """A rate in words: its title, what it means, what its list is called, and its fields of ``Rates``."""

    title: str
    meaning: str
    listed: str
    field: str
    base: str = "runs"


RATES: dict[Rate, RateWords] = {
    "hallucination": RateWords(
        "Hallucination",
        "Original answers that contain something fabricated",
        "Audits of answers that contain something fabricated",
        "critique_hallucination_rate",
        "hallucination_known",
    ),
    "revision": RateWords(
        "Needed revision",
        "Original answers with a serious issue",
        "Audits of answers that needed revision",
        "critique_revision_rate",
        "revision_known",
    ),
    "converged": RateWords(
        "Converged",
        "Audits that ended well: no serious issue was left, or a further revision no longer improved the answer",
        "Audits that converged",
        "converged_rate",
    ),
    "convergence_ending": RateWords(
        "Convergence endings",
        "Audits that ended because a further revision no longer improved the answer; a part of those that converged",
        "Audits with a convergence ending",
        "convergence_rate",
    ),
    "needs_review": RateWords(
        "Needs review",
        "Audits whose case a person should look at",
        "Audits that need review",
        "needs_review_rate",
    ),
}


class Share(NamedTuple):
    """A rate with its base."""

    share: float | None
    held: int
    base: int

    @property
    def percent(self) -> str:
        """The share in percent."""
        return percent(self.share)

    @property
    def words(self) -> str:
        """The share with its base, as in ``31% (4 of 13)``."""
        return "–" if self.share is None else f"{self.percent} ({self.held:,} of {self.base:,})"


def share_of(rates: Rates, rate: Rate) -> Share:
    """Return one rate of some runs with its base: the runs for which it is known."""
    words = RATES[rate]
    share, base = getattr(rates, words.field), getattr(rates, words.base)
    return Share(share, round((share or 0) * base), base)


# --- over time ----------------------------------------------------------------------------------------------------


def course(report: MetricsReport, rate: Rate) -> list[dict[str, Any]]:
    """Return one rate period by period as rows of its chart; a period in which it is not known is left out."""
    found = [(each.name or "", share_of(each, rate)) for each in report.periods]
    return [
        {"at": at, "name": period_name(report.period, at), "share": each.share, "audits": each.words}
        for at, each in found
        if each.share is not None
    ]


def rate_chart() -> alt.TopLevelMixin:
    """Describe a rate over time: a line through its periods, each of them a point to click on."""
    picked = alt.selection_point(name="picked", fields=["at"], on="click", empty=False)
    base = alt.Chart(ROWS, height=150).encode(
        x=alt.X("utcyearmonthdate(at):T", title=None, axis=alt.Axis(format="%d %b %y", labelOverlap=True, tickCount=4)),
        y=alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", values=[0, 0.5, 1])),
        tooltip=[alt.Tooltip("name:N", title="Period"), alt.Tooltip("audits:N", title="Audits")],
    )
    points = base.mark_point(filled=True, size=70, opacity=1, cursor="pointer").add_params(picked)
    return alt.layer(base.mark_line(), points)


# --- distributions ------------------------------------------------------------------------------------------------


class SpreadView(NamedTuple):
    """One distribution: its title, the bars and the marked values of its chart, its key numbers, its limit in words."""

    measure: Measure
    title: str
    bars: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    numbers: str
    limit: str
    held: bool


def spread_view(found: Distribution) -> SpreadView:
    """Describe one distribution; its chart has equally wide bars."""
    spread = SPREADS[found.measure]
    say = unit(spread.unit)
    held = spread.limit is not None and found.p95 is not None and found.p95 <= spread.limit
    limit = ""
    if spread.limit is not None:
        limit = f"95% {'are' if held else 'are not'} within {say(spread.limit)} ({spread.rule})"
    return SpreadView(
        found.measure,
        spread.title,
        bars(found, say),
        _marks(found),
        f"mean {say(found.mean)}, median {say(found.p50)}, 95% up to {say(found.p95)}, at most {say(found.most)}; "
        f"{found.count:,} measured",
        limit,
        held,
    )


def _marks(found: Distribution) -> list[dict[str, Any]]:
    """Return the median and the 95th percentile, under one name where their names would overlap."""
    if found.p50 is None or found.p95 is None or found.least is None or found.most is None:
        return []
    if found.p95 - found.p50 > 0.15 * (found.most - found.least):
        return [{"value": found.p50, "name": "median"}, {"value": found.p95, "name": "95%"}]
    names = "median, 95%" if found.p50 == found.p95 else "median and 95%"
    return [{"value": found.p50, "name": names}, {"value": found.p95, "name": ""}]


GREY = "#7a8086"
"""Can be read on the light and on the dark background."""

WHOLE: frozenset[Measure] = frozenset({"iterations", "issues", "claims"})
"""Counts: a bar stands over its numbers."""


def bars(found: Distribution, say: Callable[[float | None], str]) -> list[dict[str, Any]]:
    """Return the bars of a distribution; none where all values lie in one bin, which is no distribution to draw."""
    inner = [each.high for each in found.bins if each.high is not None]
    if not inner:
        return []
    width = inner[1] - inner[0] if len(inner) > 1 else abs(inner[0] - (found.least or 0.0)) or 1.0
    aside = 0.5 if found.measure in WHOLE else 0.0
    edges = [inner[0] - width, *inner, inner[-1] + width]
    return [
        {
            "from": edges[place] + aside,
            "to": edges[place + 1] + aside,
            "count": each.count,
            "low": _edge(each.low),
            "high": _edge(each.high),
            "values": _between(each, say),
            "audits": f"{each.count:,} of {found.count:,}",
        }
        for place, each in enumerate(found.bins)
    ]


_AXIS = {
    "ms": "datum.value >= 1000 ? format(datum.value / 1000, '~g') + ' s' : format(datum.value, '~g') + ' ms'",
    "USD": "'$' + format(datum.value, '~g')",
    "%": "format(datum.value, '~g') + '%'",
    "": "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, ',~g')",
}


def spread_chart(unit_name: str, counted: str) -> alt.TopLevelMixin:
    """Describe a distribution: a bar for each bin, which can be clicked on, and lines at the median and at 95%."""
    picked = alt.selection_point(name="picked", fields=["low", "high"], on="click", empty=False)
    axis = alt.Axis(labelExpr=_AXIS[unit_name], tickCount=5, labelOverlap=True, grid=False)
    drawn = alt.Chart(ROWS, height=150)
    bins = (
        drawn.mark_bar(cursor="pointer", binSpacing=1)
        .encode(
            x=alt.X("from:Q", bin="binned", title=None, axis=axis),
            x2="to:Q",
            y=alt.Y("count:Q", title=counted, axis=alt.Axis(tickMinStep=1, tickCount=4, format="~s")),
            tooltip=[alt.Tooltip("values:N", title="Values"), alt.Tooltip("audits:N", title=counted.capitalize())],
        )
        .add_params(picked)
    )
    lines = alt.Chart(alt.NamedData("marks")).encode(x="value:Q")
    words = lines.mark_text(baseline="bottom", fontSize=11, color=GREY).encode(y=alt.value(-2), text="name:N")
    return alt.layer(bins, lines.mark_rule(strokeDash=[4, 3], color=GREY), words)


def _between(each: Bin, say: Callable[[float | None], str]) -> str:
    if each.low is None:
        return "any value" if each.high is None else f"up to {say(each.high)}"
    return f"over {say(each.low)}" if each.high is None else f"over {say(each.low)}, up to {say(each.high)}"


def _edge(bound: float | None) -> str:
    return "" if bound is None else f"{bound:.12g}"


# --- tables -------------------------------------------------------------------------------------------------------


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
    return [_rates_row(each, each.name or "not reported", way, of=each.name or "") for each in report.models]


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
    say = unit(SPREADS[measure].unit) if measure else None
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
        between = _between(Bin(low=pick.above, high=pick.most, count=0), unit(spread.unit))
        what = f"Audits with {spread.title[0].lower()}{spread.title[1:]}: {between}"
    return ", ".join(part for part in (what, period_name(period, at) if at else "", of) if part)


# --- periods and numbers in words ---------------------------------------------------------------------------------


def period_of(period: Period, first: str) -> tuple[date, date] | None:
    """Return the first day of a period and the day after its last; None for what is no day."""
    try:
        begins = date.fromisoformat(first)
        if period == "month":
            begins = begins.replace(day=1)
            return begins, (begins + timedelta(days=31)).replace(day=1)
        return begins, begins + timedelta(days=7 if period == "week" else 1)
    except (ValueError, OverflowError):
        return None


def period_name(period: Period, first: str) -> str:
    """Name a period: ``21 Nov 2026``, ``week of 16 Nov 2026``, ``November 2026``."""
    try:
        begins = date.fromisoformat(first)
    except ValueError:
        return first
    if period == "month":
        return f"{begins:%B %Y}"
    day = f"{begins.day} {begins:%b %Y}"
    return f"week of {day}" if period == "week" else day


def percent(share: float | None) -> str:
    """Write a share in percent, with one decimal where it is small."""
    if share is None:
        return "–"
    return f"{share:.0%}" if share in (0, 1) or share >= 0.1 else f"{share:.1%}"


def number(value: float | None) -> str:
    """Write a number with three significant digits or so."""
    if value is None:
        return "–"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def duration(ms: float | None) -> str:
    """Write milliseconds, as seconds from one on."""
    if ms is None:
        return "–"
    return f"{number(ms)} ms" if ms < 1000 else f"{ms / 1000:,.3g} s"


def dollars(value: float | None) -> str:
    """Write an amount of dollars."""
    return "–" if value is None else f"${value:,.3g}" if value < 0.1 else f"${value:,.2f}"


def unit(name: str) -> Callable[[float | None], str]:
    """Return how values of this unit are written."""
    if name == "ms":
        return duration
    if name == "USD":
        return dollars
    if name == "%":
        return lambda value: "–" if value is None else f"{number(value)}%"
    return number
