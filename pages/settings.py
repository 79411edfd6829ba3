"""Settings and health: what the workbench was told, where its data lies, and whether all is sound."""

from __future__ import annotations

from masis.ui.database import show_database
from masis.ui.frame import guarded

with guarded() as bench:
    show_database(bench)
