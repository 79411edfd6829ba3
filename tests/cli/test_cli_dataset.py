"""``masis dataset``: freezing, listing, comparing, writing again, removing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.datasets.loading import read_cases
from masis.services import Workbench
from tests.cli.running import Masis, case, lines
from tests.reviewing import ADA

ANY = ("--format", "claims", "--state", "any")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two audited cases, of which one belongs to the data set pilot."""
    folder = tmp_path_factory.mktemp("datasets")
    path = folder / "audited.db"
    cases = folder / "cases.jsonl"
    cases.write_bytes(lines(case("a", metadata={"dataset": "pilot"}), case("b")))
    workbench = Workbench.open(path)
    for each in read_cases(cases):
        workbench.cases.add_one(ADA, each)
        workbench.audits.audit(ADA, each)
    workbench.close()
    return path


def test_a_version_is_frozen_compared_written_again_and_removed(masis: Masis, database: Path, tmp_path: Path) -> None:
    said = masis("dataset", "list", "--db", database)
    assert (said.exit_code, said.stdout) == (0, "")
    assert "masis dataset freeze" in said.stderr
    made = masis("dataset", "freeze", "v1", *ANY, "--description", "first\tround", "--by", "Ada", "--db", database)
    assert made.exit_code == 0, made.output
    pilot = masis("dataset", "freeze", "v2", *ANY, "--dataset", "pilot", "--as", "csv", "--db", database)
    assert "of 1 case." in pilot.stderr

    listed = masis("dataset", "list", "--db", database).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["v2", "v1"]
    assert "by Ada  first round" in listed[1]

    shown = masis("dataset", "show", "v1", "--db", database)
    assert json.loads(shown.stdout)["dataset"]["description"] == "first\tround"
    assert "v1 is rebuildable." in shown.stderr

    compared = masis("dataset", "compare", "v1", "v2", "--db", database)
    assert compared.stdout.splitlines() == ["removed  b  needs_review test -> absent"]
    assert "v1 and v2: 1 removed." in compared.stderr

    out, again = tmp_path / "claims.jsonl", tmp_path / "again.jsonl"
    assert masis("export", *ANY, "--out", out, "--db", database).exit_code == 0
    assert masis("dataset", "export", "v1", "--out", again, "--db", database).exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    assert masis("dataset", "export", "v1", "--db", database).stdout.encode() == out.read_bytes()

    assert masis("dataset", "remove", "v1", "--db", database).exit_code == 2
    assert masis("dataset", "remove", "v1", "--yes", "--db", database).exit_code == 0
    assert masis("dataset", "remove", "v2", "--yes", "--db", database).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("freeze", "../v1", *ANY), 1, "is no name for a dataset version"),
        (("freeze", "v3", "--format", "labels"), 1, "no case that matches gives a row"),
        (("freeze", "v3", "--format", "sft", "--state", "any", "--as", "csv"), 1, "rows that are not flat"),
        (("freeze", "v3"), 2, "--format"),
        (("show", "nowhere"), 1, "there is no dataset version 'nowhere'"),
        (("compare", "nowhere", "v1"), 1, "there is no dataset version"),
        (("export", "nowhere"), 1, "there is no dataset version"),
        (("remove", "nowhere", "--yes"), 1, "there is no dataset version"),
    ],
)
def test_what_can_t_be_done_is_said(
    masis: Masis, database: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = masis("dataset", *arguments, "--db", database)
    assert result.exit_code == code
    assert said in " ".join(result.output.split())
