"""The evidence critic: screen a question round by round, or open an earlier screening."""

from __future__ import annotations

from masis.screening.ui.page import show_screening
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_screening(workbench)
