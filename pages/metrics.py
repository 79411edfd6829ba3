"""Metrics: the results of audits by period and by model."""

from __future__ import annotations

from masis.ui.metrics.page import show_metrics
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_metrics(workbench)
