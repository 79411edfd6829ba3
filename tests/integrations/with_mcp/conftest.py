"""A server over HTTP, kept open for all tests that ask for ``door``; each test has cases of its own
in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.schema.case import Case
from masis.services import Workbench
from tests.integrations.with_mcp.door import BRIDGE, Door
from tests.reviewing import ADA

_numbers = itertools.count()


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """The server on a database, in a process of its own."""
    with Door("http", tmp_path_factory.mktemp("mcp") / "door.db") as opened:
        yield opened


@pytest.fixture
def bridge(door: Door) -> dict[str, Any]:
    """The bridge, stored under an id that no other test uses."""
    case = {**BRIDGE, "id": f"bridge{next(_numbers)}"}
    door.workbench().cases.add(ADA, [Case.model_validate(case)])
    return case


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database that holds the bridge, for servers that a test starts and ends."""
    path = tmp_path / "own.db"
    Workbench.open(path).cases.add(ADA, [Case.model_validate(BRIDGE)])
    return path
