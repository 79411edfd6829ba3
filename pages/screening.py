"""The evidence critic: questions screened round by round, or the screening the address names."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.screening import show_screening

with guarded() as bench:
    show_screening(bench)
