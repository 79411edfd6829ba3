"""The documented example as written: it stops at the interrupt, and another process resumes it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from masis.services import Workbench
from tests.cli.running import ROOT, example
from tests.reviewing import decide

EXAMPLE = ROOT / "examples" / "langgraph"
MAIN = runpy.run_path(str(EXAMPLE / "graph.py"))["main"]


def documented_arguments(number: int, db: Path) -> list[str]:
    """Return the arguments of a documented command, with the test's database."""
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    commands = [
        line.split()
        for line in page.splitlines()
        if line.startswith("python examples/langgraph/graph.py ")
    ]
    return [str(db) if word == "ferry.db" else word for word in commands[number][2:]]


def in_process(*arguments: str) -> dict[str, Any]:
    """Run the example in a separate process and return its output."""
    output: dict[str, Any] = json.loads(example("langgraph/graph.py", *arguments).stdout)
    return output


def run_command(*arguments: str, expect: int = 0) -> dict[str, Any]:
    """Run the command in this process, which is faster, and return its output."""
    result = CliRunner().invoke(MAIN, list(arguments))
    assert result.exit_code == expect, result.stderr
    output: dict[str, Any] = (
        json.loads(result.stdout) if result.stdout else {"stderr": result.stderr}
    )
    return output


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)  # the documented commands run in this folder
    return tmp_path / "ferry.db"


@pytest.mark.spec("MASIS-CRITIC-STATE", "MASIS-EVAL-STATE")
def test_a_new_process_resumes_after_a_decision(db: Path) -> None:
    stopped = in_process(*documented_arguments(0, db))
    assert stopped["next"] == ["person"]
    assert run_command(*documented_arguments(1, db), expect=1)["next"] == [
        "person"
    ]  # there is no decision yet

    bench = Workbench.open(db)
    opened = bench.cases.open(stopped["review"]["case_id"])
    assert opened.state == "needs_review"
    first, second = opened.run.iterations
    assert (
        first.citation_audit.hallucination_detected,
        second.citation_audit.invalid_citations,
    ) == (True, ())
    assert second.evaluation is not None
    decide(bench, opened.case.id, iteration=2, note="Checked against the minutes.")
    bench.store.close()

    ended = in_process(*documented_arguments(1, db))
    assert ended["next"] == []
    assert ended["review"]["verdict"] == "approve"
    assert ended["review"]["note"] == "Checked against the minutes."
    assert ended["final_answer"] == stopped["final_answer"]
    assert "86 million" in ended["final_answer"]
    assert ended["trace"][:-1] == stopped["trace"]
    assert [entry["node"] for entry in ended["trace"]] == [
        *("critic", "supervisor", "synthesizer", "critic", "supervisor", "evaluator", "person")
    ]
    assert len(ended["metrics"]["confidence_history"]) == 2
    assert set(ended["metrics"]["node_latency_ms"]) == {"critic", "synthesizer", "evaluator"}
    state_keys = {key for key in stopped if key not in ("next", "review", "trace")}
    assert {key: ended[key] for key in state_keys} == {key: stopped[key] for key in state_keys}
    assert run_command("resume", "ferry", "--db", str(db)) == ended


def test_resuming_an_unknown_thread_is_reported(db: Path) -> None:
    run_command("start", str(EXAMPLE / "ferry.json"), "--db", str(db))
    second = run_command("start", str(EXAMPLE / "ferry.json"), "--db", str(db), expect=2)
    assert "is in progress" in second["stderr"]
    assert (
        "thread_id: isn't known"
        in run_command("resume", "nobody", "--db", str(db), expect=1)["stderr"]
    )
