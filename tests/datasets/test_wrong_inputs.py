"""Problems in a file are reported with file, line, field and hint, and every hint is tried and
works.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from masis.cli.options import chosen_reading
from masis.datasets.loading import suggest
from masis.datasets.mapping.reader import read_any
from masis.datasets.mapping.row import MappedRow
from masis.errors import InputError
from masis.schema import limits

GOOD = {"id": "a", "query": "Why?", "answer": "So [1].", "evidence": [{"id": "1", "text": "So."}]}
LINE = json.dumps(GOOD).encode()


def _zip(*members: tuple[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return held.getvalue()


@cache
def _far_apart() -> bytes:
    """Return a case in front of so many spaces that they compress a thousandfold."""
    return b"[" + LINE + b" " * 100_000_000 + b"]"


def _line(old: bytes, new: bytes) -> bytes:
    return LINE.replace(old, new)


def _parquet() -> bytes:
    held = io.BytesIO()
    pd.DataFrame([{"query": "Why?", "evidence": ["So."]}]).to_parquet(held)
    return held.getvalue()


def _recode(encoding: str) -> Callable[[bytes], bytes]:
    return lambda content: content.decode(encoding).encode()


def _without(part: bytes, other: bytes = b"") -> Callable[[bytes], bytes]:
    return lambda content: content.replace(part, other)


DEEP = b"[" * 200 + b"]" * 200
TABLE = b"query,evidence\nWhy?,So.\n"
SUGGESTED, MAPPED = "masis import --suggest", "--map of the message"
Content = bytes | Callable[[], bytes]
"""A file's content, or a function that makes it if it is large."""
Hint = bytes | tuple[str, Content] | Callable[[bytes], bytes] | str
"""How the hint fixes the file: new content, another file, a change, or the suggested map."""

