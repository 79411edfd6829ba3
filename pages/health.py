"""Health: the results of all checks, with hints for those that failed."""

from __future__ import annotations

from masis.ui.admin.health_page import show_health
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_health(workbench)
