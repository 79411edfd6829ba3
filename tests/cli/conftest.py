"""Running the command line in this process, on databases of the test."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from masis.cli import main
from tests.cli.running import Masis


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def masis(home: Path) -> Masis:
    """Runs ``masis`` in this process; what it printed and its exit code come back."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)

    return run
