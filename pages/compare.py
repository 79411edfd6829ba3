"""Runs of a case: its history, and two of them side by side."""

from __future__ import annotations

from masis.ui.compare import show_compare
from masis.ui.frame import guarded

with guarded() as bench:
    show_compare(bench)
