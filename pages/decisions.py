"""The decision log: who decided what, when and why."""

from __future__ import annotations

from masis.ui.decisions import show_decisions
from masis.ui.frame import guarded

with guarded() as bench:
    show_decisions(bench)
