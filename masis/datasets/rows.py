"""The rows of a file in any packaging.

Supported are JSON Lines, a JSON list or object, CSV, TSV, Excel, Parquet and documents, also in
archives and folders. All are read one row at a time, except a single JSON object. One row, one
document and one archive are limited in size, because a small archive can unpack to any size and
fill memory or disk.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from masis.datasets.paths import value_at
from masis.datasets.readers.documents import read_document_file
from masis.datasets.readers.lines import (
    MAX_LINE_BYTES,
    open_lines,
    read_lines,
    refuse_markup,
    refuse_other_formats,
    refuse_packages,
    utf8_error,
)
from masis.datasets.readers.strict_json import parse_item, parse_object
from masis.datasets.readers.tables import TableRow, read_table
from masis.datasets.readers.workbooks import MOST_WORKBOOK_BYTES, read_workbook
from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.frames import to_plain_value

MOST_DOCUMENT_BYTES = 128 * 1024 * 1024
"""The largest JSON object over several lines, which is read as a whole.

Larger files must be JSON Lines.
"""

MOST_UNPACKED_BYTES = 8 * 1024**3
"""Maximum number of bytes that a compressed file may unpack to."""

MOST_EXPANSION = 200
FREELY_UNPACKED_BYTES = 64 * 1024**2
"""A file may unpack to ``MOST_EXPANSION`` times its size, or to this many bytes if that is more.

Text typically compresses to a tenth of its size, a zip bomb to far less.
"""

MOST_MEMBERS = 1000
"""Maximum number of files in a zip or a folder."""

_ROW_LIST_KEYS = (
    "data",
    "results",
    "items",
    "rows",
    "records",
    "cases",
    "examples",
    "test_cases",
    "testCases",
    "goldens",
    "traces",
    "runs",
)
"""Keys under which tools put the list of rows in one object.

The rest of such an object is the file's header.
"""

DOCUMENTS = (".md", ".markdown", ".html", ".htm", ".docx")
"""Suffixes of documents. Each is one answer with its sources."""

WORKBOOKS = (".xlsx", ".xlsm")
_DATA = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", *WORKBOOKS)
_BLANKS = re.compile(r"[ \t\r\n]*")
"""The blanks that JSON allows between values (RFC 8259, section 2)."""


class DataRow(NamedTuple):
    """One row of a file.

    Attributes:
        number: Its number from 1.
        end: The bytes of the file read so far.
        value: Its content, or the problem with it.
        member: Its file in an archive or folder.
        table: Whether its values are cells of a table, which are always text.

    """

    number: int
    end: int
    value: dict[str, Any] | InputError
    member: str = ""
    table: bool = False


class _LimitedStream(io.RawIOBase):
    """A stream that refuses to return more bytes than allowed."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left = stream, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
            raise InputError(
                f"can't be unpacked ({error})", hint="Check the file; pack it again."
            ) from error
        self._left -= len(content)
        if self._left < 0:
            raise _unpacked_size_error()
        buffer[: len(content)] = content
        return len(content)


def _unpacked_size_error() -> InputError:
    return InputError("unpacks to more than is allowed", hint="Unpack it, and import its parts.")


def read_rows(
    source: Path | BinaryIO,
    rows_at: tuple[str, ...] = (),
    *,
    name: str | None = None,
    sheet: str | None = None,
) -> Iterator[DataRow]:
    """Yield the rows of a file, of the files in a folder or archive, or of an unpacked byte stream.

    Args:
        source: The file, folder or stream.
        rows_at: Paths to the list of rows in one JSON object.
        name: The file's name if the path has another one, as for an upload.
        sheet: The sheet of an Excel workbook.

    Raises:
        InputError: The source can't be opened, unpacked or read.

    """
    if not isinstance(source, Path):
        buffered = (
            source if hasattr(source, "peek") else io.BufferedReader(cast("io.RawIOBase", source))
        )
        try:
            yield from _stream_rows(buffered, name or "stdin", rows_at)
        finally:
            if isinstance(buffered, io.BufferedReader) and buffered is not source:
                buffered.detach()  # otherwise it would close the caller's stream
        return
    if source.is_dir():
        for path in _readable_names(
            [
                path_in_folder.relative_to(source).as_posix()
                for path_in_folder in source.rglob("*")
                if path_in_folder.is_file()
            ]
        ):
            with (source / path).open("rb") as file:
                for row in _stream_rows(file, path, rows_at, sheet):
                    yield row._replace(member=path)
        return
    file_name = Path(name or source.name).name
    with open_lines(source) as file:
        # By content, since names of downloads and uploads are often wrong.
        magic = file.read(4)
        size = file.seek(0, io.SEEK_END) if file.seekable() else 0
        most = min(MOST_UNPACKED_BYTES, max(FREELY_UNPACKED_BYTES, MOST_EXPANSION * size))
        file.seek(0)
        if magic.startswith(b"PK\x03\x04"):
            yield from _zip_rows(file, file_name, rows_at, most, sheet)
        elif magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                for row in _stream_rows(
                    _limit_stream(cast("IO[bytes]", unpacked), most),
                    file_name.removesuffix(".gz"),
                    rows_at,
                ):
                    yield row._replace(end=file.tell())
        else:
            yield from _stream_rows(file, file_name, rows_at)


