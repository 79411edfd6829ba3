"""A store with a few audited cases, and an empty workbench."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.services import Workbench
from masis.store import Store
from tests.store.factories import a_case, an_audited_case


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Five cases, each with a finished run that needs review."""
    with Store.open(tmp_path / "review.db") as opened:
        for number in range(5):
            an_audited_case(opened, a_case(f"case-{number}"), f"run-{number}")
        yield opened


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    """An empty workbench."""
    opened = Workbench.open(tmp_path / "bench.db")
    yield opened
    opened.close()
