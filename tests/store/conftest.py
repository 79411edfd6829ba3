"""A store in a folder of its own, with a clock that ticks a second a look."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from masis.store import Store


def ticking() -> Callable[[], str]:
    """A clock: 12:00:00, 12:00:01, ..."""
    seconds = itertools.count()
    return lambda: "2026-01-01T{:02}:{:02}:{:02}.000Z".format(
        *((12 + (n := next(seconds)) // 3600) % 24, n // 60 % 60, n % 60)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of a test lies."""
    return tmp_path / "store" / "masis.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(path, now=ticking()) as opened:
        yield opened
