"""Ray on this machine, started once for the tests of a file; its folder has a short path, as its
sockets need.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from masis.settings.environment import quiet_ray

ROOT = Path(__file__).resolve().parents[3]
QUIET: dict[str, Any] = {"namespace": "masis", "logging_level": "ERROR", "log_to_driver": False}
WORKERS = {
    "env_vars": {"PYTHONPATH": str(ROOT)},
    "worker_process_setup_hook": "tests.integrations.with_ray.poison.install",
}


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder for Ray's own files."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as made:
        yield made


@pytest.fixture(scope="module")
def two_cores() -> Iterator[None]:
    """Ray with two cores, whose workers know poisoned cases."""
    quiet_ray()
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as made:
        small = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 * 2**20}
        ray.init(_temp_dir=made, runtime_env=WORKERS, **small, **QUIET)
        yield
        ray.shutdown()
