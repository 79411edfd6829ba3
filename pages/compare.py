"""Two systems compared over their shared questions; with a case in the address, two of its runs."""

from __future__ import annotations

from masis.ui.compare.page import show_compare
from masis.ui.review.run_comparison import show_run_comparison
from masis.ui.shell import address
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    if address.value("case"):
        show_run_comparison(workbench)
    else:
        show_compare(workbench)
