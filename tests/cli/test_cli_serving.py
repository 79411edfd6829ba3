"""``masis demo`` and ``masis serve``: which database they open, and what a reset forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis.schema.review import Decision
from masis.services import Workbench, demo_cases
from tests.cli.running import Masis
from tests.reviewing import submitted

pytestmark = pytest.mark.slow


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the server would have been started with."""
    calls: list[dict[str, Any]] = []

    def launch(db: Path, port: int | None = None, address: str = "127.0.0.1", open_browser: bool = False) -> int:
        calls.append({"db": db, "port": port, "address": address, "open_browser": open_browser})
        return 0

    monkeypatch.setattr("masis.ui.shell.serve.launch", launch)
    return calls


def test_the_demo_opens_its_own_database_with_every_demo_case_audited(
    masis: Masis, home: Path, launched: list[dict[str, Any]]
) -> None:
    database = home / "masis" / "demo.db"
    result = masis("demo", "--port", "9000", "--no-browser")
    assert result.exit_code == 0, result.output
    assert launched == [{"db": database, "port": 9000, "address": "127.0.0.1", "open_browser": False}]
    overview = Workbench.open(database).cases.overview()
    assert overview.cases == len(list(demo_cases()))
    assert not overview.states.get("new")
    assert not (home / "masis" / "masis.db").exists()


def test_the_demo_keeps_decisions_until_it_is_reset(masis: Masis, home: Path, launched: list[dict[str, Any]]) -> None:
    masis("demo", "--no-browser")
    database = home / "masis" / "demo.db"
    workbench = Workbench.open(database)
    first = next(iter(demo_cases())).id
    submitted(workbench, Decision(reviewer="Ada", case_id=first, run_id=None, verdict="escalate"))
    workbench.store.close()
    masis("demo", "--no-browser")
    assert Workbench.open(database).reviews.verify().length >= 1
    masis("demo", "--no-browser", "--reset")
    after = Workbench.open(database)
    assert not any(entry.decision and entry.decision.reviewer == "Ada" for entry in after.store.decisions.iterate())
    assert after.store.cases.count() == len(list(demo_cases()))


def test_a_reset_never_touches_a_database_that_was_named(
    masis: Masis, tmp_path: Path, launched: list[dict[str, Any]]
) -> None:
    mine = tmp_path / "mine.db"
    masis("demo", "--db", mine)
    before = mine.stat().st_size
    result = masis("demo", "--reset", "--db", mine)
    assert result.exit_code == 2
    assert "forgets only the demo's own database" in result.stderr
    assert mine.stat().st_size == before


def test_serve_listens_on_this_machine_only_unless_configured_otherwise(
    masis: Masis, tmp_path: Path, launched: list[dict[str, Any]]
) -> None:
    assert masis("serve", "--db", tmp_path / "mine.db").exit_code == 0
    assert launched == [{"db": tmp_path / "mine.db", "port": None, "address": "127.0.0.1", "open_browser": False}]
    assert masis("serve", "--port", "0").exit_code == 2
