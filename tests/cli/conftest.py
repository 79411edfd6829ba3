"""Fixtures that run the command line in this process on temporary databases."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from masis.cli import main
from masis.services.maintenance import health
from tests.cli.running import Masis

import_error = cache(health._import_error)


@pytest.fixture(autouse=True)
def _import_integrations_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``masis health`` import each installed integration only in the first test.

    It starts a process for each, which takes 7 s of processor time in all.
    """
    monkeypatch.setattr(health, "_import_error", import_error)


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
