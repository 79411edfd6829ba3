"""An MCP server over HTTP for all tests in the folder; each test uses its own cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.schema.case import Case
from masis.services import Workbench
from tests.integrations.with_mcp.mcp_server import BRIDGE, McpServer
from tests.reviewing import ADA

_numbers = itertools.count()


@pytest.fixture(scope="session")
def mcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpServer]:
    """Start a server on an empty database, in a separate process."""
    with McpServer("http", tmp_path_factory.mktemp("mcp") / "mcp.db") as server:
        yield server


@pytest.fixture
def bridge(mcp_server: McpServer) -> dict[str, Any]:
    """Store the case of the bridge under an id that no other test uses."""
    case = {**BRIDGE, "id": f"bridge{next(_numbers)}"}
    mcp_server.workbench().cases.add(ADA, [Case.model_validate(case)])
    return case


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a database with the case of the bridge, for servers that a test starts itself."""
    path = tmp_path / "own.db"
    Workbench.open(path).cases.add(ADA, [Case.model_validate(BRIDGE)])
    return path
