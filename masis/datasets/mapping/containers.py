"""The rows of a file, whatever it is wrapped in: JSON Lines, one JSON list or object, CSV, TSV, Parquet, gzip, zip.

JSON Lines, CSV and Parquet are read a row at a time. One JSON document is read whole, up to ``MOST_DOCUMENT_BYTES``.
What is unpacked is limited too: a small archive must not fill memory or disk.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from masis.datasets.mapping.paths import value_at
from masis.datasets.readers.lines import MAX_LINE_BYTES, open_lines, read_lines, refuse_other_formats
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError
from masis.schema.explain import kind_of

MOST_DOCUMENT_BYTES = 256 * 1024 * 1024
"""Bytes of one JSON document; a larger one is to be JSON Lines."""

MOST_UNPACKED_BYTES = 8 * 1024**3
"""Bytes that a compressed file may unpack to."""

MOST_MEMBERS = 1000
"""Files in a zip."""

_LISTS = ("data", "results", "items", "rows", "examples", "test_cases", "goldens", "traces", "runs")
"""Keys under which tools put the list of rows in one object; what else the object holds is then the file's head."""

_READ = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


class Row(NamedTuple):
    """One row: its number from 1, the bytes of the file read so far, what it holds or what is wrong with it."""

    number: int
    end: int
    value: dict[str, Any] | InputError
    member: str = ""


