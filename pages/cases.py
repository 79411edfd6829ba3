"""The cases, and one of them opened at ``?case=ID``."""

from __future__ import annotations

from masis.ui.address import value
from masis.ui.case import show_case
from masis.ui.cases import show_cases
from masis.ui.frame import guarded

with guarded() as bench:
    if case_id := value("case"):
        show_case(bench, case_id)
    else:
        show_cases(bench)
