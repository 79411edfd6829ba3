"""The metrics of finished runs: what they are called, in which unit, how rates and distributions
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple

from masis.audit.measures.metrics import Bin, Distribution, Measure, Period, Rate, Rates
from masis.views.numbers import NOTHING, day, in_unit, percent


class MetricSpread(NamedTuple):
    """A metric whose distribution is shown: what it is, its unit, and what is counted in each bin.

    ``limit`` is what 95% should stay under.
    """

    title: str
    unit: str
    counted: str = "audits"
    limit: float | None = None


SPREADS: dict[Measure, MetricSpread] = {
    "critic_ms": MetricSpread("Critic time per answer", "ms", "answers", 15_000),
    "reviser_ms": MetricSpread("Reviser time per revision", "ms", "revisions", 15_000),
    "iteration_ms": MetricSpread("Time per iteration", "ms", "iterations", 35_000),
    "loop_ms": MetricSpread("Time per audit", "ms", "audits", 90_000),
    "iterations": MetricSpread("Iterations per audit", ""),
    "improvement_delta": MetricSpread("Change in quality per revision", "", "revisions"),
    "improvement_percentage": MetricSpread("Improvement per audit", "%"),
    "issues": MetricSpread("Issues per answer", "", "answers"),
    "claims": MetricSpread("Claims per draft", ""),
    "confidence": MetricSpread("Confidence in the answer", ""),
    "tokens": MetricSpread("Tokens per audit", ""),
    "cost_usd": MetricSpread("Cost per audit", "USD"),
}
"""The distributions of REQ-CRITIC-OBS-001, with the limits of REQ-CRITIC-NFR-001 to -004, and a few
more.
"""


class RateWords(NamedTuple):
    """A rate in words: its title, how to read it, what its list is called, its field of ``Rates``
    and that of its base.

    ``each`` is what holds of one of its audits. ``machine``: it says how the audit ran, nothing
    about the answers.
    """

    title: str
    meaning: str
    listed: str
    each: str
    field: str
    base: str = "runs"
    machine: bool = False


RATES: dict[Rate, RateWords] = {
    "hallucination": RateWords(
        "Fabricated, unsupported or contradicted",
        "Original answers that cite evidence which doesn't exist, or say what the evidence does not"
        " support or contradicts.",
        "Audits of answers with something fabricated, unsupported or contradicted",
        "has something fabricated, unsupported or contradicted",
        "critique_hallucination_rate",
        "hallucination_known",
    ),
    "revision": RateWords(
        "A serious issue",
        "Original answers with an issue of severity high or critical: they needed a revision.",
        "Audits of answers with a serious issue",
        "has a serious issue",
        "critique_revision_rate",
        "revision_known",
    ),
    "needs_review": RateWords(
        "Needs review",
        "A person is to decide: something is wrong, or not all could be confirmed. The rest was"
        " auto-accepted.",
        "Audits that need review",
        "needs review",
        "needs_review_rate",
    ),
    "converged": RateWords(
        "Nothing left to improve",
        "Audits that ended because no serious issue was left, or a further revision no longer"
        " improved the answer.",
        "Audits with nothing left to improve",
        "had nothing left to improve",
        "converged_rate",
        machine=True,
    ),
    "convergence_ending": RateWords(
        "Stopped improving",
        "Audits that ended because a further revision no longer improved the answer; a part of"
        " those with nothing left to improve.",
        "Audits that stopped improving",
        "stopped improving",
        "convergence_rate",
        machine=True,
    ),
}


class RateShare(NamedTuple):
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
        return (
            NOTHING
            if self.share is None
            else f"{percent(self.share, whole_from=0.01)} ({self.held:,} of {self.base:,})"
        )


def rate_share(rates: Rates, rate: Rate) -> RateShare:
    """Return one rate of some runs with its base: the runs for which it is known."""
    words = RATES[rate]
    share, base = getattr(rates, words.field), getattr(rates, words.base)
    return RateShare(share, round((share or 0) * base), base)


def rate_course(periods: Iterable[Rates], rate: Rate, period: Period) -> list[dict[str, Any]]:
    """Return one rate period by period as rows of its chart; a period in which it is not known is
    left out.
    """
    found = [(each.name or "", rate_share(each, rate)) for each in periods]
    return [
        {"at": at, "name": period_name(period, at), "share": each.share, "audits": each.words}
        for at, each in found
        if each.share is not None
    ]


TIME_MEASURES: frozenset[Measure] = frozenset(
    {"critic_ms", "reviser_ms", "iteration_ms", "loop_ms"}
)


class SpreadView(NamedTuple):
    """One distribution: its title, the bars and the marked values of its chart, its key numbers,
    its limit in words.
    """

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
    write = in_unit(spread.unit)
    held = spread.limit is not None and found.p95 is not None and found.p95 <= spread.limit
    limit = ""
    if spread.limit is not None:
        limit = f"95% {'are' if held else 'are not'} within the limit of {write(spread.limit)}"
    return SpreadView(
        found.measure,
        spread.title,
        bars(found, write),
        _percentile_marks(found),
        f"mean {write(found.mean)}, median {write(found.p50)}, 95% up to {write(found.p95)}, "
        f"at most {write(found.most)}; {found.count:,} measured",
        limit,
        held,
    )


def _percentile_marks(found: Distribution) -> list[dict[str, Any]]:
    """Return the median and the 95th percentile, under one name where their names would overlap."""
    if found.p50 is None or found.p95 is None or found.least is None or found.most is None:
        return []
    if found.p95 - found.p50 > 0.15 * (found.most - found.least):
        return [{"value": found.p50, "name": "median"}, {"value": found.p95, "name": "95%"}]
    names = "median, 95%" if found.p50 == found.p95 else "median and 95%"
    return [{"value": found.p50, "name": names}, {"value": found.p95, "name": ""}]


COUNT_MEASURES: frozenset[Measure] = frozenset({"iterations", "issues", "claims"})
"""Counts: a bar stands over its numbers."""


def bars(found: Distribution, write: Callable[[float | None], str]) -> list[dict[str, Any]]:
    """Return the bars of a distribution; none where all values lie in one bin, which is no
    distribution to draw.
    """
    inner = [each.high for each in found.bins if each.high is not None]
    if not inner:
        return []
    width = inner[1] - inner[0] if len(inner) > 1 else abs(inner[0] - (found.least or 0.0)) or 1.0
    aside = 0.5 if found.measure in COUNT_MEASURES else 0.0
    first = inner[0] - width
    if not aside and (found.least or 0.0) >= 0.0:  # no time and no share lies below zero
        first = max(first, 0.0)
    edges = [first, *inner, inner[-1] + width]
    return [
        {
            "from": edges[place] + aside,
            "to": edges[place + 1] + aside,
            "count": each.count,
            "low": _edge_text(each.low),
            "high": _edge_text(each.high),
            "values": bin_text(each, write),
            "audits": f"{each.count:,} of {found.count:,}",
        }
        for place, each in enumerate(found.bins)
    ]


def bin_text(each: Bin, write: Callable[[float | None], str]) -> str:
    """Say which values a bin holds."""
    if each.low is None:
        return "any value" if each.high is None else f"up to {write(each.high)}"
    return (
        f"over {write(each.low)}"
        if each.high is None
        else f"over {write(each.low)}, up to {write(each.high)}"
    )


def _edge_text(bound: float | None) -> str:
    return "" if bound is None else f"{bound:.12g}"


def period_bounds(period: Period, first: str) -> tuple[date, date] | None:
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
    return f"week of {day(first)}" if period == "week" else day(first)
