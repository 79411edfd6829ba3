"""The team: progress, adjudication, assignment, policy and rubric."""

from __future__ import annotations

from masis.ui.shell.frame import database_errors
from masis.ui.team.page import show_team

with database_errors() as workbench:
    show_team(workbench)
