"""The decision log, with reviewer, time and reason of every decision."""

from __future__ import annotations

from masis.ui.review.decisions import show_decisions
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_decisions(workbench)
