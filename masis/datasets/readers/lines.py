"""Opens text files and reads them line by line, in memory bounded by the longest allowed line."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from masis.errors import InputError

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line. A longer one usually means a file without line breaks, and not a long case."""

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
        "is an old Office document (.xls, .doc)",
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
    (b"\x93NUMPY", "is a numpy array", _AS_TEXT),
    (b"{\\rtf", "is an RTF document", "Save it as .docx or as text."),
    (
        b"version https://git-lfs.github.com/spec",
        "is a Git LFS pointer, not the file itself",
        "Fetch it: git lfs pull.",
    ),
    *(
        (b"\x80%c" % protocol, "is a Python pickle, which isn't opened", _AS_TEXT)
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
    ("Index/Document.iwa", "is an Apple iWork document", "Export it as .xlsx, .docx or CSV."),
    ("META-INF/MANIFEST.MF", "is a Java archive", _AS_TEXT),
)
"""File formats that are zip archives, recognized by one of their members."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line: its number from 1, its bytes, and its end in the file.

    The bytes are None if the line is longer than allowed.
    """

    number: int
    content: bytes | None
    end: int


def open_lines(path: Path) -> BinaryIO:
    """Open a file for reading bytes.

    Raises:
        InputError: The file is missing, isn't a file or can't be read.

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
    """Yield every line, including blank ones, with its line break but without a byte order mark.

    Raises:
        InputError: The first bytes are those of another format. The caller adds the file's name.

    """
    end, number = 0, 0
    # One byte more than allowed, which tells a line that is too long from one that just fits.
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
    """Yield every non-blank line without surrounding blanks.

    Raises:
        InputError: See ``read_raw_lines``.

    """
    for number, raw, end in read_raw_lines(stream, max_bytes=max_bytes):
        if raw is None:
            yield Line(number, None, end)
        elif content := raw.strip(b" \t\r\n"):
            yield Line(number, content, end)


def utf8_error(
    error: UnicodeDecodeError, line: int | None = None, *, of_line: bool = False
) -> InputError:
    """Return the error for bytes that aren't UTF-8.

    If ``of_line`` is set, the bytes are one line and the error names the byte.
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
    """Raise InputError if the first bytes are those of a known format other than text."""
    for magic, problem, hint in _OTHER_FORMATS:
        if first.startswith(magic):
            raise InputError(problem, hint=hint)
    # The magic of a tar archive is in the middle of its first header (POSIX, pax).
    if first[257:262] == b"ustar":
        raise InputError("is a tar archive", hint="Unpack it first: tar xf FILE.")


def refuse_markup(first: bytes) -> None:
    """Raise InputError if the first bytes are those of HTML or XML."""
    opening = first.removeprefix(_BYTE_ORDER_MARK).lstrip()[:20].lower()
    for markup, problem in _MARKUP:
        if opening.startswith(markup):
            raise InputError(problem, hint=_AS_TEXT)


def refuse_packages(members: Collection[str]) -> None:
    """Raise InputError if the members of a zip are those of a file format and not of an archive."""
    for member, problem, hint in _PACKAGES:
        if member in members:
            raise InputError(problem, hint=hint)
