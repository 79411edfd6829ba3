"""Preference: which of two systems' answers is better, and what people prefer."""

from __future__ import annotations

from masis.ui.preference.page import show_preference
from masis.ui.shell.frame import database_errors

with database_errors() as workbench:
    show_preference(workbench)
