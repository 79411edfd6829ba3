"""The documented example runs as written and prints the documented output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import example
from tests.integrations.with_mcp.mcp_server import ROOT, McpServer

PAGE = ROOT / "docs" / "frameworks.md"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_example_prints_the_documented_output(
    transport: str, tmp_path: Path, mcp_server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Over stdio, the example starts a server itself.
    arguments = [mcp_server.url] if transport == "http" else []
    monkeypatch.chdir(tmp_path)
    result = example("mcp/check_an_answer.py", *arguments)
    documented = re.search(r"```text\n(run finished.*?)```", PAGE.read_text(), re.DOTALL)
    assert _heads(result.stdout) == _heads(documented.group(1)), result.stdout
    assert "run_audit: 15 of 15: done" in result.stderr


def _heads(printed: str) -> list[str]:
    """Return each line up to its first colon, because the scores and texts after it may change."""
    return [line.partition(":")[0] for line in printed.splitlines()]
