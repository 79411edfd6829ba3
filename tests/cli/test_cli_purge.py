"""``masis purge``: says first what would go, removes that and no more, records it; ``masis export`` of executions."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from masis.cli.output import Progress
from masis.integrations.dspy import programs
from masis.schema.review import Decision
from masis.services import Workbench
from masis.store import Store
from tests.cli.running import Masis, case, lines
from tests.integrations.test_dspy_programs import a_program
from tests.reviewing import submitted

pytestmark = pytest.mark.slow

CLEAN = "The bridge is 120 metres long [1]. It opened in 1931 [2]."


@pytest.fixture
def audited(masis: Masis, tmp_path: Path) -> Path:
    """A case that waits, one that people decided on, and two that policy accepted, audited forty days ago."""
    file, database = tmp_path / "cases.jsonl", tmp_path / "audited.db"
    clean = [case(name, answer=CLEAN) for name in ("accepted", "accepted too")]
    file.write_bytes(lines(case("waits"), case("decided"), *clean))
    assert masis("audit", file, "--db", database, "--set", "spot_check_share=0").exit_code == 0
    bench = Workbench.open(database)
    run = bench.cases.open("decided").runs[0]
    submitted(bench, Decision(reviewer="Ada", case_id="decided", run_id=run.id, verdict="approve"))
    bench.store.close()
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE jobs SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(ended_at) - 40)")
    connection.close()
    return database


def read(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.spec("REQ-CRITIC-COMP-002", "REQ-CRITIC-SEC-004")
def test_a_dry_run_says_exactly_what_then_goes(masis: Masis, audited: Path) -> None:
    dry = masis("purge", "--dry-run", "--list", "--db", audited)
    assert dry.exit_code == 0
    assert "older than 30 days" in dry.stdout
    assert "goes   3 runs" in dry.stdout
    assert "1 of them needing review; --keep-waiting keeps those" in dry.stdout
    assert "1 of these for what people decided (--include-decided" in dry.stdout
    assert "this was a dry run" in dry.stderr
    would = read(masis("purge", "--dry-run", "--json", "--db", audited))["plan"]
    assert (would["runs"], would["waiting"]) == (3, 1)
    done = masis("purge", "--yes", "--json", "--by", "Grace", "--db", audited)
    assert done.exit_code == 0, done.output
    removed = read(done)["removed"]
    assert (removed["runs"], removed["bytes"], removed["parts"]) == (3, would["bytes"], would["parts"])
    assert (removed["by"], removed["how"]) == ("Grace", "command")
    named = read(masis("purge", "--history", "--list", "--json", "--db", audited))["purges"][0]["removed"]
    assert [each["id"] for each in named] == [each["id"] for each in would["goes"]]
    assert masis("verify-log", "--db", audited).exit_code == 0
    assert masis("health", "--db", audited).exit_code == 0
    assert "There is nothing to remove." in masis("purge", "--yes", "--db", audited).stderr


def test_the_age_is_the_setting_unless_it_is_given(
    masis: Masis, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_RETENTION_DAYS", "41")
    assert read(masis("purge", "--dry-run", "--json", "--db", audited))["plan"]["runs"] == 0
    younger = masis("purge", "--dry-run", "--json", "--older-than", "39", "--db", audited)
    assert read(younger)["plan"]["runs"] == 3
    monkeypatch.setenv("MASIS_RETENTION_DAYS", "0")
    kept = masis("purge", "--yes", "--db", audited)
    assert kept.exit_code == 0
    assert "nothing is removed for its age" in kept.stderr
    monkeypatch.setenv("MASIS_RETENTION_DAYS", "-1")
    assert masis("purge", "--db", audited).exit_code == 2


def test_more_or_less_is_removed_only_on_request(masis: Masis, audited: Path) -> None:
    asked = ("purge", "--dry-run", "--json", "--db", audited)
    less = read(masis(*asked, "--keep-waiting"))["plan"]
    assert (less["runs"], less["waiting"], less["kept"]["waiting"]) == (2, 0, 1)
    assert read(masis(*asked, "--include-decided"))["plan"]["runs"] == 4
    both = masis("purge", "--yes", "--include-decided", "--keep-waiting", "--db", audited)
    assert "Removed as purge 1: 3 runs" in both.stdout
    assert "with what was decided, without what was waiting" in masis("purge", "--history", "--db", audited).stdout
    assert masis("verify-log", "--db", audited).exit_code == 0


def test_nothing_goes_without_a_yes(masis: Masis, audited: Path) -> None:
    result = masis("purge", "--db", audited)
    assert result.exit_code == 2
    assert "say --yes" in result.stderr
    assert read(masis("purge", "--history", "--json", "--db", audited)) == {"purges": []}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "gone"), [("n\n", 1, 0), ("y\n", 0, 3)])
def test_at_a_terminal_it_asks(audited: Path, answer: str, code: int, gone: int) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "masis.cli", "purge", "--db", str(audited)],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    os.write(ours, answer.encode())
    assert process.wait(60) == code
    os.close(ours)
    os.close(theirs)
    with Store.open(audited) as store:
        assert sum(purge.runs for purge in store.purges.history()) == gone


def test_programs_that_may_hold_texts_of_cases_are_named_and_left(
    masis: Masis, audited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = tmp_path / "programs"
    monkeypatch.setenv("MASIS_PROGRAMS_FOLDER", str(at))
    of_people = {"source": "decisions", "digest": "d", "train": 6, "held_out": 7, "seed": 0}
    old = {"made_at": "2020-03-01T10:00:00.000Z", "data": programs.MadeFrom.model_validate(of_people)}
    programs.saved(at, a_program(name="ours", **old))
    programs.saved(at, a_program(name="demos", made_at=old["made_at"]))
    programs.saved(at, a_program(name="young", **old | {"made_at": "2999-01-01T00:00:00.000Z"}))
    told = masis("purge", "--dry-run", "--db", audited).stdout
    assert "stays  1 compiled critic or reviser: dspy:ours@1" in told
    assert f"delete files that are not in use from {at}" in told
    for flags in (["--dry-run"], ["--yes"]):
        assert read(masis("purge", "--json", *flags, "--db", audited))["programs"] == ["dspy:ours@1"]
    assert len(list(at.rglob("*.json"))) == 3


def test_a_case_whose_audit_is_gone_is_audited_again(masis: Masis, audited: Path, tmp_path: Path) -> None:
    masis("purge", "--yes", "--db", audited)
    again = masis("audit", tmp_path / "cases.jsonl", "--db", audited, "--set", "spot_check_share=0")
    assert again.exit_code == 0, again.output
    assert "3 cases audited, 1 case skipped" in again.output


def test_a_report_of_an_audit_that_is_gone_says_so(masis: Masis, audited: Path) -> None:
    run = Workbench.open(audited).cases.open("accepted").runs[0].id
    masis("purge", "--yes", "--db", audited)
    told = masis("report", "accepted", "--run", run, "--db", audited)
    assert told.exit_code == 1
    assert "was removed on" in told.stderr
    assert "masis purge --history" in told.stderr
    assert masis("report", "accepted", "--db", audited).exit_code == 0


@pytest.mark.spec("REQ-CRITIC-COMP-001", "REQ-CRITIC-COMP-001-FIELDS")
def test_executions_are_exported_and_outlast_the_runs(masis: Masis, audited: Path, tmp_path: Path) -> None:
    before = masis("export", "--format", "executions", "--db", audited).stdout
    masis("purge", "--yes", "--include-decided", "--db", audited)
    assert masis("export", "--format", "executions", "--db", audited).stdout == before
    rows = [json.loads(line) for line in before.splitlines()]
    assert [row["case_id"] for row in rows] == ["waits", "decided", "accepted", "accepted too"]
    assert {"at", "run_id", "iterations", "final_quality", "improvement", "termination", "models"} <= set(rows[0])


def test_a_runs_export_leaves_out_what_is_gone(masis: Masis, audited: Path) -> None:
    masis("purge", "--yes", "--db", audited)
    left = masis("export", "--format", "runs", "--db", audited)
    assert left.exit_code == 0, left.output
    assert sorted(json.loads(line)["case_id"] for line in left.stdout.splitlines()) == ["decided"]


# what may come in between


def test_ctrl_c_ends_it_after_the_batch_under_way_and_the_same_command_goes_on(
    masis: Masis, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.retention.removal.BATCH", 1)
    move = Progress.move

    def interrupted(self: Progress, to: int, note: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        move(self, to, note)

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "move", interrupted)
        result = masis("purge", "--yes", "--json", "--db", audited)
    assert result.exit_code == 130
    assert read(result)["removed"]["runs"] == 1
    assert read(result)["file"] is None
    assert "The same command goes on from here." in result.stderr
    assert "2 runs stayed" in result.stderr
    assert read(masis("purge", "--yes", "--json", "--db", audited))["removed"]["runs"] == 2
    assert masis("health", "--db", audited).exit_code == 0


def test_a_database_that_another_holds_is_an_error_in_words_and_nothing_goes(
    masis: Masis, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.core.connections.BUSY_TIMEOUT_S", 0.1)
    holder = sqlite3.connect(audited, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    result = masis("purge", "--yes", "--db", audited)
    holder.close()
    assert result.exit_code == 1
    assert "is held by another program" in result.stderr
    assert read(masis("purge", "--history", "--json", "--db", audited)) == {"purges": []}


def test_without_room_for_a_new_file_the_old_one_stays_and_that_is_said(
    masis: Masis, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "masis.store.retention.shrinking.shutil.disk_usage", lambda folder: SimpleNamespace(total=1, used=1, free=1000)
    )
    result = masis("purge", "--yes", "--json", "--db", audited)
    assert result.exit_code == 0
    assert read(result)["removed"]["runs"] == 3
    assert "MB free" in read(result)["file"]["why_not"]
    assert "it did not give all room back" in result.stderr


def test_the_file_may_be_left_as_it_is(masis: Masis, audited: Path) -> None:
    result = masis("purge", "--yes", "--json", "--no-shrink", "--db", audited)
    assert read(result)["file"] is None
    assert read(result)["removed"]["runs"] == 3


@pytest.mark.parametrize("arguments", [("--older-than", "-1"), ("--older-than", "many"), ("--olderthan", "3")])
def test_a_wrong_option_is_wrong_use(masis: Masis, audited: Path, arguments: tuple[str, ...]) -> None:
    assert masis("purge", *arguments, "--db", audited).exit_code == 2


def test_a_hostile_id_does_not_steer_the_terminal(masis: Masis, tmp_path: Path) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "hostile.db"
    file.write_bytes(lines(case("\x1b[2J\u202egone", answer=CLEAN)))
    assert masis("audit", file, "--db", database, "--set", "spot_check_share=0").exit_code == 0
    shown = masis("purge", "--dry-run", "--list", "--older-than", "0", "--db", database)
    assert "\\x1b[2J\\u202egone" in shown.stdout
    assert "\x1b" not in shown.stdout
