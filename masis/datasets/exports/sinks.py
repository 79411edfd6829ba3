"""Where rows go: JSON Lines, one JSON list, CSV or Parquet, each written as rows come, with a digest of its bytes."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Protocol

from pydantic_core import to_json

from masis.datasets.writers.lines import escape_formula

Encoding = str
ENCODINGS = ("jsonl", "csv", "parquet")
"""How flat rows can be written; the other formats have one encoding of their own."""

_NUMBERS = {"support": "float64", "confidence": "float64", "start": "int64", "end": "int64", "iteration": "int64"}
REPEATED = frozenset(
    [
        *("case_id", "split", "question", "reviewer", "decision", "in_force", "entry_id", "decided_at"),
        *("run_id", "iteration", "answer"),
    ]
)
"""Columns of flat rows that are the same in all rows of a judgement, and make up most of a file."""

_ROWS_A_GROUP = 5_000
_HELD = 1 << 16
"""Bytes that are written at once."""


class Sink(Protocol):
    """Takes rows and writes them."""

    def write(self, row: dict[str, Any]) -> None:
        """Write one row."""

    def close(self) -> None:
        """Write what is left; the stream stays open."""


class DigestStream(io.RawIOBase):
    """Passes bytes on to a stream and digests them."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out, self._digest, self.size = out, hashlib.sha256(), 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Any) -> int:
        """Write and digest bytes; returns how many."""
        raw = bytes(content)
        self._out.write(raw)
        self._digest.update(raw)
        self.size += len(raw)
        return len(raw)

    @property
    def sha256(self) -> str:
        """The digest of everything written."""
        return self._digest.hexdigest()


def sink_for(encoding: Encoding, out: DigestStream, columns: Sequence[str]) -> Sink:
    """Return the sink for an encoding: jsonl, json (one list), csv or parquet."""
    match encoding:
        case "csv":
            return _Csv(out, columns)
        case "parquet":
            return _Parquet(out, columns)
        case "json":
            return _JsonList(out)
        case _:
            return _JsonLines(out)


class _JsonLines:
    def __init__(self, out: DigestStream) -> None:
        self._out, self._held = out, bytearray()

    def write(self, row: dict[str, Any]) -> None:
        self._held += to_json(row)
        self._held += b"\n"
        if len(self._held) >= _HELD:
            self.close()

    def close(self) -> None:
        self._out.write(self._held)
        self._held = bytearray()


class _JsonList:
    def __init__(self, out: DigestStream) -> None:
        self._out, self._before = out, b"[\n"

    def write(self, row: dict[str, Any]) -> None:
        self._out.write(self._before + to_json(row))
        self._before = b",\n"

    def close(self) -> None:
        self._out.write(b"\n]\n" if self._before == b",\n" else b"[]\n")


class _Csv:
    """Cells that a spreadsheet would run get an apostrophe before them; ``unescaped_cell`` takes it away again."""

    def __init__(self, out: DigestStream, columns: Sequence[str]) -> None:
        self._out, self._held = out, io.StringIO()
        self._parts = [_Cells(part, name in REPEATED) for name, part in _parts(columns)]
        csv.writer(self._held).writerow(columns)

    def write(self, row: dict[str, Any]) -> None:
        self._held.write(",".join([part.text(row) for part in self._parts]))
        self._held.write("\r\n")
        if self._held.tell() >= _HELD:
            self.close()

    def close(self) -> None:
        self._out.write(self._held.getvalue().encode())
        self._held = io.StringIO()


def _parts(columns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the columns in parts that change together, each with the name of its first."""
    for _, part in itertools.groupby(columns, lambda name: name in REPEATED):
        names = tuple(part)
        yield names[0], names


class _Cells:
    """Columns side by side as CSV; where they are ``repeated``, what was written of the same values is known."""

    def __init__(self, columns: Sequence[str], repeated: bool) -> None:
        self._columns, self._repeated = columns, repeated
        self._line = csv.writer(_Echo()).writerow
        self._values: list[Any] = []
        self._text = ""

    def text(self, row: dict[str, Any]) -> str:
        """Return the cells of a row."""
        values = [row[name] for name in self._columns]
        if self._repeated:
            if self._values and all(map(operator.is_, values, self._values)):
                return self._text
            self._values = values  # held, so that no other value can take the place of one of them
        cells = [f"'{each}" if isinstance(each, str) and _runs(each) else each for each in values]
        line: str = self._line(["", *cells])  # the first: an empty cell alone in its row would be quoted
        self._text = line[1:-2]
        return self._text


class _Echo:
    """Gives back what a writer of CSV writes to it, which the writer then returns."""

    def write(self, text: str) -> str:
        return text


def escaped_cell(text: str) -> str:
    """Return a cell that no spreadsheet runs, in a way that can be undone."""
    return f"'{text}" if _runs(text) else text


def unescaped_cell(text: str) -> str:
    """Return the text of a cell that ``escaped_cell`` made."""
    return text[1:] if text.startswith("'") and _runs(text[1:]) else text


def _runs(text: str) -> bool:
    if text[:1].isalnum():  # most cells: no more to look at
        return False
    bare = text.lstrip("' \t\r\n")
    return escape_formula(bare) != bare


class _Parquet:
    def __init__(self, out: DigestStream, columns: Sequence[str]) -> None:
        import pyarrow
        import pyarrow.parquet

        types = [(name, "bool" if name == "in_force" else _NUMBERS.get(name, "string")) for name in columns]
        self._schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types])
        self._table = pyarrow.Table
        self._writer = pyarrow.parquet.ParquetWriter(out, self._schema)
        self._rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()
