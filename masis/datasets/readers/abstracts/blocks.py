"""The records of a bibliographic text file: blocks of lines with leading blanks, which show what continues a field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from masis.datasets.readers.lines import not_utf8, read_raw_lines
from masis.errors import InputError
from masis.schema.screening import Abstract

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A whole abstract stands on one line in many exports; one of four million letters is no abstract."""

MAX_RECORD_CHARACTERS = 8 * 1024 * 1024
"""A longer record has lost its end: what follows is read from the next one on."""


class Block:
    """The lines of one record as they are gathered; what doesn't fit in memory or isn't text is its ``problem``."""

    def __init__(self, number: int, line: int) -> None:
        self.number, self.line, self.ended = number, line, False
        self.texts: list[str] = []
        self.problem: InputError | None = None
        self._characters = 0

    def add(self, text: str, problem: InputError | None) -> None:
        """Add a line, unless the record has outgrown what a record may be."""
        self.problem = self.problem or problem
        self._characters += len(text)
        if self._characters <= MAX_RECORD_CHARACTERS:
            self.texts.append(text)
        elif self.texts:
            self.texts = []
            cure = "Look for the end of the record that is missing."
            too_long = f"is longer than {MAX_RECORD_CHARACTERS // 2**20} MiB"
            self.problem = InputError(too_long, cure=cure, line=self.line)

    def placed(self, error: InputError) -> InputError:
        """Return an error with the place of the record."""
        field = f"record {self.number}" + (f", {error.field}" if error.field else "")
        return InputError(error.problem, cure=error.cure, line=error.line or self.line, field=field)

    def read(self, reader: Callable[[Block, str], Abstract], source: str) -> Abstract | InputError:
        """Return what a reader makes of the record, or what is wrong with it and where."""
        try:
            if self.problem is not None:
                raise self.problem
            return reader(self, source)
        except InputError as error:
            return self.placed(error)


def read_blocks(
    stream: BinaryIO, begins: re.Pattern[str], ends: re.Pattern[str] | None = None, stray: str = ""
) -> Iterator[Block | InputError]:
    """Yield the records of a file, each of which begins at a line of its own, and ends as ``ends`` says or at the next.

    A line that is part of no record is an error, the first of several, whose cure is ``stray``. What stands before the
    first record (an export's own header) is passed over where records have an end.
    """
    block: Block | None = None
    number, strayed = 0, not stray
    for line, raw, _ in read_raw_lines(stream, max_bytes=MAX_LINE_BYTES):
        text, problem = _decoded(line, raw)
        if begins.match(text):
            if block is not None:
                yield block
            number, strayed = number + 1, not stray
            block = Block(number, line)
        if block is not None:
            block.add(text, problem)
            if ends is not None and ends.match(text):
                block.ended = True
                yield block
                block = None
        elif text.strip() and not strayed and (number or ends is None):
            strayed = True
            yield InputError("stands outside of any record", cure=stray, line=line)
    if block is not None:
        yield block


def _decoded(line: int, raw: bytes | None) -> tuple[str, InputError | None]:
    """Return the text of a line, and what is wrong with it if anything is."""
    if raw is None:
        problem, cure = f"is longer than {MAX_LINE_BYTES // 2**20} MiB", "Break the line, or remove the record."
        return "", InputError(problem, cure=cure, line=line)
    raw = raw.rstrip(b"\r\n")
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "replace"), not_utf8(error, line, of_line=True)
