"""The decision log: who decided what, when and why."""

from __future__ import annotations

from masis.ui.review.decisions import show_decisions
from masis.ui.shell.frame import guarded

with guarded() as bench:
    show_decisions(bench)
