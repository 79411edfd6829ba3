"""``npx @modelcontextprotocol/inspector --cli``: another implementation of the protocol, over both transports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.with_mcp.door import BRIDGE, ROOT, Door

INSPECTOR = "@modelcontextprotocol/inspector@1.0.3"
"""The last version that runs on Node 20; npm warns there, and it works. Those of 2.x need Node 22.19."""

DOWNLOAD_S = 400


@cache
def _missing() -> str | None:
    """Why the inspector can't be run here, None where it can."""
    if shutil.which("npx") is None:
        return "npx is not installed (it comes with Node)"
    try:
        tried = subprocess.run(
            ["npx", "--yes", "--prefer-offline", INSPECTOR, "--cli", "--help"],
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "npx could not bring the inspector in time"
    return None if "--cli" in tried.stdout + tried.stderr else f"npx could not bring it: {tried.stderr[-300:]}"


def inspect(door: Door, *arguments: str) -> tuple[int, Any, str]:
    """Exit code, what the inspector printed, and what it said."""
    target = [door.url, "--transport", "http"]
    if door.transport == "stdio":
        target = [sys.executable, *door.command, "-e", f"PYTHONPATH={ROOT}"]
    done = subprocess.run(
        ["npx", "--yes", "--prefer-offline", INSPECTOR, "--cli", *target, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NODE_NO_WARNINGS": "1"},
    )
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def inspector() -> None:
    if why := _missing():
        pytest.skip(f"the inspector is not here: {why}")


@pytest.mark.soak
@pytest.mark.usefixtures("inspector")
def test_the_inspector_lists_calls_and_reads_over_stdio(database: Path) -> None:
    with Door("stdio", database) as door:
        code, listed, told = inspect(door, "--method", "tools/list")
        assert code == 0, told
        assert [tool["name"] for tool in listed["tools"]][:2] == ["critique_answer", "audit_citations"]
        assert all(tool["outputSchema"]["type"] == "object" for tool in listed["tools"])

        call = ("--method", "tools/call", "--tool-name")
        code, run, told = inspect(door, *call, "run_audit", "--tool-arg", "caseId=bridge")
        assert code == 0, told
        assert run["structuredContent"]["state"] == "finished"

        code, case, told = inspect(door, "--method", "resources/read", "--uri", "masis://case/bridge")
        assert code == 0, told
        assert json.loads(case["contents"][0]["text"])["case"] == BRIDGE


@pytest.mark.soak
@pytest.mark.usefixtures("inspector")
def test_the_inspector_calls_and_lists_over_http(database: Path) -> None:
    with Door("http", database) as door:
        draft = "The bridge is 990 metres long."
        given = (f"query={BRIDGE['query']}", f"draft={draft}", 'sourceIds=["bridge/1"]', "strictness=strict")
        flags = [flag for each in given for flag in ("--tool-arg", each)]
        call = ("--method", "tools/call", "--tool-name")
        code, critique, told = inspect(door, *call, "critique_answer", *flags)
        assert code == 0, told
        assert critique["structuredContent"]["isValid"] is False

        _, wrong, told = inspect(door, *call, "get_run", "--tool-arg", "runId=nothing")
        assert wrong["isError"] is True, told
        assert "there is no run 'nothing'" in wrong["content"][0]["text"]

        code, resources, told = inspect(door, "--method", "resources/list")
        assert code == 0, told
        assert resources["resources"][0]["uri"] == "masis://case/bridge"
