"""A new audit, or the one the address names, watched as it goes."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.new_audit import show_new_audit

with guarded() as bench:
    show_new_audit(bench)
