"""``masis import`` of files of any make: shown first, then stored; what is bad in them is named with its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from masis.services import Workbench
from tests.cli.running import Masis, case, lines

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


@pytest.mark.parametrize("command", ["import", "audit"])
def test_bad_lines_are_named_and_the_good_lines_are_kept(masis: Masis, tmp_path: Path, command: str) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "new.db"
    bad = lines(case("x", query=..., question="?")) + b'{"id": "caf\xe9"}\n'
    file.write_bytes(lines(case("good-1")) + bad + lines(case("good-2")))
    result = masis(command, file, "--db", database)
    assert result.exit_code == 1
    assert (
        f'{file}, line 2, query: is missing, and "question" may hold it. Map it: --map query=question,' in result.stderr
    )
    assert f"{file}, line 3: is not UTF-8: byte 12 of the line is 0xE9. Save the file as UTF-8" in result.stderr
    assert "Error: 2 errors, named above. Everything else is stored." in result.stderr
    assert "Traceback" not in result.stderr
    assert ("good-1" in result.stdout) == (command == "audit")
    store = Workbench.open(database).store
    assert [kept.id for kept in store.cases.iterate()] == ["good-1", "good-2"]
    finished = [run for kept in ("good-1", "good-2") for run in store.runs.for_case(kept)]
    assert [run.state for run in finished] == (["finished"] * 2 if command == "audit" else [])


@pytest.mark.parametrize("command", ["import", "audit"])
def test_a_directory_without_files_and_a_missing_file_are_refused(masis: Masis, tmp_path: Path, command: str) -> None:
    result = masis(command, tmp_path)
    assert result.exit_code == (1 if command == "import" else 2)
    says = "holds no file that can be read. Name files" if command == "import" else "is a directory. Name one file"
    assert f"{tmp_path}: {says}" in result.stderr
    result = masis(command, tmp_path / "nothing.jsonl")
    assert result.exit_code == 2
    assert "nothing.jsonl: does not exist. Check the name and the folder." in result.stderr


def peak_mib(*arguments: str | Path) -> float:
    """The most memory ``masis`` held while it ran, in MiB; it must succeed."""
    code = (
        "import resource, sys\nfrom masis.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kibibytes = int(done.stdout.splitlines()[-1])
    return kibibytes / 1024 if sys.platform == "linux" else kibibytes / 2**20


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("import", marks=pytest.mark.soak(smoke=7, full=60)),
        pytest.param("audit", marks=pytest.mark.soak(full=60)),
    ],
)
def test_a_large_file_is_read_in_the_memory_of_one_line(tmp_path: Path, home: Path, command: str, rounds: int) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    filler = "x" * 8_000_000
    small.write_bytes(lines(case("0", filler=filler)))
    with large.open("wb") as file:
        for number in range(rounds):
            file.write(lines(case(str(number), filler=filler)))
    one_line = peak_mib(command, small, "--db", tmp_path / "small.db")
    all_lines = peak_mib(command, large, "--db", tmp_path / "large.db")
    assert all_lines < one_line + 40
    assert Workbench.open(tmp_path / "large.db").store.cases.count() == rounds


@pytest.mark.soak(smoke=5_000, full=100_000)
def test_a_sentence_of_100_000_characters_and_10_000_chunks_are_audited(
    masis: Masis, tmp_path: Path, rounds: int
) -> None:
    file = tmp_path / "cases.jsonl"
    chunks = [
        {"id": str(number), "text": f"Bridge {number} is {number} metres long."}
        for number in range(1, rounds // 10 + 1)
    ]
    file.write_bytes(
        lines(
            case("words", answer="bridge " * (rounds // 7) + "[1]."),
            case("figures", answer="it is 120 metres long and 3 km from Berg, " * (rounds // 42)),
            case("list", answer="- item\n" * (rounds // 7)),
            case("letters", answer="a" * rounds),
            case("brackets", answer="[" * rounds),
            case("chunks", answer="Bridge 7 is 7 metres long [7]. Bridge 8 is 9 metres long [8].", evidence=chunks),
        )
    )
    result = masis("audit", file, "--db", tmp_path / "new.db")
    assert result.exit_code == 0, result.stderr
    assert "6 cases audited" in result.stderr
