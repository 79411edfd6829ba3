"""A worker process that reports the settings of its services instead of running jobs."""

from __future__ import annotations

import json
from typing import Any

from masis.errors import MasisError
from masis.services import Workbench, jobs


def report(workbench: Workbench, *_: Any) -> None:
    """Raise the settings of the workbench and of its services, as JSON, for an error."""
    services = [workbench, *vars(workbench).values()]
    settings = [
        getattr(service, name)
        for service in services
        for name in ("settings", "_settings")
        if hasattr(service, name)
    ]
    raise MasisError(json.dumps([setting.model_dump(mode="json") for setting in settings]))


def main(database: str) -> None:
    """Run ``jobs.main`` with the report."""
    jobs.run_job = report
    jobs.main(database)