WRONG: list[tuple[str, str, Content, str, Hint]] = [
    ("empty", "f.jsonl", b"", "f.jsonl: has no cases. Put one case on each line", LINE),
    ("blank lines", "f.jsonl", b"\n \n", "f.jsonl: has no cases.", lambda c: c + LINE),
    ("only a byte order mark", "f.jsonl", b"\xef\xbb\xbf", "f.jsonl: has no cases.", lambda c: c + LINE),
    ("an empty list", "f.json", b"[]", "f.json: has no cases.", b"[" + LINE + b"]"),
    ("UTF-16", "f.jsonl", LINE.decode().encode("utf-16"), "f.jsonl: is UTF-16. Save it as UTF-8: iconv",
     _recode("utf-16")),
    ("UTF-16 as CSV", "f.csv", TABLE.decode().encode("utf-16"), "f.csv: is UTF-16.", _recode("utf-16")),
    ("Latin-1", "f.jsonl", _line(b"Why?", b"W\xe9"), "line 1: is not UTF-8: byte 24", _recode("cp1252")),
    ("Latin-1 in a list", "f.json", b"[" + _line(b"Why?", b"W\xe9") + b"]", "f.json, line 1: is not UTF-8. Save",
     _recode("cp1252")),
    ("Latin-1 as CSV", "f.csv", TABLE.replace(b"?", b"\xe9"), "f.csv: is not UTF-8. Save it as UTF-8",
     _recode("cp1252")),
    ("a null byte", "f.jsonl", _line(b"Why?", b"W\x00"), "line 1: contains a null byte at byte 24 of the line. Remove",
     _without(b"\x00")),
    ("null bytes as CSV", "f.csv", b"\x00" + TABLE, "f.csv, line 1: isn't text: it contains null bytes.",
     _without(b"\x00")),
    ("an escaped null byte", "f.jsonl", _line(b"Why?", b"W\\u0000"),
     "line 1, query: contains a null byte at character 2.", _without(b"\\u0000")),
    ("half a character", "f.jsonl", _line(b"Why?", b"W\\ud83d"), "line 1, query: contains half of a surrogate pair",
     _without(b"\\ud83d")),
    ("a cut-off line", "f.jsonl", LINE[:40], "f.jsonl, line 1: ends in the middle of the JSON", LINE),
    ("a cut-off list", "f.json", b"[" + LINE + b",", "ends in the middle of item 2 of a JSON list",
     b"[" + LINE + b"]"),
    ("a list that isn't closed", "f.json", b"[" + LINE, "ends after item 1 of a JSON list that isn't closed",
     lambda c: c + b"]"),
    ("text behind a list", "f.json", b"[" + LINE + b"] x", "continues after its JSON list.", _without(b" x")),
    ("no comma in a list", "f.json", b"[" + LINE + LINE + b"]", "isn't a valid JSON list after item 1. Separate",
     _without(b"}{", b"},{")),
    ("single quotes in a list", "f.json", b"[{'query': 'Why?', 'evidence': ['So.']}" + b" " * 500 + b"]",
     "isn't valid JSON (Expecting", _without(b"'", b'"')),
    ("several objects over lines", "f.json",
     b'{\n"query": "a",\n"evidence": ["b"]}\n{\n"query": "c",\n"evidence": ["d"]}', "holds several JSON objects, each",
     lambda c: c.replace(b"\n", b"").replace(b"}{", b"}\n{")),
    ("mixed lines", "f.jsonl", LINE + b"\nnot json\n", "f.jsonl, line 2: isn't valid JSON", _without(b"not json")),
    ("two cases on a line of 40 MB", "f.jsonl", LINE + b" " * 40_000_000 + b'{"query": "How?", "evidence": ["So."]}',
     "line 1: holds more than one JSON value", lambda c: re.sub(rb"} +{", b"}\n{", c)),
    ("a list in a line", "f.jsonl", LINE + b"\n[1]\n", "f.jsonl, line 2: is a list, must be an object.",
     _without(b"[1]")),
    ("numbers in a list", "f.json", b"[1, " + LINE + b"]", "f.json, line 1: is a number, must be an object. Make",
     _without(b"1, ")),
    ("a repeated key", "f.jsonl", LINE[:-1] + b', "id": "b"}', "f.jsonl, line 1, id: appears twice in one object.",
     _without(b', "id": "b"')),
    ("a repeated key in a list", "f.json", b"[" + LINE[:-1] + b', "id": "b"}]', "f.json, line 1, id: appears twice",
     _without(b', "id": "b"')),
    ("NaN", "f.jsonl", LINE[:-1] + b', "metadata": {"x": NaN}}', "f.jsonl, line 1, metadata.x: is NaN",
     _without(b"NaN", b"null")),
    ("a number too large", "f.jsonl", LINE[:-1] + b', "x": 1e999}', "f.jsonl, line 1, x: is a number too large",
     _without(b"1e999", b'"1e999"')),
    ("nested too deep", "f.jsonl", LINE[:-1] + b', "a": ' + DEEP + b"}", "is nested more than 64 levels deep",
     _without(DEEP, b"[]")),
    ("nested too deep in a list", "f.json", b"[" + LINE + b"," + DEEP + b"]", "is nested more than 64 levels deep",
     _without(b"," + DEEP)),
    ("unknown columns", "f.csv", b"frage,antwort,beleg\nWarum?,Weil es so ist.," + b"Es ist so. " * 30 + b"\n",
     'query: is missing, and "frage" may hold it.', SUGGESTED),
    ("another tool's columns", "f.csv", b"prompt,chunks\nWhy?,So.\n", '"prompt" may hold it.', MAPPED),
    ("an answer of another name", "f.jsonl", _line(b'"answer"', b'"response"'),
     'line 1, answer: is missing, and "response" may hold it.', MAPPED),
    ("two columns of one name", "f.csv", b"query,query,evidence\nWhy?,a,So.\n",
     "line 1: has two columns named 'query'. Rename", _without(b"query,query", b"query,note")),
    ("more cells than columns", "f.csv", TABLE.replace(b"So.", b"So, so."),
     "line 2: has 3 columns, the first line names 2.", _without(b"So, so.", b'"So, so."')),
    ("a quote that is not closed", "f.csv", TABLE.replace(b"So.", b'"So.'), "isn't a readable table",
     _without(b'"So.', b'"So."')),
    ("a wrong type", "f.jsonl", _line(b'"Why?"', b"7"), "line 1, query: is a number, must be text.",
     _without(b": 7", b': "7"')),
    ("true for an id", "f.jsonl", _line(b'"a"', b"true"),
     "id: is true, must be text. Put it in quotes.", _without(b"true", b'"true"')),
    ("a list in a text that is cut off", "f.jsonl", b'{"query": "Why?", "evidence": "[\'So.\', \'Th"}',
     "line 1, evidence: looks like a list that a program wrote, but the quote at character 9 isn't closed",
     _without(b"'Th", b"'Thus.']")),
    ("a repeated id", "f.jsonl", LINE + b"\n" + _line(b"Why?", b"How?"), "line 2, id: has the same id as line 1 ('a')",
     lambda c: c.replace(b'"a"', b'"b"', 1)),
    ("truncated gzip", "f.jsonl.gz", gzip.compress(LINE, mtime=0)[:-9], "f.jsonl.gz: can't be unpacked",
     gzip.compress(LINE)),
    ("no gzip behind the name", "f.jsonl.gz", b"\x1f\x8bjunk", "f.jsonl.gz: can't be unpacked", gzip.compress(LINE)),
    ("packed with xz", "f.jsonl.xz", lzma.compress(LINE), "f.jsonl.xz: is compressed with xz. Unpack it first: unxz",
     lzma.decompress),
    ("a broken zip", "f.zip", b"PK\x03\x04junk", "f.zip: isn't a readable zip file", _zip(("a.jsonl", LINE))),
    ("a zip without a file to read", "f.zip", _zip(("a.txt", LINE)), "has no file that can be read. Name files",
     _zip(("a.jsonl", LINE))),
    ("a zip bomb", "f.zip", lambda: _zip(("a.json", _far_apart())),
     "f.zip: unpacks to more than is allowed. Unpack it", ("a.json", _far_apart)),
    ("a gzip bomb", "f.json.gz", lambda: gzip.compress(_far_apart()), "f.json.gz: unpacks to more",
     ("f.json", _far_apart)),
    ("a broken Excel workbook", "f.xlsx", _zip(("xl/workbook.xml", b"x")),
     "isn't a readable Excel workbook",
     ("f.csv", TABLE)),
    ("too many members", "f.zip", _zip(*((f"{n}.json", b"[]") for n in range(1001))), "holds 1,001 files, more",
     _zip(("1.json", LINE))),
    ("broken Parquet", "f.parquet", b"PAR1x", "f.parquet: isn't a readable Parquet file", _parquet()),
    ("a database", "f.db", b"SQLite format 3\x00" + b"\x00" * 80, "f.db: is a SQLite database. Write its cases",
     ("f.jsonl", LINE)),
    ("a PDF", "f.pdf", b"%PDF-1.7", "f.pdf: is a PDF. Name a file of JSON Lines", ("f.jsonl", LINE)),
    ("a document without sources", "f.md", b"# Why?\n\nSo.\n",
     "f.md, line 1: has no sources that can be recognized. Put the question",
     lambda c: c + b"\n## Sources\n\n1. So it is.\n"),
]  # fmt: skip


