"""``report``: one case as a page, to a file or to stdout; what can't be reported is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import Masis, case, desk, lines


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two audited cases, which reports leave as it is."""
    workbench = desk(tmp_path_factory.mktemp("report") / "first.db", case("ä"), case("b"))
    workbench.close()
    return workbench.database


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


@pytest.mark.parametrize("arguments", [("ä", "b", "ä"), ("--state", "any"), ("--search", "bridge")])
def test_several_become_a_folder_that_opens_from_disk(
    masis: Masis, audited: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    out = tmp_path / "reports"
    for _ in range(2):  # a folder of reports is replaced
        result = masis("report", *arguments, "--out", out, "--db", audited)
        assert (result.exit_code, result.stdout) == (0, "")
    index = (out / "index.html").read_text(encoding="utf-8")
    linked = re.findall(r'<a href="([^"]+)">', index)
    assert {*linked, "index.html"} == {each.name for each in out.iterdir()}
    assert len(linked) == 2
    for name in linked:
        page = (out / name).read_text(encoding="utf-8")
        assert "How long is the bridge?" in page
        assert '<a href="index.html">' in page


def test_ids_that_come_to_one_file_name_have_a_page_each(masis: Masis, tmp_path: Path) -> None:
    file, database, out = tmp_path / "cases.jsonl", tmp_path / "same.db", tmp_path / "reports"
    names = ("../b", "B", "b<script>", "b")
    file.write_bytes(lines(*map(case, names)))
    assert masis("audit", file, "--db", database).exit_code == 0
    assert masis("report", *names, "--out", out, "--db", database).exit_code == 0
    pages = [each.name.casefold() for each in out.iterdir()]
    assert len(set(pages)) == len(names) + 1
    assert not list(tmp_path.glob("*.html"))
    assert "<script>" not in (out / "index.html").read_text(encoding="utf-8")


def test_what_is_there_already_is_not_lost(masis: Masis, audited: Path, tmp_path: Path) -> None:
    out = tmp_path / "papers"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    result = masis("report", "ä", "b", "--out", out, "--db", audited)
    assert result.exit_code != 0
    assert "papers" in result.stderr
    assert "Name a new folder" in result.stderr
    assert [each.name for each in out.iterdir()] == ["thesis.txt"]
    result = masis("report", "ä", "nowhere", "--out", tmp_path / "new", "--db", audited)
    assert result.exit_code != 0
    assert "nowhere" in result.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Name cases, or filter for them"),
        (("b", "--state", "any", "--out", "x"), "Name cases, or filter for them"),
        (("ä", "b"), "name one with --out"),
        (("ä", "b", "--run", "1", "--out", "x"), "belongs to one case"),
        (("--field", "Nowhere", "--out", "x"), "No case matches"),
    ],
)
def test_what_cannot_be_meant_is_said(masis: Masis, audited: Path, arguments: tuple[str, ...], says: str) -> None:
    result = masis("report", *arguments, "--db", audited)
    assert result.exit_code != 0
    assert says in " ".join(result.stderr.split())
