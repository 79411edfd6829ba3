"""``masis import`` of other tools' files: shown first, then stored, and nothing left out in silence."""

from __future__ import annotations

import json
from pathlib import Path

from masis.services import Workbench
from tests.cli.running import Masis

FILES = Path(__file__).parents[1] / "datasets" / "mapping" / "files"


def test_a_dry_run_shows_the_first_rows_and_every_problem_and_stores_nothing(masis: Masis, tmp_path: Path) -> None:
    file, database = tmp_path / "ragas.jsonl", tmp_path / "new.db"
    good = (FILES / "ragas-0.4.jsonl").read_text()
    file.write_text(good + json.dumps({"user_input": 5.5, "retrieved_contexts": {"a": 1}, "response": {"x": 1}}) + "\n")
    result = masis("import", file, "--dry-run", "--db", database)
    assert result.exit_code == 1
    assert "question  How long is the Marle bridge?" in result.stdout
    assert result.stdout.endswith("1 read as cases, 1 with an answer, 2 chunks of evidence\n")
    assert "line 2, answer: is an object of 'x'" in result.stderr
    assert "line 2, evidence[0]: has no text" in result.stderr
    assert "1 case would be imported, 1 row would not" in result.stderr
    assert not database.exists()


def test_a_file_of_another_tool_is_stored(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "new.db"
    result = masis("import", FILES / "anthropic-message-2023-06-01.json", "--db", database)
    assert (result.exit_code, "1 case imported." in result.stderr) == (0, True), result.stderr
    case = next(iter(Workbench.open(database).store.cases.iterate()))
    assert len(case.given_citations) == 2


def test_a_map_is_proposed_saved_and_reads_the_file(masis: Masis, tmp_path: Path) -> None:
    file, own, database = tmp_path / "own.csv", tmp_path / "own.toml", tmp_path / "new.db"
    file.write_text("frage,belege,antwort\nWie lang ist sie?,\"['Sie ist 120 Meter lang.']\",Sie ist 120 m lang.\n")
    assert masis("import", file, "--db", database).exit_code == 1
    proposed = masis("import", file, "--suggest", "--save", own)
    assert proposed.exit_code == 0, proposed.stderr
    assert "question  Wie lang ist sie?" in proposed.stdout
    assert f"Import it: masis import {file} --map {own}" in proposed.stderr
    assert masis("import", file, "--map", own, "--db", database).exit_code == 0
    by_options = masis("import", file, "--suggest").stderr.partition("Import it: masis import ")[2].split()
    assert masis("import", *by_options, "--dry-run").exit_code == 0
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("a,b\n1,2\n")
    assert "Name them: --map query=KEY" in masis("import", nothing, "--suggest").stderr
    known = masis("import", FILES / "ragas-0.4.jsonl", "--suggest")
    assert "is read as ragas, with no option" in known.stderr


def test_a_profile_that_does_not_exist_is_wrong_use(masis: Masis, tmp_path: Path) -> None:
    result = masis("import", FILES / "ragas-0.4.jsonl", "--as", "raags", "--db", tmp_path / "new.db")
    assert result.exit_code == 2
    assert "Did you mean 'ragas'?" in result.stderr


def test_expertqa_and_hagrid_are_read_without_edits(masis: Masis, tmp_path: Path, public_data: Path) -> None:
    examples = Path(__file__).parents[2] / "examples" / "import"
    result = masis("import", public_data / "expertqa_cases.jsonl", "--db", tmp_path / "own.db")
    assert (result.exit_code, "217 cases imported." in result.stderr) == (0, True), result.stderr
    mapped = masis(
        "import", public_data / "expertqa_cases.jsonl", "--map", examples / "expertqa.toml", "--db", tmp_path / "e.db"
    )
    assert (mapped.exit_code, "217 cases imported." in mapped.stderr) == (0, True), mapped.stderr
    rows = [json.loads(line) for line in (public_data / "hagrid_claims.jsonl").read_text().splitlines()]
    without = sum(not row["references"] for row in rows)  # nothing was cited, so there is nothing to audit against
    result = masis(
        "import", public_data / "hagrid_claims.jsonl", "--map", examples / "hagrid.toml", "--db", tmp_path / "h.db"
    )
    assert f"{len(rows) - without} cases imported." in result.stderr
    assert f"{without} errors, named above" in result.stderr
    assert result.stderr.count("evidence: is missing or empty") == 5