def _readable_names(names: list[str]) -> list[str]:
    """Return the files of a folder or archive to read.

    Raises:
        InputError: There are too many files, or none that can be read.

    """
    # Hidden files, checkpoints of notebooks, metadata of macOS and Excel's lock files (~$name.xlsx)
    # belong to a program and not to the data.
    names = [
        name
        for name in names
        if not any(part.startswith((".", "~$")) or part == "__MACOSX" for part in name.split("/"))
    ]
    if len(names) > MOST_MEMBERS:
        raise InputError(
            f"holds {len(names):,} files, more than {MOST_MEMBERS:,}",
            hint="Give its parts one by one.",
        )
    readable = sorted(name for name in names if name.lower().endswith(_DATA))
    # Documents only count if there is no data, since a README is one too.
    readable = readable or sorted(name for name in names if name.lower().endswith(DOCUMENTS))
    if "header.json" in names:  # An Inspect log: its samples are the rows.
        readable = [name for name in readable if name.startswith("samples/")] or readable
    if not readable:
        raise InputError(
            "has no file that can be read", hint=f"Name files {', '.join((*_DATA, *DOCUMENTS))}."
        )
    return readable


def _limit_stream(stream: IO[bytes], most: int) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_LimitedStream(stream, most), 1 << 20))


def _zip_rows(
    file: BinaryIO, name: str, rows_at: tuple[str, ...], most: int, sheet: str | None
) -> Iterator[DataRow]:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise InputError(f"isn't a readable zip file ({error})", hint="Pack it again.") from error
    with archive:
        members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
        if "xl/workbook.xml" in members:
            yield from _workbook_rows(file, sheet)
            return
        refuse_packages(members)
        if "word/document.xml" in members:
            # The sizes in the directory of a zip are only claims. ``_LimitedStream`` enforces those
            # of data files.
            if sum(member.file_size for member in members.values()) > most:
                raise _unpacked_size_error()
            file.seek(0)
            yield from _document_row(file, f"{name.removesuffix('.docx')}.docx")
            return
        readable = _readable_names(list(members))
        if sum(members[member_name].file_size for member_name in readable) > most:
            raise _unpacked_size_error()
        for member_name in readable:
            try:
                stream = archive.open(members[member_name])
            # RuntimeError is an encrypted member, NotImplementedError an unknown compression.
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                raise InputError(
                    f"{member_name} can't be unpacked ({error})", hint="Unpack it first."
                ) from error
            with stream:
                for row in _stream_rows(
                    _limit_stream(stream, members[member_name].file_size),
                    member_name,
                    rows_at,
                    sheet,
                ):
                    yield row._replace(member=member_name, end=file.tell())


def _workbook_rows(file: BinaryIO, sheet: str | None) -> Iterator[DataRow]:
    # openpyxl reads the directory at the end of the zip first.
    if not file.seekable():
        content = file.read(MOST_WORKBOOK_BYTES + 1)
        if len(content) > MOST_WORKBOOK_BYTES:
            raise _unpacked_size_error()
        file = io.BytesIO(content)
    yield from _number_table_rows(read_workbook(file, sheet))


def _number_table_rows(rows: Iterator[TableRow]) -> Iterator[DataRow]:
    return (
        (
            DataRow(row.line, row.end, row.cells)
            if isinstance(row.cells, InputError)
            else DataRow(row.line, row.end, _with_missing_cells_empty(row.cells), table=True)
        )
        for row in rows
    )


_MISSING = frozenset({"nan", "NaN", "NaT", "<NA>"})
"""How pandas writes a missing value if a table was converted with ``str``."""


def _with_missing_cells_empty(cells: dict[str, Any]) -> dict[str, Any]:
    if _MISSING.isdisjoint(cell for cell in cells.values() if isinstance(cell, str)):
        return cells
    return {
        name: "" if isinstance(cell, str) and cell in _MISSING else cell
        for name, cell in cells.items()
    }


