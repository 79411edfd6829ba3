"""A damaged run and a full disk are said in words, with the cure; what is not damaged goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from masis.errors import DatabaseFull, RecordDamaged
from masis.schema.retention import RetentionRule
from masis.services import Workbench
from masis.store import Store
from masis.store.core import connections
from tests.cli.running import Masis
from tests.store.factories import a_case, a_run, an_iteration


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A database with three runs; one has lost its result, one an iteration, and one is whole."""
    path = tmp_path / "damaged.db"
    with Store.open(path) as store:
        for number in (1, 2, 3):
            store.cases.add(a_case(f"case-{number}"))
            store.runs.finish(a_run(a_case(f"case-{number}"), f"run-{number}"))
        with store.database.transaction() as connection:
            connection.execute("UPDATE runs SET payload = x'00112233' WHERE id = 'run-1'")
            connection.execute("UPDATE run_iterations SET payload = x'00112233' WHERE run_seq = 2")
    return path


@pytest.mark.parametrize(
    ("command", "run"),
    [
        (["report", "case-1"], "run-1"),
        (["report", "case-2"], "run-2"),
        (["export"], "run-1"),
        (["export", "--format", "runs"], "run-1"),
    ],
)
def test_a_damaged_run_is_named_with_the_cure(masis: Masis, damaged: Path, command: list[str], run: str) -> None:
    result = masis(*command, "--db", damaged)
    assert result.exit_code == 1
    assert f"run '{run}' can't be read: what is stored of it is damaged or was altered" in result.stderr
    assert "Audit its case again, or restore a backup (`masis restore`)." in result.stderr
    assert "This is a bug" not in result.stderr


def test_what_is_whole_can_be_read_and_health_names_what_is_not(masis: Masis, damaged: Path) -> None:
    assert masis("report", "case-3", "--db", damaged).exit_code == 0
    shown = masis("health", "--no-ask", "--db", damaged)
    assert shown.exit_code == 1
    assert "run 'run-1', run 'run-2' can't be read (2 in all)" in shown.stdout


def test_damaged_runs_can_be_removed_and_redacted(damaged: Path) -> None:
    with Store.open(damaged) as store:
        store.redactions.redact_case("case-1", by="Ada", reason="r")
        rule = RetentionRule(cutoff="2027-01-01T00:00:00.000Z", days=0, decided=True)
        purge = store.retention.remove(rule, by="Ada", how="command")
        assert purge is not None
        assert purge.runs == 2
        assert store.check().problems == ()


def test_a_database_opens_although_a_run_that_was_cut_short_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    with Store.open(path) as store:
        case = a_case()
        store.cases.add(case)
        store.runs.start("cut", case_id=case.id, case_digest=case.digest(), models={}, settings={})
        store.runs.save_iteration("cut", an_iteration())
        with store.database.transaction() as connection:
            connection.execute("UPDATE run_iterations SET payload = x'00'")
            connection.execute("""UPDATE runs SET owner = '{"host": "", "pid": 0, "started": 0}'""")
    with Store.open(path) as store:
        store.runs.abandon("cut", "its process is gone")
        assert store.runs.summary("cut").state == "interrupted"
        with pytest.raises(RecordDamaged, match="run 'cut' can't be read"):
            store.runs.progress("cut")


def test_a_full_disk_is_said_in_words_where_a_database_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masis: Masis
) -> None:
    connect = connections.connect

    def small(path: Path, *, create: bool = True) -> sqlite3.Connection:
        connection = connect(path, create=create)
        connection.execute("PRAGMA max_page_count = 20")  # SQLite then answers as it does on a full disk
        return connection

    monkeypatch.setattr(connections, "connect", small)
    with pytest.raises(DatabaseFull, match="no room left"):
        Workbench.open(tmp_path / "full.db")
    (tmp_path / "cases.jsonl").write_text("{}")
    shown = masis("import", tmp_path / "cases.jsonl", "--db", tmp_path / "full.db")
    assert shown.exit_code == 1
    assert "Free some space there and do it again; what was stored before is kept." in shown.stderr
