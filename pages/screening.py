"""The evidence critic: questions screened round by round, or the screening the address names."""

from __future__ import annotations

from masis.ui.screening.page import show_screening
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_screening(workbench)
