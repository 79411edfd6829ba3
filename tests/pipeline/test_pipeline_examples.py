"""The documented examples, run as written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "pipeline"


@pytest.mark.slow
@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
def test_a_question_is_asked_and_a_wrong_answer_is_rejected() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLES / "ask.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "valid: False" in done.stdout
    assert "draft: Uploads on the free tier are limited to 10 MB [manual]." in done.stdout
    assert "The answer was rejected: A hallucination was detected" in done.stdout
    assert done.stdout in (ROOT / "docs" / "query-pipeline.md").read_text(encoding="utf-8")


def test_a_gate_of_ones_own_answers(tmp_path: Path) -> None:
    report = tmp_path / "answers.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", "--rootdir", str(tmp_path)]
    command += ["-c", "/dev/null", str(EXAMPLES / "test_answers.py"), "--masis-report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert "masis: 2 answers checked, 1 not grounded" in done.stdout
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["grounded"] for line in lines] == [True, False]
