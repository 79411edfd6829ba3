"""Health: what is in order, what is not, and what to do about it."""

from __future__ import annotations

from masis.ui.admin.health_page import show_health
from masis.ui.shell.frame import guarded

with guarded() as bench:
    show_health(bench)
