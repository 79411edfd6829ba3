"""The figures of the audits as plain data for the page: tiles, rates over time, distributions, tables, runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any, TypedDict

from masis.services.metrics import SPREADS, MetricsReport, Spread
from masis.services.records import Bin, Distribution, Measure, MeasuredRun, Period, Pick, Rate, Rates
from masis.ui.review.comparison import models_words
from masis.ui.shell.address import link
from masis.ui.shell.wording import STOPPED, LabelData, Tone, Word, label, spoken

PERIODS_LISTED = 60
"""Periods that the table lists, the newest; the lines above it have all."""


class RateWord(TypedDict):
    """A rate in words: its title, what it means, and the field of ``Rates`` that holds it."""

    title: str
    meaning: str
    field: str


RATES: dict[Rate, RateWord] = {
    "hallucination": {
        "title": "Hallucination",
        "meaning": "Answers in which something is made up, as they came",
        "field": "critique_hallucination_rate",
    },
    "revision": {
        "title": "Needed revision",
        "meaning": "Answers with a grave finding, as they came",
        "field": "critique_revision_rate",
    },
    "converged": {
        "title": "Convergence",
        "meaning": "Audits that ended because revisions no longer improved the answer",
        "field": "convergence_rate",
    },
    "needs_review": {
        "title": "Needs review",
        "meaning": "Audits that a person should look at",
        "field": "needs_review_rate",
    },
}


class MetricsView(TypedDict):
    """Everything the figures' component draws."""

    tiles: list[dict[str, Any]]
    rates: list[dict[str, Any]]
    spreads: list[dict[str, Any]]
    tables: list[dict[str, Any]]


def view(found: MetricsReport, kept: Mapping[str, str]) -> MetricsView:
    """The report as the component draws it; ``kept`` are the filters of the address, which every link keeps."""

    def way(**more: str) -> dict[str, str]:
        return {"href": link("metrics", **{**kept, **more})}

    return {
        "tiles": _tiles(found.total, way),
        "rates": [_over_time(found, rate, way) for rate in RATES],
        "spreads": [_spread(each, SPREADS[each.measure], way) for each in found.distributions if each.count],
        "tables": [_models(found, way), _periods(found, way)],
    }


To = Callable[..., dict[str, str]]


def _tiles(total: Rates, way: To) -> list[dict[str, Any]]:
    tiles = [{"value": f"{total.runs:,}", "title": "audits" if total.runs != 1 else "audit", **way(show="all")}]
    for rate, word in RATES.items():
        share = getattr(total, word["field"])
        tiles.append(
            {"value": percent(share), "title": word["title"].lower(), "meaning": word["meaning"], **way(show=rate)}
        )
    tokens = total.input_tokens + total.output_tokens
    plain = [
        (duration(total.critique_latency_ms), "mean audit", "Mean time of an audit (critique_latency_ms)"),
        (figure(total.claims_per_draft), "claims a draft", "Mean number of claims (claims_per_draft)"),
        (
            figure(total.critique_confidence_avg),
            "claim confidence",
            "Of the claim reports (critique_confidence_avg)",
        ),
        (f"{tokens:,}", "tokens", f"{total.input_tokens:,} in, {total.output_tokens:,} out, {total.calls:,} calls"),
        ("–" if total.cost_usd is None else f"${total.cost_usd:,.2f}", "cost", "Where the price is known"),
    ]
    return [*tiles, *({"value": value, "title": title, "meaning": meaning} for value, title, meaning in plain)]


def _over_time(found: MetricsReport, rate: Rate, way: To) -> dict[str, Any]:
    """One rate, period by period; a period in which it is not known has no point."""
    word = RATES[rate]
    points = [
        {
            "at": each.name,
            "share": share,
            "title": f"{period_name(found.period, each.name or '')}: {percent(share)} of {spoken(each.runs, 'audit')}",
            **way(show=rate, at=each.name or ""),
        }
        for each in found.periods
        if (share := getattr(each, word["field"])) is not None
    ]
    ends = (found.periods[0].name, found.periods[-1].name) if found.periods else ("", "")
    return {
        "title": word["title"],
        "meaning": word["meaning"] + (_besides(found.total) if rate == "converged" else ""),
        "value": percent(getattr(found.total, word["field"])),
        "points": points,
        "from": period_name(found.period, ends[0] or ""),
        "to": period_name(found.period, ends[1] or ""),
    }


