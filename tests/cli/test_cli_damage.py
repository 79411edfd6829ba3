"""Damaged runs and a full disk are reported with a hint, and undamaged data stays usable."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.formats import export_formats
from masis.errors import DatabaseFull, RecordDamaged
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.services import Workbench
from masis.store import Store
from masis.store.core import connections
from tests.cli.running import Masis
from tests.store.factories import a_case, a_decision, a_run, an_iteration


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A database with three runs: one without its result, one without an iteration, and an intact
    one.
    """
    path = tmp_path / "damaged.db"
    with Store.open(path) as store:
        for number in (1, 2, 3):
            store.cases.add(a_case(f"case-{number}"))
            store.runs.finish(a_run(a_case(f"case-{number}"), f"run-{number}"))
        with store.database.transaction() as connection:
            connection.execute("UPDATE jobs SET payload = x'00112233' WHERE id = 'run-1'")
            connection.execute(
                "UPDATE job_parts SET payload = x'00112233' WHERE job_seq = 2 AND kind ="
                " 'iteration'"
            )
    return path


@pytest.mark.parametrize(
    ("command", "number"), [(["report", "case-2"], 2), (["export", "--format", "runs"], 1)]
)
def test_a_damaged_run_is_reported_with_its_case_and_a_hint(
    masis: Masis, damaged: Path, command: list[str], number: int
) -> None:
    result = masis(*command, "--db", damaged)
    assert result.exit_code == 1
    named = f"run 'run-{number}' of case 'case-{number}' can't be read"
    assert (
        f"{named}: its stored content is damaged or was altered (it can't be decompressed)."
        in result.stderr
    )
    assert "Audit the case again, or restore a backup (`masis db restore`)." in result.stderr
    assert "This is a bug" not in result.stderr


def _alter_payload(
    path: Path, change: Callable[[dict[str, Any]], object], table: str, where: str
) -> None:
    """Change the stored payload of run-2 and compress it again."""
    with Store.open(path) as store, store.database.transaction() as connection:
        row = connection.execute(f"SELECT payload FROM {table} WHERE {where}").fetchone()
        stored = json.loads(zlib.decompress(row[0]))
        change(stored)
        packed = zlib.compress(json.dumps(stored).encode())
        connection.execute(f"UPDATE {table} SET payload = ? WHERE {where}", [packed])


def _create_decided_database(path: Path) -> Path:
    """Create a database with three decided cases, each with a label on its answer."""
    with Store.open(path) as store:
        for number in (1, 2, 3):
            case = a_case(f"case-{number}", metadata={"trace_id": f"trace-{number}"})
            store.cases.add(case)
            run = a_run(case, f"run-{number}")
            store.runs.finish(run)
            words = run.iterations[0].answer[:10]
            label = TargetLabel(target="claim", start=0, end=10, text=words, label="partial")
            override = {
                "verdict": "override",
                "reason": "Too short",
                "corrected_answer": "Another answer.",
            }
            store.decisions.append(
                a_decision(case, run.id, iteration=1, labels=(label,), **override)
            )
    return path


ITERATION = ("job_parts", "job_seq = 2 AND kind = 'iteration'")
ALTERED: dict[str, tuple[Callable[[dict[str, Any]], object], str, str]] = {
    "no answer": (lambda stored: stored.pop("answer"), *ITERATION),
    "an answer that is no text": (lambda stored: stored.update(answer=5), *ITERATION),
    "no date": (lambda stored: stored.pop("finished_at"), "jobs", "seq = 2"),
    "a claim without a verdict": (lambda stored: stored["claims"][0].pop("verdict"), *ITERATION),
    "a sentence without a state": (
        lambda stored: stored["citation_audit"]["sentences"][0].pop("status"),
        *ITERATION,
    ),
    "a place that is no number": (
        lambda stored: stored["claims"][0]["claim"].update(start="a"),
        *ITERATION,
    ),
}
READ = {"claims": "a claim without a verdict", "sentences": "a sentence without a state",
        "label-studio": "a place that is no number"}  # fmt: skip
"""The parts of a run that each export reads besides the answer."""


