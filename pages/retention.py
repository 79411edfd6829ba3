"""Retention: what is past its time, removing it, and what was removed."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.retention_page import show_retention

with guarded() as bench:
    show_retention(bench)
