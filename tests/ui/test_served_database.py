"""Which database the pages show, and the commands that reach it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from masis.ui.shell import served_database
from masis.ui.shell.served_database import command, command_markdown


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASIS_DB", str(tmp_path / "mine.db"))
    monkeypatch.setattr(served_database, "_served", [])


def test_a_command_names_no_database_where_it_takes_the_one_that_is_shown(tmp_path: Path) -> None:
    assert command("masis export") == "masis export"
    served_database.serve_database(tmp_path / "mine.db")
    assert command("masis export") == "masis export"


def test_a_command_shown_on_the_demo_reaches_the_demo(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "demo.db")
    assert command("masis import cases.jsonl") == f"masis import cases.jsonl --db {tmp_path / 'demo.db'}"


def test_a_command_reaches_a_database_with_any_name(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "my `$cases`; *.db")
    assert shlex.split(command("masis export"))[-1] == str(tmp_path / "my `$cases`; *.db")


def test_a_backtick_in_the_name_does_not_end_the_code_it_stands_in(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "a``b.db")
    shown = command_markdown("masis export")
    assert shown == f"``` {command('masis export')} ```"
