"""Who observes work under way: audits, drafts, screenings, calls to models.

The parts of the product say here what starts, what happens and how it ended; every registered
observer receives it (telemetry, by ``masis.integrations.telemetry``). Nothing is created while no
observer is registered.

An observer is called on the thread, and in the context, in which the work is done: a context
variable that it sets in ``on_start`` holds for the work and the threads it starts, and must be
reset in ``on_end``. An observer that fails never fails the work it observes.
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
    """The loop over one case starts, for an ``operation``. Its events are emitted; it ends in a
    ``Run``.
    """

    case: Case | None = None
    operation: str = "audit"


@dataclass(frozen=True)
class DraftStart:
    """The critique of a draft starts; an audit follows within it. It ends in a
    ``CritiqueResult``.
    """

    query: str
    draft: str
    sources: int


@dataclass(frozen=True)
class CallStart:
    """A call to a language model starts, with all its tries. Its replies are emitted; it ends in a
    ``ModelCall``.

    ``provider`` and ``model`` are the two halves of the model string; ``system`` and ``question``
    are what is sent.
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
    """The screening of a question starts. Its events are emitted; it ends in a ``Screening``."""

    question: str = ""


@dataclass(frozen=True)
class Replied:
    """A model's reply to one try, unchanged."""

    text: str


Start: TypeAlias = AuditStart | DraftStart | CallStart | ScreeningStart
Event: TypeAlias = run.Event | ScreeningEvent | Replied
Result: TypeAlias = run.Run | CritiqueResult | ModelCall | Screening


class Listener(Protocol):
    """What an observer attaches to one piece of work."""

    def on_event(self, event: Event) -> None:
        """Receive something that happened in it."""

    def on_end(self, result: Result | None, error: BaseException | None) -> None:
        """Receive how it ended: with a result, or cut short by an error."""


class Observer(Protocol):
    """Receives what starts. Must be safe to call from several threads."""

    def on_start(self, start: Start) -> Listener:
        """Return what listens to the work that starts."""


class Observation:
    """One piece of work under way and who listens to it; ``result`` is set before it ends."""

    __slots__ = ("_listeners", "result")

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self._listeners = listeners
        self.result: Result | None = None

    def emit(self, event: Event) -> None:
        """Hand an event to every listener."""
        for listener in self._listeners:
            _call_guarded(partial(listener.on_event, event))

    def end(self, error: BaseException | None = None) -> None:
        """Tell every listener how it ended, the last registered first."""
        for listener in reversed(self._listeners):
            _call_guarded(partial(listener.on_end, self.result, error))


_observers: tuple[Observer, ...] = ()


def register(observer: Observer) -> Callable[[], None]:
    """Let the observer receive all that starts from now on; return a function that ends this."""
    global _observers
    _observers = (*_observers, observer)

    def unregister() -> None:
        global _observers
        _observers = tuple(each for each in _observers if each is not observer)

    return unregister


@contextmanager
def observe(start: Start) -> Iterator[Observation]:
    """Let all observers follow the work done inside this context."""
    if not _observers:
        yield Observation()
        return
    started = [_call_guarded(partial(observer.on_start, start)) for observer in _observers]
    observation = Observation(tuple(listener for listener in started if listener is not None))
    try:
        yield observation
    except BaseException as error:
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
        start: What observers see start; an audit of no named case unless given.
        reported: What observers receive as the result, where that differs from what is returned.

    """
    with observe(start or AuditStart()) as observation:
        while True:
            try:
                event = next(work)
            except StopIteration as finished:
                result: R = finished.value
                observation.result = reported(result)
                return result
            observation.emit(event)
            if on_event is not None:
                on_event(event)


def _call_guarded(call: Callable[[], T]) -> T | None:
    """Call an observer; an error of it becomes a line in the log."""
    try:
        return call()
    except Exception:
        log.warning("an observer of the audits failed", exc_info=True)
        return None
