"""``masis purge``, ``db redact`` and ``db reassess``: changes are previewed first and recorded
afterwards.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from masis.cli.output import ProgressBar
from masis.services import Workbench
from masis.settings import Settings
from masis.store import Store
from tests.cli.running import Masis, case, desk
from tests.reviewing import decide
from tests.rooms import needs_integrations
from tests.services.test_reassessment import (
    AFTER,
    BEFORE,
    RIGHT,
    SETTINGS,
    WRONG,
    judged_before,
    states,
)

CLEAN = "The bridge is 120 metres long [1]. It opened in 1931 [2]."


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A waiting case, a decided one and two auto-accepted ones, audited forty days ago."""
    clean = [case(name, answer=CLEAN) for name in ("accepted", "accepted too")]
    settings = Settings(spot_check_share=0)
    bench = desk(
        tmp_path_factory.mktemp("purge") / "audited.db",
        case("waits"),
        case("decided"),
        *clean,
        settings=settings,
    )
    decide(bench, "decided")
    bench.store.database.execute(
        "UPDATE jobs SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(ended_at) - 40)"
    )
    bench.close()
    return bench.database


@pytest.fixture
def audited(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "audited.db"))


def read(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.spec("REQ-CRITIC-COMP-002", "REQ-CRITIC-SEC-004")
def test_a_dry_run_lists_exactly_the_runs_that_a_purge_removes(masis: Masis, audited: Path) -> None:
    dry = masis("purge", "--dry-run", "--list", "--db", audited)
    assert dry.exit_code == 0
    assert "older than 30 days" in dry.stdout
    assert "remove  3 runs" in dry.stdout
    assert "1 of these need review (--keep-waiting keeps them)" in dry.stdout
    assert "1 more because people decided on them (--include-decided" in dry.stdout
    assert "This was a dry run" in dry.stderr
    would = read(masis("purge", "--dry-run", "--json", "--db", audited))["plan"]
    assert (would["runs"], would["waiting"]) == (3, 1)
    for flags, runs in (
        (("--keep-waiting",), 2),
        (("--include-decided",), 4),
        (("--older-than", "41"), 0),
    ):
        other = read(masis("purge", "--dry-run", "--json", *flags, "--db", audited))["plan"]
        assert other["runs"] == runs, flags
    done = masis("purge", "--yes", "--json", "--by", "Grace", "--db", audited)
    assert done.exit_code == 0, done.output
    removed = read(done)["removed"]
    assert (removed["runs"], removed["bytes"], removed["parts"]) == (
        3,
        would["bytes"],
        would["parts"],
    )
    assert (removed["by"], removed["how"]) == ("Grace", "command")
    named = read(masis("purge", "--history", "--list", "--json", "--db", audited))["purges"][0][
        "removed"
    ]
    assert [record["id"] for record in named] == [record["id"] for record in would["goes"]]
    assert masis("verify-log", "--db", audited).exit_code == 0
    assert masis("health", "--db", audited).exit_code == 0
    assert "There is nothing to remove." in masis("purge", "--yes", "--db", audited).stderr


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "gone"), [("n\n", 1, 0), ("y\n", 0, 3)])
def test_a_purge_in_a_terminal_asks_for_confirmation(
    audited: Path, answer: str, code: int, gone: int
) -> None:
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


