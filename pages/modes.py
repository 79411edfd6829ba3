"""Failure modes: read, code, group and count how the answers fail."""

from __future__ import annotations

from masis.ui.modes.page import show_modes
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_modes(workbench)
