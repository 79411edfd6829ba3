"""``masis drift``: judgements about grades and the acceptance memory, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.schema.actor import Actor
from masis.screening.demo import CORPUS, demo_questions
from masis.services import Workbench
from tests.cli.running import Masis


@pytest.mark.spec("AESOP-DRIFT", "AESOP-MEMORY")
def test_drift_and_memory_are_shown_on_the_command_line(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "judged.db"
    workbench = Workbench.open(database)
    ada = Actor(name="Ada \x1b[31mLind")
    workbench.corpora.add_demo(ada)
    empty = masis("drift", "--db", database)
    assert "No grade has been changed or agreed with yet" in empty.stdout
    question = demo_questions()[0]
    found = workbench.screenings.screen(ada, question.question, [f"corpus:{CORPUS}"])
    workbench.screenings.agree(ada, found.id, found.kept[0])
    workbench.screenings.override(ada, found.id, found.kept[1], "methodology_score", 0.91, reason="Read.")
    workbench.close()
    result = masis("drift", "--db", database)
    assert result.exit_code == 0
    assert "Grader offline: grades changed by people: 1 of 2 judgements. 2 judgements; more than 60" in result.stdout
    assert "\x1b" not in result.stdout
    assert f"Acceptance memory (off): {len(found.kept)} acceptances." in result.stdout
    record = json.loads(masis("drift", "--json", "--db", database).stdout)
    assert [(each["judgements"], each["disagreements"]) for each in record["drift"]] == [(2, 1), (2, 1)]
    assert record["memory"]["on"] is False
