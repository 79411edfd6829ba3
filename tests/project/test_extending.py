"""The tutorial of docs/extending.md, followed step by step in a separate package."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.plugins import write_package

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")

# A file of the tutorial: its name on a separate line, then its content as a code block.
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EMPTY_FILE = re.compile(r"`([\w/]+/__init__\.py)`")


def run(command: str, folder: Path) -> str:
    """Run a command of the tutorial and return its output."""
    program, *arguments = shlex.split(command)
    assert program == "masis"
    environment = {
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "MASIS_CONFIG": "masis.toml",
        "MASIS_DB": "tutorial.db",
    }
    done = subprocess.run(
        [sys.executable, "-m", "masis.cli", *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def entry_points(project: str) -> str:
    """Return the content of ``entry_points.txt`` that an installation writes for a
    ``pyproject.toml``.
    """
    groups = tomllib.loads(project)["project"]["entry-points"]
    return "\n".join(
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    )


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


def wait_until_it_listens(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError("the server of the tutorial didn't start")


def test_the_package_of_the_tutorial_works(tmp_path: Path, port: int) -> None:
    tutorial = TUTORIAL.replace("9000", str(port))
    files = dict(FILE.findall(tutorial)) | dict.fromkeys(EMPTY_FILE.findall(tutorial), "")
    assert len(files) == 10
    write_package(tmp_path, entry_points(files["pyproject.toml"]), files)
    (commands,) = re.findall(r"^```text\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)
    server = subprocess.Popen([sys.executable, "house/server.py", str(port)], cwd=tmp_path)
    try:
        wait_until_it_listens(port, server)
        suggested, _, shown, _, _ = (run(command, tmp_path) for command in commands.splitlines())
    finally:
        server.kill()
        server.wait()

    assert "has the format house-logs" in suggested
    audited = json.loads((tmp_path / "runs.jsonl").read_text(encoding="utf-8"))
    assert audited["models"]["critic"] == "mine:judge-1"
    (iteration,) = audited["iterations"]
    assert iteration["critique"]["critique_reasoning"] == "Read by the house model."
    assert audited["usage"]["prompt_tokens"] > audited["usage"]["completion_tokens"] == 60
    assert "A length in metres: 120 metres" in shown
    with (tmp_path / "rejected.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["case_id"], row["reason"]) == ("b-1", "Metres instead of feet.")
