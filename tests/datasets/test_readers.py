"""Reading cases from JSON Lines: problems are reported with file, line, field and hint, and the
other lines are read.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import stat
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.datasets import rows
from masis.datasets.mapping.reader import read_any
from masis.datasets.mapping.row import MappedRow
from masis.datasets.writers.files import whole_file
from masis.errors import InputError
from masis.schema.case import Case

GOOD = {"id": "a", "query": "Why?", "answer": "So [1].", "evidence": [{"id": "1", "text": "So."}]}


def line(**changes: Any) -> bytes:
    """Return one valid line with some fields replaced; ``...`` removes a field."""
    return (
        json.dumps(
            {key: value for key, value in (GOOD | changes).items() if value is not ...}
        ).encode()
        + b"\n"
    )


def read(content: bytes) -> list[MappedRow]:
    return list(read_any(io.BytesIO(content), name="cases.jsonl"))


def error_of(content: bytes) -> str:
    """Return the one error for the content, read between two valid lines."""
    found = read(line(id="before") + content + line(id="after"))
    cases = [item.case.id for item in found if item.case is not None]
    errors = [problem for item in found for problem in item.problems]
    assert cases == ["before", "after"]
    assert len(errors) == 1
    return str(errors[0])


def test_a_good_file_gives_its_cases_in_order_with_line_numbers() -> None:
    content = line(id="one") + b"\n" + line(id="two")
    found = read(content)
    assert [(item.number, item.case.id) for item in found if item.case is not None] == [
        (1, "one"),
        (3, "two"),
    ]
    assert found[-1].end == len(content)


def test_plain_texts_are_numbered_and_a_missing_id_is_derived_from_the_content() -> None:
    (first,), (again,), (other,) = (
        read(line(id=..., evidence=["So.", "Thus."], **more))
        for more in ({}, {"field": "law"}, {"query": "How?"})
    )
    assert [(chunk.id, chunk.text) for chunk in first.case.evidence] == [
        ("chunk_1", "So."),
        ("chunk_2", "Thus."),
    ]
    assert first.case.id == again.case.id != other.case.id


def test_bom_crlf_blank_lines_and_a_missing_final_newline_are_tolerated() -> None:
    content = (
        b"\xef\xbb\xbf"
        + line(id="one").replace(b"\n", b"\r\n")
        + b"  \r\n\r\n"
        + line(id="two").rstrip()
    )
    assert [item.case.id for item in read(content) if item.case is not None] == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            line(evidence=[{"id": "1", "text": None}]),
            (
                "cases.jsonl, line 2, evidence[0].text: is null, must be text. Write the text, or"
                " leave out the field"
            ),
        ),
        (
            line(labels={"citations": [{"reference": "1", "status": "bad"}]}),
            (
                "line 2, labels.citations[0].status: is 'bad', which isn't an allowed value."
                " Use one of 'valid', 'i"
            ),
        ),
        (line(id=True, query=2), "id: is true, must be text. Put it in quotes. Also wrong: query."),
        (b'{"id": x}\n', "(Expecting value, at column 8)"),
        (b'{"id": "a\tb"}\n', "a raw control character at column 10"),
        (b'{"a": -Infinity}\n', "line 2, a: is -Infinity, which isn't a JSON number."),
        (b'{"a": ' + b"9" * 5000 + b"}\n", "line 2, a: is a number too large to store."),
    ],
)
def test_a_bad_line_is_reported_with_a_hint_and_the_others_are_read(
    content: bytes, expected: str
) -> None:
    assert expected in error_of(content)


def test_an_identical_repeated_line_is_skipped() -> None:
    assert [item.number for item in read(line(id="x") + line(id="x") + line(id="y"))] == [1, 3]


def test_a_compressed_stream_is_rejected_with_a_hint() -> None:
    for content, says in (
        (gzip.compress(line(), mtime=0), "is compressed with gzip"),
        (b"PK\x03\x04", "is a zip archive"),
    ):
        with pytest.raises(InputError, match=rf"cases\.jsonl: {says}.*Unpack it"):
            read(content)


def test_an_empty_folder_and_a_missing_file_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no file that can be read\. Name files"):
        list(read_any(tmp_path))
    with pytest.raises(InputError, match=r"nothing\.jsonl: does not exist\. Check the name"):
        list(read_any(tmp_path / "nothing.jsonl"))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
def test_a_file_without_permission_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "closed.jsonl"
    file.write_bytes(line())
    file.chmod(0)
    with pytest.raises(InputError, match="can't be read"):
        list(read_any(file))


def test_a_too_long_line_is_an_error_and_the_next_line_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 2**20)
    found = read(line(id="x", query="?" * 3_000_000) + line(id="y"))
    assert "line 1: is longer than 1 MiB." in str(found[0].problems[0])
    assert found[1].case is not None
    assert found[1].number == 2


class Endless(io.RawIOBase):
    """A file of ``size`` bytes without a line break, generated as it is read."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self.left)
        buffer[:count] = b"x" * count
        self.left -= count
        return count


