"""Where rows go: JSON Lines, one JSON list, CSV or Parquet, each written as rows come, with a digest of its bytes."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from pydantic_core import to_json

from masis.datasets.writers.lines import escape_formula

ENCODINGS = ("jsonl", "csv", "parquet")
"""How flat rows can be written; the other formats have one encoding of their own."""

_TYPES = {"support": "float64", "confidence": "float64", "start": "int64", "end": "int64", "iteration": "int64"} | {
    "in_force": "bool"
}
"""The types of columns in Parquet; the others are texts."""

_ROWS_AT_ONCE = 5_000
"""Rows of a group in Parquet."""


class DigestStream(io.RawIOBase):
    """Passes bytes on to a stream and digests them."""

    def __init__(self, out: BinaryIO) -> None:
        super().__init__()
        self._out, self._digest, self._size = out, hashlib.sha256(), 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Any) -> int:
        """Write and digest bytes; returns how many."""
        raw = bytes(content)
        self._out.write(raw)
        self._digest.update(raw)
        self._size += len(raw)
        return len(raw)

    def described(self, name: str, rows: int) -> dict[str, Any]:
        """Return what a manifest says of the file of this name: its rows, its size, the digest of all its bytes."""
        return {"name": name, "rows": rows, "bytes": self._size, "sha256": self._digest.hexdigest()}


class Sink:
    """Takes rows and writes them: as JSON Lines, or as one JSON list."""

    def __init__(self, out: DigestStream, *, as_list: bool = False) -> None:
        self._out = out
        self._before, self._behind, self._end = (b"[\n", b"", b"\n]\n") if as_list else (b"", b"\n", b"")
        self._empty = b"[]\n" if as_list else b""

    def write(self, row: dict[str, Any]) -> None:
        """Write one row."""
        self._out.write(self._before + to_json(row) + self._behind)
        if self._end:
            self._before, self._empty = b",\n", self._end

    def close(self) -> None:
        """Write what is left; the stream stays open."""
        self._out.write(self._empty)


class _Csv(Sink):
    def __init__(self, out: DigestStream, columns: Sequence[str]) -> None:
        super().__init__(out)
        self._text = io.TextIOWrapper(cast("BinaryIO", out), "utf-8", newline="")
        self._rows = csv.DictWriter(self._text, columns, extrasaction="ignore")
        self._rows.writeheader()

    def write(self, row: dict[str, Any]) -> None:
        self._rows.writerow(
            {name: escape_formula(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        )

    def close(self) -> None:
        self._text.detach()


class _Parquet(Sink):
    def __init__(self, out: DigestStream, columns: Sequence[str]) -> None:
        import pyarrow
        import pyarrow.parquet

        super().__init__(out)
        types = [(name, pyarrow.type_for_alias(_TYPES.get(name, "string"))) for name in columns]
        self._schema, self._table = pyarrow.schema(types), pyarrow.Table
        self._writer = pyarrow.parquet.ParquetWriter(out, self._schema)
        self._rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()
        self._rows.append(row)

    def _flush(self) -> None:
        self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()


def sink_for(encoding: str, out: DigestStream, columns: Sequence[str]) -> Sink:
    """Return the sink for an encoding: jsonl, json (one list), csv or parquet."""
    if encoding == "csv":
        return _Csv(out, columns)
    return _Parquet(out, columns) if encoding == "parquet" else Sink(out, as_list=encoding == "json")
