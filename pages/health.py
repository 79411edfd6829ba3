"""Health: what is in order, what is not, and what to do about it."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.health_page import show_health

with guarded() as bench:
    show_health(bench)