def _besides(total: Rates) -> str:
    """How else audits ended: few that end by convergence may mean that most were done before."""
    return (
        f". Besides these, {percent(total.no_issues_rate)} ended with nothing grave left, "
        f"{percent(total.error_rate)} by an error"
    )


def _spread(found: Distribution, spread: Spread, way: To) -> dict[str, Any]:
    say = unit(spread.unit)
    most = max((each.count for each in found.bins), default=0)
    bins = _trimmed(found.bins)
    limit: LabelData | None = None
    if spread.limit is not None and found.p95 is not None:
        held = found.p95 <= spread.limit
        tone: Tone = "good" if held else "bad"
        words = f"95% {'are' if held else 'are not'} under {say(spread.limit)}"
        limit = label(Word(words, tone, f"{spread.rule}: 95% within {say(spread.limit)}"))
    return {
        "title": spread.title,
        "figures": [
            {"name": "mean", "value": say(found.mean)},
            {"name": "p50", "value": say(found.p50)},
            {"name": "p95", "value": say(found.p95)},
            {"name": "most", "value": say(found.most)},
        ],
        "count": f"{found.count:,}",
        "limit": limit,
        "bins": [
            {
                "share": each.count / most,
                "count": each.count,
                "title": f"{_between(each, say)}: {each.count:,} of {found.count:,}",
                "low": "" if each.low is None else say(each.low),
                "high": "" if each.high is None else say(each.high),
                "over": spread.limit is not None and each.low is not None and each.low >= spread.limit,
                "p50": _holds(each, found.p50),
                "p95": _holds(each, found.p95),
                **way(show=found.measure, above=_edge(each.low), most=_edge(each.high)),
            }
            for each in bins
        ],
    }


def _trimmed(bins: tuple[Bin, ...]) -> list[Bin]:
    """Without the empty bins at both ends."""
    filled = [number for number, each in enumerate(bins) if each.count]
    return list(bins[filled[0] : filled[-1] + 1]) if filled else []


def _holds(each: Bin, value: float | None) -> bool:
    return value is not None and (each.low is None or value > each.low) and (each.high is None or value <= each.high)


def _between(each: Bin, say: Callable[[float | None], str]) -> str:
    if each.low is None:
        return f"up to {say(each.high)}"
    return f"over {say(each.low)}" if each.high is None else f"over {say(each.low)}, up to {say(each.high)}"


def _edge(bound: float | None) -> str:
    return "" if bound is None else f"{bound:g}"


COLUMNS = ("Audits", "Hallucination", "Needed revision", "Convergence", "Needs review", "Mean time", "Quality", "Cost")


def _models(found: MetricsReport, way: To) -> dict[str, Any]:
    return {
        "title": f"By model of the {found.wanted.role}",
        "columns": [found.wanted.role.capitalize(), *COLUMNS],
        "rows": [_row(each, each.name or "not told", way, of=each.name or "") for each in found.models],
    }


def _periods(found: MetricsReport, way: To) -> dict[str, Any]:
    newest = found.periods[-PERIODS_LISTED:]
    return {
        "title": f"By {found.period}" + (f", the newest {PERIODS_LISTED}" if len(found.periods) > len(newest) else ""),
        "columns": [found.period.capitalize(), *COLUMNS],
        "rows": [
            _row(each, period_name(found.period, each.name or ""), way, at=each.name or "") for each in reversed(newest)
        ],
    }


def _row(each: Rates, name: str, way: To, **place: str) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [{"text": f"{each.runs:,}", **way(show="all", **place)}]
    for rate, word in RATES.items():
        share = getattr(each, word["field"])
        cells.append({"text": percent(share), **(way(show=rate, **place) if share else {})})
    cells += [
        {"text": duration(each.critique_latency_ms)},
        {"text": figure(each.quality)},
        {"text": "–" if each.cost_usd is None else f"${each.cost_usd:,.2f}"},
    ]
    return {"name": name, **way(show="all", **place), "cells": cells}