def test_a_huge_line_doesnt_exhaust_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 2**20)
    tracemalloc.start()
    try:
        stream = io.BufferedReader(Endless(200_000_000))
        (item,) = read_any(stream, name="cases.jsonl")  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "is longer than 1 MiB" in str(item.problems[0])
    assert peak < 8 * 2**20


@pytest.mark.slow
def test_long_sentences_many_chunks_and_many_keys_are_read_in_linear_time() -> None:
    chunks = [{"id": str(number), "text": "So."} for number in range(10_000)]
    found = read(
        line(id="sentence", answer="a" * 100_000)
        + line(id="chunks", evidence=chunks)
        + line(id="brackets", answer="[" * 100_000)
        + line(id="keys", query=..., **{f"key{number}" + "x" * 1000: 0 for number in range(10_000)})
    )
    assert [item.case is not None for item in found] == [True, True, True, False]


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text", "x"]), inner)
    ),
    max_leaves=8,
)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(content: bytes) -> None:
    with contextlib.suppress(InputError):  # the whole file is in another format
        read(content)


@given(
    st.dictionaries(
        st.sampled_from(["id", "query", "answer", "evidence", "metadata", "labels", "other"]),
        _ANYTHING,
    )
)
def test_no_json_crashes_the_reader_and_cases_round_trip(
    fields: dict[str, Any],
) -> None:
    for item in read(json.dumps(GOOD | fields).encode()):
        if item.case is not None:
            again = Case.model_validate(json.loads(json.dumps(item.case.to_json_dict())))
            assert again == item.case
        else:
            assert str(item.problems[0]).startswith("cases.jsonl, line 1")


def test_every_real_case_is_read_and_exported_unchanged(public_data: Path) -> None:
    for name, count in (("expertqa_cases.jsonl", 217), ("pubmedqa_cases.jsonl", 522)):
        found = [row.case for row in read_any(public_data / name) if row.case is not None]
        with (public_data / name).open(encoding="utf-8") as lines:
            assert [case.to_json_dict() for case in found] == [json.loads(text) for text in lines]
        assert len(found) == count


@pytest.mark.parametrize("there", [True, False])
def test_writing_to_a_symlink_writes_its_target(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target.jsonl", tmp_path / "link.jsonl"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as stream:
        stream.write(b"new")
        assert (target.read_bytes() == b"old") if there else not target.exists()
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [path.name for path in folder.iterdir()] == ["target.jsonl"]


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path, through_a_link: bool) -> None:
    pipe = named = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        named = tmp_path / "link"
        named.symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with whole_file(named) as stream:
        stream.write(b"line\n")
    reader.join(timeout=30)
    assert read == [b"line\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for path in (Path("/dev/null"), link):
        with whole_file(path) as stream:
            stream.write(b"gone")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_failed_write_leaves_the_file_unchanged_without_leftovers(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(OSError, match="broken"):
        _fail_halfway(file)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def _fail_halfway(file: Path) -> None:
    with whole_file(file) as stream:
        stream.write(b"half")
        raise OSError("broken")
