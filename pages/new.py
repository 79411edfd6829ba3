"""Start a new audit, or follow the one that the address names."""

from __future__ import annotations

from masis.ui.new_audit.page import show_new_audit
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_new_audit(workbench)
