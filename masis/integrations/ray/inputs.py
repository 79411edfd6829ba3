"""Reads the input files in chunks that are audited and written together.

The same input always gives the same files and chunks, by name, so that a later run of the command
skips the chunks that are already written.
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
from typing import Any, NamedTuple

from masis.datasets.lake import filesystem_of
from masis.datasets.mapping.profile import Profile
from masis.datasets.mapping.reader import read_any
from masis.datasets.mapping.row import MappedRow
from masis.errors import InputError
from masis.schema.case import Case

CHUNK_CASES = 50
"""The number of cases that a worker audits before it writes them. If a worker is killed, its
unwritten cases are audited again.
"""

_READ = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz", ".zip")


class InputFile(NamedTuple):
    """A file of the input.

    ``size`` is in bytes, and ``source`` is its name in rows: the given path, with the path inside
    it for a folder.
    """

    name: str
    file: str
    source: str
    size: int


class Chunk(NamedTuple):
    """Rows that are audited and written together.

    ``size`` is their share of the input in bytes. ``entries`` is a JSON list of the rows: number in
    the file from 1, the case, and the problem if there is no case.
    """

    part: str
    number: int
    last: bool
    source: str
    size: int
    entries: str

    @property
    def shard(self) -> str:
        """The name of its output files."""
        return f"{self.part}-{self.number:06d}"


def parts_of(place: str) -> list[InputFile]:
    """List the input files of a path or an fsspec address.

    Raises InputError if there is nothing to read.
    """
    files, root = filesystem_of(place)
    from pyarrow import fs

    info = files.get_file_info(root)
    if info.type == fs.FileType.NotFound:
        raise InputError("does not exist", hint="Check the name and the folder.", file=place)
    if info.type == fs.FileType.File:
        return [_input_file(info, PurePosixPath(info.path).name, place)]
    parts = []
    listed = files.get_file_info(fs.FileSelector(root, recursive=True))
    for file in sorted(listed, key=lambda file: str(file.path)):
        inside = PurePosixPath(file.path).relative_to(root)
        hidden = any(name.startswith(("_", ".")) for name in inside.parts)
        if file.type == fs.FileType.File and file.path.lower().endswith(_READ) and not hidden:
            parts.append(_input_file(file, str(inside), f"{place.rstrip('/')}/{inside}"))
    if not parts:
        raise InputError(
            f"has no file that can be read ({', '.join(_READ)})", hint="Name a file.", file=place
        )
    return parts


def _input_file(info: Any, inside: str, source: str) -> InputFile:
    stem = (
        re.sub(r"[^A-Za-z0-9]+", "-", PurePosixPath(inside).name.partition(".")[0])[:40].strip("-")
        or "file"
    )
    return InputFile(
        f"{stem}-{blake2b(inside.encode(), digest_size=5).hexdigest()}",
        info.path,
        source,
        info.size,
    )


def chunks_of(
    part: InputFile, place: str, profile: Profile | None, size: int, done: Collection[int] = ()
) -> Iterator[Chunk]:
    """Yield the chunks of a file, except those that are ``done``.

    If a file becomes unreadable or its format isn't recognized, it ends with a row that says so.
    """
    entries: list[tuple[int, str | None, str | None]] = []
    number = before = end = 0

    def chunk(*, last: bool) -> Iterator[Chunk]:
        if number not in done:
            content = json.dumps(entries, ensure_ascii=False)
            yield Chunk(part.name, number, last, part.source, end - before, content)

    for row in _readable_rows(part, place, profile):
        if len(entries) == size:
            yield from chunk(last=False)
            entries, number, before = [], number + 1, end
        end = row.end
        problem = "; ".join(map(str, row.problems)) or None
        case = None if row.case is None else json.dumps(row.case.to_json_dict(), ensure_ascii=False)
        entries.append((row.number, None if problem else case, problem))
    yield from chunk(last=True)


def cases_of(chunk: Chunk) -> Iterator[tuple[int, Case | None, str | None]]:
    """Yield the rows of a chunk: number, case, and the problem if there is no case."""
    for row, case, problem in json.loads(chunk.entries):
        yield row, None if case is None else Case.from_stored(case), problem


def _readable_rows(part: InputFile, place: str, profile: Profile | None) -> Iterator[MappedRow]:
    """Yield a file's rows. An error becomes the last row, so that other files are still read."""
    number = end = 0
    try:
        with _local_copy(part, place) as path:
            for row in (
                read_any(path, profile, name=PurePosixPath(part.file).name) if part.size else ()
            ):
                number, end = row.number, row.end
                yield row
    except InputError as error:
        yield MappedRow(number + 1, end, None, (error,))


@contextmanager
def _local_copy(part: InputFile, place: str) -> Iterator[Path]:
    """Yield a path on this machine: the file itself, or a temporary copy."""
    from pyarrow import fs

    files, _ = filesystem_of(place)
    if isinstance(files, fs.LocalFileSystem):
        yield Path(part.file)
        return
    with tempfile.TemporaryDirectory(prefix="masis-") as folder:
        copy = Path(folder) / PurePosixPath(part.file).name
        with files.open_input_stream(part.file) as stream, copy.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        yield copy
