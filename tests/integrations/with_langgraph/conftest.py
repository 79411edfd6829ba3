"""A workbench of its own for each test; nothing known of servers that earlier tests had at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.llm.client import server_capabilities
from masis.services import Workbench
from tests.llm.asking import KEY


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench without a case."""
    opened = Workbench.open(tmp_path / "masis.db")
    yield opened
    opened.store.close()


@pytest.fixture(autouse=True)
def _a_key_and_no_habits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    server_capabilities._known.clear()
