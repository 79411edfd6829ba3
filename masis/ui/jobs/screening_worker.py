"""A process of its own for one screening, so that no page waits for a busy core. Both ends are here.

The server writes one JSON object to the worker's input and reads one line back at the end; what the screening finds
goes through the database, where every tab and a restarted server see it, and so does the request to stop.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from masis.errors import MasisError
from masis.services import ANONYMOUS, Workbench
from masis.settings import Settings
from masis.ui.jobs.audit_worker import NICENESS, leave, measure, send_what_is_left, show_log

_PACKAGE_FOLDER = Path(__file__).resolve().parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from masis.ui.jobs.screening_worker import main; main(sys.argv[2])"
)


class ScreeningJob(NamedTuple):
    """One screening to be made; its id is known before it begins, so that a page can wait for it."""

    screening_id: str
    question: str
    sources: tuple[str, ...]
    settings: Settings


class ScreeningProcess:
    """The server's end: a process that makes one screening and ends."""

    def __init__(self, database: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-P", "-c", _START, str(_PACKAGE_FOLDER), str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def screen(self, job: ScreeningJob) -> str | None:
        """Have the screening made; returns why it could not be, else None."""
        order = {**job._asdict(), "settings": job.settings.model_dump(mode="json")}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reply = ""
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed meanwhile
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
        self.close()
        if not reply:
            return f"The process that made this screening ended with status {self._process.returncode}."
        error: str | None = json.loads(reply)["error"]
        return error

    def close(self, patience_s: float = 2.0) -> None:
        """End the process; a screening it was in the middle of is interrupted."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.terminate()  # what it was writing is kept whole or not at all
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(database: str) -> None:
    """The worker's end: make the screening that is asked for; end at once where the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes the input
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    replies, sys.stdout = sys.stdout, sys.stderr
    show_log()
    order = json.loads(sys.stdin.readline() or "null")
    if order is None:
        return
    threading.Thread(target=_end_with_server, daemon=True).start()
    error = _screen(Path(database), order)
    send_what_is_left()  # the reply ends this process
    print(json.dumps({"error": error}), file=replies, flush=True)


def _end_with_server() -> None:
    sys.stdin.read()
    leave()  # the server is gone; the screening is marked interrupted by whoever opens the database next


def _screen(database: Path, order: dict[str, Any]) -> str | None:
    try:
        opened, settings = Workbench.open(database), Settings.model_validate(order["settings"])
        measure(settings)
        opened.screenings.screen(
            ANONYMOUS,
            order["question"],
            tuple(order["sources"]),
            settings=settings,
            screening_id=order["screening_id"],
        )
    except MasisError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (the page says what went wrong)
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None