def _stream_rows(
    stream: BinaryIO, name: str, rows_at: tuple[str, ...], sheet: str | None = None
) -> Iterator[DataRow]:
    suffix = Path(name.lower()).suffix
    start = cast("io.BufferedReader", stream).peek(1 << 16)[: 1 << 16]
    if suffix in DOCUMENTS:
        yield from _document_row(stream, name)
        return
    if start.startswith(b"PAR1"):
        yield from _parquet_rows(stream)
        return
    if suffix in WORKBOOKS and start.startswith(b"PK\x03\x04"):
        yield from _workbook_rows(stream, sheet)
        return
    refuse_other_formats(start)
    refuse_markup(start)
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    json_by_name = suffix in (".json", ".jsonl", ".ndjson") or name == "body"
    if suffix in (".csv", ".tsv") or (not json_by_name and text[:1] not in (b"{", b"[", b"")):
        yield from _number_table_rows(read_table(stream, start, "\t" if suffix == ".tsv" else None))
    elif text.startswith(b"["):
        yield from _json_list_rows(stream)
    elif _is_multiline_object(text):
        yield from _json_object_rows(stream, rows_at)
    else:
        yield from _json_lines_rows(stream, rows_at)


def _document_row(stream: BinaryIO, name: str) -> Iterator[DataRow]:
    content = stream.read(MOST_DOCUMENT_BYTES)
    try:
        yield DataRow(1, len(content), read_document_file(content, name))
    except InputError as error:
        yield DataRow(1, len(content), error)


def _is_multiline_object(text: bytes) -> bool:
    """Return whether an object continues after its first line."""
    first, line_break, _ = text.partition(b"\n")
    if not line_break:
        return False
    first = first.strip()
    return first.startswith(b"{") and not first.endswith(b"}") and first[-1:] in (b"{", b"[", b",")


def _json_lines_rows(stream: BinaryIO, rows_at: tuple[str, ...]) -> Iterator[DataRow]:
    rows = _json_line_rows(stream)
    before = list(islice(rows, 2))
    inner = None
    # An object on the only line may contain the rows.
    if len(before) == 1 and isinstance(before[0].value, dict):
        inner = _inner_rows(before[0].value, rows_at)
    yield from chain(before, rows) if inner is None else _number_rows(inner, before[0].end)


def _json_line_rows(stream: BinaryIO) -> Iterator[DataRow]:
    for number, content, end in read_lines(stream, max_bytes=MAX_LINE_BYTES):
        try:
            if content is None:
                hint = "Put each case on a separate line, or split the case."
                raise InputError(f"is longer than {MAX_LINE_BYTES // 2**20} MiB", hint=hint)
            yield DataRow(number, end, parse_object(content))
        except InputError as error:
            yield DataRow(number, end, error)


def _json_list_rows(stream: BinaryIO) -> Iterator[DataRow]:
    """Yield the items of one JSON list with only one of them in memory at a time."""
    # An incremental decoder, because a block may end inside a character. utf-8-sig drops a byte
    # order mark.
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    text, at, number, read, ended = "", 0, 0, 0, False

    def more(size: int = 1 << 18) -> None:
        nonlocal text, at, read, ended
        content = stream.read(size)
        read, ended = read + len(content), not content
        try:
            text, at = text[at:] + decode(content, final=ended), 0
        except UnicodeDecodeError as error:
            raise utf8_error(error, number + 1) from error

    def next_character() -> str:
        """Return the next character that isn't blank, or "" at the end."""
        nonlocal at
        while True:
            at = cast("re.Match[str]", _BLANKS.match(text, at)).end()
            if at < len(text) or ended:
                return text[at : at + 1]
            more()

    cut_off = "The list is cut off: write the file again."
    next_character()
    at += 1
    while next_character() != "]" or number:
        while (item := parse_item(text, at, ended=ended)) is None or (
            item[1] == len(text) and not ended
        ):
            if ended:
                raise InputError(
                    f"ends in the middle of item {number + 1} of a JSON list", hint=cut_off
                )
            if len(text) - at > MAX_LINE_BYTES:
                most = f"{MAX_LINE_BYTES // 2**20} MiB"
                raise InputError(
                    f"has an item of more than {most}", hint="Split it.", line=number + 1
                )
            # Doubling keeps the number of parse attempts for a long item logarithmic.
            more(min(max(1 << 18, len(text) - at), MAX_LINE_BYTES))
        number += 1
        value, at = item
        yield to_row(number, read, value)
        following = next_character()
        if following == "]":
            break
        if not following:
            raise InputError(
                f"ends after item {number} of a JSON list that isn't closed", hint=cut_off
            )
        if following != ",":
            hint = "Separate the items with commas, and close the list with ]."
            raise InputError(f"isn't a valid JSON list after item {number}", hint=hint, line=number)
        at += 1
    at += 1
    if next_character():
        raise InputError("continues after its JSON list", hint="Put everything into one list.")


