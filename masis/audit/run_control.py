"""What one run lets its steps do: until when they may work, whether to go on, and where they tell of their calls.

The loop makes one for each run and says where the run stands; roles that reach a model over the network ask it how long
they may wait and hand it a record of each call (``specs/critic-loop.md``, NFR-001 to NFR-004; DESIGN.md, 4.3).
"""

from __future__ import annotations

import contextvars
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from masis.errors import StepError
from masis.schema.calls import ModelCall, Step
from masis.settings import Settings

T = TypeVar("T")
MOST_THREADS = 1024
Seconds = Callable[[], float]


class Notice(NamedTuple):
    """Something about a call that a person who watches wants to know now: a retry, a change of mode, a reply mended.

    ``message`` is ours, never the text of a reply.
    """

    kind: Literal["call_retried", "call_repaired", "call_finished"]
    step: Step | None
    iteration: int | None
    message: str
    data: dict[str, object]


class Place(NamedTuple):
    """Where a run stands."""

    step: Step | None = None
    iteration: int | None = None


@dataclass
class Conduct:
    """One run's limits, its calls so far and what is to be told. Safe to use from several threads.

    ``fence`` is the mark, new for each run and not to be guessed, that closes texts from outside in prompts.
    """

    call_s: float = 15.0
    iteration_s: float = 35.0
    loop_s: float = 90.0
    seconds: Seconds = time.monotonic
    place: Place = field(default_factory=Place)
    fence: str = field(default_factory=lambda: secrets.token_hex(16))
    told: queue.SimpleQueue[Notice] = field(default_factory=queue.SimpleQueue)
    _calls: list[ModelCall] = field(default_factory=list)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _loop_began: float | None = None
    _iteration_began: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queued: int = 0
    _queue_began: float = 0.0
    _queue_s: float = 0.0

    def begin_loop(self, settings: Settings, seconds: Seconds) -> None:
        """The loop begins: its deadline runs from here, by this clock."""
        self.call_s, self.iteration_s, self.loop_s = (
            settings.call_deadline_s,
            settings.iteration_deadline_s,
            settings.loop_deadline_s,
        )
        self.seconds = seconds
        self._loop_began = self.worked_s()
        self._iteration_began = None

    def begin_iteration(self) -> None:
        """An iteration begins: its deadline runs from here, to the end of the revision made from its answer."""
        self._iteration_began = self.worked_s()

    def at(self, step: Step | None, iteration: int | None) -> None:
        """The run is at this step now: calls and notices are filed under it."""
        self.place = Place(step, iteration)

    def loop_left_s(self) -> float:
        """Seconds until the loop's deadline; below 0 where it has passed."""
        return self.loop_s if self._loop_began is None else self._loop_began + self.loop_s - self.worked_s()

    def left_s(self) -> float:
        """Seconds that a step beginning now may take; 0 or less where a deadline has passed."""
        now = self.worked_s()
        left = [self.call_s]
        if self._iteration_began is not None:
            left.append(self._iteration_began + self.iteration_s - now)
        return min(*left, self.loop_left_s())

    @contextmanager
    def queued(self) -> Iterator[None]:
        """While a call waits for its turn at a provider that others keep busy: no deadline runs meanwhile.

        Waits of calls side by side count once.
        """
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
        """The clock without the time in which calls of this run stood in a queue."""
        with self._lock:
            now = self.seconds()
            return now - self._queue_s - (now - self._queue_began if self._queued else 0.0)

    def stop(self) -> None:
        """No further call is to be made, and no wait to be sat out."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether the person asked to stop."""
        return self._stopped.is_set()

    def pause(self, seconds: float) -> bool:
        """Wait, at most until ``stop``; whether to go on."""
        return not self._stopped.wait(seconds)

    def tell(
        self, kind: Literal["call_retried", "call_repaired", "call_finished"], message: str, **data: object
    ) -> None:
        """Let whoever watches know."""
        self.told.put(Notice(kind, self.place.step, self.place.iteration, message, data))

    def record(self, call: ModelCall) -> None:
        """Keep what a call took."""
        self._calls.append(call)

    def calls_since(self, mark: int = 0) -> tuple[ModelCall, ...]:
        """The calls recorded after the first ``mark``, in the order they ended."""
        return tuple(self._calls[mark:])

    @property
    def mark(self) -> int:
        """How many calls are recorded so far."""
        return len(self._calls)


def begun(work: Callable[[], T], name: str, then: Callable[[], None] = lambda: None) -> Future[T]:
    """The work begun on a thread of its own, which does not keep the process alive; ``then`` is called at its end."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # who no longer waits for it can't take its result's place away

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (whoever waits for the result raises it)
            future.set_exception(error)
        finally:
            then()

    threading.Thread(target=contextvars.copy_context().run, args=(do,), name=name, daemon=True).start()
    return future


def together(tasks: Sequence[Callable[[], T]]) -> list[T | StepError]:
    """What each task gives, in their order, all of them under way at once; a step that fails is a value here."""

    def guarded(task: Callable[[], T]) -> T | StepError:
        try:
            return task()
        except StepError as error:
            return error

    if len(tasks) < 2:
        return [guarded(task) for task in tasks]
    others = [_pool().submit(contextvars.copy_context().run, guarded, task) for task in tasks[1:]]
    first = guarded(tasks[0])
    return [first, *(future.result() for future in others)]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads for calls side by side, of all runs of the process: to make one anew costs more than a prompt does.

    More of them than any limit of calls; a task here starts no other and so can't wait for a thread in vain.
    """
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="calls")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads don't come along
