"""Who watches what is under way: audits, drafts, screenings, calls to models.

Parts of the product say here what begins, what happens and what came of it; whoever registered is told (telemetry, by
``masis.integrations.telemetry``). Nobody is registered unless somebody asked for it, and then nothing is made.

A watcher is told on the thread, and in the context, in which the work is done: what it sets as a context variable in
``begins`` holds for the work and the threads it starts, and is to be taken back in ``ended``. A watcher that fails
never fails what it watches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from masis.schema.calls import ModelCall, Step
from masis.schema.case import Case
from masis.schema.drafts import CritiqueResult
from masis.schema.run import Event, Run
from masis.schema.screening import Screening, ScreeningEvent

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AuditBegins:
    """The loop over one case; ``operation`` is what asked for it. Told: its events. Result: a ``Run``."""

    case: Case | None = None
    operation: str = "audit"


@dataclass(frozen=True)
class DraftBegins:
    """The critique of a draft; an audit follows within it. Result: a ``CritiqueResult``."""

    query: str
    draft: str
    sources: int


@dataclass(frozen=True)
class CallBegins:
    """A question to a language model, with all tries it will take. Told: its replies. Result: a ``ModelCall``.

    ``provider`` and ``model`` are the two halves of the model string; ``system`` and ``question`` are what is asked.
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
class ScreeningBegins:
    """The screening of a question. Told: its events. Result: a ``Screening``."""

    question: str = ""


@dataclass(frozen=True)
class Replied:
    """What a model replied to one try, as it came."""

    text: str


Begins: TypeAlias = AuditBegins | DraftBegins | CallBegins | ScreeningBegins
Told: TypeAlias = Event | ScreeningEvent | Replied
Result: TypeAlias = Run | CritiqueResult | ModelCall | Screening


class Watch(Protocol):
    """What a watcher keeps of one thing under way."""

    def told(self, event: Told) -> None:
        """Something happened in it."""

    def ended(self, result: Result | None, error: BaseException | None) -> None:
        """It is over: with a result, or cut short by an error."""


class Watcher(Protocol):
    """Somebody who wants to know. Safe to be told from several threads."""

    def begins(self, what: Begins) -> Watch:
        """Something begins."""
        ...


class Watched:
    """One thing under way, and who watches it; ``result`` is set before it is over."""

    __slots__ = ("_watches", "result")

    def __init__(self, watches: tuple[Watch, ...] = ()) -> None:
        self._watches = watches
        self.result: Result | None = None

    def tell(self, event: Told) -> None:
        """Something happened."""
        for watch in self._watches:
            _guarded(partial(watch.told, event))

    def over(self, error: BaseException | None = None) -> None:
        """It is over; those who came last are told first."""
        for watch in reversed(self._watches):
            _guarded(partial(watch.ended, self.result, error))


_watchers: tuple[Watcher, ...] = ()


def register(watcher: Watcher) -> Callable[[], None]:
    """Tell this watcher of all that begins from now on; what is returned ends that."""
    global _watchers
    _watchers = (*_watchers, watcher)

    def leave() -> None:
        global _watchers
        _watchers = tuple(each for each in _watchers if each is not watcher)

    return leave


def anyone() -> bool:
    """Whether anybody watches."""
    return bool(_watchers)


@contextmanager
def watched(what: Begins) -> Iterator[Watched]:
    """Something is under way while this is entered; whoever watches learns how it goes and what came of it."""
    if not _watchers:
        yield Watched()
        return
    begun = [_guarded(partial(watcher.begins, what)) for watcher in _watchers]
    under_way = Watched(tuple(watch for watch in begun if watch is not None))
    try:
        yield under_way
    except BaseException as error:
        under_way.over(error)
        raise
    under_way.over()


def _guarded(tell: Callable[[], T]) -> T | None:
    """What watches must not harm: a fault of it is a line in the log."""
    try:
        return tell()
    except Exception:
        log.warning("what watches the audits failed", exc_info=True)
        return None
