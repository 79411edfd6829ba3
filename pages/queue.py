"""The queue: every case, searched, filtered and ordered."""

from __future__ import annotations

from masis.ui.cases import show_cases
from masis.ui.frame import guarded

with guarded() as bench:
    show_cases(bench)