@needs_integrations
def test_programs_that_may_contain_case_texts_are_named_and_not_deleted(
    masis: Masis, audited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from masis.integrations.dspy import programs
    from tests.integrations.test_dspy_programs import program_of

    at = tmp_path / "programs"
    monkeypatch.setenv("MASIS_PROGRAMS_FOLDER", str(at))
    old = {"made_at": "2020-03-01T10:00:00.000Z", "source": "decisions"}
    programs.save_program(at, program_of(name="ours", **old))
    programs.save_program(at, program_of(name="demos", made_at=old["made_at"]))
    programs.save_program(
        at, program_of(name="young", **old | {"made_at": "2999-01-01T00:00:00.000Z"})
    )
    told = masis("purge", "--dry-run", "--db", audited).stdout
    assert "keep    1 compiled critic or reviser: dspy:ours@1" in told
    assert f"delete files that aren't in use from {at}" in told
    for flags in (["--dry-run"], ["--yes"]):
        assert read(masis("purge", "--json", *flags, "--db", audited))["programs"] == [
            "dspy:ours@1"
        ]
    assert len(list(at.rglob("*.json"))) == 3


@pytest.mark.spec("REQ-CRITIC-COMP-001", "REQ-CRITIC-COMP-001-FIELDS")
def test_executions_are_exported_and_outlast_the_runs(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    before = masis("export", "--format", "executions", "--db", audited).stdout
    masis("purge", "--yes", "--include-decided", "--db", audited)
    assert masis("export", "--format", "executions", "--db", audited).stdout == before
    rows = [json.loads(line) for line in before.splitlines()]
    assert [row["case_id"] for row in rows] == ["waits", "decided", "accepted", "accepted too"]
    assert {
        "at",
        "run_id",
        "iterations",
        "final_quality",
        "improvement",
        "termination",
        "models",
    } <= set(rows[0])


def test_ctrl_c_stops_a_purge_after_the_current_batch_and_the_same_command_resumes(
    masis: Masis, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.retention.removal.BATCH", 1)
    move = ProgressBar.move

    def interrupt(self: ProgressBar, to: int, note: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        move(self, to, note)

    with monkeypatch.context() as patched:
        patched.setattr(ProgressBar, "move", interrupt)
        result = masis("purge", "--yes", "--json", "--db", audited)
    assert result.exit_code == 130
    assert read(result)["removed"]["runs"] == 1
    assert read(result)["file"] is None
    assert "Run the same command again to continue." in result.stderr
    assert "2 runs kept" in result.stderr
    assert read(masis("purge", "--yes", "--json", "--db", audited))["removed"]["runs"] == 2
    assert masis("health", "--db", audited).exit_code == 0


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    bench = Workbench.open(path, SETTINGS)
    judged_before(bench, "sound", RIGHT, accepted=True)
    judged_before(bench, "faulty", WRONG, accepted=True)
    judged_before(bench, "waits rightly", WRONG, accepted=False)
    judged_before(bench, "waits for nothing", RIGHT, accepted=False)
    bench.close()
    return path


def states_of(path: Path) -> dict[str, str]:
    bench = Workbench.open(path)
    found = states(bench)
    bench.close()
    return found


def test_a_dry_run_shows_each_change_with_its_reason_and_changes_nothing(
    masis: Masis, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_SPOT_CHECK_SHARE", "0")
    result = masis("db", "reassess", "--dry-run", "--db", judged)
    assert result.exit_code == 0
    assert "1 auto-accepted answer would now need review." in result.stderr
    assert "1 answer that needed review would now be auto-accepted." in result.stderr
    assert "invalid_reference: 1" in result.stderr
    assert states_of(judged) == BEFORE


def test_reassessment_changes_nothing_without_yes_and_applies_the_preview_with_it(
    masis: Masis, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_SPOT_CHECK_SHARE", "0")
    unasked = masis("db", "reassess", "--db", judged)
    assert (unasked.exit_code, "pass --yes" in unasked.stderr) == (2, True)
    assert states_of(judged) == BEFORE
    result = masis("db", "reassess", "--yes", "--by", "Grace", "--json", "--db", judged)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (
        found["accepted_to_needs_review"],
        found["needs_review_to_accepted"],
        found["applied"],
    ) == (1, 1, True)
    assert states_of(judged) == AFTER
    nothing = masis("db", "reassess", "--db", judged)
    assert (nothing.exit_code, "There is nothing to reassess." in nothing.stderr) == (0, True)
