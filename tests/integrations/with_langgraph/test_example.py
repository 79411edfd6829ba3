"""The documented example as written: stopped at the interrupt, its process ended, gone on with in
another.
"""

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


def documented(number: int, db: Path) -> list[str]:
    """The arguments of a command as the page has it, on a database of the test's."""
    page = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    commands = [
        line.split()
        for line in page.splitlines()
        if line.startswith("python examples/langgraph/graph.py ")
    ]
    return [str(db) if word == "ferry.db" else word for word in commands[number][2:]]


def in_process(*arguments: str) -> dict[str, Any]:
    """What a process of its own says on stdout."""
    told: dict[str, Any] = json.loads(example("langgraph/graph.py", *arguments).stdout)
    return told


def ran(*arguments: str, expect: int = 0) -> dict[str, Any]:
    """What the command says on stdout, on files opened anew; run in this process, which has
    imported all.
    """
    done = CliRunner().invoke(MAIN, list(arguments))
    assert done.exit_code == expect, done.stderr
    told: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}
    return told


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)  # from where the page gives its commands
    return tmp_path / "ferry.db"


@pytest.mark.spec("MASIS-CRITIC-STATE", "MASIS-EVAL-STATE")
def test_a_new_process_resumes_after_a_decision(db: Path) -> None:
    stopped = in_process(*documented(0, db))
    assert stopped["next"] == ["person"]
    assert ran(*documented(1, db), expect=1)["next"] == ["person"]  # nobody has decided yet

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

    ended = in_process(*documented(1, db))
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
    whole = {key for key in stopped if key not in ("next", "review", "trace")}
    assert {key: ended[key] for key in whole} == {key: stopped[key] for key in whole}
    assert ran("resume", "ferry", "--db", str(db)) == ended


def test_resuming_an_unknown_thread_is_reported(db: Path) -> None:
    ran("start", str(EXAMPLE / "ferry.json"), "--db", str(db))
    again = ran("start", str(EXAMPLE / "ferry.json"), "--db", str(db), expect=2)
    assert "is under way" in again["stderr"]
    assert "thread_id: isn't known" in ran("resume", "nobody", "--db", str(db), expect=1)["stderr"]
