"""The metrics of audits as linked tables: rates by model and by period, and the runs behind each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import urlencode

from masis.services.records import Bin, Measure, MeasuredRun, MetricsReport, Period, Pick, Rates
from masis.ui.components.linked_table import Cell, Column, Row, column, row
from masis.ui.shell.address import link
from masis.views.comparison import models_words
from masis.views.metrics import RATES, SPREADS, between, period_name, share_of
from masis.views.numbers import dollars, duration, in_unit, moment, number
from masis.views.words import STOPPED, Word, label, model_words

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
