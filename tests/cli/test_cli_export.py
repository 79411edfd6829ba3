"""``export`` of data sets: filters, encodings, the manifest, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.running import Masis, case, lines


@pytest.fixture
def audited(masis: Masis, tmp_path: Path) -> Path:
    cases, database = tmp_path / "cases.jsonl", tmp_path / "audited.db"
    cases.write_bytes(lines(case("a", metadata={"dataset": "pilot"}), case("b")))
    assert masis("audit", cases, "--db", database, "--set", "max_iterations=1").exit_code == 0
    return database


def test_claims_of_the_cases_that_match_are_written_with_their_manifest(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    out = tmp_path / "claims.csv"
    arguments = ("--as", "csv", "--state", "any", "--dataset", "pilot", "--out", out)
    result = masis("export", "--format", "claims", *arguments, "--db", audited)
    assert result.exit_code == 0, result.output
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["case_id"] for row in rows} == {"a"}
    for row in rows:
        assert row["answer"][int(row["start"]) : int(row["end"])] == row["text"]
    manifest = json.loads((tmp_path / "claims.csv.manifest.json").read_text())
    assert manifest["filter"] == {"datasets": ["pilot"]}
    assert manifest["counts"]["rows"] == len(rows)


def test_nobody_has_decided_so_nothing_is_written_by_default(masis: Masis, audited: Path) -> None:
    result = masis("export", "--format", "decided", "--db", audited)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 rows of 0 cases written." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "cases", "--state", "any"), "--state: the format cases takes no filter"),
        (("--format", "labels", "--shares", "80/30/10"), "sum up to 120"),
        (("--format", "labels", "--quality", "2-3"), "write a range as 0.2-0.8"),
        (("--format", "hf"), "hf is a folder"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(masis: Masis, audited: Path, arguments: tuple[str, ...], said: str) -> None:
    result = masis("export", *arguments, "--db", audited)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_folder_of_ours_is_written_again_and_no_file_takes_the_place_of_a_folder(
    masis: Masis, tmp_path: Path
) -> None:
    database, out = tmp_path / "hf.db", tmp_path / "dataset"
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("a")))
    assert masis("audit", file, "--db", database).exit_code == 0
    for _ in range(2):
        assert masis("export", "--format", "hf", "--state", "any", "--out", out, "--db", database).exit_code == 0
        assert (out / "manifest.json").is_file()
    result = masis("export", "--format", "cases", "--out", out, "--db", database)
    assert result.exit_code != 0
    assert "is a directory. Name a file in it." in result.stderr
