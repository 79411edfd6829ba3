"""The documented example, run as written, and what the page says about it."""

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
    # over stdio the example starts a server itself
    arguments = [mcp_server.url] if transport == "http" else []
    monkeypatch.chdir(tmp_path)
    done = example("mcp/check_an_answer.py", *arguments)
    shown = re.search(r"```text\n(run finished.*?)```", PAGE.read_text(), re.DOTALL)
    assert _heads(done.stdout) == _heads(shown.group(1)), done.stdout
    assert "run_audit: 15 of 15: done" in done.stderr


def _heads(printed: str) -> list[str]:
    """Each line up to its first colon: scores and wordings of the offline auditor may change, what
    is told does not.
    """
    return [line.partition(":")[0] for line in printed.splitlines()]
