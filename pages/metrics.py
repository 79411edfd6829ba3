"""Metrics: what the audits came to, by period and by model."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.metrics import show_metrics

with guarded() as bench:
    show_metrics(bench)
