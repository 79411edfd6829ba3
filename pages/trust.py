"""Trust: how far you can rely on the automatic audit."""

from __future__ import annotations

from masis.ui.shell.frame import database_errors
from masis.ui.trust.page import show_trust

with database_errors() as workbench:
    show_trust(workbench)
