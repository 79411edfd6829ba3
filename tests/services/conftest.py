"""A store with a few audited cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.store import Store
from tests.store.factories import a_case, an_audited_case


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Five cases, each with a finished run that needs review."""
    with Store.open(tmp_path / "review.db") as opened:
        for number in range(5):
            an_audited_case(opened, a_case(f"case-{number}"), f"run-{number}")
        yield opened
