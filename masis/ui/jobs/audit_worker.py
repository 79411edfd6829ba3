"""A worker: a process of its own that audits one case after another, so that no page waits for a busy core.

Both ends are here. The server writes one JSON object a line to the worker's input (``audit``, ``cancel``) and reads one
line back for each audit; what an audit finds goes through the database, where every tab and a restarted server see it.
The process is started plainly, not through ``multiprocessing``: that would run the main module again, which inside
Streamlit is the page.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO

from masis.errors import MasisError
from masis.observers.log_records import formatter
from masis.services import ANONYMOUS, Workbench
from masis.settings import Settings, load

NICENESS = 10
"""Workers step back behind the pages where both want a core."""

LAST_WORDS_S = 1.0
"""How long the end of a worker waits for telemetry; the server waits twice as long for the worker."""

_PACKAGE_FOLDER = Path(__file__).resolve().parents[3]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from masis.ui.jobs.audit_worker import main; main(sys.argv[2])"


class Job(NamedTuple):
    """One audit to be made: the run's id is known before the run begins, so that a page can wait for it."""

    run_id: str
    case_id: str
    settings: Settings


class WorkerDied(Exception):
    """The process ended in the middle of an audit; what the run had finished is in the database."""


class Worker:
    """The server's end of one worker process. One audit at a time; ``cancel`` may come from any thread."""

    def __init__(self, database: Path) -> None:
        self._writing = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-P", "-c", _START, str(_PACKAGE_FOLDER), str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def audit(self, job: Job) -> str | None:
        """Have the job done; returns why it could not be, else None. Raises WorkerDied."""
        self._tell(
            {
                "do": "audit",
                "run_id": job.run_id,
                "case_id": job.case_id,
                "settings": job.settings.model_dump(mode="json"),
            }
        )
        reply = ""
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed meanwhile
            assert self._process.stdout is not None
            reply = self._process.stdout.readline()
        if not reply:
            raise self._died()
        error: str | None = json.loads(reply)["error"]
        return error

    def cancel(self, run_id: str) -> None:
        """Ask for the run to stop after its current step; harmless where it is over."""
        with contextlib.suppress(WorkerDied):
            self._tell({"do": "cancel", "run_id": run_id})

    def close(self, patience_s: float = 2.0) -> None:
        """End the process; a run it was in the middle of is interrupted."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.terminate()  # what it was writing is kept whole or not at all
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _tell(self, order: dict[str, Any]) -> None:
        with self._writing:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(order) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError) as error:  # ValueError: closed meanwhile
                raise self._died() from error

    def _died(self) -> WorkerDied:
        self.close()
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return WorkerDied(f"The process that ran this audit {how}.")


def main(database: str) -> None:
    """The worker's end: audit what is asked for until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes the input
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    replies, sys.stdout = sys.stdout, sys.stderr
    show_log()
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, cancelled), daemon=True).start()
    opened: list[Workbench] = []

    def workbench() -> Workbench:
        if not opened:
            opened.append(Workbench.open(Path(database)))
        return opened[0]

    while True:
        order = orders.get()
        error = _audit(workbench, order, cancelled)
        print(json.dumps({"run_id": order["run_id"], "error": error}), file=replies, flush=True)
        cancelled.discard(order["run_id"])


def _listen(orders_in: TextIO, orders: queue.SimpleQueue[dict[str, Any]], cancelled: set[str]) -> None:
    for line in orders_in:
        order = json.loads(line)
        if order["do"] == "cancel":
            cancelled.add(order["run_id"])
        else:
            orders.put(order)
    leave()  # the server is gone; the run under way is marked interrupted by whoever opens the database next


def show_log() -> None:
    """What goes wrong stands in the server's output, in the form that the settings name."""
    lines = logging.StreamHandler()
    with contextlib.suppress(MasisError):  # settings that can't be used are told by the page
        if (form := load().settings.log_format) == "json":
            lines.setFormatter(formatter(form))
    logging.getLogger("masis").addHandler(lines)


_before_the_end: list[Callable[[float], None]] = []
_leaving = threading.Lock()


def measure(settings: Settings) -> None:
    """Measure what this process does from now on, if the settings ask for it; what is left is sent as it ends."""
    if settings.telemetry == "off":
        return
    from masis.integrations import telemetry

    telemetry.start(settings)
    if telemetry.end not in _before_the_end:
        _before_the_end.append(telemetry.end)
    signal.signal(signal.SIGTERM, lambda number, frame: None if _leaving.locked() else leave(128 + number))


def leave(status: int = 0) -> NoReturn:
    """End this process at once; only what telemetry has measured is waited for, for a second."""
    if _leaving.acquire(blocking=False):
        send_what_is_left()
        os._exit(status)
    time.sleep(2 * LAST_WORDS_S)  # another thread is at it
    os._exit(status)


def send_what_is_left() -> None:
    """Send what telemetry has measured, if it has, for a second at most."""
    for end in _before_the_end:
        end(LAST_WORDS_S)


def _audit(workbench: Callable[[], Workbench], order: dict[str, Any], cancelled: set[str]) -> str | None:
    try:
        opened, settings = workbench(), Settings.model_validate(order["settings"])
        measure(settings)
        opened.audits.audit(
            ANONYMOUS,
            opened.cases.get(order["case_id"]),
            settings=settings,
            run_id=order["run_id"],
            cancelled=lambda: order["run_id"] in cancelled,
        )
    except MasisError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (one case must not end the audits of the others; the page says it)
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None
