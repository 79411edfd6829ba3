"""Run work on threads of this process, either once with progress or repeatedly.

This work ends with its process. Audits and screenings, which survive a restart, are in
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
    """Work on a thread whose progress is shown.

    Subclasses define ``work`` and the progress.
    """

    failed: str | None = None
    """Why it ended early, or None if it didn't."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        # a daemon thread, because Python waits for other threads before it exits
        self._thread = threading.Thread(
            target=self._run_guarded, daemon=True, name=type(self).__name__
        )

    def start(self) -> Self:
        """Start the work and return the task.

        Call it once, after everything that ``work`` reads is set.
        """
        self._thread.start()
        return self

    def work(self) -> None:
        """Do the work on the thread; check ``stopping`` between steps."""
        raise NotImplementedError

    @property
    def share(self) -> float:
        """The share that is done, 0 to 1."""
        raise NotImplementedError

    @property
    def progress_text(self) -> str:
        """The progress in words."""
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
        """Ask the task to end after the current step; finished steps stay."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the task is over, for at most ``seconds``."""
        self._thread.join(seconds)

    def _run_guarded(self) -> None:
        try:
            self.work()
        except MasisError as error:
            self.failed = str(error)
        except Exception as error:
            log.exception("%s failed", type(self).__name__)
            self.failed = str(
                InputError(
                    f"failed ({type(error).__name__})", hint="The server's log has the details."
                )
            )


T = TypeVar("T", bound=BackgroundTask)


class BackgroundTasks(Generic[T]):
    """The latest tasks of one kind by name, shared by all sessions of a server.

    The oldest finished tasks are dropped. It is thread-safe.
    """

    def __init__(self, most: int = 50) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._tasks: dict[str, T] = {}

    def get(self, name: str) -> T | None:
        """Return the task of this name, or None if this process has none."""
        with self._lock:
            return self._tasks.get(name)

    def start(self, name: str, make: Callable[[], T]) -> T:
        """Start the task that ``make`` returns, unless a task of this name is running.

        Returns the running task in both cases.
        """
        # Checked and started under the lock, or two tabs could start the same task.
        with self._lock:
            task = self._tasks.get(name)
            if task is None or task.over:
                task = make()
                task.start()
                self._tasks.pop(name, None)  # moves the name to the end of the order of age
                self._tasks[name] = task
            over = [other for other, running in self._tasks.items() if running.over]
            for other in over[: max(0, len(self._tasks) - self._most)]:
                del self._tasks[other]
        return task


AFTER_FAILURE_S = 5.0
"""The shortest wait before a failed task is repeated, because each failure is logged."""


class RepeatedTask(BackgroundTask):
    """Work that is repeated until ``end`` is called.

    Failures are logged and then retried, unforeseen ones too, since nobody would notice that the
    thread has ended. ``failed`` is the failure of the latest attempt.
    """

    def __init__(
        self, work: Callable[[Callable[[], bool]], object], every: timedelta, name: str
    ) -> None:
        """``work`` receives a function that returns whether it should stop."""
        super().__init__()
        self._work, self._every, self._thread.name = work, every, name

    def work(self) -> None:
        """Do the work, wait, and repeat."""
        while True:
            pause = self._every.total_seconds()
            try:
                self._work(self._stop.is_set)
                self.failed = None
            except (MasisError, OSError) as error:
                log.warning("%s failed and will be tried again: %s", self._thread.name, error)
                self.failed = str(error)
                pause = max(pause, AFTER_FAILURE_S)
            except Exception as error:
                log.exception("%s failed and will be tried again", self._thread.name)
                self.failed = f"failed ({type(error).__name__})"
                pause = max(pause, AFTER_FAILURE_S)
            # unlike time.sleep, this wait ends as soon as the task is asked to stop
            if self._stop.wait(pause):
                return

    def end(self) -> None:
        """Stop after the current step, and wait for it."""
        self.stop()
        self.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.end()
