"""``report``: one case as a page, to a file or to stdout; what can't be reported is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Masis, case, lines


@pytest.fixture
def audited(masis: Masis, tmp_path: Path) -> Path:
    """A database with two audited cases."""
    file, database = tmp_path / "cases.jsonl", tmp_path / "first.db"
    file.write_bytes(lines(case("ä"), case("b")))
    assert masis("audit", file, "--db", database).exit_code == 0
    return database


def test_the_report_of_a_case_is_written_to_a_file(masis: Masis, audited: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.html"
    result = masis("report", "ä", "--out", out, "--db", audited)
    assert (result.exit_code, result.stdout) == (0, "")
    html = out.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert "How long is the bridge?" in html
    assert "ref-fabricated" in html


def test_without_a_file_it_goes_to_stdout(masis: Masis, audited: Path) -> None:
    assert masis("report", "b", "--db", audited).stdout.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("arguments", [("nowhere",), ("b", "--run", "nowhere")])
def test_an_unknown_case_or_run_is_named(
    masis: Masis, audited: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    out = tmp_path / "audit.html"
    result = masis("report", *arguments, "--out", out, "--db", audited)
    assert result.exit_code != 0
    assert "nowhere" in result.stderr
    assert not out.exists()
