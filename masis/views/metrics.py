"""Names, units and wording for the metrics of finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple

from masis.audit.measures.metrics import Bin, Distribution, Measure, Period, Rate, Rates
from masis.views.numbers import NOTHING, day, in_unit, percent


class MetricSpread(NamedTuple):
    """A metric shown as a distribution: its title, its unit, and what its bins count.

    ``limit`` is the value that 95% should stay below.
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
"""The distributions of REQ-CRITIC-OBS-001, with the limits of REQ-CRITIC-NFR-001 to -004."""


class RateWords(NamedTuple):
    """The words for a rate: its title, its meaning and the title of its list.

    ``each`` completes the sentence "Each of them ...". ``field`` and ``base`` are fields of
    ``Rates``. ``machine`` is true if the rate describes how audits ran rather than the answers.
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
        "Original answers that cite evidence that doesn't exist, or make claims that the evidence"
        " doesn't support or contradicts.",
        "Audits of answers with something fabricated, unsupported or contradicted",
        "has something fabricated, unsupported or contradicted",
        "critique_hallucination_rate",
        "hallucination_known",
    ),
    "revision": RateWords(
        "A serious issue",
        "Original answers with an issue of severity high or critical, which needed a revision.",
        "Audits of answers with a serious issue",
        "has a serious issue",
        "critique_revision_rate",
        "revision_known",
    ),
    "needs_review": RateWords(
        "Needs review",
        "A person has to decide because something is wrong or not everything could be confirmed."
        " The rest was auto-accepted.",
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
        """The share with its base, for example ``31% (4 of 13)``."""
        return (
            NOTHING
            if self.share is None
            else f"{percent(self.share, whole_from=0.01)} ({self.held:,} of {self.base:,})"
        )


def rate_share(rates: Rates, rate: Rate) -> RateShare:
    """Return one rate with its base, which is the number of runs for which it is known."""
    words = RATES[rate]
    share, base = getattr(rates, words.field), getattr(rates, words.base)
    return RateShare(share, round((share or 0) * base), base)


def rate_course(periods: Iterable[Rates], rate: Rate, period: Period) -> list[dict[str, Any]]:
    """Return one rate by period as rows of its chart, without periods in which it isn't known."""
    shares = [(rates.name or "", rate_share(rates, rate)) for rates in periods]
    return [
        {"at": at, "name": period_name(period, at), "share": share.share, "audits": share.words}
        for at, share in shares
        if share.share is not None
    ]


TIME_MEASURES: frozenset[Measure] = frozenset(
    {"critic_ms", "reviser_ms", "iteration_ms", "loop_ms"}
)


class SpreadView(NamedTuple):
    """One distribution: title, bars and marks of its chart, key numbers, and its limit in words."""

    measure: Measure
    title: str
    bars: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    numbers: str
    limit: str
    held: bool


def spread_view(distribution: Distribution) -> SpreadView:
    """Describe one distribution for its chart."""
    spread = SPREADS[distribution.measure]
    write = in_unit(spread.unit)
    held = (
        spread.limit is not None
        and distribution.p95 is not None
        and distribution.p95 <= spread.limit
    )
    limit = ""
    if spread.limit is not None:
        limit = f"95% {'are' if held else 'are not'} within the limit of {write(spread.limit)}"
    return SpreadView(
        distribution.measure,
        spread.title,
        bars(distribution, write),
        _percentile_marks(distribution),
        f"mean {write(distribution.mean)}, median {write(distribution.p50)}, "
        f"95% up to {write(distribution.p95)}, "
        f"at most {write(distribution.most)}; {distribution.count:,} measured",
        limit,
        held,
    )


def _percentile_marks(distribution: Distribution) -> list[dict[str, Any]]:
    """Return marks for the median and the 95th percentile, merged if their names would overlap."""
    if (
        distribution.p50 is None
        or distribution.p95 is None
        or distribution.least is None
        or distribution.most is None
    ):
        return []
    if distribution.p95 - distribution.p50 > 0.15 * (distribution.most - distribution.least):
        return [
            {"value": distribution.p50, "name": "median"},
            {"value": distribution.p95, "name": "95%"},
        ]
    names = "median, 95%" if distribution.p50 == distribution.p95 else "median and 95%"
    return [{"value": distribution.p50, "name": names}, {"value": distribution.p95, "name": ""}]


COUNT_MEASURES: frozenset[Measure] = frozenset({"iterations", "issues", "claims"})
"""Measures that are counts. Their bars are centred on whole numbers."""


def bars(distribution: Distribution, write: Callable[[float | None], str]) -> list[dict[str, Any]]:
    """Return the bars of a distribution, all equally wide; none if all values are in one bin."""
    inner = [bin_.high for bin_ in distribution.bins if bin_.high is not None]
    if not inner:
        return []
    # The first and the last bin are open, so they are drawn as wide as the others.
    width = (
        inner[1] - inner[0]
        if len(inner) > 1
        else abs(inner[0] - (distribution.least or 0.0)) or 1.0
    )
    aside = 0.5 if distribution.measure in COUNT_MEASURES else 0.0
    first = inner[0] - width
    if not aside and (distribution.least or 0.0) >= 0.0:  # Times and shares can't be negative.
        first = max(first, 0.0)
    edges = [first, *inner, inner[-1] + width]
    return [
        {
            "from": edges[place] + aside,
            "to": edges[place + 1] + aside,
            "count": bin_.count,
            "low": _edge_text(bin_.low),
            "high": _edge_text(bin_.high),
            "values": bin_text(bin_, write),
            "audits": f"{bin_.count:,} of {distribution.count:,}",
        }
        for place, bin_ in enumerate(distribution.bins)
    ]


def bin_text(bin_: Bin, write: Callable[[float | None], str]) -> str:
    """Describe the values in a bin."""
    if bin_.low is None:
        return "any value" if bin_.high is None else f"up to {write(bin_.high)}"
    return (
        f"over {write(bin_.low)}"
        if bin_.high is None
        else f"over {write(bin_.low)}, up to {write(bin_.high)}"
    )


def _edge_text(bound: float | None) -> str:
    return "" if bound is None else f"{bound:.12g}"


def period_bounds(period: Period, first: str) -> tuple[date, date] | None:
    """Return a period's first day and the day after its last; None if ``first`` isn't a date."""
    try:
        begins = date.fromisoformat(first)
        if period == "month":
            begins = begins.replace(day=1)
            # 31 days after the first day of a month is always a day of the next month.
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
