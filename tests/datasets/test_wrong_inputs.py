"""What is wrong with a file is said with file, line, field and a cure; the cures that can be tried here are tried."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masis.cli.options import chosen_reading
from masis.datasets import rows
from masis.datasets.mapping import MappedRow, read_any
from masis.datasets.readers import strict_json
from masis.errors import InputError

GOOD = {"id": "a", "query": "Why?", "answer": "So [1].", "evidence": [{"id": "1", "text": "So."}]}
LINE = json.dumps(GOOD).encode()


def _zip(*members: tuple[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return held.getvalue()


def _text(problem: Callable[[bytes], bytes]) -> bytes:
    return problem(LINE)


WRONG: list[tuple[str, str, bytes, str]] = [
    ("empty", "f.jsonl", b"", "f.jsonl: holds no case. Put one case on each line"),
    ("blank lines", "f.jsonl", b"\n \n", "f.jsonl: holds no case."),
    ("only a byte order mark", "f.jsonl", b"\xef\xbb\xbf", "f.jsonl: holds no case."),
    ("an empty list", "f.json", b"[]", "f.json: holds no case."),
    ("UTF-16", "f.jsonl", LINE.decode().encode("utf-16"), "f.jsonl: is UTF-16. Save it as UTF-8: iconv"),
    ("UTF-16 as CSV", "f.csv", "query,evidence\n".encode("utf-16"), "f.csv: is UTF-16."),
    ("Latin-1", "f.jsonl", b'{"id": "\xe9"}\n', "f.jsonl, line 1: is not UTF-8: byte 9"),
    ("Latin-1 in a list", "f.json", b'[{"id": "\xe9"}]', "f.json, line 1: is not UTF-8. Save it as UTF-8"),
    ("Latin-1 as CSV", "f.csv", b"query,evidence\nW\xe9,x\n", "f.csv: is not UTF-8. Save it as UTF-8"),
    ("a null byte", "f.jsonl", b'{"id": "a\x00"}', "line 1: holds a null byte at byte 10 of the line. Remove"),
    ("null bytes as CSV", "f.csv", b"query\x00,evidence\n", "f.csv, line 1: is no text: it holds null bytes."),
    ("an escaped null byte", "f.jsonl", b'{"id": "a", "query": "\\u0000"}', "query: holds a null byte at character 1."),
    ("a cut-off line", "f.jsonl", LINE[:40], "f.jsonl, line 1: ends in the middle of the JSON"),
    ("a cut-off list", "f.json", b"[" + LINE + b",", "ends in the middle of item 2 of a JSON list"),
    ("a list that isn't closed", "f.json", b"[" + LINE, "ends behind item 1 of a JSON list that is not closed"),
    ("text behind a list", "f.json", b"[" + LINE + b"] x", "goes on behind its JSON list."),
    ("no comma in a list", "f.json", b"[" + LINE + LINE + b"]", "is no valid JSON list behind item 1. Separate"),
    ("single quotes in a list", "f.json", b"[{'id': 'a'}" + b" " * 500 + b"]", "is no valid JSON (Expecting"),
    ("several objects over lines", "f.json", b'{\n"a": 1\n}\n{\n"b": 1\n}', "holds several JSON objects, each"),
    ("mixed lines", "f.jsonl", LINE + b"\nnot json\n", "f.jsonl, line 2: is no valid JSON"),
    ("a list in a line", "f.jsonl", LINE + b"\n[1]\n", "f.jsonl, line 2: is a list, must be an object."),
    ("numbers in a list", "f.json", b"[1, 2]", "f.json, line 1: is a number, must be an object. Make"),
    ("a repeated key", "f.jsonl", b'{"id": "a", "id": "b"}', "f.jsonl, line 1, id: stands twice in one object."),
    ("a repeated key in a list", "f.json", b'[{"id": "a", "id": "b"}]', "f.json, line 1, id: stands twice"),
    ("NaN", "f.jsonl", b'{"id": "a", "metadata": {"x": NaN}}', "f.jsonl, line 1, metadata.x: is NaN"),
    ("nested too deep", "f.jsonl", b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "is nested more than 64 levels deep"),
    ("nested too deep in a list", "f.json", b"[" * 300 + b"]" * 300, "is nested more than 64 levels deep"),
    ("an unknown column", "f.csv", b"frage,antwort\nWarum?,So.\n", "f.csv, line 2, query: is missing."),
    ("another tool's columns", "f.csv", b"prompt,chunks,text\nWhy?,So.,x\n", '"prompt" may hold it.'),
    ("two columns of one name", "f.csv", b"query,query\na,b\n", "line 1: has two columns named 'query'. Rename"),
    ("more cells than columns", "f.csv", b"query,evidence\na,b,c\n", "line 2: has 3 columns, the first line names 2."),
    ("a wrong type", "f.jsonl", LINE.replace(b'"Why?"', b"7"), "line 1, query: is a number, must be text."),
    ("a date for an id", "f.jsonl", LINE.replace(b'"a"', b"45292"), "id: is a number, must be text. Put it in quotes."),
    ("a repeated id", "f.jsonl", LINE + b"\n" + LINE.replace(b"Why?", b"How?"), "line 2, id: is 'a', as in line 1,"),
    ("truncated gzip", "f.jsonl.gz", gzip.compress(LINE, mtime=0)[:-9], "f.jsonl.gz: can't be unpacked"),
    ("no gzip behind the name", "f.jsonl.gz", b"\x1f\x8bjunk", "f.jsonl.gz: can't be unpacked"),
    ("a broken zip", "f.zip", b"PK\x03\x04junk", "f.zip: is no zip that can be read"),
    ("a zip without a file to read", "f.zip", _zip(("a.txt", b"x")), "holds no file that can be read. Name files"),
    ("an Excel workbook", "f.xlsx", _zip(("xl/workbook.xml", b"x")), "is an Excel workbook. Save its sheet as CSV"),
    ("too many members", "f.zip", _zip(*((f"{n}.json", b"[]") for n in range(1001))), "holds 1,001 files, more"),
    ("broken Parquet", "f.parquet", b"PAR1x", "f.parquet: is no Parquet that can be read"),
    ("a database", "f.db", b"SQLite format 3\x00" + b"\x00" * 80, "f.db: is a SQLite database. Give a database"),
    ("a PDF", "f.pdf", b"%PDF-1.7", "f.pdf: is a PDF."),
]  # fmt: skip


def _problems(read: list[MappedRow]) -> list[str]:
    return [str(problem) for row in read for problem in row.problems]


def _read(path: Path, **options: Any) -> list[str]:
    found: list[MappedRow] = []
    try:
        for row in read_any(path, name=path.name, **options):
            found.append(row)
    except InputError as error:
        return [*_problems(found), str(error)]
    return _problems(found)


@pytest.mark.parametrize(("name", "content", "says"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_what_is_wrong_is_a_sentence_with_place_and_cure(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = _read(path)
    assert any(says in problem for problem in found), found
    assert all(
        problem.startswith(name) and problem.count(". ") >= 1 and problem.endswith((".", "}")) for problem in found
    ), found


def test_forty_one_kinds_are_tried() -> None:
    assert len(WRONG) >= 41


@pytest.mark.parametrize(
    ("name", "content", "cured"),
    [
        ("f.csv", b"prompt,chunks\nWhy?,So.\n", lambda path: (path, ["query=prompt", "evidence=chunks"])),
        ("f.jsonl", LINE.decode().encode("utf-16"), lambda path: (_saved(path, "utf-16"), [])),
        ("f.jsonl", b'{"query": "\xe9", "evidence": ["So."]}', lambda path: (_saved(path, "cp1252"), [])),
        ("f.json", b'{\n"query": "a"\n}\n{\n"query": "b"\n}', None),
    ],
)  # fmt: skip
def test_the_cure_is_tried_and_works(name: str, content: bytes, cured: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert _read(path)
    if cured is None:  # jq -c . FILE > NEW
        whole = json.loads("[" + content.decode().replace("}\n{", "},{") + "]")
        path.write_text("\n".join(json.dumps(each | {"evidence": ["So."]}) for each in whole))
        assert _read(path) == []
        return
    better, maps = cured(path)
    assert _read(better, names=chosen_reading(None, maps)[1]) == []


def _saved(path: Path, encoding: str) -> Path:
    path.write_bytes(path.read_bytes().decode(encoding).encode())
    return path


def test_a_list_of_any_length_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with path.open("w") as file:
        file.write("[")
        for number in range(20_000):
            file.write(json.dumps(GOOD | {"id": str(number), "answer": "So [1]. " * 60}) + ",")
        file.write(json.dumps(GOOD) + "]")
    assert path.stat().st_size > 10_000_000
    tracemalloc.start()
    count = sum(row.case is not None for row in read_any(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_001
    assert peak < 8_000_000


def test_a_row_of_a_million_small_things_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strict_json, "MOST_VALUES", 1_000)
    crowded = b'{"a": [' + b"{}," * 2_000 + b"{}]}"
    for name, content in (("f.jsonl", crowded), ("f.json", b"[" + crowded + b"]")):
        path = tmp_path / name
        path.write_bytes(content)
        assert "holds more than 1,000 objects and lists. Split it" in _read(path)[0]


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FREELY_UNPACKED_BYTES", 1 << 20)
    content = b'[{"a": "' + b"x" * 2_000_000 + b'"}]'
    for name, packed in (("f.zip", _zip(("a.json", content))), ("f.json.gz", gzip.compress(content, mtime=0))):
        path = tmp_path / name
        path.write_bytes(packed)
        assert "unpacks to more than is allowed. Unpack it" in _read(path)[-1]


def test_an_item_and_a_line_of_a_table_have_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 1 << 20)
    for name, content, says in (
        ("f.json", b'[{"a": "' + b"x" * 3_000_000 + b'"}]', "has an item of more than 1 MiB"),
        ("f.csv", b"query,evidence\n" + b"x" * 3_000_000, "has a line of more than 1 MiB"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert says in _read(path)[0]


def test_a_file_without_a_case_in_ten_thousand_rows_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b"[" + b"{}," * 10_001 + b"{}]")
    assert _read(path)[-1] == (
        "f.json: holds no case in its first 10,000 rows. Correct what is named above; nothing more was read."
    )
