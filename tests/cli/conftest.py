"""Fixtures that run the command line in this process on temporary databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from masis.cli import main
from tests.cli.running import Masis


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder for this test only."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def masis(home: Path) -> Masis:
    """Run ``masis`` in this process and return its output and exit code."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)

    return run
