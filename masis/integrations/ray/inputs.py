"""The input in parts that are read apart: files, byte ranges of JSON Lines, row groups of Parquet; each in chunks.

The same input gives the same parts and chunks, by name, so that a later try of the command knows what is written.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from masis.datasets.lake import filesystem_of
from masis.datasets.mapping import OWN_FORMAT, MappedRow, Profile, builtin, formats_of, read_any
from masis.errors import InputError
from masis.schema.case import Case

PART_BYTES = 64 * 2**20
"""A larger file of JSON Lines or Parquet is read in parts of about this size, side by side."""
CHUNK_CASES = 50
"""Cases that one worker audits before it writes; what a killed worker had not written is audited again."""

_READ = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz", ".zip")
_COPIED = 1 << 20


class Part(NamedTuple):
    """A part of the input: of JSON Lines the lines that begin in a range of bytes, of Parquet a range of row groups.

    ``offset`` is what its rows are counted from: a byte of JSON Lines, a row of Parquet. ``size`` is in bytes.
    """

    name: str
    file: str
    kind: Literal["whole", "lines", "groups"]
    first: int
    end: int
    offset: int
    size: int


class Entry(NamedTuple):
    """A row of the input: its number in the part from 1, and its case as JSON, or why it is none."""

    row: int
    case: str | None
    problem: str | None = None


class Chunk(NamedTuple):
    """Rows that are audited and written together; ``size`` is how much of the input they are, in bytes."""

    part: str
    number: int
    last: bool
    source: str
    offset: int
    size: int
    entries: str

    @property
    def shard(self) -> str:
        """The name of the files that it becomes."""
        return f"{self.part}-{self.number:06d}"


def parts_of(place: str, part_bytes: int = PART_BYTES) -> list[Part]:
    """Return the parts of a file, or of every file in a folder; both may be addresses that fsspec reads.

    Raises InputError where there is nothing to read.
    """
    files, root = filesystem_of(place)
    from pyarrow import fs

    info = files.get_file_info(root)
    if info.type == fs.FileType.NotFound:
        raise InputError("does not exist", cure="Check the name and the folder.", file=place)
    if info.type == fs.FileType.File:
        found = [info]
    else:
        listed = files.get_file_info(fs.FileSelector(root, recursive=True))
        found = sorted((each for each in listed if _is_input(each.path, root)), key=lambda each: str(each.path))
        found = [each for each in found if each.type == fs.FileType.File]
    if not found:
        raise InputError(f"holds no file that can be read ({', '.join(_READ)})", cure="Name a file.", file=place)
    return [part for each in found for part in _parts(files, each, root, part_bytes)]


def chunks_of(
    part: Part, place: str, profile: Profile | None, size: int, done: Collection[int] = ()
) -> Iterator[Chunk]:
    """Yield the chunks of a part, without those that are ``done``.

    A file that can't be read on, or whose format can't be recognised, ends with a row that says so.
    """
    entries: list[Entry] = []
    number = before = end = 0
    waiting: Chunk | None = None
    source = _source(part, place)

    def chunk(*, last: bool) -> Chunk:
        held = json.dumps(entries, ensure_ascii=False)
        return Chunk(part.name, number, last, source, part.offset, end - before, held)

    for row in _readable(_rows(part, place, profile)):
        if len(entries) == size:
            if waiting is not None and waiting.number not in done:
                yield waiting
            waiting, entries = chunk(last=False), []
            number, before = number + 1, end
        end = row.end
        problem = "; ".join(map(str, row.problems)) or None
        case = None if row.case is None else json.dumps(row.case.to_json_dict(), ensure_ascii=False)
        entries.append(Entry(row.number, None if problem else case, problem))
    if waiting is not None and waiting.number not in done:
        yield waiting
    if number not in done:
        yield chunk(last=True)


def cases_of(chunk: Chunk) -> Iterator[tuple[int, Case | None, str | None]]:
    """Yield the rows of a chunk: number, case, and why there is none."""
    for row, case, problem in json.loads(chunk.entries):
        yield row, None if case is None else Case.model_validate_json(case), problem


def _is_input(path: str, root: str) -> bool:
    inside = PurePosixPath(path).relative_to(root)
    hidden = any(name.startswith(("_", ".")) for name in inside.parts)
    return path.lower().endswith(_READ) and not hidden


def _parts(files: Any, info: Any, root: str, part_bytes: int) -> Iterator[Part]:
    inside = str(PurePosixPath(info.path).relative_to(root)) if info.path != root else PurePosixPath(info.path).name
    stem = re.sub(r"[^A-Za-z0-9]+", "-", PurePosixPath(inside).name.partition(".")[0])[:40].strip("-") or "file"
    name = f"{stem}-{blake2b(inside.encode(), digest_size=5).hexdigest()}"
    suffix = PurePosixPath(info.path).suffix.lower()
    if info.size > part_bytes and suffix in (".jsonl", ".ndjson"):
        for first in range(0, info.size, part_bytes):
            end = min(first + part_bytes, info.size)
            yield Part(f"{name}-{first:014d}", info.path, "lines", first, end, first, end - first)
    elif info.size > part_bytes and suffix == ".parquet":
        yield from _groups(files, info, name, part_bytes)
    else:
        kind: Literal["whole", "lines"] = "lines" if suffix in (".jsonl", ".ndjson") else "whole"
        yield Part(f"{name}-{0:014d}", info.path, kind, 0, info.size, 0, info.size)


def _groups(files: Any, info: Any, name: str, part_bytes: int) -> Iterator[Part]:
    """Row groups together, until they reach the size of a part."""
    from pyarrow import parquet

    with files.open_input_file(info.path) as stream:
        held = parquet.ParquetFile(stream).metadata
        first = offset = rows = size = 0
        for group in range(held.num_row_groups):
            rows += held.row_group(group).num_rows
            size += held.row_group(group).total_byte_size
            if size >= part_bytes or group == held.num_row_groups - 1:
                yield Part(f"{name}-{offset:014d}", info.path, "groups", first, group + 1, offset, size)
                first, offset, rows, size = group + 1, offset + rows, 0, 0


def _source(part: Part, place: str) -> str:
    """How rows name the file: by what was given, and its name in it."""
    _, root = filesystem_of(place)
    return place if part.file == root else f"{place.rstrip('/')}/{PurePosixPath(part.file).relative_to(root)}"


def _readable(rows: Iterator[MappedRow]) -> Iterator[MappedRow]:
    """Yield the rows up to the end, or to the problem that ends them: one bad file must not end the others."""
    number = end = 0
    try:
        for row in rows:
            number, end = row.number, row.end
            yield row
    except InputError as error:
        yield MappedRow(number + 1, end, None, (error,))


def _rows(part: Part, place: str, profile: Profile | None) -> Iterator[MappedRow]:
    files, _ = filesystem_of(place)
    called = PurePosixPath(part.file).name
    shown = called if part.offset == 0 else f"{called} from {'byte' if part.kind == 'lines' else 'row'} {part.offset}"
    with _local(files, part) as path:
        if path.stat().st_size == 0:
            return
        if part.kind != "lines":
            yield from read_any(path, profile, name=shown if part.kind == "whole" else called)
            return
        chosen = profile or _detected(files, part)
        yield from read_any(path, chosen or OWN_FORMAT, name=shown)


def _detected(files: Any, part: Part) -> Profile | None:
    """Return the profile that the first line of the file fits, whichever part of it is read; None for our own format.

    Raises InputError where several fit.
    """
    with tempfile.TemporaryDirectory(prefix="masis-") as folder:
        head = Path(folder) / "head.jsonl"
        with files.open_input_stream(part.file) as stream, head.open("wb") as out:
            for block in iter(lambda: stream.read(_COPIED), b""):
                line, found, _ = bytes(block).partition(b"\n")
                out.write(line + found)
                if found:
                    break
        try:
            formats = formats_of(head).formats
        except InputError:
            return None  # the line itself is reported when it is read
    if len(formats) > 1:
        raise InputError(f"may be {' or '.join(formats)}", cure="Say which: --as PROFILE.", file=part.file)
    return None if not formats or formats[0] == OWN_FORMAT else builtin()[formats[0]]


@contextmanager
def _local(files: Any, part: Part) -> Iterator[Path]:
    """Give the part as a file on this machine: itself, or a copy that is removed afterwards."""
    from pyarrow import fs

    if part.kind == "whole" and isinstance(files, fs.LocalFileSystem):
        yield Path(part.file)
        return
    with tempfile.TemporaryDirectory(prefix="masis-") as folder:
        copy = Path(folder) / PurePosixPath(part.file).name
        if part.kind == "groups":
            _copy_groups(files, part, copy)
        elif part.kind == "lines":
            _copy_lines(files, part, copy)
        else:
            with files.open_input_stream(part.file) as stream, copy.open("wb") as out:
                shutil.copyfileobj(stream, out, _COPIED)
        yield copy


def _copy_groups(files: Any, part: Part, copy: Path) -> None:
    from pyarrow import parquet

    with files.open_input_file(part.file) as stream:
        held = parquet.ParquetFile(stream)
        with parquet.ParquetWriter(copy, held.schema_arrow) as out:
            for group in range(part.first, part.end):
                out.write_table(held.read_row_group(group))


def _copy_lines(files: Any, part: Part, copy: Path) -> None:
    """Copy the lines that begin in the part's range: the one that reaches into it belongs to the part before."""
    with files.open_input_file(part.file) as raw, copy.open("wb") as out:
        at = part.first
        if at:
            raw.seek(at - 1)
            at += _skipped(raw) - 1
        raw.seek(min(at, part.end))
        block = b"\n"
        while at < part.end and (block := bytes(raw.read(min(_COPIED, part.end - at)))):
            out.write(block)
            at += len(block)
        while block and not block.endswith(b"\n"):  # the last line reaches into the next part
            block = bytes(raw.read(_COPIED))
            line, found, _ = block.partition(b"\n")
            out.write(line + found)
            block = found or block


def _skipped(raw: Any) -> int:
    """Return how many bytes there are up to the end of the line."""
    skipped = 0
    while block := bytes(raw.read(1 << 16)):
        end = block.find(b"\n")
        if end >= 0:
            return skipped + end + 1
        skipped += len(block)
    return skipped
