"""Runs and cases as JSON Lines, UTF-8: one record a line, whole lines only."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import BinaryIO

from masis.schema.case import Case
from masis.schema.run import Run


def write_run(run: Run, out: BinaryIO) -> None:
    """One run as its model dumps it: the public contract's RUNS.jsonl (DESIGN.md, section 6)."""
    write_line(run.model_dump_json(), out)


def write_case(case: Case, out: BinaryIO) -> None:
    """One case as it came in: reading the line again gives an equal case."""
    write_line(json.dumps(case.to_json_dict(), ensure_ascii=False, separators=(", ", ": ")), out)


def write_line(text: str, out: BinaryIO) -> None:
    """One line of text, at once."""
    out.write(text.encode() + b"\n")
    out.flush()  # a reader, or a killed process, finds whole lines


def escape_formula(text: str) -> str:
    """Text as a cell that no spreadsheet runs: what begins like a formula gets an apostrophe before it."""
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")) else text


def csv_line(cells: Iterable[str]) -> bytes:
    """Return the cells as one line of CSV."""
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()
