"""Trust: how far the automatic audit may be relied on."""

from __future__ import annotations

from masis.ui.shell.frame import database_errors
from masis.ui.trust.page import show_trust

with database_errors() as workbench:
    show_trust(workbench)
