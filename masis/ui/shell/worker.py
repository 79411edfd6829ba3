"""The process that runs a server's jobs (``masis.services.jobs``), with log and telemetry."""

from __future__ import annotations

import contextlib
import logging

from masis.errors import MasisError
from masis.observers.log_records import formatter
from masis.observers.telemetry import start_telemetry
from masis.services import jobs
from masis.settings import Settings, load


def main(database: str) -> None:
    """Run jobs on this database until the server exits."""
    show_log()
    jobs.main(database, prepare=_start_worker_telemetry)


def show_log() -> None:
    """Write the package's log to the server's output, in the format of the settings."""
    lines = logging.StreamHandler()
    with contextlib.suppress(MasisError):  # the page shows errors in the settings
        if (form := load().settings.log_format) == "json":
            lines.setFormatter(formatter(form))
    logging.getLogger("masis").addHandler(lines)


def _start_worker_telemetry(settings: Settings) -> None:
    """Start telemetry if the settings enable it, and flush it when the process exits."""
    if (end := start_telemetry(settings)) is not None:
        jobs.on_worker_exit(end)
