"""Reads the rows of a table in CSV or TSV of any dialect."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from masis.datasets.readers.lines import MAX_LINE_BYTES, utf8_error
from masis.errors import InputError
from masis.schema.wording import shorten

_DELIMITERS = (",", ";", "\t", "|")

_SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?[ \t]*(?:\r\n?|\n)', re.IGNORECASE)
"""A first line such as ``sep=;``, which tells Excel the delimiter and isn't a row."""

_QUOTED = re.compile(r'"(?:[^"]|"")*+"?')
"""A quoted cell, ``"a ""b"" c"``; the closing quote may be cut off (RFC 4180, section 2).

The quantifier is possessive so that an unclosed quote isn't retried at every length.
"""
_LINE_END = re.compile(r"[\r\n]")


class TableRow(NamedTuple):
    """One row of a table.

    Attributes:
        line: The line where it begins.
        end: The characters read so far.
        cells: Its cells by column, or the problem with it.

    """

    line: int
    end: int
    cells: dict[str, str] | InputError


class Header:
    """The column names in the first row of a table."""

    def __init__(self, names: list[str], line: int) -> None:
        """Store the names.

        Raises:
            InputError: Two columns have the same name.

        """
        # A name with a carriage return couldn't be typed in a shell.
        self.names = [name.replace("\r\n", "\n") for name in names]
        named = [name for name in self.names if name.strip()]
        self._all_named = len(named) == len(self.names)
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise InputError(f"has two columns named {twice[:40]!r}", hint="Rename one.", line=line)

    def cells_of(self, row: list[str]) -> dict[str, str] | InputError:
        """Return the cells of a row by column, or the problem with it.

        A spreadsheet writes every column that was ever used, so unnamed columns are dropped if they
        are empty. An unnamed first column is the index that pandas writes.
        """
        if self._all_named and len(row) <= len(self.names):  # the usual case
            return dict(zip(self.names, row, strict=False))
        while len(row) > len(self.names) and not row[-1].strip():
            row = row[:-1]
        if len(row) > len(self.names):
            problem = f"has {len(row)} columns, the first line names {len(self.names)}"
            return InputError(problem, hint="Put text that holds the delimiter in quotes.")
        for place, (name, cell) in enumerate(zip(self.names, row, strict=False), 1):
            if place > 1 and cell.strip() and not name.strip():
                return InputError(
                    f"has {shorten(cell.strip(), 40)!r} in column {place}, which has no name",
                    hint="Name the column in the first line, or empty it.",
                )
        return {name: cell for name, cell in zip(self.names, row, strict=False) if name.strip()}


def read_table(stream: BinaryIO, start: bytes, delimiter: str | None = None) -> Iterator[TableRow]:
    """Yield the rows of a CSV or TSV file; ``start`` holds its first bytes.

    Raises:
        InputError: It isn't a table.

    """
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    # The default is 131,072 characters, less than some evidence.
    csv.field_size_limit(MAX_LINE_BYTES)
    try:
        yield from _table_rows(
            text, start.removeprefix(codecs.BOM_UTF8).decode(errors="ignore"), delimiter
        )
    except UnicodeDecodeError as error:
        raise utf8_error(error) from error
    except csv.Error as error:
        if "field larger" in str(error):
            most = f"{MAX_LINE_BYTES // 2**20} MiB"
            raise InputError(
                f"has a cell of more than {most}", hint="Close its quote, or split it."
            ) from error
        raise InputError(
            f"isn't a readable table ({error})", hint='Put text in quotes, " as "".'
        ) from error
    finally:
        text.detach()


def _table_rows(text: io.TextIOWrapper, start: str, delimiter: str | None) -> Iterator[TableRow]:
    before = 0  # the number of lines before the table
    if separator_line := _SEP_LINE.match(start):
        delimiter, start, before = separator_line[1], start[separator_line.end() :], 1
        text.readline()
    header_text = _first_record(start)
    if "\x00" in header_text:
        raise InputError("isn't text: it contains null bytes", hint="Save it as CSV UTF-8.", line=1)
    if delimiter is None:
        outside = _QUOTED.sub("", header_text)
        # csv.Sniffer guesses from whole rows and is misled by commas in prose.
        delimiter = max(_DELIMITERS, key=outside.count)
    rows = csv.reader(_short_lines(text), delimiter=delimiter, strict=True)
    header: Header | None = None
    end = 0
    line = before + 1
    for row in rows:
        # Cells and one delimiter or line break each. Quotes aren't counted, so it is an estimate
        # for the progress bar.
        end += sum(map(len, row)) + len(row)
        if any(row) and header is None:
            header = Header(row, line)
        elif any(row) and header is not None:
            yield TableRow(line, end, header.cells_of(row))
        line = before + 1 + rows.line_num


def _first_record(text: str) -> str:
    """Return the text up to the first line break outside quotes.

    A column name may contain line breaks and the delimiter.
    """
    text = text.lstrip("\r\n")
    # The same length keeps the offsets valid for the original text.
    blanked = _QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text)
    ends = _LINE_END.search(blanked)
    return text[: ends.start()] if ends else text


def _short_lines(text: io.TextIOWrapper) -> Iterator[str]:
    # The csv module itself would read a line of any length.
    while line := text.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES:
            raise InputError(
                f"has a line of more than {MAX_LINE_BYTES // 2**20} MiB", hint="Split it."
            )
        yield line
