"""Importing, listing and comparing systems on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from masis.services import Workbench
from tests.cli.running import Masis, case, lines
from tests.services.test_comparison import add_pairs


def test_a_second_systems_answers_to_the_same_ids_are_imported_and_recognized(
    masis: Masis, tmp_path: Path
) -> None:
    db, file = str(tmp_path / "masis.db"), tmp_path / "answers.jsonl"
    file.write_bytes(lines(case("q1"), case("q2")))
    assert masis("import", str(file), "--db", db).exit_code == 0
    for imported, already in ((2, 0), (0, 2)):
        done = masis("import", str(file), "--system", "v2", "--db", db, "--json")
        assert done.exit_code == 0, done.stderr
        record = json.loads(done.stdout)
        assert (record["imported"], record["there_already"]) == (imported, already)
    listed = masis("queue", "--system", "v2", "--db", db, "--json").stdout.splitlines()
    assert {json.loads(line)["id"] for line in listed} == {"q1:v2", "q2:v2"}
    systems = [
        json.loads(line)
        for line in masis("systems", "list", "--db", db, "--json").stdout.splitlines()
    ]
    assert [(row["name"], row["cases"]) for row in systems] == [("unnamed", 2), ("v2", 2)]


def test_a_column_names_the_system(masis: Masis, tmp_path: Path) -> None:
    db, file = str(tmp_path / "masis.db"), tmp_path / "answers.jsonl"
    file.write_bytes(lines(case("q1", bot="a"), case("q1", bot="b")))
    done = masis("import", str(file), "--map", "system=bot", "--db", db, "--json")
    assert done.exit_code == 0, done.stderr
    shown = masis("compare", "a", "b", "--db", db, "--json")
    assert json.loads(shown.stdout)["shared"] == 1


def test_describing_a_system_keeps_what_no_option_names(masis: Masis, bench: Workbench) -> None:
    add_pairs(bench, same=1)
    db = str(bench.database)
    masis("systems", "describe", "v2", "--model", "gpt-4o", "--db", db)
    done = masis("systems", "describe", "v2", "--date", "2026-05-01", "--db", db, "--json")
    record = json.loads(done.stdout)
    assert (record["model"], record["date"]) == ("gpt-4o", "2026-05-01")


def test_the_gate_fails_only_for_a_worse_system(masis: Masis, bench: Workbench) -> None:
    add_pairs(bench, worse=7, same=5)
    db = str(bench.database)
    shown = masis("compare", "v1", "v2", "--db", db)
    assert shown.exit_code == 0
    assert "v2 is worse than v1.\nOf 12 questions" in shown.output
    assert "7 regressions: right before, wrong now" in shown.output
    gated = masis("compare", "v1", "v2", "--gate", "--db", db)
    assert gated.exit_code == 1
    assert "v2 is worse than v1." in gated.stderr
    assert masis("compare", "v2", "v1", "--gate", "--db", db).exit_code == 0
    assert masis("compare", "v2", "v1", "--most-regressions", "0", "--db", db).exit_code == 0
    record = json.loads(masis("compare", "v1", "v2", "--db", db, "--json").stdout)
    assert record["regression_count"] == 7
    assert len(record["regressions"]) == 7
