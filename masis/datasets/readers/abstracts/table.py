"""Tables of records, separated by commas, semicolons or tabs: exports of Scopus, Rayyan, Covidence, ASReview, PubMed.

The first line names the columns; what a tool calls them is understood as in JSON Lines, and columns that are no field
are kept. A column of inclusion decisions is read back as overrides elsewhere (``decisions``).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import BinaryIO

from masis.datasets.readers.abstracts.json_lines import read_fields
from masis.datasets.readers.abstracts.text_lines import MAX_LINE_BYTES, TextLine, read_text_lines
from masis.errors import InputError
from masis.schema.screening import Abstract

SIGN = re.compile(rb"[^\n]{0,4000}?(?<![a-z0-9])(?:title|article title)\"?[ \t]{0,10}(?=[,;\t\r\n])", re.IGNORECASE)
"""A first line with a column that is called title."""
_NO_NAME = re.compile(r"[^a-z0-9]+")


def read_table(stream: BinaryIO, *, source: str) -> Iterator[tuple[int, Abstract | InputError]]:
    """Yield every row with the line it ends at, or an error where it can't be read."""
    broken: list[InputError] = []
    lines = read_text_lines(stream)
    head = next(lines, TextLine(1, ""))
    separator = max(",;\t", key=head.text.count)

    def texts() -> Iterator[str]:
        yield head.text + "\n"
        for line in lines:
            if line.problem is not None:
                broken.append(line.problem)
            yield line.text + "\n"

    csv.field_size_limit(MAX_LINE_BYTES)
    rows = csv.reader(texts(), delimiter=separator)
    names: list[str] = []
    try:
        for row in rows:
            if not names:
                names = [_NO_NAME.sub("_", each.lower()).strip("_") for each in row]
                continue
            fields = {name: value.strip() for name, value in zip(names, row, strict=False) if name and value.strip()}
            if broken:
                yield rows.line_num, broken.pop()
                broken.clear()
            elif fields:
                yield rows.line_num, read_fields(fields, source, rows.line_num)
    except csv.Error as error:
        yield (
            rows.line_num,
            InputError(f"is no table that can be read ({error})", cure="Save it as CSV again.", line=rows.line_num),
        )
