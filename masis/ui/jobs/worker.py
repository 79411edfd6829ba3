"""A worker: a process that runs one job after another, audits and screenings, so that no page waits for a busy core.

Both ends are here. The server writes one JSON object a line to the worker's input (a job, or ``cancel``) and reads one
line back for each job; what a job finds goes through the database, where every tab and a restarted server see it.
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
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TextIO

from masis.errors import MasisError
from masis.observers.log_records import formatter
from masis.services import Actor, Workbench
from masis.settings import Settings, load

NICENESS = 10
"""Workers step back behind the pages where both want a core."""

LAST_WORDS_S = 1.0
"""How long the end of a worker waits for telemetry; the server waits twice as long for the worker."""

_PACKAGE_FOLDER = Path(__file__).resolve().parents[3]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from masis.ui.jobs.worker import main; main(sys.argv[2])"


class Job(NamedTuple):
    """One audit or screening to run; its id is known before it begins, so that a page can wait for it.

    Attributes:
        kind: What to run.
        id: The id of the run or of the screening.
        subject: The id of the case to audit, or the question to screen.
        settings: The settings to run it with.
        actor: Who asked for it.
        sources: Where a screening searches (``corpus:NAME``, ``pubmed``).

    """

    kind: Literal["audit", "screening"]
    id: str
    subject: str
    settings: Settings
    actor: Actor
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What at most one job at a time is for: a case to audit, or a screening."""
        return self.kind, self.subject if self.kind == "audit" else self.id


class WorkerDied(Exception):
    """The process ended in the middle of a job; what the job had finished is in the database."""


class Worker:
    """The server's end of one worker process. One job at a time; ``cancel`` may come from any thread."""

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

    def run(self, job: Job) -> str | None:
        """Run the job to its end; returns why it failed, None where it did not. Raises WorkerDied."""
        settings, actor = job.settings.model_dump(mode="json"), job.actor.model_dump(mode="json")
        self._send({"do": "run", **job._asdict(), "settings": settings, "actor": actor}, job.kind)
        reply = ""
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed meanwhile
            assert self._process.stdout is not None
            reply = self._process.stdout.readline()
        if not reply:
            raise self._died(job.kind)
        error: str | None = json.loads(reply)["error"]
        return error

    def cancel(self, job: Job) -> None:
        """Ask the job to stop after its current step; harmless where it is over."""
        with contextlib.suppress(WorkerDied):
            self._send({"do": "cancel", "id": job.id}, job.kind)

    def close(self, patience_s: float = 2.0) -> None:
        """End the process; a job it was in the middle of is interrupted."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.terminate()  # what it was writing is stored completely or not at all
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _send(self, order: dict[str, Any], kind: str) -> None:
        with self._writing:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(order) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError) as error:  # ValueError: closed meanwhile
                raise self._died(kind) from error

    def _died(self, kind: str) -> WorkerDied:
        self.close()
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return WorkerDied(f"The process that ran this {kind} {how}.")


def main(database: str) -> None:
    """Run the jobs that the server sends until the server is gone; the worker's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end closes the input
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    replies, sys.stdout = sys.stdout, sys.stderr
    show_log()
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, cancelled), daemon=True).start()

    @cache
    def workbench() -> Workbench:
        return Workbench.open(Path(database))

    while True:
        order = orders.get()
        error = _run(workbench, order, cancelled)
        print(json.dumps({"id": order["id"], "error": error}), file=replies, flush=True)
        cancelled.discard(order["id"])


def _listen(orders_in: TextIO, orders: queue.SimpleQueue[dict[str, Any]], cancelled: set[str]) -> None:
    for line in orders_in:
        order = json.loads(line)
        if order["do"] == "cancel":
            cancelled.add(order["id"])
        else:
            orders.put(order)
    leave()  # the server is gone; the job under way is marked interrupted by whoever opens the database next


def _run(workbench: Callable[[], Workbench], order: dict[str, Any], cancelled: set[str]) -> str | None:
    def stopped() -> bool:
        return order["id"] in cancelled

    try:
        opened, settings = workbench(), Settings.model_validate(order["settings"])
        actor = Actor.model_validate(order["actor"])
        measure(settings)
        if order["kind"] == "audit":
            case = opened.cases.get(order["subject"])
            opened.audits.audit(actor, case, settings=settings, run_id=order["id"], cancelled=stopped)
        else:
            opened.screenings.screen(
                actor,
                order["subject"],
                tuple(order["sources"]),
                settings=settings,
                screening_id=order["id"],
                cancelled=stopped,
            )
    except MasisError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 (one job must not end the others; the page shows what went wrong)
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None


def show_log() -> None:
    """Write the package's log to the server's output, in the form that the settings name."""
    lines = logging.StreamHandler()
    with contextlib.suppress(MasisError):  # settings that can't be used are shown by the page
        if (form := load().settings.log_format) == "json":
            lines.setFormatter(formatter(form))
    logging.getLogger("masis").addHandler(lines)


_before_the_end: list[Callable[[float], None]] = []
_leaving = threading.Lock()


def measure(settings: Settings) -> None:
    """Start telemetry in this process if the settings ask for it; what is left is sent as the process ends."""
    if settings.telemetry == "off":
        return
    from masis.integrations import telemetry

    telemetry.start(settings)
    if telemetry.end not in _before_the_end:
        _before_the_end.append(telemetry.end)
    signal.signal(signal.SIGTERM, lambda number, frame: None if _leaving.locked() else leave(128 + number))


def leave(status: int = 0) -> NoReturn:
    """End this process at once, after sending what telemetry has measured, for a second at most."""
    if _leaving.acquire(blocking=False):
        for end in _before_the_end:
            end(LAST_WORDS_S)
        os._exit(status)
    time.sleep(2 * LAST_WORDS_S)  # another thread is at it
    os._exit(status)
