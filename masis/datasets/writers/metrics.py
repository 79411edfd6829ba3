"""Writes a report of metrics as CSV."""

from __future__ import annotations

import csv
import io

from masis.audit.measures.metrics import (
    REPORT_METRICS,
    MetricsReport,
    ReportMetric,
    bound_text,
    per_run_metrics,
)
from masis.datasets.writers.lines import escape_formula


def metrics_csv(report: MetricsReport) -> str:
    """Return all numbers of a report as CSV: metric, unit, group, value, and how many it covers.

    A row is about all runs, one period or model, a percentile, or a bin of a histogram.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("metric", "label", "unit", "group", "name", "value", "known"))
    role = report.measure_filter.role
    groups = [("all", report.total)]
    groups += [(report.period, group) for group in report.periods]
    groups += [(role, group) for group in report.models]
    for metric in per_run_metrics():
        for kind, group in groups:
            values = (group.values[metric.name], group.known[metric.name])
            rows.writerow((*_csv_head(metric), kind, escape_formula(group.name or ""), *values))
    for spread in report.distributions:
        head = _csv_head(REPORT_METRICS[spread.measure])
        for name in ("mean", "least", "p50", "p95", "most"):
            rows.writerow((*head, "distribution", name, getattr(spread, name), spread.count))
        for bin_ in spread.bins:
            bounds = f"{bound_text(bin_.low)}..{bound_text(bin_.high)}"
            rows.writerow((*head, "bin", bounds, bin_.count, spread.count))
    return text.getvalue()


def _csv_head(metric: ReportMetric) -> tuple[str, str, str]:
    return metric.key, metric.label, "1" if metric.unit in ("share", "integer", "") else metric.unit
