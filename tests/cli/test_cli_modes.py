"""``masis modes``: texts are searched, grouped, coded and counted from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.services import Workbench
from tests.cli.running import Masis
from tests.modes import ADA, add_audited, an_issue


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with three audited cases, one issue each, and a comment."""
    path = tmp_path / "modes.db"
    workbench = Workbench.open(path)
    for number in range(3):
        add_audited(workbench.store, f"case-{number}", an_issue(f"key-{number}"))
    workbench.team.comment(ADA, "case-0", "The dose \x1b[31m is wrong.")
    workbench.close()
    return path


def test_texts_are_found_by_their_words_and_printed_without_control_characters(
    masis: Masis, database: Path
) -> None:
    done = masis("modes", "search", "wrong", "dose", "--db", database)
    assert done.exit_code == 0
    assert "case-0" in done.stdout
    assert "\x1b" not in done.stdout
    assert "1 of 1 observation." in done.stderr
    rows = masis("modes", "search", "--kind", "issue", "--json", "--db", database).stdout
    assert [json.loads(row)["case_id"] for row in rows.splitlines()] == [
        "case-2",
        "case-1",
        "case-0",
    ]


def test_a_codebook_is_started_extended_exported_and_imported(
    masis: Masis, database: Path, tmp_path: Path
) -> None:
    started = masis("modes", "codebook", "start", "mast", "--db", database)
    assert "mast.1  System design" in started.stdout
    assert "  mast.1.3  Step repetition" in started.stdout
    added = masis(
        *("modes", "codebook", "add", "Wrong dose", "--parent", "mast.3", "--db", database)
    )
    assert "  wrong-dose  Wrong dose" in added.stdout
    assert "Version 2: 18 failure modes." in added.stderr
    out = tmp_path / "book.json"
    assert masis("modes", "codebook", "export", "--out", out, "--db", database).exit_code == 0
    other = tmp_path / "other.db"
    Workbench.open(other).close()
    imported = masis("modes", "codebook", "import", out, "--json", "--db", other)
    assert len(json.loads(imported.stdout)["modes"]) == 18
    (tmp_path / "wrong.json").write_text("[1]")
    refused = masis("modes", "codebook", "import", tmp_path / "wrong.json", "--db", other)
    assert refused.exit_code == 1
    unknown = masis("modes", "codebook", "start", "nope", "--db", database)
    assert unknown.exit_code == 2
    assert "'mast'" in unknown.stderr


def test_codes_are_previewed_applied_counted_and_undone_as_a_batch(
    masis: Masis, database: Path
) -> None:
    masis("modes", "codebook", "add", "Wrong date", "--db", database)
    command = ("modes", "apply", "wrong-date", "--search", "contradicts the year", "--db", database)
    preview = masis(*command, "--dry-run", "--json")
    assert len(json.loads(preview.stdout)["ids"]) == 3
    assert "3 observations in 3 cases." in preview.stderr
    assert masis(*command).exit_code == 2  # not a terminal, so the question can't be asked
    assert masis("modes", "list", "--db", database).stdout == ""
    done = masis(*command, "--yes", "--json")
    applied = json.loads(done.stdout)
    assert (applied["entries"], applied["cases"]) == (3, 3)
    again = masis(*command, "--dry-run")
    assert "0 observations in 0 cases; 3 have the codes already." in again.stderr
    counts = masis("modes", "list", "--facet", "field", "--db", database)
    assert "Wrong date  Engineering  3 of 3  44% to 100%" in counts.stdout
    masis("batch", "undo", applied["batch"], "--db", database)
    assert masis("modes", "list", "--db", database).stdout == ""
    by_case = masis("modes", "apply", "wrong-date", "--case", "case-1", "--json", "--db", database)
    assert json.loads(by_case.stdout)["cases"] == 1


def test_similar_observations_are_coded_from_one(masis: Masis, database: Path) -> None:
    masis("modes", "codebook", "add", "Wrong date", "--db", database)
    first = json.loads(
        masis("modes", "search", "--kind", "issue", "--limit", 1, "--json", "--db", database).stdout
    )
    done = masis(
        *("modes", "apply", "wrong-date", "--similar", first["id"], "--yes", "--json"),
        *("--db", database),
    )
    assert json.loads(done.stdout)["entries"] == 3
    listed = masis("modes", "search", "--kind", "issue", "--db", database).stdout
    assert "Wrong date" in listed
    assert "wrong-date" not in listed
    rows = masis("modes", "search", "--kind", "issue", "--json", "--db", database).stdout
    assert json.loads(rows.splitlines()[0])["codes"] == ["wrong-date"]


def test_groups_are_listed_with_their_sizes(masis: Masis, database: Path) -> None:
    listed = masis("modes", "groups", "--db", database)
    assert "1 group of 4 texts; 1 in no group." in listed.stderr
    [group] = map(
        json.loads, masis("modes", "groups", "--json", "--db", database).stdout.splitlines()
    )
    assert (group["observations"], group["cases"]) == (3, 3)


def test_wrong_use_is_refused_with_what_to_do(masis: Masis, database: Path) -> None:
    both = masis("modes", "apply", "x", "--case", "a", "--search", "b", "--db", database)
    assert both.exit_code == 2
    assert "one of --observation, --similar, --search and --case" in both.stderr
    unknown = masis("modes", "apply", "nope", "--case", "case-0", "--db", database)
    assert unknown.exit_code == 1
    assert "Add it first" in unknown.stderr
    assert "masis modes apply" in masis("modes", "list", "--db", database).stderr
    assert "several people" in masis("modes", "agreement", "--db", database).stderr
