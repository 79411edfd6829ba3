"""Formats lines of JSON (UTF-8, whole lines only) and of CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

from masis.schema.case import Case

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_START = re.compile(r"[\s']*[=+\-@＝＋－＠]")
"""Text that a spreadsheet may run as a formula (OWASP, CSV injection), also in full-width signs.

Leading apostrophes are included so that ``escape_formula`` can be reversed.
"""


def case_line(case: Case) -> str:
    """Return a case as a line of JSON; reading it again gives an equal case."""
    return json.dumps(case.to_json_dict(), ensure_ascii=False, separators=(", ", ": "))


def write_line(text: str, out: BinaryIO) -> None:
    """Write one line of text and flush it."""
    out.write(text.encode() + b"\n")
    out.flush()  # readers see only whole lines, even if the process is killed


def escape_formula(text: str) -> str:
    """Return a cell that no spreadsheet runs: text like a formula gets a leading apostrophe.

    This is reversible, since a cell that already has an apostrophe before its formula gets a
    second.
    """
    return f"'{text}" if _FORMULA_START.match(text) else text


def csv_line(cells: Iterable[object]) -> bytes:
    """Return values as a line of CSV in which no cell is run as a formula; None is empty."""
    line = io.StringIO()
    csv.writer(line).writerow("" if cell is None else escape_formula(str(cell)) for cell in cells)
    return line.getvalue().encode()


def frame_csv(frame: pd.DataFrame, *, header: bool = True) -> bytes:
    """Return a table as CSV in which no cell is run as a formula."""
    safe = frame.map(lambda cell: escape_formula(cell) if isinstance(cell, str) else cell)
    return safe.to_csv(index=False, header=header).encode()
