"""Retention: records past their retention period, their removal, and earlier removals."""

from __future__ import annotations

from masis.ui.admin.retention_page import show_retention
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_retention(workbench)