def _bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content()


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


@pytest.mark.parametrize(
    ("name", "content", "says", "hint"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_every_problem_is_a_sentence_with_a_position_and_a_working_hint(
    name: str, content: Content, says: str, hint: Hint, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(written := _bytes(content))
    found = _read(path)
    assert any(says in problem for problem in found), found
    assert all(
        problem.startswith(name) and ". " in problem and problem.endswith((".", "}"))
        for problem in found
    ), found
    names: Any = None
    match hint:
        case str():
            options = re.findall(
                r"--map (\S+=\S+?)(?=[ ,])", found[0].partition(", in Python")[0] + " "
            )
            names = (
                suggest(path).names
                if hint == SUGGESTED
                else chosen_reading(None, tuple(options), None).names
            )
        case bytes():
            path.write_bytes(hint)
        case tuple():
            path = tmp_path / hint[0]
            path.write_bytes(_bytes(hint[1]))
        case _:
            path = tmp_path / name.removesuffix(".xz")
            path.write_bytes(hint(written))
    cases = [row.case for row in read_any(path, names=names)]
    assert cases
    assert None not in cases


def test_the_docs_state_how_many_kinds_of_error_are_tested() -> None:
    assert len(WRONG) >= 41
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    assert f"{len(WRONG)} kinds of errors are tested" in " ".join(page.split())


def test_a_list_of_any_length_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    long = GOOD | {"evidence": [{"id": "1", "text": "So it is. " * 500}]}
    with path.open("w") as file:
        file.write("[")
        for number in range(4_000):
            file.write(json.dumps(long | {"id": str(number)}) + ",")
        file.write(json.dumps(GOOD) + "]")
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    count = sum(row.case is not None for row in read_any(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 4_001
    assert peak < 8_000_000


def test_a_row_with_too_many_values_is_rejected_before_parsing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VALUES", 1_000)
    crowded = b'{"a": [' + b"{}," * 2_000 + b"{}]}"
    for name, content in (("f.jsonl", crowded), ("f.json", b"[" + crowded + b"]")):
        path = tmp_path / name
        path.write_bytes(content)
        assert "(row_values)" in _read(path)[0]


_READ_BIG = """
import sys
from pathlib import Path
from masis.cli import main
from masis.schema.actor import Actor
from masis.services import Workbench
file = sys.argv[1]
look = Workbench.open(Path(file + ".db")).imports.preview(Actor(name="Ada"), Path(file), name=Path(file).name)
print(*look.problems, sep="\\n")
try:
    main(["import", file, "--db", file + ".db"])
except SystemExit:
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""
"""A process that reads a file like the page and like the command. Its last line is its peak memory
in MB.

``ru_maxrss`` would include the memory of the parent process.
"""


@pytest.mark.soak(smoke=150, full=1_000)
@pytest.mark.parametrize(
    ("name", "head", "tail", "says"),
    [
        (
            "f.jsonl",
            LINE + b'\n{"query": "Why?", "answer": "',
            b'", "evidence": ["So."]}',
            "line 2: is longer than 64 MiB",
        ),
        (
            "f.json",
            b'[{"query": "Why?", "answer": "',
            b'", "evidence": ["So."]}]',
            "has an item of more than 64 MiB",
        ),
        ("f.csv", b'query,answer,evidence\nWhy?,"', b'",So.\n', "has a line of more than 64 MiB"),
        ("f.jsonl.gz", LINE + b'\n{"query": "', b'"}', "line 2: is longer than 64 MiB"),
    ],
)
def test_a_gigabyte_line_is_rejected_in_bounded_memory_everywhere(
    tmp_path: Path, rounds: int, name: str, head: bytes, tail: bytes, says: str
) -> None:
    path = tmp_path / name
    # Random data that isn't compressed, so that the file isn't a zip bomb.
    block = random.Random(0).randbytes(1 << 19).hex().encode()
    with (
        gzip.open(path, "wb", compresslevel=0) if name.endswith(".gz") else path.open("wb")
    ) as file:
        file.write(head)
        for _ in range(rounds):
            file.write(block)
        file.write(tail)
    found = subprocess.run(
        [sys.executable, "-c", _READ_BIG, str(path)], capture_output=True, text=True, check=True
    )
    path.unlink()
    *problems, memory = found.stdout.splitlines()
    assert says in "".join(problems)
    assert says in found.stderr
    assert int(memory) < 1_000


def test_a_file_without_a_case_in_ten_thousand_rows_is_abandoned(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b"[" + b"{}," * 10_001 + b"{}]")
    assert (
        _read(path)[-1]
        == "f.json: has no cases in its first 10,000 rows. Correct the problems above. The rest"
        " wasn't read."
    )
