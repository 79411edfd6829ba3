"""``masis db redact``: the texts of a case or a decision go on request, and the log says who asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.case import Case, Evidence
from masis.schema.review import Decision
from masis.services import Workbench
from tests.cli.running import Masis
from tests.reviewing import ADA, submitted

SECRET = "Mr Private"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "masis.db"
    workbench = Workbench.open(path)
    workbench.cases.add(ADA, [Case(id="a", query=f"Who is {SECRET}?", evidence=(Evidence(id="1", text=SECRET),))])
    submitted(workbench, Decision(reviewer="Ada", case_id="a", run_id=None, verdict="reject", reason=SECRET))
    workbench.close()
    return path


def test_a_redacted_case_leaves_no_text_of_it_in_the_file_and_an_intact_log(masis: Masis, database: Path) -> None:
    result = masis("db", "redact", "case", "a", "--reason", "on request", "--by", "Grace", "--yes", "--db", database)
    assert result.exit_code == 0, result.stderr
    assert "Case a is redacted: 1 decision" in result.stderr
    for file in database.parent.glob("masis.db*"):
        assert SECRET.encode() not in file.read_bytes()
    assert masis("verify-log", "--db", database).exit_code == 0
    assert Workbench.open(database).store.decisions.reviewers() == {"Grace": 2}


@pytest.mark.parametrize(("what", "name"), [("case", "nowhere"), ("decision", "none")])
def test_what_is_not_there_is_named(masis: Masis, database: Path, what: str, name: str) -> None:
    result = masis("db", "redact", what, name, "--reason", "on request", "--yes", "--db", database)
    assert result.exit_code == 1
    assert repr(name) in result.stderr


def test_nothing_is_redacted_without_a_yes(masis: Masis, database: Path) -> None:
    assert masis("db", "redact", "case", "a", "--reason", "on request", "--db", database).exit_code == 2
    assert Workbench.open(database).store.cases.get("a").query == f"Who is {SECRET}?"
