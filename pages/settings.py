"""Settings and health: what the workbench was told, where its data lies, and whether all is sound."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.settings_page import show_settings

with guarded() as bench:
    show_settings(bench)
