"""Settings: what the workbench was told and where its data lies."""

from __future__ import annotations

from masis.ui.frame import guarded
from masis.ui.settings_page import show_settings

with guarded() as bench:
    show_settings(bench)
