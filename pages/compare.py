"""The runs of a case: its history, and a comparison of two runs."""

from __future__ import annotations

from masis.ui.review.compare import show_compare
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_compare(workbench)
