"""The process that runs a server's jobs (``masis.services.jobs``), with its log and telemetry as
the settings say.
"""

from __future__ import annotations

import contextlib
import logging

from masis.errors import MasisError
from masis.observers.log_records import formatter
from masis.services import jobs
from masis.settings import Settings, load


def main(database: str) -> None:
    """Run jobs on this database until the server is gone."""
    show_log()
    jobs.main(database, prepare=_start_worker_telemetry)


def show_log() -> None:
    """Write the package's log to the server's output, in the form that the settings name."""
    lines = logging.StreamHandler()
    with contextlib.suppress(MasisError):  # settings that can't be used are shown by the page
        if (form := load().settings.log_format) == "json":
            lines.setFormatter(formatter(form))
    logging.getLogger("masis").addHandler(lines)


def _start_worker_telemetry(settings: Settings) -> None:
    """Start telemetry if the settings ask for it; what is left is sent as the process ends."""
    if settings.telemetry == "off":
        return
    from masis.integrations import telemetry

    telemetry.start(settings)
    jobs.on_worker_exit(telemetry.end)
