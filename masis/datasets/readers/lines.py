"""Opening a file of JSON Lines and reading it line by line, in memory bounded by the longest line allowed."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from masis.errors import InputError

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is an error: it is a file without line breaks far more often than a case."""

_OTHER_FORMATS = (
    (b"\x1f\x8b", "is compressed with gzip", "Unpack it first: gunzip FILE."),
    (b"BZh", "is compressed with bzip2", "Unpack it first: bunzip2 FILE."),
    (b"\xfd7zXZ\x00", "is compressed with xz", "Unpack it first: unxz FILE."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Unpack it first: unzstd FILE."),
    (b"PK\x03\x04", "is a zip archive or a spreadsheet", "Unpack it, or export it as JSON Lines."),
    (b"PAR1", "is a Parquet file", "Convert it to JSON Lines first."),
    (b"%PDF", "is a PDF", "Name a file of JSON Lines instead."),
    (b"SQLite format 3\x00", "is a SQLite database", "Write its cases: masis export --format cases --db FILE."),
    (b"\xff\xfe", "is UTF-16", "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW."),
    (b"\xfe\xff", "is UTF-16", "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW."),
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line: its number from 1, its bytes (None where it is longer than allowed), and where it ends in the file."""

    number: int
    content: bytes | None
    end: int


def open_lines(path: Path) -> BinaryIO:
    """Return the file, opened for reading bytes. Raises InputError where it is missing, no file or not readable."""
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise InputError("is a directory", cure="Name one file of JSON Lines in it.", file=str(path))
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError("does not exist", cure="Check the name and the folder.", file=str(path)) from error
    except OSError as error:
        raise InputError(f"can't be read ({error.strerror})", cure="Check its permissions.", file=str(path)) from error


def read_raw_lines(stream: BinaryIO, *, max_bytes: int) -> Iterator[Line]:
    """Yield every line, blank ones included, with its line break but without a byte order mark.

    Raises InputError where the first bytes show another format than text; the file's name is the caller's to add.
    """
    end, number = 0, 0
    while raw := stream.readline(max_bytes + 1):
        number += 1
        end += len(raw)
        if number == 1:
            refuse_other_formats(raw)
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        if len(raw) > max_bytes and not raw.endswith(b"\n"):
            while not raw.endswith(b"\n") and (raw := stream.readline(1 << 20)):
                end += len(raw)
            yield Line(number, None, end)
        else:
            yield Line(number, raw, end)


def read_lines(stream: BinaryIO, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Yield every line that isn't blank, without the blanks around it; raises InputError as ``read_raw_lines`` does."""
    for number, raw, end in read_raw_lines(stream, max_bytes=max_bytes):
        if raw is None:
            yield Line(number, None, end)
        elif content := raw.strip(b" \t\r\n"):
            yield Line(number, content, end)


def not_utf8(error: UnicodeDecodeError, line: int | None = None, *, of_line: bool = False) -> InputError:
    """Return the error for bytes that are no UTF-8; where they are ``of_line``, one line, it names the byte."""
    place = f": byte {error.start + 1} of the line is 0x{error.object[error.start]:02X}" if of_line else ""
    return InputError(
        f"is not UTF-8{place}", cure="Save it as UTF-8: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW.", line=line
    )


def refuse_other_formats(first: bytes) -> None:
    """Raises InputError where the first bytes are those of a known format other than text."""
    for magic, problem, cure in _OTHER_FORMATS:
        if first.startswith(magic):
            raise InputError(problem, cure=cure)
