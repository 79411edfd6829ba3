"""A process killed between the end of a run and its acceptance by policy leaves both or neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from masis import Case
from masis.schema.actor import Actor
from masis.services import Workbench

ADA = Actor(name="Ada")
CASE = Case.model_validate(
    {
        "id": "sound",
        "query": "When was the bridge opened?",
        "answer": "The bridge opened on 19 March 1932 [1].",
        "evidence": [{"id": "1", "text": "The bridge opened on 19 March 1932."}],
    }
)
KILLED = """
import os, sys
from pathlib import Path
from masis.services import Workbench
from masis.store.reviews.decisions import Decisions
from tests.services.test_killed_between import ADA, CASE
Decisions.append = lambda *_, **__: os._exit(9)
workbench = Workbench.open(Path(sys.argv[1]))
workbench.cases.add(ADA, [CASE])
workbench.audits.audit(ADA, CASE)
"""


@pytest.mark.slow
def test_a_kill_before_the_acceptance_leaves_no_case_that_needs_review_for_no_reason(tmp_path: Path) -> None:
    database = tmp_path / "masis.db"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(database)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
        check=False,
        timeout=100,
    )
    assert killed.returncode == 9
    workbench = Workbench.open(database)
    assert workbench.store.cases.summary("sound").state == "interrupted"
    run = workbench.audits.audit(ADA, CASE)
    assert not run.needs_review
    assert workbench.store.cases.summary("sound").state == "accepted"
    assert workbench.store.check().ok
