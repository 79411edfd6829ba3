"""The review page: the case in the address, or a way to choose one."""

from __future__ import annotations

from masis.ui.review.case import show_case, show_no_case
from masis.ui.shell.address import value
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    if case_id := value("case"):
        show_case(workbench, case_id)
    else:
        show_no_case(workbench)
