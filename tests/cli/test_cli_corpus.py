"""``masis screening corpus``: abstracts go in once, are found, and leave."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from masis.cli import abstract_files, output
from masis.datasets.readers.abstracts import read_abstracts
from masis.errors import InputError
from masis.schema.screening import Abstract
from tests.cli.running import Masis

RIS = "TY  - JOUR\nTI  - Inhaled steroids in children with asthma\nDO  - 10.1000/a\nER  - \n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


def test_files_of_several_formats_make_one_corpus_without_duplicates(
    masis: Masis, tmp_path: Path, database: Path
) -> None:
    (tmp_path / "a.ris").write_text(RIS, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(
        json.dumps({"id": "x", "title": "The same", "doi": "https://doi.org/10.1000/A"})
        + "\n"
        + json.dumps({"id": "y", "title": "Gout in adults", "text": "No steroids."})
        + "\n",
        encoding="utf-8",
    )
    result = masis("screening", "corpus", "mine", tmp_path / "a.ris", tmp_path / "b.jsonl", "--db", database)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "b.jsonl: 2 records, 1 added, 1 duplicate, 0 unreadable." in result.stderr
    assert "Corpus 'mine' holds 2 abstracts." in result.stderr
    found = masis("screening", "corpus", "mine", "--search", "which STEROID for children?", "--db", database)
    assert [json.loads(line)["id"] for line in found.stdout.splitlines()] == ["doi-10.1000/a", "y"]
    assert (
        len(
            masis(
                "screening", "corpus", "mine", "--search", "steroids", "--limit", "1", "--db", database
            ).stdout.splitlines()
        )
        == 1
    )
    assert masis("screening", "corpus", "--db", database).stdout == (
        "mine  2 abstracts, 3 identified, 1 duplicate, 0 unreadable\n"
    )
    assert "a.ris: 1 identified, 1 added" in masis("screening", "corpus", "mine", "--db", database).stdout


def test_what_can_not_be_read_is_named_and_the_rest_is_kept(masis: Masis, tmp_path: Path, database: Path) -> None:
    file = tmp_path / "a.ris"
    file.write_text("TY  - JOUR\nTI  - Lost\n" + RIS, encoding="utf-8")
    other = tmp_path / "notes.txt"
    other.write_text("hello", encoding="utf-8")
    result = masis("screening", "corpus", "mine", file, other, "--db", database)
    assert result.exit_code == 1
    assert f"{file}, line 1, record 1: has no end." in result.stderr
    assert f"{other}: is in no format of abstracts" in result.stderr
    assert "2 errors, named above" in result.stderr
    assert "holds 1 abstract." in result.stderr
    assert masis("screening", "corpus", "mine", "-", "--db", database, stdin=RIS.encode()).exit_code == 0


def test_a_corpus_is_removed_on_request(masis: Masis, tmp_path: Path, database: Path) -> None:
    (tmp_path / "a.ris").write_text(RIS, encoding="utf-8")
    masis("screening", "corpus", "mine", tmp_path / "a.ris", "--db", database)
    assert (
        "'mine' with 1 abstract is removed" in masis("screening", "corpus", "mine", "--remove", "--db", database).stderr
    )
    gone = masis("screening", "corpus", "mine", "--search", "asthma", "--db", database)
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert "there is no corpus 'mine'" in gone.stderr
    assert "There is no corpus yet" in masis("screening", "corpus", "--db", database).stderr


def test_wrong_use_is_reported(masis: Masis, tmp_path: Path, database: Path) -> None:
    (tmp_path / "a.ris").write_text(RIS, encoding="utf-8")
    both = masis("screening", "corpus", "mine", tmp_path / "a.ris", "--remove", "--db", database)
    assert (both.exit_code, "one at a time" in both.stderr) == (2, True)
    assert masis("screening", "corpus", "mine", tmp_path / "none.ris", "--db", database).exit_code == 2
    assert masis("screening", "corpus", "--db", database).exit_code == 1
    assert not database.exists()


def many(tmp_path: Path, count: int = 2_000) -> Path:
    file = tmp_path / "many.ris"
    record = "TY  - JOUR\nTI  - Trial {0} of steroids\nAB  - Steroids in trial {0}.\nDO  - 10.1/{0}\nER  - \n"
    file.write_text("".join(record.format(number) for number in range(count)), encoding="utf-8")
    return file


def test_a_large_file_shows_how_much_of_it_has_been_read(
    masis: Masis, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    result = masis("screening", "corpus", "mine", many(tmp_path), "--db", database)
    assert result.exit_code == 0
    assert "Importing: 1,000 records read, " in result.stderr
    assert "Importing: 2,000 records read, 100% of the file" in result.stderr


@pytest.mark.parametrize("command", [("screening", "corpus", "mine"), ("screen", "-q", "Do steroids help?")])
def test_reading_a_large_file_can_be_stopped(
    masis: Masis, tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def interrupted(stream: BinaryIO, *, name: str) -> Iterator[Abstract | InputError]:
        for number, each in enumerate(read_abstracts(stream, name=name)):
            if number == 700:
                os.kill(os.getpid(), signal.SIGINT)
            yield each

    monkeypatch.setattr(abstract_files, "read_abstracts", interrupted)
    result = masis(*command, many(tmp_path), "--db", database)
    assert result.exit_code == 130
    if command[0] == "screen":
        assert "Stopped before anything was graded." in result.stderr
        return
    assert "many.ris: 700 records, 700 added" in result.stderr
    assert "the same command again adds the rest" in result.stderr
    monkeypatch.undo()
    again = masis(*command, many(tmp_path), "--db", database)
    assert "2,000 records, 1,300 added, 700 duplicates" in again.stderr
