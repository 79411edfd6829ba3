"""Lines of JSON (UTF-8, whole lines only) and of CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import BinaryIO

from masis.schema.case import Case

_FORMULA_START = re.compile(r"[\s']*[=+\-@＝＋－＠]")


def case_line(case: Case) -> str:
    """Return one case unchanged as a line of JSON: reading it again gives an equal case."""
    return json.dumps(case.to_json_dict(), ensure_ascii=False, separators=(", ", ": "))


def write_line(text: str, out: BinaryIO) -> None:
    """Write one line of text and flush it."""
    out.write(text.encode() + b"\n")
    out.flush()  # a reader, or a killed process, finds whole lines


def escape_formula(text: str) -> str:
    """Return a cell that no spreadsheet runs: what begins like a formula gets an apostrophe before
    it.

    It can be undone, since a cell that had one before its formula gets a second.
    """
    return f"'{text}" if _FORMULA_START.match(text) else text


def csv_line(cells: Iterable[object]) -> bytes:
    """Return values as one line of CSV, each as a cell that no spreadsheet runs; None is empty."""
    line = io.StringIO()
    csv.writer(line).writerow("" if cell is None else escape_formula(str(cell)) for cell in cells)
    return line.getvalue().encode()
