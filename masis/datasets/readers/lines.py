"""Opening a file of JSON Lines and reading it line by line, in memory bounded by the longest line
allowed.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from masis.errors import InputError

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is an error: it is a file without line breaks far more often than a case."""

_AS_TEXT = "Export its cases as JSON Lines or CSV."
_OTHER_FORMATS = (
    (b"\x1f\x8b", "is compressed with gzip", "Unpack it first: gunzip FILE."),
    (b"BZh", "is compressed with bzip2", "Unpack it first: bunzip2 FILE."),
    (b"\xfd7zXZ\x00", "is compressed with xz", "Unpack it first: unxz FILE."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Unpack it first: unzstd FILE."),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", "Unpack it first: 7z x FILE."),
    (b"Rar!\x1a\x07", "is a rar archive", "Unpack it first."),
    (b"PK\x03\x04", "is a zip archive or a spreadsheet", "Unpack it, or export it as JSON Lines."),
    (b"PAR1", "is a Parquet file", "Convert it to JSON Lines first."),
    (b"%PDF", "is a PDF", "Name a file of JSON Lines instead."),
    (
        b"SQLite format 3\x00",
        "is a SQLite database",
        "Write its cases: masis export --format cases --db FILE.",
    ),
    (b"\xff\xfe", "is UTF-16", "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW."),
    (b"\xfe\xff", "is UTF-16", "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW."),
    (
        b"\xd0\xcf\x11\xe0",
        "is a document of old Office (.xls, .doc)",
        "Save it as .xlsx, .docx or CSV UTF-8.",
    ),
    (b"\x89PNG", "is an image (PNG)", _AS_TEXT),
    (b"\xff\xd8\xff", "is an image (JPEG)", _AS_TEXT),
    (b"GIF8", "is an image (GIF)", _AS_TEXT),
    (b"RIFF", "is an image, sound or film", _AS_TEXT),
    (
        b"ARROW1",
        "is an Arrow or Feather file",
        "Write it as Parquet: table.to_parquet, or as JSON Lines.",
    ),
    (b"ORC", "is an ORC file", "Write it as Parquet, or as JSON Lines."),
    (b"Obj\x01", "is an Avro file", "Write it as Parquet, or as JSON Lines."),
    (b"\x89HDF", "is an HDF5 file", "Write it as Parquet, or as JSON Lines."),
    (b"\x93NUMPY", "is an array of numpy", _AS_TEXT),
    (b"{\\rtf", "is a document in RTF", "Save it as .docx or as text."),
    (
        b"version https://git-lfs.github.com/spec",
        "is a pointer of Git LFS, not the file",
        "Fetch it: git lfs pull.",
    ),
    *(
        (b"\x80%c" % protocol, "is a pickle of Python, which is not opened", _AS_TEXT)
        for protocol in range(2, 6)
    ),
)
_MARKUP = (
    (b"<!doctype html", "is an HTML page, perhaps one that asks for a sign-in"),
    (b"<html", "is an HTML page, perhaps one that asks for a sign-in"),
    (b"<?xml", "is an XML file"),
)
_PACKAGES = (
    ("xl/workbook.bin", "is a binary Excel workbook (.xlsb)", "Save it as .xlsx or CSV UTF-8."),
    ("ppt/presentation.xml", "is a PowerPoint presentation", _AS_TEXT),
    (
        "META-INF/manifest.xml",
        "is an OpenDocument file (.ods, .odt)",
        "Save it as .xlsx, .docx or CSV UTF-8.",
    ),
    ("Index/Document.iwa", "is a document of Apple's iWork", "Export it as .xlsx, .docx or CSV."),
    ("META-INF/MANIFEST.MF", "is a Java archive", _AS_TEXT),
)
"""What a zip is by a file that it holds."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line: its number from 1, its bytes (None where it is longer than allowed), and where it
    ends in the file.
    """

    number: int
    content: bytes | None
    end: int


def open_lines(path: Path) -> BinaryIO:
    """Return the file, opened for reading bytes. Raises InputError where it is missing, no file or
    not readable.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise InputError(
                "is a directory", hint="Name one file of JSON Lines in it.", file=str(path)
            )
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError(
            "does not exist", hint="Check the name and the folder.", file=str(path)
        ) from error
    except OSError as error:
        raise InputError(
            f"can't be read ({error.strerror})", hint="Check its permissions.", file=str(path)
        ) from error


def read_raw_lines(stream: BinaryIO, *, max_bytes: int) -> Iterator[Line]:
    """Yield every line, blank ones included, with its line break but without a byte order mark.

    Raises InputError where the first bytes show another format than text; the file's name is the
    caller's to add.
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
    """Yield every line that isn't blank, without the blanks around it; raises InputError as
    ``read_raw_lines`` does.
    """
    for number, raw, end in read_raw_lines(stream, max_bytes=max_bytes):
        if raw is None:
            yield Line(number, None, end)
        elif content := raw.strip(b" \t\r\n"):
            yield Line(number, content, end)


def utf8_error(
    error: UnicodeDecodeError, line: int | None = None, *, of_line: bool = False
) -> InputError:
    """Return the error for bytes that are no UTF-8; where they are ``of_line``, one line, it names
    the byte.
    """
    place = (
        f": byte {error.start + 1} of the line is 0x{error.object[error.start]:02X}"
        if of_line
        else ""
    )
    return InputError(
        f"is not UTF-8{place}",
        hint="Save it as UTF-8: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW.",
        line=line,
    )


def refuse_other_formats(first: bytes) -> None:
    """Raises InputError where the first bytes are those of a known format other than text."""
    for magic, problem, hint in _OTHER_FORMATS:
        if first.startswith(magic):
            raise InputError(problem, hint=hint)
    if first[257:262] == b"ustar":
        raise InputError("is a tar archive", hint="Unpack it first: tar xf FILE.")


def refuse_markup(first: bytes) -> None:
    """Raises InputError where the first bytes are those of a page or of XML, where rows are
    expected.
    """
    opening = first.removeprefix(_BYTE_ORDER_MARK).lstrip()[:20].lower()
    for markup, problem in _MARKUP:
        if opening.startswith(markup):
            raise InputError(problem, hint=_AS_TEXT)


def refuse_packages(members: Collection[str]) -> None:
    """Raises InputError where the files of a zip are those of a known format other than an archive
    of files.
    """
    for member, problem, hint in _PACKAGES:
        if member in members:
            raise InputError(problem, hint=hint)
