"""A store in a folder of its own, with a clock that ticks a second a look."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from masis.store import Store
from tests.conftest import made_once
from tools import tamper


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


def _build(path: Path) -> None:
    tamper.build(path)
    with Store.open(path) as built:
        built.settle()


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audited, decided and signed database, of which tests alter copies."""
    return made_once(tmp_path_factory, "original.db", _build)
