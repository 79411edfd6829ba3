"""``export`` of data sets: filters, encodings, the manifest, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from masis.schema.team import QueuePolicy
from masis.services import Actor, Workbench
from tests.cli.running import Masis, case, desk, lines, start


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two audited cases, of which one belongs to the data set pilot; each test leaves them as they are."""
    pilot = case("a", metadata={"dataset": "pilot"})
    workbench = desk(tmp_path_factory.mktemp("datasets") / "audited.db", pilot, case("b"))
    workbench.close()
    return workbench.database


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


@pytest.mark.slow
def test_exported_cases_go_through_a_pipe_into_an_audit(masis: Masis, tmp_path: Path) -> None:
    given = [case("a"), case("b", query="Wie lang ist die Brücke?", metadata={"a": [1]})]
    (tmp_path / "cases.jsonl").write_bytes(lines(*given))
    assert masis("import", tmp_path / "cases.jsonl", "--db", tmp_path / "one.db").exit_code == 0
    # into the database that is being exported, while it is
    with (
        start("export", "--format", "cases", "--db", tmp_path / "one.db") as exporting,
        start("audit", "-", "--out", "-", "--db", tmp_path / "one.db", stdin=exporting.stdout) as auditing,
    ):
        out, said = auditing.communicate(timeout=100)
        assert (exporting.wait(timeout=10), auditing.returncode) == (0, 0), said
        assert exporting.stderr is not None
        assert exporting.stderr.read() == "2 lines written.\n"
    assert [json.loads(line)["case_id"] for line in out.splitlines()] == ["a", "b"]
    assert "2 cases audited" in said
    exported = masis("export", "--format", "cases", "--db", tmp_path / "one.db").stdout_bytes
    assert masis("audit", "-", "--db", tmp_path / "other.db", stdin=exported).exit_code == 0
    with Workbench.open(tmp_path / "other.db").store as store:
        assert [store.cases.get(each["id"]).to_json_dict() for each in given] == given


def test_a_file_that_shows_what_a_blind_policy_hides_is_written_with_a_warning(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    audited = Path(shutil.copy(audited, tmp_path / "blind.db"))

    def warned(*arguments: str) -> bool:
        result = masis("export", *arguments, "--out", tmp_path / "out", "--db", audited)
        assert result.exit_code == 0, result.output
        return "the team's policy hides from reviewers what this shows of 2 undecided cases" in result.stderr

    assert not warned("--format", "runs")
    workbench = Workbench.open(audited)
    workbench.team.set(Actor(name="Lead"), QueuePolicy(machine="after"))
    shown = (("--format", "runs"), ("--format", "executions"), ("--format", "claims", "--state", "any"))
    assert [warned(*arguments) for arguments in shown] == [True] * 3
    hidden = (("--format", "cases"), ("--format", "claims"), ("--format", "labels", "--state", "approved"))
    assert not any(warned(*arguments) for arguments in hidden)
    workbench.team.set(Actor(name="Lead"), QueuePolicy(reviewers=2))
    assert not warned("--format", "runs")
    workbench.close()


ANY = ("--format", "claims", "--state", "any")


def test_a_version_is_frozen_compared_written_again_and_removed(masis: Masis, audited: Path, tmp_path: Path) -> None:
    said = masis("dataset", "list", "--db", audited)
    assert (said.exit_code, said.stdout) == (0, "")
    assert "masis dataset freeze" in said.stderr
    made = masis("dataset", "freeze", "v1", *ANY, "--description", "first\tround", "--by", "Ada", "--db", audited)
    assert made.exit_code == 0, made.output
    pilot = masis("dataset", "freeze", "v2", *ANY, "--dataset", "pilot", "--as", "csv", "--db", audited)
    assert "of 1 case." in pilot.stderr

    listed = masis("dataset", "list", "--db", audited).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["name", "v2", "v1"]
    assert "Ada" in listed[2]
    assert listed[2].endswith("first round")
    records = map(json.loads, masis("dataset", "list", "--json", "--db", audited).stdout.splitlines())
    assert [each["name"] for each in records] == ["v2", "v1"]

    shown = masis("dataset", "show", "v1", "--db", audited)
    assert json.loads(shown.stdout)["dataset"]["description"] == "first\tround"
    assert "v1 is rebuildable." in shown.stderr

    compared = masis("dataset", "compare", "v1", "v2", "--db", audited)
    assert compared.stdout.splitlines() == ["removed  b  needs_review test -> absent"]
    assert "v1 and v2: 1 removed." in compared.stderr

    out, again = tmp_path / "claims.jsonl", tmp_path / "again.jsonl"
    assert masis("export", *ANY, "--out", out, "--db", audited).exit_code == 0
    assert masis("dataset", "export", "v1", "--out", again, "--db", audited).exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    assert masis("dataset", "export", "v1", "--db", audited).stdout.encode() == out.read_bytes()

    assert masis("dataset", "remove", "v1", "--db", audited).exit_code == 2
    assert masis("dataset", "remove", "v1", "--yes", "--db", audited).exit_code == 0
    assert masis("dataset", "remove", "v2", "--yes", "--db", audited).exit_code == 0


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
    masis: Masis, audited: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = masis("dataset", *arguments, "--db", audited)
    assert result.exit_code == code
    assert said in " ".join(result.output.split())
