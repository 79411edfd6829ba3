"""The fixtures of tests/store."""

from __future__ import annotations

from tests.store.conftest import original, path, store

__all__ = ["original", "path", "store"]
