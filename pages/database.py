"""Where the data lies, what is in it, and whether it is sound."""

from __future__ import annotations

from masis.ui.database import show_database
from masis.ui.frame import guarded

with guarded() as bench:
    show_database(bench)
