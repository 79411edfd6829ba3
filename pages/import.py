"""Import a file of cases, or follow the import that the address names."""

from __future__ import annotations

from masis.ui.imports.page import show_imports
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_imports(workbench)
