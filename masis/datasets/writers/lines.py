"""Writes runs and cases as JSON Lines (UTF-8, whole lines only), and cells of CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import BinaryIO

from masis.schema.case import Case
from masis.schema.run import Run

_RUNS = re.compile(r"[\s']*[=+\-@＝＋－＠]")


def write_run(run: Run, out: BinaryIO) -> None:
    """Write one run as its model dumps it, a line of RUNS.jsonl."""
    write_line(run.model_dump_json(), out)


def write_case(case: Case, out: BinaryIO) -> None:
    """Write one case unchanged: reading the line again gives an equal case."""
    write_line(json.dumps(case.to_json_dict(), ensure_ascii=False, separators=(", ", ": ")), out)


def write_line(text: str, out: BinaryIO) -> None:
    """Write one line of text and flush it."""
    out.write(text.encode() + b"\n")
    out.flush()  # a reader, or a killed process, finds whole lines


def escape_formula(text: str) -> str:
    """Return a cell that no spreadsheet runs: what begins like a formula gets an apostrophe before it.

    It can be undone, since a cell that had one before its formula gets a second.
    """
    return f"'{text}" if _RUNS.match(text) else text


def csv_line(cells: Iterable[object]) -> bytes:
    """Return values as one line of CSV, each as a cell that no spreadsheet runs; None is empty."""
    line = io.StringIO()
    csv.writer(line).writerow("" if cell is None else escape_formula(str(cell)) for cell in cells)
    return line.getvalue().encode()
