"""The queue: every case, searched, filtered and ordered."""

from __future__ import annotations

from masis.ui.queue.case_list import show_cases
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_cases(workbench)
