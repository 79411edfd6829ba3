"""Work on threads of this process: once, with progress and a stop, or again and again while a
server runs.

It belongs to one process and ends with it. Audits and screenings, which survive a restart, are
``masis.services.jobs``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, Self, TypeVar

from masis.errors import InputError, MasisError

log = logging.getLogger(__name__)


class BackgroundTask:
    """Work on a thread, of which whoever began it sees how it goes. Subclasses define ``work`` and
    what it shows.
    """

    failed: str | None = None
    """Why it ended too early; None where it did not."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run_guarded, daemon=True, name=type(self).__name__
        )

    def start(self) -> Self:
        """Begin; returns itself. Call it once, when whatever ``work`` reads is set."""
        self._thread.start()
        return self

    def work(self) -> None:
        """Do the work, on the thread; look at ``stopping`` between two steps."""
        raise NotImplementedError

    @property
    def share(self) -> float:
        """How much is done, 0 to 1."""
        raise NotImplementedError

    @property
    def progress_text(self) -> str:
        """How much is done, in words."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let it end after the step under way; what is done by then stays."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is over, or so long."""
        self._thread.join(seconds)

    def _run_guarded(self) -> None:
        try:
            self.work()
        except MasisError as error:
            self.failed = str(error)
        except Exception as error:
            log.exception("%s failed", type(self).__name__)
            why = InputError(
                f"failed ({type(error).__name__})", hint="The server's log has the details."
            )
            self.failed = str(why)


T = TypeVar("T", bound=BackgroundTask)


class BackgroundTasks(Generic[T]):
    """The latest tasks of one kind by name, for every tab of a server; of those that are over the
    oldest are dropped.

    Safe to use from several threads.
    """

    def __init__(self, most: int = 50) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._tasks: dict[str, T] = {}

    def get(self, name: str) -> T | None:
        """Return the task of this name; None where this process knows none."""
        with self._lock:
            return self._tasks.get(name)

    def start(self, name: str, make: Callable[[], T]) -> T:
        """Start what ``make`` gives under this name, unless such a task is under way; returns the
        one that is.
        """
        with self._lock:
            begun = self._tasks.get(name)
            if begun is None or begun.over:
                begun = make()
                begun.start()
                self._tasks.pop(name, None)
                self._tasks[name] = begun
            over = [each for each, task in self._tasks.items() if task.over]
            for each in over[: max(0, len(self._tasks) - self._most)]:
                del self._tasks[each]
        return begun


AFTER_FAILURE_S = 5.0
"""How long what failed waits at least before it is tried again: each try is a line in the log."""


class RepeatedTask(BackgroundTask):
    """Work at once and then again and again, until ``end``. What fails is logged and
    tried again.
    """

    def __init__(
        self, work: Callable[[Callable[[], bool]], object], every: timedelta, name: str
    ) -> None:
        """``work`` receives what says whether it is to stop."""
        super().__init__()
        self._work, self._every, self._thread.name = work, every, name

    def work(self) -> None:
        """Do the work once, wait, and so on."""
        while True:
            pause = self._every.total_seconds()
            try:
                self._work(self._stop.is_set)
            except (MasisError, OSError) as error:
                log.warning("%s could not be done now: %s", self._thread.name, error)
                pause = max(pause, AFTER_FAILURE_S)
            if self._stop.wait(pause):
                return

    def end(self) -> None:
        """Stop, after the step under way."""
        self.stop()
        self.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.end()
