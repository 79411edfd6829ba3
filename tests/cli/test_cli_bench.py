"""``masis bench``: figures for every file that can be measured, a line for every one that can't."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from masis.services import demo_case_files
from tests.cli.running import Masis, case, lines

pytestmark = pytest.mark.slow


def test_the_files_of_a_folder_are_measured_together_beside_the_baselines(masis: Masis, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    for file in demo_case_files()[:2]:
        shutil.copy(file, folder)
    result = masis("bench", folder, "--half", "all", "--bootstrap", "10", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["file"] == str(folder)
    assert "always positive" in result.stdout
    assert "word overlap" in result.stdout


def test_a_table_is_printed_for_people(masis: Masis) -> None:
    result = masis("bench", demo_case_files()[0], "--half", "all", "--bootstrap", "10")
    assert result.exit_code == 0, result.stderr
    assert "auditor" in result.stdout


def test_files_that_cannot_be_measured_are_named_and_the_others_are_measured(masis: Masis, tmp_path: Path) -> None:
    contents = {"unlabelled": lines(case("a")), "broken": b"{oops\n", "empty": b"", "latin": b'{"id": "\xe9"}\n'}
    for name, content in contents.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    files = [tmp_path / f"{name}.jsonl" for name in contents]
    result = masis("bench", *files, demo_case_files()[0], "--half", "all", "--bootstrap", "10")
    assert result.exit_code == 1
    assert all(f"{name}.jsonl" in result.stderr for name in contents)
    assert "4 files could not be measured, named above." in result.stderr
    assert "Traceback" not in result.stderr
    assert "auditor" in result.stdout


def test_a_missing_file_is_wrong_use(masis: Masis, tmp_path: Path) -> None:
    result = masis("bench", tmp_path / "nothing.jsonl")
    assert result.exit_code == 2
    assert "nothing.jsonl: does not exist." in result.stderr
