"""Bad input through the command line: named with file, line, field and cure; the good lines are kept.

What can be wrong with a record or a file is held in tests/datasets: test_front_doors.py and test_wrong_inputs.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from masis.services import Workbench
from tests.cli.running import Masis, case, lines

BAD_LINES = {
    "a malformed line": (b'{"id": "x", "query": oops}\n', "line 2: is no valid JSON (Expecting value, at column 22)."),
    "a misnamed question": (
        lines(case("x", query=..., question="?")),
        'line 2, query: is missing, and "question" may hold it. Map it: --map query=question,',
    ),
    "repeated case ids": (
        lines(case("good-1", query="Another?")),
        "line 2, id: is 'good-1', as in line 1, with other content. Give each case an id of its own",
    ),
    "not UTF-8": (b'{"id": "caf\xe9"}\n', "line 2: is not UTF-8: byte 12 of the line is 0xE9. Save the file as UTF-8"),
}


@pytest.mark.parametrize("command", ["import", "audit"])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_named_and_the_good_lines_are_kept(masis: Masis, tmp_path: Path, command: str, kind: str) -> None:
    bad, expected = BAD_LINES[kind]
    file, database = tmp_path / "cases.jsonl", tmp_path / "new.db"
    file.write_bytes(lines(case("good-1")) + bad + lines(case("good-2")))
    result = masis(command, file, "--db", database)
    assert result.exit_code == 1
    assert f"{file}, {expected}" in result.stderr
    assert "Error: 1 error, named above. Everything else is stored." in result.stderr
    assert "Traceback" not in result.stderr
    assert ("good-1" in result.stdout) == (command == "audit")
    store = Workbench.open(database).store
    assert [kept.id for kept in store.cases.iterate()] == ["good-1", "good-2"]
    finished = [run for kept in ("good-1", "good-2") for run in store.runs.for_case(kept)]
    assert [run.state for run in finished] == (["finished"] * 2 if command == "audit" else [])


@pytest.mark.parametrize("command", ["import", "audit"])
def test_an_empty_file_holds_no_case(masis: Masis, tmp_path: Path, command: str) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()
    result = masis(command, file, "--db", tmp_path / "new.db")
    assert result.exit_code == 1
    assert f"{file}: holds no case. Put one case on each line" in result.stderr


@pytest.mark.parametrize("command", ["import", "audit"])
def test_a_directory_and_a_missing_file_are_wrong_use(masis: Masis, tmp_path: Path, command: str) -> None:
    result = masis(command, tmp_path)
    assert result.exit_code == 2
    what = "is a directory without audited cases" if command == "import" else "is a directory"
    assert f"{tmp_path}: {what}. Name one file of JSON Lines in it." in result.stderr
    result = masis(command, tmp_path / "nothing.jsonl")
    assert result.exit_code == 2
    assert "nothing.jsonl: does not exist. Check the name and the folder." in result.stderr


def test_a_database_given_as_cases_is_recognised(masis: Masis, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(lines(case("good")))
    masis("import", tmp_path / "good.jsonl", "--db", tmp_path / "new.db")
    result = masis("audit", tmp_path / "new.db", "--db", tmp_path / "other.db")
    assert result.exit_code == 1
    assert "is a SQLite database. Give a database of the workbench with --db FILE." in result.stderr


def test_several_bad_lines_give_one_line_each_and_exit_1(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("good-1")) + b'{"id"\n' + b"\xff\n" + lines(case("good-2")))
    result = masis("audit", file, "--db", tmp_path / "new.db", "--out", "-")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 2
    assert f"{file}, line 2: " in result.stderr
    assert f"{file}, line 3: is not UTF-8" in result.stderr


def test_an_id_that_would_steer_the_terminal_is_shown_not_obeyed(masis: Masis, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("\x1b[2Jx"), case("\x1b[2Jx", query="Another?")))
    result = masis("import", file, "--db", tmp_path / "new.db")
    assert "\x1b" not in result.stderr
    assert r"\x1b[2Jx" in result.stderr


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
