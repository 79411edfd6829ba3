"""``masis judge``, and the judge version of a batch that worker processes audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.schema.judge import CodeCheck, HouseRule, JudgeContent
from masis.services import Workbench
from tests.cli.running import Masis, case, desk, lines
from tests.reviewing import ADA, decide

SHORT = HouseRule(
    id="short",
    sentence="At most three words",
    force="must",
    severity="high",
    check=CodeCheck(kind="maximal_length", limit=3),
)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with a decided case, which commands use by default."""
    path = tmp_path / "review.db"
    workbench = desk(path, case("bridge-01"))
    decide(workbench, "bridge-01", "reject", iteration=1)
    workbench.close()
    monkeypatch.setenv("MASIS_DB", str(path))
    return path


def content(masis: Masis, name: str) -> JudgeContent:
    shown = json.loads(masis("judge", "show", name, "--json").stdout)
    return JudgeContent.model_validate(shown["content"])


def test_rules_of_every_kind_are_added_listed_and_removed(masis: Masis, database: Path) -> None:
    assert masis("judge", "new", "prices 1").exit_code == 0
    add = ("judge", "rules", "prices 1", "--add")
    added = (
        ("A price has its currency", "--force", "must", "--severity", "high"),
        ("Rounding", "--force", "does_not_matter", "--about", "factual"),
        (
            "Be brief",
            *("--force", "must", "--severity", "low"),
            "--check",
            "maximal_length=9 words",
        ),
        ("Slang", *("--force", "must_not", "--severity", "low"), "--check", "banned_phrase=ok so"),
    )
    for arguments in added:
        result = masis(*add, *arguments)
        assert result.exit_code == 0, result.stderr
    with_example = (*add, "Spans", "--force", "must", "--severity", "low", "--breaks", "bridge-01")
    assert masis(*with_example).exit_code == 0
    rules = content(masis, "prices 1").rules
    assert [rule.id for rule in rules] == [
        "a-price-has-its",
        "rounding",
        "be-brief",
        "slang",
        "spans",
    ]
    assert rules[1].issue_types == ("factual",)
    assert rules[2].check == CodeCheck(kind="maximal_length", limit=9)
    assert rules[4].examples[0].case_id == "bridge-01"
    listed = masis("judge", "rules", "prices 1").stdout
    assert "banned phrase" in listed
    assert "doesn't matter" in listed
    assert masis("judge", "rules", "prices 1", "--remove", "slang").exit_code == 0
    assert content(masis, "prices 1").rule("slang") is None


def test_wrong_options_say_what_to_write_instead(masis: Masis, database: Path) -> None:
    masis("judge", "new", "prices 1")
    add = ("judge", "rules", "prices 1", "--add", "A sentence")
    for arguments, problem in (
        (add, "--add needs --force"),
        ((*add, "--force", "must"), "needs a severity"),
        ((*add, "--force", "must", "--severity", "low", "--check", "length=3"), "no kind 'length'"),
        (
            (*add, "--force", "must_not", "--severity", "low", "--check", "pattern=(?=a)"),
            "isn't a supported regular expression",
        ),
        (("judge", "rules", "prices 1", "--severity", "low"), "belongs to --add"),
        (("judge", "rules", "prices 1", "--remove", "x"), "has no rule 'x'"),
        (("judge", "show", "prices 2"), "no judge version 'prices 2'"),
        (("judge", "adopt", "prices 1"), "tells the judge nothing"),
    ):
        result = masis(*arguments)
        assert result.exit_code != 0
        assert problem in result.stderr, (arguments, result.stderr)


def test_a_version_is_written_from_a_file_and_its_cost_is_shown(
    masis: Masis, database: Path, tmp_path: Path
) -> None:
    file = tmp_path / "judge.json"
    file.write_text(JudgeContent(rules=(SHORT,)).model_dump_json())
    assert masis("judge", "new", "short 1", "--file", file, "--note", "a pilot").exit_code == 0
    shown = masis("judge", "show", "short 1", "--cost-of", "bridge-01")
    assert "An audit of 1 case by it needs at most 0 calls, 0 tokens, $0.00." in shown.stderr
    file.write_text('{"rules": [{"id": "a"}]}')
    wrong = masis("judge", "new", "short 2", "--file", file)
    assert wrong.exit_code != 0
    assert "sentence" in wrong.stderr
    copied = masis("judge", "new", "short 2", "--based-on", "short 1", "--json")
    assert json.loads(copied.stdout)["content"]["rules"][0]["id"] == "short"
    assert masis("judge", "adopt", "short 2").exit_code == 0
    assert masis("judge", "drop", "short 1").exit_code == 0
    states = {
        row["name"]: row["state"]
        for row in map(json.loads, masis("judge", "list", "--json").stdout.splitlines())
    }
    assert states == {"short 2": "adopted", "short 1": "dropped"}
    assert masis("judge", "retire", "short 2").exit_code == 0


@pytest.mark.slow
def test_a_version_takes_the_exam_of_its_own(
    masis: Masis, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_EXAM_RESULTS", str(tmp_path / "exams.jsonl"))
    workbench = Workbench.open(database)
    workbench.judge.draft(ADA, "short 1", JudgeContent(rules=(SHORT,)))
    workbench.close()
    shown = ("models", "exam", "offline", "--show")
    assert masis(*shown).exit_code == 0, "the offline rules have passed"
    assert masis(*shown, "--judge", "short 1").exit_code == 1
    taken = masis("models", "exam", "offline", "--judge", "short 1", "--yes")
    assert taken.exit_code == 1, "it flags every sound answer, which is too many"
    assert "it flagged 15 of 16 correct answers" in taken.stderr
    assert masis(*shown).exit_code == 0, "which says nothing about the default judge"
    assert masis("models", "exam", "offline", "--judge", "nothing").exit_code != 0


@pytest.mark.slow
def test_worker_processes_of_a_batch_use_the_adopted_version(
    masis: Masis, database: Path, tmp_path: Path
) -> None:
    file, told = tmp_path / "cases.jsonl", JudgeContent(rules=(SHORT,))
    workbench = Workbench.open(database)
    workbench.judge.draft(ADA, "short 1", told)
    workbench.judge.adopt(ADA, "short 1")
    file.write_bytes(lines(case("a"), case("b")))
    for _ in range(2):  # the second time, both count as audited by this version
        assert masis("audit", file, "--concurrency", "2").exit_code == 0
    for name in ("a", "b"):
        [summary] = workbench.runs.for_case(name)
        run = workbench.runs.get(summary.id)
        assert run.versions.judge == told.digest
        assert run.original is not None
        assert "house_short" in {issue.rule for issue in run.original.issues}
    workbench.close()
