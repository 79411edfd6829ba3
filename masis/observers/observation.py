"""Observers of work in progress: audits, drafts, screenings and model calls.

Code that does such work reports its start, its events and its end here, and all registered
observers receive them (telemetry through ``masis.integrations.telemetry``). Nothing is created
while no observer is registered.

An observer is called on the thread and in the context of the work. A context variable that it sets
in ``on_start`` applies to the work and to the threads it starts, and must be reset in ``on_end``.
An observer that fails never fails the work it observes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from masis.schema import run
from masis.schema.calls import ModelCall, Step
from masis.schema.case import Case
from masis.schema.drafts import CritiqueResult
from masis.schema.screening import Screening, ScreeningEvent

T = TypeVar("T")
E = TypeVar("E", run.Event, ScreeningEvent)
R = TypeVar("R", run.Run, Screening)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AuditStart:
    """The loop over one case starts, for an ``operation``. Its result is a ``Run``."""

    case: Case | None = None
    operation: str = "audit"


@dataclass(frozen=True)
class DraftStart:
    """The critique of a draft starts and contains an audit. Its result is a ``CritiqueResult``."""

    query: str
    draft: str
    sources: int


@dataclass(frozen=True)
class CallStart:
    """A call to a language model starts, with all its tries. Its result is a ``ModelCall``.

    ``provider`` and ``model`` are the two parts of the model string; ``system`` and ``question``
    are the texts that are sent.
    """

    provider: str
    model: str
    role: str
    step: Step | None
    iteration: int | None
    prompt: str
    max_tokens: int
    temperature: float | None
    system: str
    question: str


@dataclass(frozen=True)
class ScreeningStart:
    """The screening of a question starts. Its result is a ``Screening``."""

    question: str = ""


@dataclass(frozen=True)
class Replied:
    """A model's reply to one try, unchanged."""

    text: str


Start: TypeAlias = AuditStart | DraftStart | CallStart | ScreeningStart
Event: TypeAlias = run.Event | ScreeningEvent | Replied
Result: TypeAlias = run.Run | CritiqueResult | ModelCall | Screening


class Listener(Protocol):
    """The listener that an observer attaches to one piece of work."""

    def on_event(self, event: Event) -> None:
        """Receive an event of the work."""

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """Receive the end of the work: its result, or the error that ended it."""


class Observer(Protocol):
    """Receives the start of work. It must be safe to call from several threads."""

    def on_start(self, start: Start) -> Listener:
        """Return a listener for the work that starts."""


class Observation:
    """One piece of work in progress and its listeners; ``result`` is set before it ends."""

    # One is created for each model call, most of them without any observer.
    __slots__ = ("_listeners", "result")

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self._listeners = listeners
        self.result: Result | None = None

    def emit(self, event: Event) -> None:
        """Pass an event to all listeners."""
        for listener in self._listeners:
            _call_guarded(partial(listener.on_event, event))

    def end(self, error: BaseException | None = None) -> None:
        """Report the end to all listeners, the last registered first."""
        # In reverse, like nested contexts: a listener may reset a context variable that the one
        # before it has set.
        for listener in reversed(self._listeners):
            _call_guarded(partial(listener.on_end, self.result, error))


_observers: tuple[Observer, ...] = ()


def register(observer: Observer) -> Callable[[], None]:
    """Register an observer for all work that starts from now on; return a function
    that removes it.
    """
    # A new tuple each time, so that a thread that iterates over the old one isn't disturbed.
    global _observers
    _observers = (*_observers, observer)

    def unregister() -> None:
        global _observers
        _observers = tuple(registered for registered in _observers if registered is not observer)

    return unregister


@contextmanager
def observe(start: Start) -> Iterator[Observation]:
    """Report the work inside this context to all observers."""
    # Without observers there is nothing to guard or report.
    if not _observers:
        yield Observation()
        return
    started = [_call_guarded(partial(observer.on_start, start)) for observer in _observers]
    observation = Observation(tuple(listener for listener in started if listener is not None))
    try:
        yield observation
    except BaseException as error:
        # Ctrl-C and a cancelled task end the observation as well.
        observation.end(error)
        raise
    observation.end()


def run_to_completion(
    work: Generator[E, None, R],
    on_event: Callable[[E], None] | None = None,
    start: Start | None = None,
    *,
    reported: Callable[[R], R | None] = lambda result: result,
) -> R:
    """Run an audit or a screening to its end and return its result.

    Args:
        work: The loop, which yields events and returns the result.
        on_event: Called with each event as it happens.
        start: The start that observers receive; by default that of an audit without a case.
        reported: Maps the result to the one that observers receive, if they differ.

    """
    with observe(start or AuditStart()) as observation:
        while True:
            try:
                event = next(work)
            except StopIteration as stop:
                result: R = stop.value
                observation.result = reported(result)
                return result
            observation.emit(event)
            if on_event is not None:
                on_event(event)


def _call_guarded(call: Callable[[], T]) -> T | None:
    """Call an observer; its errors are logged and not raised."""
    try:
        return call()
    except Exception:
        log.warning("an observer of the audits failed", exc_info=True)
        return None