def _json_object_rows(stream: BinaryIO, rows_at: tuple[str, ...]) -> Iterator[DataRow]:
    content = stream.read(MOST_DOCUMENT_BYTES + 1)
    if len(content) > MOST_DOCUMENT_BYTES:
        hint = "Convert it to JSON Lines: jq -c '.[]' FILE > NEW."
        raise InputError(
            f"is one JSON object of more than {MOST_DOCUMENT_BYTES // 2**20} MiB", hint=hint
        )
    try:
        whole = parse_object(content.removeprefix(codecs.BOM_UTF8).strip())
    except InputError as error:
        # The file has several objects, each over several lines.
        if "more than one JSON value" in error.problem:
            hint = "Put each on one line: jq -c . FILE > NEW."
            raise InputError(
                "holds several JSON objects, each over several lines", hint=hint
            ) from error
        raise
    inner = _inner_rows(whole, rows_at)
    yield from _number_rows([whole] if inner is None else inner, len(content))


def _inner_rows(whole: dict[str, Any], rows_at: tuple[str, ...]) -> list[Any] | None:
    """Return the list of rows that one object contains, or None if the object is a row itself.

    With ``rows_at`` = ``*``, or if all its values are objects with the same keys, each value is a
    row, and its key is the default id. A table by columns, as pandas and Hugging Face write it, is
    transposed.
    """
    if rows_at and rows_at != ("*",):
        rows = value_at(whole, rows_at)
        return rows if isinstance(rows, list) else None
    for key in () if rows_at else _ROW_LIST_KEYS:
        value = whole.get(key)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
        if key == "results" and isinstance(value, dict) and isinstance(value.get("results"), list):
            inner: list[Any] = value["results"]
            return inner
    if not rows_at and (columns := _table_columns(whole)):
        length = max(map(len, columns.values()))
        return [
            {name: column[place] for name, column in columns.items()} for place in range(length)
        ]
    objects = [item for item in whole.values() if isinstance(item, dict)]
    alike = len(objects) == len(whole) > 1 and all(set(item) == set(objects[0]) for item in objects)
    return (
        [{"id": key, **item} for key, item in whole.items()]
        if alike or (rows_at and objects)
        else None
    )


def _table_columns(whole: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Return the columns of an object that is a table, or None.

    The columns are lists of the same length, or objects with the keys 0, 1, 2 and so on.
    """
    columns: dict[str, list[Any]] = {}
    for name, value in whole.items():
        if isinstance(value, dict) and list(value) == list(map(str, range(len(value)))):
            columns[name] = list(value.values())
        elif isinstance(value, list):
            columns[name] = value
        else:
            return None
    lengths = {len(column) for column in columns.values()}
    return columns if len(columns) > 1 and len(lengths) == 1 and lengths != {0} else None


def _number_rows(values: list[Any], end: int) -> Iterator[DataRow]:
    for number, value in enumerate(values, 1):
        yield to_row(number, end * number // len(values), value)


def to_row(number: int, end: int, value: Any) -> DataRow:
    """Return a value as a row, or as an error if it isn't an object."""
    if isinstance(value, dict | InputError):
        return DataRow(number, end, value)
    return DataRow(
        number,
        end,
        InputError(f"is {kind_of(value)}, must be an object", hint="Make each row an object."),
    )


def _parquet_rows(stream: BinaryIO) -> Iterator[DataRow]:
    from masis.datasets.readers.parquet import read_parquet  # imports pyarrow, needed by few files

    seekable = stream if stream.seekable() else io.BytesIO(stream.read(MOST_DOCUMENT_BYTES))
    size = seekable.seek(0, io.SEEK_END)
    most = min(MOST_UNPACKED_BYTES, max(FREELY_UNPACKED_BYTES, MOST_EXPANSION * size))
    for row in read_parquet(seekable, most):
        value = row.value if isinstance(row.value, InputError) else to_plain_value(row.value)
        yield DataRow(row.number, size * row.number // row.rows, value)
