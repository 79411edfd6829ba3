"""A new audit, or the one the address names, watched as it goes."""

from __future__ import annotations

from masis.ui.new_audit.page import show_new_audit
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_new_audit(workbench)
