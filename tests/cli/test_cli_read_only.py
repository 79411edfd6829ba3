"""A database file that can't be written: commands say so in words, with what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from masis.store.core import connections
from tests.cli.running import Masis, case, lines


@pytest.mark.parametrize("command", ["import", "audit"])
def test_a_command_on_a_read_only_file_names_file_and_cure(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    database = tmp_path / "kept.db"
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_bytes(lines(case("a")))
    second.write_bytes(lines(case("b")))
    assert masis("import", first, "--db", database).exit_code == 0
    connect = connections.connect

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.execute("PRAGMA query_only = ON")  # as a file on a read-only disk: SQLITE_READONLY
        return connection

    monkeypatch.setattr(connections, "connect", read_only)
    result = masis(command, second, "--db", database)
    assert result.exit_code == 1
    assert "kept.db: can't be written" in result.stderr
    assert "Make file and folder writable, or name another file with --db or MASIS_DB" in result.stderr
    assert "fault of the program" not in result.stderr
