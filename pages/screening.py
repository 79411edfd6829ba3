"""The evidence critic: questions screened round by round, or the screening the address names."""

from __future__ import annotations

from masis.ui.screening.page import show_screening
from masis.ui.shell.frame import guarded

with guarded() as bench:
    show_screening(bench)
