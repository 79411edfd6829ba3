"""Judge: how far the judge decides as people do, and what it is told."""

from __future__ import annotations

from masis.ui.judge.page import show_judge
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_judge(workbench)