@pytest.mark.parametrize(
    ("form", "how"),
    [
        *((form, "no date") for form in export_formats()),
        *(("decided", how) for how in list(ALTERED)[:2]),
        *READ.items(),
    ],
)
def test_an_altered_run_stops_every_export_without_leaving_a_file(
    masis: Masis, tmp_path: Path, form: str, how: str
) -> None:
    database, out = _create_decided_database(tmp_path / "decided.db"), tmp_path / "out" / "export"
    out.parent.mkdir()
    assert masis("export", "--format", form, "--out", out, "--db", database).exit_code == 0
    before = sorted((path, path.stat().st_mtime_ns) for path in out.parent.rglob("*"))
    _alter_payload(database, *ALTERED[how])
    result = masis("export", "--format", form, "--out", out, "--db", database)
    assert result.exit_code == 1
    assert (
        "run 'run-2' of case 'case-2' can't be read: its stored content is damaged or was altered"
        in result.stderr
    )
    assert (
        "Audit the case again (`masis audit FILE --again`) and, where it was decided, decide it"
        " again" in result.stderr
    )
    assert "This is a bug" not in result.stderr
    assert sorted((path, path.stat().st_mtime_ns) for path in out.parent.rglob("*")) == before


@pytest.mark.parametrize("form", ["cases", "decided", "hf"])
def test_a_damaged_case_is_reported_and_leaves_no_file(
    masis: Masis, tmp_path: Path, form: str
) -> None:
    database = _create_decided_database(tmp_path / "decided.db")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE case_payloads SET payload = '{' WHERE case_seq = 2")
    connection.close()
    result = masis("export", "--format", form, "--out", tmp_path / "export", "--db", database)
    assert result.exit_code == 1
    assert (
        "case 'case-2' can't be read: its stored content is damaged or was altered."
        in result.stderr
    )
    assert "Restore a backup (`masis db restore`)." in result.stderr
    assert not list(tmp_path.glob("*export*"))


def test_a_missing_iteration_is_damage_and_the_hint_repairs_it(
    masis: Masis, tmp_path: Path
) -> None:
    database = _create_decided_database(tmp_path / "decided.db")
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM job_parts WHERE job_seq = 2 AND kind = 'iteration'")
    connection.close()
    exporting = ("export", "--format", "decided", "--db", database)
    assert "run 'run-2' of case 'case-2' can't be read" in masis(*exporting).stderr
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(masis("export", "--format", "cases", "--db", database).stdout_bytes)
    assert masis("audit", cases, "--again", "--db", database).exit_code == 0
    with Workbench.open(database).store as store:
        run = store.runs.for_case("case-2")[0].id
        decision = Decision(
            reviewer="Ada", case_id="case-2", run_id=run, iteration=1, verdict="approve"
        )
        store.decisions.append(decision)
    assert len(masis(*exporting).stdout.splitlines()) == 3


def test_intact_runs_stay_readable_and_health_names_the_damaged_ones(
    masis: Masis, damaged: Path
) -> None:
    assert masis("report", "case-3", "--db", damaged).exit_code == 0
    shown = masis("health", "--no-ask", "--db", damaged)
    assert shown.exit_code == 1
    assert "run 'run-1', run 'run-2' can't be read (2 in all)" in shown.stdout


def test_a_database_opens_although_an_interrupted_run_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    with Store.open(path) as store:
        case = a_case()
        store.cases.add(case)
        store.runs.start("cut", case_id=case.id, case_digest=case.digest(), models={}, settings={})
        store.runs.save_iteration("cut", an_iteration())
        with store.database.transaction() as connection:
            connection.execute("UPDATE job_parts SET payload = x'00' WHERE kind = 'iteration'")
            connection.execute("""UPDATE jobs SET owner = '{"host": "", "pid": 0, "started": 0}'""")
    with Store.open(path) as store:
        store.runs.abandon("cut", "its process is gone")
        assert store.runs.summary("cut").state == "interrupted"
        with pytest.raises(RecordDamaged, match="run 'cut' of case 'case-1' can't be read"):
            store.runs.progress("cut")


@pytest.mark.usefixtures("migrated_databases")
def test_a_full_disk_is_reported_when_a_database_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masis: Masis
) -> None:
    connect = connections.connect

    def small(path: Path, *, create: bool = True) -> sqlite3.Connection:
        connection = connect(path, create=create)
        # SQLite then fails as on a full disk
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    monkeypatch.setattr(connections, "connect", small)
    with pytest.raises(DatabaseFull, match="no room left"):
        Workbench.open(tmp_path / "full.db")
    (tmp_path / "cases.jsonl").write_text("{}")
    shown = masis("import", tmp_path / "cases.jsonl", "--db", tmp_path / "full.db")
    assert shown.exit_code == 1
    assert "Free some space there and do it again; what was stored before is kept." in shown.stderr
