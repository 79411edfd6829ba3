"""The limits of one run: a time budget, a log of its calls and a cancel token.

The loop creates one ``RunControl`` per run and sets its position. Roles that call a model over the
network ask the budget how long they may wait, record each call, and make no further call once the
run is cancelled (REQ-CRITIC-NFR-001 to REQ-CRITIC-NFR-004).
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from masis.schema.calls import ModelCall, Step
from masis.settings import Settings

Seconds = Callable[[], float]

POLL_INTERVAL_S = 0.1
"""Seconds between two checks for cancellation, in a waiting coroutine or in work that computes."""

NoticeKind: TypeAlias = Literal["call_retried", "call_repaired", "call_finished", "warning"]


class CallNotice(NamedTuple):
    """An event during a call that observers should see at once, such as a retry or a repair.

    A ``warning`` is stored with the run. The program writes ``message``, which never includes the
    text of a reply.
    """

    kind: NoticeKind
    step: Step | None
    iteration: int | None
    message: str
    data: dict[str, object]


class RunPosition(NamedTuple):
    """The step and iteration that a run is in."""

    step: Step | None = None
    iteration: int | None = None


@dataclass
class RunBudget:
    """The deadlines of one run, in seconds: per call, per iteration and for the loop. Thread-safe.

    Time that calls spend in a provider's queue doesn't count.
    """

    call_s: float = 15.0
    iteration_s: float = 35.0
    loop_s: float = 90.0
    seconds: Seconds = time.monotonic
    _loop_began: float | None = None
    _iteration_began: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queued: int = 0
    _queue_began: float = 0.0
    _queue_s: float = 0.0

    def begin_loop(self, settings: Settings, seconds: Seconds) -> None:
        """Start the loop's deadline on this clock, with the limits of the settings."""
        self.call_s, self.iteration_s = settings.call_deadline_s, settings.iteration_deadline_s
        self.loop_s, self.seconds = settings.loop_deadline_s, seconds
        self._loop_began = self.worked_s()
        self._iteration_began = None

    def begin_iteration(self) -> None:
        """Start an iteration's deadline, which also covers the revision of its answer."""
        self._iteration_began = self.worked_s()

    def loop_left_s(self) -> float:
        """Return the seconds until the loop's deadline, negative once it has passed."""
        return (
            self.loop_s
            if self._loop_began is None
            else self._loop_began + self.loop_s - self.worked_s()
        )

    def left_s(self) -> float:
        """Return the seconds that a call starting now may last.

        They are 0 or less if a deadline has passed.
        """
        return min(self._seconds_left().values())

    def limit(self) -> str:
        """Return the setting and value of the deadline that a call would reach first."""
        remaining = self._seconds_left()
        name = min(remaining, key=remaining.__getitem__)
        return f"{name}_deadline_s = {getattr(self, f'{name}_s'):g}"

    def _seconds_left(self) -> dict[str, float]:
        remaining = {"call": self.call_s, "loop": self.loop_left_s()}
        if self._iteration_began is not None:
            remaining["iteration"] = self._iteration_began + self.iteration_s - self.worked_s()
        return remaining

    @contextmanager
    def pause_while_queued(self) -> Iterator[None]:
        """Stop all deadlines while a call waits for its turn at a busy provider.

        Waits in parallel count once.
        """
        # Only the first of several waiting calls starts the pause, and only the last one ends it.
        with self._lock:
            self._queued += 1
            if self._queued == 1:
                self._queue_began = self.seconds()
        try:
            yield
        finally:
            with self._lock:
                self._queued -= 1
                if not self._queued:
                    self._queue_s += self.seconds() - self._queue_began

    def worked_s(self) -> float:
        """Return the clock's time minus the time that calls of this run spent in a queue."""
        # Calls on other threads change the queue's figures, so all are read under one lock.
        with self._lock:
            now = self.seconds()
            return now - self._queue_s - (now - self._queue_began if self._queued else 0.0)


@dataclass
class CallLog:
    """The calls of one run by step, and notices about calls in progress. Thread-safe.

    ``case_id`` is for log lines; it is "" if claims are checked without a case.
    """

    place: RunPosition = field(default_factory=RunPosition)
    case_id: str = ""
    notices: queue.SimpleQueue[CallNotice] = field(default_factory=queue.SimpleQueue)
    _calls: list[ModelCall] = field(default_factory=list)
    _warned: set[tuple[RunPosition, str]] = field(default_factory=set)

    def at(self, step: Step | None, iteration: int | None) -> None:
        """Set the position of the run for the calls and notices that follow."""
        self.place = RunPosition(step, iteration)

    def emit(self, kind: NoticeKind, message: str, **data: object) -> None:
        """Queue a notice for the loop."""
        self.notices.put(CallNotice(kind, self.place.step, self.place.iteration, message, data))

    def warn(self, what: str, message: str, *, once: bool = False) -> None:
        """Add a warning with the key ``what``, once per step or, with ``once``, once per run.

        Several calls may cause the same warning.
        """
        position = RunPosition() if once else self.place
        if (position, what) not in self._warned:
            self._warned.add((position, what))
            self.emit("warning", message, what=what)

    def record(self, call: ModelCall) -> None:
        """Add a finished call."""
        self._calls.append(call)

    def since(self, mark: int = 0) -> tuple[ModelCall, ...]:
        """Return the calls recorded after the first ``mark``, in the order they ended."""
        return tuple(self._calls[mark:])

    @property
    def mark(self) -> int:
        """The number of calls recorded so far."""
        return len(self._calls)


class Cancelled(Exception):
    """The run was cancelled."""


class CancelToken:
    """Tells whether a run was cancelled. Thread-safe; a token is never reset.

    ``is_requested`` is for a run that computes on its own thread. There the step itself must check
    for cancellation, through ``check``.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._next_poll = 0.0
        self.is_requested: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raise Cancelled if the run was cancelled.

        This is cheap enough to be called between the parts of a long computation.
        """
        if not self.is_cancelled and time.monotonic() >= self._next_poll:
            if self.is_requested():
                self.cancel()
            self._next_poll = time.monotonic() + POLL_INTERVAL_S
        if self.is_cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """Prevent further calls and end all waits."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._event.is_set()

    def pause(self, seconds: float) -> bool:
        """Wait for this time or until ``cancel``, and return whether the run continues."""
        return not self._event.wait(seconds)


@dataclass
class RunControl:
    """The state that a run shares with its roles.

    Attributes:
        fence: The mark that encloses outside texts in prompts. It is new for each run, so that
            no text can guess it.
        evidence_room: For each model whose context is too small for all the evidence, the number of
            characters that fit.

    """

    budget: RunBudget = field(default_factory=RunBudget)
    calls: CallLog = field(default_factory=CallLog)
    cancellation: CancelToken = field(default_factory=CancelToken)
    fence: str = field(default_factory=lambda: secrets.token_hex(8))
    evidence_room: dict[str, int] = field(default_factory=dict)