def run_rows(runs: tuple[MeasuredRun, ...], measure: Measure | None) -> dict[str, Any]:
    """The runs behind a figure, each with the way to it; one whose case is gone has none."""
    say = unit(SPREADS[measure].unit) if measure else None
    return {
        "column": SPREADS[measure].title if measure else "",
        "rows": [
            {
                "id": run.run_id,
                "at": run.finished_at,
                "question": run.query if run.case_id is not None else "",
                "href": link("review", case=run.case_id or "", run=run.run_id) if run.case_id is not None else "",
                "way": {"case": run.case_id, "run": run.run_id} if run.case_id is not None else None,
                "models": models_words(run.models),
                "ended": STOPPED.get(run.termination, run.termination),  # type: ignore[call-overload]
                "iterations": run.iterations,
                "time": duration(run.loop_ms),
                "quality": figure(run.quality),
                "value": say(run.value) if say else "",
                "signs": _signs(run),
            }
            for run in runs
        ],
    }


def _signs(run: MeasuredRun) -> list[LabelData]:
    signs: list[Word] = []
    if run.hallucination:
        signs.append(Word("hallucination", "bad", RATES["hallucination"]["meaning"]))
    if run.needs_review:
        signs.append(Word("needs review", "warn", RATES["needs_review"]["meaning"]))
    if run.converged:
        signs.append(Word("converged", "calm", RATES["converged"]["meaning"]))
    return [label(each) for each in signs]


def picked_words(pick: Pick, period: Period, at: str, of: str) -> str:
    """What the list of runs shows, in a line."""
    what = "Audits"
    if pick.rate is not None:
        what = {
            "hallucination": "Audits of answers in which something is made up",
            "revision": "Audits of answers that needed revision",
            "converged": "Audits that converged",
            "needs_review": "Audits that need review",
        }[pick.rate]
    elif pick.measure is not None:
        spread = SPREADS[pick.measure]
        say = unit(spread.unit)
        between = (
            _between(Bin(low=pick.above, high=pick.most, count=0), say)
            if (pick.above, pick.most)
            != (
                None,
                None,
            )
            else "any value"
        )
        what = f"Audits with {spread.title[0].lower()}{spread.title[1:]}: {between}"
    return ", ".join(part for part in (what, period_name(period, at) if at else "", of) if part)


def period_of(period: Period, first: str) -> tuple[date, date] | None:
    """First day and the day after the last of a period that begins so; None for what is no day."""
    try:
        begins = date.fromisoformat(first)
        if period == "month":
            begins = begins.replace(day=1)
            return begins, (begins + timedelta(days=31)).replace(day=1)
        return begins, begins + timedelta(days=7 if period == "week" else 1)
    except (ValueError, OverflowError):
        return None


def period_name(period: Period, first: str) -> str:
    """``21 Nov 2026``, ``week of 16 Nov 2026``, ``November 2026``."""
    try:
        begins = date.fromisoformat(first)
    except ValueError:
        return first
    if period == "month":
        return f"{begins:%B %Y}"
    day = f"{begins.day} {begins:%b %Y}"
    return f"week of {day}" if period == "week" else day


def percent(share: float | None) -> str:
    """A share in percent: one decimal where it is small, none where it is whole."""
    if share is None:
        return "–"
    return f"{share:.0%}" if share in (0, 1) or share >= 0.1 else f"{share:.1%}"


def figure(value: float | None) -> str:
    """A figure with as many digits as it deserves."""
    if value is None:
        return "–"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def duration(ms: float | None) -> str:
    """Milliseconds, in seconds from one on."""
    if ms is None:
        return "–"
    return f"{figure(ms)} ms" if ms < 1000 else f"{ms / 1000:,.3g} s"


def unit(name: str) -> Callable[[float | None], str]:
    """How figures of this unit are written."""
    if name == "ms":
        return duration
    if name == "USD":
        return lambda value: "–" if value is None else f"${value:,.3g}"
    if name == "%":
        return lambda value: "–" if value is None else f"{figure(value)}%"
    return figure
