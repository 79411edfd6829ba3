"""The table of metrics over many runs, and the records of a report.

``REPORT_METRICS`` is the single list: the store reads each metric from a column of a view, and the
page Metrics, ``masis metrics`` and the CSV file derive their charts, columns and keys from it. The
sums by period and model come from SQL or Parquet. Unmeasured runs are not counted. Times are UTC,
and a week begins on Monday.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import model_serializer

from masis.audit.measures.statistics import percentile
from masis.schema.base import Record
from masis.settings import Role

Period = Literal["day", "week", "month"]
Unit = Literal["share", "ms", "%", "USD", "integer", ""]
MetricChart = Literal["share", "spread", "total", ""]
Topic = Literal["answers", "cost", "machine"]
RUN_VIEW, ITERATION_VIEW = "run_metrics", "iteration_metrics"


class ReportMetric(NamedTuple):
    """One metric over many runs.

    Attributes:
        name: The name in addresses, and the column of a lake's rows.
        label: The title.
        meaning: The explanation, in full sentences.
        unit: ``share`` is 0 to 1, ``integer`` a sum of whole numbers.
        column: A column of ``view`` or an SQL expression over its columns; NULL where nothing was
            measured.
        chart: ``share``: a bar, and a line over time. ``spread``: a histogram. ``total``: a bar for
            each period. Empty: only in reports.
        topic: The section of the page.
        base: The plural noun for the values of the metric, such as "audits".
        view: The SQL view, with a row for each run or for each iteration.
        report_name: The key in reports, if it isn't ``name``.
        listed: The title of the list of the runs behind a share.
        limit: The value that 95% should stay below.
        needs: The data without which the metric is empty: model calls, measured times or revisions.
        is_column: Whether the tables by model and by period have a column for it.
        is_count: Whether the values are whole numbers, so that a bar is centered on its number.

    """

    name: str
    label: str
    meaning: str
    unit: Unit
    column: str
    chart: MetricChart = ""
    topic: Topic = "machine"
    base: str = "audits"
    view: str = RUN_VIEW
    report_name: str = ""
    listed: str = ""
    limit: float | None = None
    needs: Literal["", "calls", "time", "revision"] = ""
    is_column: bool = False
    is_count: bool = False

    @property
    def key(self) -> str:
        """The key in reports."""
        return self.report_name or self.name


_DECLARED = (
    ReportMetric(
        "hallucination",
        "Fabricated, unsupported or contradicted",
        (
            "Original answers that cite evidence which doesn't exist, or say what the "
            "evidence does not support or contradicts."
        ),
        "share",
        "hallucination",
        chart="share",
        topic="answers",
        report_name="critique_hallucination_rate",
        listed="Audits of answers with something fabricated, unsupported or contradicted",
        is_column=True,
    ),
    ReportMetric(
        "revision",
        "A serious issue",
        ("Original answers with an issue of severity high or critical: they needed a revision."),
        "share",
        "revision",
        chart="share",
        topic="answers",
        report_name="critique_revision_rate",
        listed="Audits of answers with a serious issue",
        is_column=True,
    ),
    ReportMetric(
        "needs_review",
        "Needs review",
        (
            "A person has to decide because something is wrong or not everything could be"
            " confirmed. The rest was auto-accepted."
        ),
        "share",
        "needs_review",
        chart="share",
        topic="answers",
        report_name="needs_review_rate",
        listed="Audits that need review",
        is_column=True,
    ),
    ReportMetric(
        "converged",
        "Nothing left to improve",
        (
            "Audits that ended because no serious issue was left, or a further revision "
            "no longer improved the answer."
        ),
        "share",
        "ended_well",
        chart="share",
        topic="machine",
        report_name="converged_rate",
        listed="Audits with nothing left to improve",
        is_column=True,
    ),
    ReportMetric(
        "convergence_ending",
        "Stopped improving",
        (
            "Audits that ended because a further revision no longer improved the answer; "
            "a part of those with nothing left to improve."
        ),
        "share",
        "ended_by_convergence",
        chart="share",
        topic="machine",
        report_name="convergence_rate",
        listed="Audits that stopped improving",
        is_column=True,
    ),
    ReportMetric(
        "no_issues",
        "Ended without issues",
        "Audits that ended because the answer had no issue.",
        "share",
        "ended_without_issues",
        report_name="no_issues_rate",
        listed="Audits that ended without issues",
    ),
    ReportMetric(
        "failed",
        "A failed step",
        "Audits in which a step failed.",
        "share",
        "ended_by_error",
        report_name="error_rate",
        listed="Audits with a failed step",
    ),
    ReportMetric(
        "critic_ms",
        "Critic time per answer",
        "Time of the critic for one answer.",
        "ms",
        "critic_ms",
        chart="spread",
        base="answers",
        view=ITERATION_VIEW,
        limit=15_000,
        needs="time",
    ),
    ReportMetric(
        "reviser_ms",
        "Reviser time per revision",
        "Time of the reviser for one revision.",
        "ms",
        "reviser_ms",
        chart="spread",
        base="revisions",
        view=ITERATION_VIEW,
        limit=15_000,
        needs="time",
    ),
    ReportMetric(
        "iteration_ms",
        "Time per iteration",
        "Time of all steps of one iteration.",
        "ms",
        "iteration_ms",
        chart="spread",
        base="iterations",
        view=ITERATION_VIEW,
        limit=35_000,
        needs="time",
    ),
    ReportMetric(
        "loop_ms",
        "Time per audit",
        "Time from the start of an audit to its end.",
        "ms",
        "loop_ms",
        chart="spread",
        report_name="critique_latency_ms",
        limit=90_000,
        needs="time",
        is_column=True,
    ),
    ReportMetric(
        "iterations",
        "Iterations per audit",
        "Audited answers in one audit.",
        "",
        "iterations",
        chart="spread",
        is_count=True,
    ),
    ReportMetric(
        "improvement_delta",
        "Change in quality per revision",
        "Quality of a revision less that of the answer before it.",
        "",
        "improvement_delta",
        chart="spread",
        base="revisions",
        view=ITERATION_VIEW,
        needs="revision",
    ),
    ReportMetric(
        "improvement_percentage",
        "Improvement per audit",
        "From the quality of the first answer to the best one.",
        "%",
        "improvement_percentage",
        chart="spread",
        needs="revision",
    ),
    ReportMetric(
        "issues",
        "Issues per answer",
        "Problems that the audit found in one answer.",
        "",
        "issues",
        chart="spread",
        base="answers",
        view=ITERATION_VIEW,
        is_count=True,
    ),
    ReportMetric(
        "claims",
        "Claims per draft",
        "Claims found in an original answer.",
        "",
        "claims",
        chart="spread",
        report_name="claims_per_draft",
        is_count=True,
    ),
    ReportMetric(
        "claim_confidence",
        "Confidence in claims",
        "Mean confidence of the verdicts on an answer's claims.",
        "",
        "claim_confidence",
        chart="spread",
        report_name="critique_confidence_avg",
    ),
    ReportMetric(
        "confidence",
        "Confidence in the answer",
        "The critic's confidence, lowered for citation problems.",
        "",
        "confidence",
        chart="spread",
    ),
    ReportMetric(
        "quality",
        "Quality",
        "Quality of the original answer.",
        "",
        "quality",
        is_column=True,
    ),
    ReportMetric(
        "overall",
        "Overall score",
        "The evaluator's overall score.",
        "",
        "overall",
    ),
    ReportMetric(
        "tokens",
        "Tokens per audit",
        "Tokens sent and received in one audit.",
        "",
        "tokens",
        chart="spread",
        needs="calls",
        report_name="tokens_per_audit",
    ),
    ReportMetric(
        "cost_usd",
        "Cost per audit",
        "Cost of one audit's calls, where their price is known.",
        "USD",
        "cost_usd",
        chart="spread",
        needs="calls",
        report_name="cost_per_audit",
    ),
    ReportMetric(
        "cost",
        "Cost",
        "The sum over the calls whose price is known.",
        "USD",
        "cost_usd",
        chart="total",
        topic="cost",
        needs="calls",
        report_name="cost_usd",
        is_column=True,
    ),
    ReportMetric(
        "calls",
        "Model calls",
        "Calls to models.",
        "integer",
        "calls",
        chart="total",
        topic="cost",
        needs="calls",
    ),
    ReportMetric(
        "total_tokens",
        "Tokens",
        "Tokens sent and received.",
        "integer",
        "tokens",
        chart="total",
        topic="cost",
        needs="calls",
        is_column=True,
    ),
    ReportMetric(
        "input_tokens", "Tokens sent", "Tokens in the prompts.", "integer", "input_tokens"
    ),
    ReportMetric(
        "output_tokens", "Tokens received", "Tokens in the replies.", "integer", "output_tokens"
    ),
)
REPORT_METRICS = {metric.name: metric for metric in _DECLARED}
"""Every metric by name: those of REQ-CRITIC-OBS-001 and DRAFT-CRITIQUE-METRICS, with the limits of
REQ-CRITIC-NFR-001 to -004, and more. A metric that is added here, even while the program runs, is
on the page, in ``masis metrics`` and in the CSV file.
"""


def per_run_metrics() -> list[ReportMetric]:
    """Return the metrics with one value for each run, which groups of runs add up."""
    return [metric for metric in REPORT_METRICS.values() if metric.view == RUN_VIEW]


def select_metrics(chart: MetricChart) -> list[ReportMetric]:
    """Return the metrics with this kind of chart."""
    return [metric for metric in REPORT_METRICS.values() if metric.chart == chart]


class RunGroup(Record):
    """The metrics of a group of runs: shares and means over the runs where they are known, or sums.

    In JSON, the metrics are keys of the group itself, named as in the specs.

    Attributes:
        name: The period's first day, or the model.
        values: The value by the metric's name; None if it was never measured.
        known: The number of runs for which each metric is known.

    """

    name: str | None
    runs: int
    values: dict[str, float | None]
    known: dict[str, int]

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        shares = {
            f"{metric.name}_known": self.known[metric.name]
            for metric in per_run_metrics()
            if metric.unit == "share"
        }
        values = {metric.key: self.values[metric.name] for metric in per_run_metrics()}
        return {"name": self.name, "runs": self.runs, **shares, **values}


class Bin(Record):
    """The number of values above ``low`` and up to ``high``; None leaves a side open."""

    low: float | None
    high: float | None
    count: int


def bound_text(bound: float | None) -> str:
    """Return a bound of a bin as in addresses and files; empty for an open side."""
    return "" if bound is None else f"{bound:.12g}"


class Distribution(Record):
    """The distribution of one figure over runs or iterations.

    The percentiles are values that occurred.
    """

    measure: str
    count: int
    mean: float | None
    least: float | None
    most: float | None
    p50: float | None
    p95: float | None
    bins: tuple[Bin, ...]


Sums = Counter[str]
"""Sums by the name of the metric, the count of known values (``_known``), and the ``runs``."""


class AddedUp(NamedTuple):
    """The metrics of the same runs in total, by period and by model."""

    total: RunGroup
    periods: tuple[RunGroup, ...]
    models: tuple[RunGroup, ...]


def add_up(sums: Mapping[tuple[str, str | None], Sums]) -> AddedUp:
    """Return the metrics of all runs, by period and by model, from sums by period and model.

    The models with the most runs are first.
    """
    total, periods, models = Sums(), dict[str, Sums](), dict[str | None, Sums]()
    for (period, model), part_sums in sums.items():
        of_period, of_model = periods.setdefault(period, Sums()), models.setdefault(model, Sums())
        for group in (total, of_period, of_model):
            group.update(part_sums)
    by_runs = sorted(models.items(), key=lambda group: (-group[1]["runs"], group[0] or ""))
    return AddedUp(
        total=_group("", total),
        periods=tuple(_group(first, periods[first]) for first in sorted(periods)),
        models=tuple(_group(model, of_model) for model, of_model in by_runs),
    )


def _group(name: str | None, sums: Sums) -> RunGroup:
    values: dict[str, float | None] = {}
    for metric in per_run_metrics():
        total, known = sums[metric.name], sums[f"{metric.name}_known"]
        if metric.unit == "integer":
            values[metric.name] = int(total)
        elif metric.chart == "total":
            values[metric.name] = float(total) if known else None
        else:
            values[metric.name] = total / known if known else None
    known_runs = {metric.name: int(sums[f"{metric.name}_known"]) for metric in per_run_metrics()}
    return RunGroup(name=name, runs=sums["runs"], values=values, known=known_runs)


class MeasureFilter(Record):
    """The runs to include. Times are ISO 8601, and ``until`` is excluded; ``models`` are those of
    ``role``. An empty field doesn't filter.
    """

    since: str | None = None
    until: str | None = None
    role: Role = "critic"
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()


class MetricsReport(Record):
    """The figures of the matching runs: in total, by period, and by model of the filter's role."""

    measure_filter: MeasureFilter
    period: Period
    total: RunGroup
    periods: tuple[RunGroup, ...]
    models: tuple[RunGroup, ...]
    distributions: tuple[Distribution, ...]
    spread_over: int | None = None
    """The number of newest runs in the distributions, if they don't include all matching runs."""


