"""The process that runs a server's jobs (``masis.services.jobs``), with log and telemetry."""

from __future__ import annotations

import contextlib
import logging

from masis.errors import MasisError
from masis.observers.log_records import formatter
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
    if settings.telemetry == "off":
        return
    from masis.integrations import telemetry

    telemetry.start(settings)
    jobs.on_worker_exit(telemetry.end)
