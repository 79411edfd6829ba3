"""Metrics: what the audits came to, by period and by model."""

from __future__ import annotations

from masis.ui.metrics.page import show_metrics
from masis.ui.shell.frame import guarded

with guarded() as bench:
    show_metrics(bench)