MAX_BINS = 10
"""Maximum number of bins per chart. A bar needs some width, because it can be clicked."""


def equal_bounds(values: NDArray[np.float64]) -> list[float]:
    """Return the inner bounds of equally wide bins for ascending values.

    The width is 1, 2 or 5 times a power of ten. If the largest value is more than twice as far out
    as the 99th percentile, the values above that share the last, open bin, because a long tail
    would squeeze everything else into one bin.
    """
    if not len(values) or values[0] == values[-1]:
        return []
    are_integers = bool(np.all(values == np.floor(values)))
    lowest, highest, percentile_99 = float(values[0]), float(values[-1]), percentile(values, 99)
    if highest - lowest > 2 * (percentile_99 - lowest) > 0:
        highest = percentile_99
    step = (
        1.0
        if are_integers
        else 10.0 ** (math.floor(math.log10(max(highest - lowest, abs(highest) * 1e-9, 1e-12))) - 2)
    )
    # The factors 2, 2.5 and 2 make steps of 1, 2, 5 and 10.
    for factor in itertools.cycle((2, 2.5, 2)):
        first = math.floor(lowest / step) * step
        bins = (
            math.floor((highest - first) / step) + 1
            if are_integers
            else max(1, math.ceil(round((highest - first) / step, 9)))
        )
        if bins + (float(values[-1]) > highest) <= MAX_BINS:
            break
        step *= factor
    # A bin includes its upper bound; for whole numbers that is the last one before the next step.
    last = bins + (float(values[-1]) > highest)
    return [round(first + step * number - are_integers, 12) for number in range(1, last)]


def spread_of(measure: str, values: NDArray[np.float64]) -> Distribution:
    """Return the distribution of ascending values."""
    count = len(values)
    bounds = equal_bounds(values)
    # The right side, because a bin includes its upper bound.
    ends = [0, *np.searchsorted(values, bounds, side="right").tolist(), count]
    edges = (None, *bounds, None)

    return Distribution(
        measure=measure,
        count=count,
        mean=float(values.mean()) if count else None,
        least=float(values[0]) if count else None,
        most=float(values[-1]) if count else None,
        p50=percentile(values, 50) if count else None,
        p95=percentile(values, 95) if count else None,
        bins=tuple(
            Bin(low=edges[number], high=edges[number + 1], count=ends[number + 1] - ends[number])
            for number in range(len(bounds) + 1)
        ),
    )
