"""The fixtures of tests/services."""

from __future__ import annotations

from tests.services.test_demo_database import demo
from tests.services.test_jobs import jobs, pool, workbench

__all__ = ["demo", "jobs", "pool", "workbench"]