class _Limited(io.RawIOBase):
    """A stream that refuses to give more bytes than allowed."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
            raise InputError(f"can't be unpacked ({error})", cure="Check the file; pack it again.") from error
        self._left -= len(content)
        if self._left < 0:
            raise InputError("unpacks to more than is allowed", cure="Unpack it, and import its parts.")
        buffer[: len(content)] = content
        return len(content)


def read_rows(
    path: Path, rows_at: tuple[str, ...] = (), *, name: str | None = None, most_unpacked: int = MOST_UNPACKED_BYTES
) -> Iterator[Row]:
    """Yield the rows of a file; ``rows_at`` are the paths to the list of rows in one JSON object.

    ``name`` is the file's name where the path is another, such as that of an upload.

    Raises InputError where the file can't be opened, unpacked or read.
    """
    called = name or path.name
    with open_lines(path) as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(b"PK\x03\x04"):
            yield from _zipped(file, rows_at, most_unpacked)
        elif magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                limited = io.BufferedReader(_Limited(cast("IO[bytes]", unpacked), most_unpacked), 1 << 20)
                inner = called.removesuffix(".gz")
                for row in _rows(cast("BinaryIO", limited), inner, rows_at):
                    yield row._replace(end=file.tell())
        else:
            yield from _rows(file, called, rows_at)


def _zipped(file: BinaryIO, rows_at: tuple[str, ...], most: int) -> Iterator[Row]:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise InputError(f"is no zip that can be read ({error})", cure="Pack it again.") from error
    with archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        wanted = [member for member in members if member.filename.lower().endswith(_READ)]
        if len(members) > MOST_MEMBERS:
            raise InputError(f"holds {len(members):,} files, more than {MOST_MEMBERS:,}", cure="Unpack it first.")
        if not wanted:
            raise InputError("holds no file that can be read", cure=f"Pack files named {', '.join(_READ)}.")
        if sum(member.file_size for member in wanted) > most:
            raise InputError("unpacks to more than is allowed", cure="Unpack it, and import its parts.")
        for member in wanted:
            try:
                stream = archive.open(member)
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                raise InputError(f"{member.filename} can't be unpacked ({error})", cure="Unpack it first.") from error
            with stream:
                limited = io.BufferedReader(_Limited(stream, member.file_size), 1 << 20)
                for row in _rows(cast("BinaryIO", limited), member.filename, rows_at):
                    yield row._replace(member=member.filename, end=file.tell())


def _rows(stream: BinaryIO, name: str, rows_at: tuple[str, ...]) -> Iterator[Row]:
    suffix = Path(name.lower()).suffix
    start = cast("io.BufferedReader", stream).peek(1 << 16)[: 1 << 16]
    if start.startswith(b"PAR1"):
        yield from _parquet(stream)
        return
    refuse_other_formats(start)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if suffix in (".csv", ".tsv") or (suffix not in (".json", ".jsonl", ".ndjson") and text[:1] not in (b"{", b"[")):
        yield from _table(stream, "\t" if suffix == ".tsv" else None)
    elif text.startswith(b"[") or _spread(text):
        yield from _document(stream, rows_at)
    else:
        yield from _json_lines(stream, rows_at)


def _spread(text: bytes) -> bool:
    """Return whether an object goes on behind its first line."""
    first, line_break, _ = text.partition(b"\n")
    if not line_break:
        return False
    first = first.strip()
    return not first.endswith(b"}") and first[-1:] in (b"{", b"[", b",")


def _json_lines(stream: BinaryIO, rows_at: tuple[str, ...]) -> Iterator[Row]:
    alone: Row | None = None  # the first line; an object on the only line may hold the rows
    for count, line in enumerate(read_lines(stream), 1):
        if alone is not None:
            yield alone
            alone = None
        value: dict[str, Any] | InputError
        if line.content is None:
            value = InputError(f"is longer than {MAX_LINE_BYTES // 2**20} MiB", cure="Split the case.")
        else:
            try:
                value = parse_object(line.content)
            except InputError as error:
                value = error
        if count == 1:
            alone = Row(line.number, line.end, value)
        else:
            yield Row(line.number, line.end, value)
    if alone is not None:
        inner = _inner_rows(alone.value, rows_at) if isinstance(alone.value, dict) else None
        if inner is None:
            yield alone
        else:
            yield from _numbered(inner, alone.end)


def _document(stream: BinaryIO, rows_at: tuple[str, ...]) -> Iterator[Row]:
    content = stream.read(MOST_DOCUMENT_BYTES + 1)
    if len(content) > MOST_DOCUMENT_BYTES:
        raise InputError(
            f"is one JSON document of more than {MOST_DOCUMENT_BYTES // 2**20} MiB",
            cure="Convert it to JSON Lines: jq -c '.[]' FILE > NEW.",
        )
    end = len(content)
    content = content.removeprefix(b"\xef\xbb\xbf").strip()
    # wrapped, so that the strict reader's rules (no repeated keys, no NaN) hold for a list too
    whole = parse_object(b'{"rows":' + content + b"}")["rows"]
    if isinstance(whole, dict):
        inner = _inner_rows(whole, rows_at)
        whole = [whole] if inner is None else inner
    if not isinstance(whole, list):
        raise InputError(f"is {kind_of(whole)}, must be a list of objects", cure="Put the rows into one list.")
    yield from _numbered(whole, end)


def _inner_rows(whole: dict[str, Any], rows_at: tuple[str, ...]) -> list[Any] | None:
    """Return the list of rows that one object holds; None where the object is a row itself."""
    if rows_at:
        found = value_at(whole, rows_at)
        return found if isinstance(found, list) else None
    for key in _LISTS:
        value = whole.get(key)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
        if key == "results" and isinstance(value, dict) and isinstance(value.get("results"), list):
            inner: list[Any] = value["results"]
            return inner
    return None


def _numbered(values: list[Any], end: int) -> Iterator[Row]:
    for number, value in enumerate(values, 1):
        if isinstance(value, dict):
            yield Row(number, end * number // len(values), value)
        else:
            problem = InputError(f"is {kind_of(value)}, must be an object", cure="Make each row an object.")
            yield Row(number, end, problem)


def _table(stream: BinaryIO, delimiter: str | None) -> Iterator[Row]:
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    csv.field_size_limit(MAX_LINE_BYTES)
    try:
        header_line = text.readline(1 << 20)
        if delimiter is None:
            delimiter = max((",", ";", "\t"), key=header_line.count)
        header = next(csv.reader([header_line], delimiter=delimiter), [])
        if len(set(header)) < len(header):
            twice = next(column for column in header if header.count(column) > 1)
            raise InputError(f"has two columns named {twice[:40]!r}", cure="Rename one.", line=1)
        rows = csv.reader(text, delimiter=delimiter)
        end, before = len(header_line), 1
        for row in rows:
            line, before = before + 1, 1 + rows.line_num
            end += sum(map(len, row)) + len(row)
            if not any(row):
                continue
            if len(row) > len(header):
                problem = InputError(
                    f"has {len(row)} columns, the first line names {len(header)}",
                    cure="Put text that holds the delimiter in quotes.",
                )
                yield Row(line, end, problem)
                continue
            yield Row(line, end, {key: cell for key, cell in zip(header, row, strict=False) if key})
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", cure="Save it as UTF-8: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW.") from error
    except csv.Error as error:
        raise InputError(f"is no table that can be read ({error})", cure='Put text in quotes, " as "".') from error
    finally:
        text.detach()


def _parquet(stream: BinaryIO) -> Iterator[Row]:
    import pyarrow  # streamlit brings it; loaded only for such a file
    import pyarrow.parquet as parquet

    try:
        held = stream if stream.seekable() else io.BytesIO(stream.read(MOST_DOCUMENT_BYTES))
        size = held.seek(0, io.SEEK_END)
        file, number = parquet.ParquetFile(held), 0
        for batch in file.iter_batches(batch_size=256):
            for value in batch.to_pylist():
                number += 1
                yield Row(number, size * number // file.metadata.num_rows, value)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"is no Parquet that can be read ({str(error)[:120]})", cure="Write it again.") from error
