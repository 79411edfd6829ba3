"""``masis audit``: complete runs that can be resumed, parallelized and interrupted without loss."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import time
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace

import pytest

from masis.cli.audit import WorstAnswers
from masis.schema.actor import Actor
from masis.schema.case import Case, Severity
from masis.schema.review import Standing
from masis.schema.run import Run
from masis.services import Workbench
from masis.services.audits import AuditService
from masis.settings import Settings
from masis.views.batches import BatchSummary
from tests.cli.running import Masis, case, lines, start
from tests.llm.test_evidence_window import LONG_EVIDENCE as EVIDENCE
from tests.llm.test_evidence_window import _refuse_long, audited
from tests.reviewing import ADA
from tests.served_replies import Request, reply_with
from tests.serving_models import ModelServer


def runs_in(file: Path) -> list[Run]:
    return [Run.model_validate_json(line) for line in file.read_bytes().splitlines()]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(
        lines(
            case("a"), case("b", answer="The bridge is 120 metres long [1]."), case("c", answer=...)
        )
    )
    return file


def test_every_case_gets_a_complete_run_in_file_order(
    masis: Masis, three: Path, tmp_path: Path
) -> None:
    result = masis("audit", three, "--db", tmp_path / "new.db", "--out", tmp_path / "runs.jsonl")
    assert result.exit_code == 0, result.stderr
    # the worst answer is first in the table
    assert result.stdout.splitlines()[1].startswith("a ")
    assert "Cites [9], which doesn't exist" in result.stdout
    runs = runs_in(tmp_path / "runs.jsonl")
    assert [run.case_id for run in runs] == ["a", "b", "c"]
    assert runs[0].iterations[0].citation_audit.invalid_citations == ("9",)
    assert runs[2].draft is not None
    assert "3 cases audited: something is wrong with 1, " in result.stderr
    assert f"Database: {tmp_path / 'new.db'}" in result.stderr
    store = Workbench.open(tmp_path / "new.db").store
    assert [store.runs.get(run.id) for run in runs] == runs


def test_the_worst_answers_are_listed_in_queue_order(bench: Workbench) -> None:
    given = {
        "passed": case("passed", answer="It opened [9]."),
        "wrong": case("wrong"),
        "worse": case("worse"),
    }
    stands: dict[str, tuple[Standing, Severity]] = {
        "passed": ("nothing_found", "low"),
        "wrong": ("wrong", "high"),
        "worse": ("wrong", "critical"),
    }
    written: list[str] = []
    worst = WorstAnswers(SimpleNamespace(as_json=False, lines=written.extend))  # type: ignore[arg-type]
    for name, made in given.items():
        read = Case.model_validate(made)
        bench.cases.add(ADA, [read])
        run = bench.audits.audit(ADA, read)
        standing, severity = stands[name]
        row = bench.cases.summary(name).model_copy(
            update={"standing": standing, "severity": severity}
        )
        worst.add(read, run, row)
    worst.show()
    assert [
        line.split()[0] for line in written if line.startswith(("passed", "wrong", "worse"))
    ] == [
        "worse",
        "wrong",
        "passed",
    ]


def test_the_table_is_printed_to_stderr_if_runs_are_written_to_stdout(
    masis: Masis, three: Path, tmp_path: Path
) -> None:
    result = masis("audit", three, "--db", tmp_path / "new.db", "--out", "-")
    assert [Run.model_validate_json(line).case_id for line in result.stdout.splitlines()] == [
        "a",
        "b",
        "c",
    ]
    assert "Cites [9], which doesn't exist" in result.stderr
    both = masis("audit", three, "--db", tmp_path / "new.db", "--out", "-", "--json")
    assert both.exit_code == 2
    assert "--json and '--out -' both write to stdout" in both.stderr


def test_without_db_the_default_database_is_used_and_named(
    masis: Masis, three: Path, home: Path
) -> None:
    result = masis("audit", three)
    assert result.exit_code == 0
    assert f"Database: {home / 'masis' / 'masis.db'}" in result.stderr
    assert (home / "masis" / "masis.db").exists()


@pytest.mark.slow
def test_several_processes_give_the_same_runs_as_one(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(*(case(f"case-{number}") for number in range(20))))
    found = []
    for concurrency in (1, 2):
        out = tmp_path / f"runs-{concurrency}.jsonl"
        result = masis(
            "audit",
            file,
            "--db",
            tmp_path / f"{concurrency}.db",
            "--out",
            out,
            "--concurrency",
            concurrency,
        )
        assert result.exit_code == 0, result.stderr
        changing = {"id", "started_at", "finished_at", "iterations", "spot_check", "usage"}
        found.append([run.model_dump(exclude=changing) for run in runs_in(out)])
        states = Workbench.open(tmp_path / f"{concurrency}.db").store.cases.states()
        assert sum(states.values()) == 20
        assert "new" not in states or states["new"] == 0
    assert found[0] == found[1]


def test_rerunning_skips_audited_cases_and_still_writes_every_run(
    masis: Masis, three: Path, tmp_path: Path
) -> None:
    arguments = ("audit", three, "--db", tmp_path / "new.db", "--out", tmp_path / "runs.jsonl")
    before = masis(*arguments)
    first = (tmp_path / "runs.jsonl").read_bytes()
    result = masis(*arguments)
    assert result.exit_code == 0
    wrong = re.search(r"3 cases audited: (something is wrong .*)", before.stderr)
    skipped = (
        "0 cases audited, 3 cases skipped (audited before with these settings):"
        f" {wrong and wrong[1]}"
    )
    assert skipped in result.stderr
    assert (tmp_path / "runs.jsonl").read_bytes() == first


def test_issues_are_written_as_a_table_to_a_csv_file(
    masis: Masis, three: Path, tmp_path: Path
) -> None:
    masis("audit", three, "--db", tmp_path / "new.db", "--out", tmp_path / "issues.csv")
    masis("audit", three, "--db", tmp_path / "new.db", "--out", tmp_path / "runs.jsonl")
    with (tmp_path / "issues.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = [
        (run.case_id, issue.description)
        for run in runs_in(tmp_path / "runs.jsonl")
        for iteration in run.iterations
        for issue in iteration.issues
    ]
    assert expected
    assert [(row["case_id"], row["description"]) for row in rows] == expected


def test_the_issues_table_contains_no_formulas(masis: Masis, tmp_path: Path) -> None:
    wrong = case("=1+1") | {"answer": "It is ten metres long [9]."}
    (tmp_path / "f.jsonl").write_text(json.dumps(wrong))
    masis(
        "audit", tmp_path / "f.jsonl", "--db", tmp_path / "new.db", "--out", tmp_path / "issues.csv"
    )
    with (tmp_path / "issues.csv").open(newline="") as file:
        assert {row["case_id"] for row in csv.DictReader(file)} == {"'=1+1"}


def test_other_settings_or_the_again_flag_audit_once_more(
    masis: Masis, three: Path, tmp_path: Path
) -> None:
    masis("audit", three, "--db", tmp_path / "new.db")
    result = masis("audit", three, "--db", tmp_path / "new.db", "--set", "max_iterations=1")
    assert "3 cases audited:" in result.stderr
    result = masis("audit", three, "--db", tmp_path / "new.db", "--again")
    assert "3 cases audited:" in result.stderr
    assert len(Workbench.open(tmp_path / "new.db").store.runs.for_case("a")) == 3


def test_an_audit_that_raises_fails_only_its_case(
    masis: Masis, three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = AuditService.audit

    def broken(self: AuditService, actor: Actor, given: object, **options: object) -> Run:
        if given.id == "b":  # type: ignore[attr-defined]
            raise ZeroDivisionError("of all things")
        return audit(self, actor, given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(AuditService, "audit", broken)
    result = masis("audit", three, "--db", tmp_path / "new.db")
    assert result.exit_code == 1
    assert f"{three}, line 2: case 'b': ZeroDivisionError: of all things" in result.stderr
    assert "2 cases audited" in result.stderr


def many(folder: Path, count: int = 400) -> Path:
    file = folder / "many.jsonl"
    file.write_bytes(lines(*(case(f"case-{number}") for number in range(count))))
    return file


def finished_runs(database: Path) -> int:
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            found = connection.execute(
                "SELECT count(*) FROM runs WHERE state = 'finished'"
            ).fetchone()[0]
        connection.close()
    except sqlite3.OperationalError:  # the database doesn't exist yet
        return 0
    return int(found)


def wait_for_runs(process: Popen[str], database: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while finished_runs(database) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 2])
def test_ctrl_c_keeps_finished_runs_and_the_same_command_resumes(
    tmp_path: Path, home: Path, masis: Masis, concurrency: int
) -> None:
    file, database, out = many(tmp_path), tmp_path / "new.db", tmp_path / "runs.jsonl"
    arguments = ("audit", file, "--db", database, "--out", out, "--concurrency", concurrency)
    process = start(*arguments)
    wait_for_runs(process, database, 5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Stopping after the audits in progress" in err
    assert "Run the same command again to continue" in err
    assert "Traceback" not in err
    kept = finished_runs(database)
    assert 5 <= kept < 400
    assert len(runs_in(out)) == kept
    again = masis(*arguments, "--limit", kept + 3)
    assert again.exit_code == 0
    assert f"3 cases audited, {kept:,} cases skipped" in again.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds child processes in /proc")
def test_a_killed_audit_leaves_no_workers_and_can_be_resumed(
    tmp_path: Path, home: Path, masis: Masis
) -> None:
    file, database = many(tmp_path), tmp_path / "new.db"
    process = start("audit", file, "--db", database, "--concurrency", 2)
    wait_for_runs(process, database, 3)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{child}/exe") for child in children):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)
    kept = finished_runs(database)
    again = masis("audit", file, "--db", database, "--limit", kept + 2)
    assert again.exit_code == 0
    assert f"2 cases audited, {kept:,} cases skipped" in again.stderr
    store = Workbench.open(database).store
    states = [
        run.state for number in range(kept + 2) for run in store.runs.for_case(f"case-{number}")
    ]
    assert states == ["finished"] * (kept + 2)


@pytest.mark.parametrize(
    ("name", "count"), [("expertqa_cases.jsonl", 217), ("pubmedqa_cases.jsonl", 522)]
)
def test_every_real_case_gets_a_complete_run(
    masis: Masis, public_data: Path, tmp_path: Path, name: str, count: int
) -> None:
    out = tmp_path / "runs.jsonl"
    result = masis("audit", public_data / name, "--db", tmp_path / "new.db", "--out", out)
    assert result.exit_code == 0, result.stderr
    runs = runs_in(out)
    assert len({run.case_id for run in runs}) == len(runs) == count
    for run in runs:
        assert run.iterations
        assert run.best is not None
        assert run.final_answer
        assert run.unscored is None
        assert all(iteration.evaluation is not None for iteration in run.iterations)


def summary_lines(*runs: object) -> list[str]:
    summary = BatchSummary()
    for run in runs:
        summary.count(run)  # type: ignore[arg-type]
    return list(summary.lines(Settings()))


def test_windowed_evidence_is_reported_next_to_failed_calls() -> None:
    with ModelServer(_refuse_long, issues="none") as server:
        found = summary_lines(audited(server, EVIDENCE[0].text), audited(server, EVIDENCE[0].text))
    (cut,) = [line for line in found if "each claim was judged by the passages" in line]
    assert cut.startswith("2 warnings: ")
    (failed,) = [line for line in found if "do not fit the model's context" in line]
    assert "calls: here:m: " in failed
    assert "llama-server -c 32768" in failed


def test_claims_without_a_verdict_are_a_warning_with_a_reason() -> None:
    def silent(request: Request) -> object:
        silent = {"claims": [], "verdicts": [], "missing": []}
        return (
            reply_with(silent)
            if request.schema_name in ("checked_claims_reply", "verdicts_reply")
            else None
        )

    with ModelServer(silent, issues="none") as server:  # type: ignore[arg-type]
        found = summary_lines(audited(server, EVIDENCE[0].text))
    assert any(
        line.endswith("claims are unscored: the verifier gave no verdict on this claim")
        for line in found
    )
