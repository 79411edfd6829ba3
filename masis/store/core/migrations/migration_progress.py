"""How far the upgrade of an older database has come, for the person who waits for it.

``rows`` is for migrations that read every record: it counts them as they pass. Where nobody listens it only hands them
on, so a migration needs to know nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

_EVERY = 100
"""Records between two reports: some 50 ms."""

Record = TypeVar("Record")


class Upgrade(NamedTuple):
    """The pending migration under way, ``step`` of ``steps``; ``done`` of its ``total`` records, 0 of 0 uncounted."""

    step: int
    steps: int
    done: int = 0
    total: int = 0


Listener = Callable[[Upgrade], None]

_heard: ContextVar[tuple[Listener, Upgrade] | None] = ContextVar("heard", default=None)


@contextmanager
def heard_by(listener: Listener | None, step: int, steps: int) -> Iterator[None]:
    """Tell the listener of the migration that runs inside: now, and whatever its ``rows`` count."""
    if listener is None:
        yield
        return
    begun = Upgrade(step, steps)
    listener(begun)
    token = _heard.set((listener, begun))
    try:
        yield
    finally:
        _heard.reset(token)


def rows(found: Iterable[Record], total: int) -> Iterator[Record]:
    """The records as they come, counted for who listens."""
    heard = _heard.get()
    if heard is None:
        yield from found
        return
    listener, begun = heard
    for done, record in enumerate(found):
        if done % _EVERY == 0:
            listener(begun._replace(done=done, total=total))
        yield record
    listener(begun._replace(done=total, total=total))
