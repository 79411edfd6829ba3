"""``masis planted``: faults are planted, withdrawn and counted from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.services import Workbench
from tests.cli.running import Masis
from tests.planted import audit_copies, fill_with_approved
from tests.reviewing import decide


@pytest.fixture
def approved(masis: Masis, tmp_path: Path) -> Path:
    """A database with three correct answers."""
    database = tmp_path / "planted.db"
    workbench = Workbench.open(database)
    fill_with_approved(workbench, 3)
    workbench.close()
    return database


def test_copies_are_planted_decided_counted_and_withdrawn(masis: Masis, approved: Path) -> None:
    done = masis(
        "planted", "add", "2", "--kind", "figure", "--seed", "5", "--by", "Lea", "--db", approved
    )
    assert done.exit_code == 0
    assert "2 copies planted (figure 2), seed 5." in done.stderr
    workbench = Workbench.open(approved)
    first, second = audit_copies(workbench)
    decide(workbench, first, "approve", "Ben")
    workbench.close()
    assert "Measured copy" in masis("show", first, "--db", approved).stdout
    assert "planted" not in masis("show", second, "--db", approved).stdout.casefold()
    found = json.loads(masis("planted", "recall", "--json", "--db", approved).stdout)
    assert (found["copies"]["open"], found["copies"]["decided"]) == (1, 1)
    assert [(copy["case"], copy["missed_by"]) for copy in found["decided"]] == [(first, ["Ben"])]
    assert (
        "1 copy withdrawn." in masis("planted", "withdraw", "--by", "Lea", "--db", approved).stderr
    )


def test_deciding_a_copy_reveals_the_planted_fault(masis: Masis, approved: Path) -> None:
    masis("planted", "add", "1", "--kind", "negation", "--db", approved)
    workbench = Workbench.open(approved)
    (copy,) = audit_copies(workbench)
    workbench.close()
    done = masis(
        "decide", copy, "reject", "--reason", "contradicted", "--by", "Ben", "--db", approved
    )
    assert "planted fault. The negation was changed from “is” to “is not”." in done.stdout


def test_without_an_approved_answer_the_error_explains_how_to_get_one(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "empty.db"
    Workbench.open(database).close()
    done = masis("planted", "add", "1", "--db", database)
    assert done.exit_code != 0
    assert "Approve some answers unchanged first" in done.stderr
