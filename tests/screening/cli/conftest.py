"""The fixtures of tests/cli."""

from __future__ import annotations

from tests.cli.conftest import _import_integrations_once, home, masis

__all__ = ["_import_integrations_once", "home", "masis"]
