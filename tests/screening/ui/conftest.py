"""The fixtures of tests/ui."""

from __future__ import annotations

from tests.ui.conftest import audited_database, audited_workbench, no_page_fails, serve

__all__ = ["audited_database", "audited_workbench", "no_page_fails", "serve"]
