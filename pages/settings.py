"""Settings: every value with its source, and the database file."""

from __future__ import annotations

from masis.ui.admin.settings_page import show_settings
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_settings(workbench)
