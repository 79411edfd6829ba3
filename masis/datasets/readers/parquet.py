"""Reads the rows of a Parquet file within the limits of other files.

Parquet writes a run of equal values as one value and its count, and refers to a repeated text by
number, so a file of a kilobyte can hold a list of a billion nulls or a million copies of a long
text. Columns of text are therefore kept as references (``read_dictionary``), and a row is measured
before its values become Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from masis.datasets.readers.lines import MAX_LINE_BYTES
from masis.errors import InputError
from masis.schema import limits

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

FREE_VALUES = 20_000_000
VALUES_PER_BYTE = 50
"""A file may hold this many values for each of its bytes, or ``FREE_VALUES`` if that is more.

A value takes up to 8 bytes until it becomes a Python object. A table whose texts differ has fewer
than one value for each byte, and a column with one value in all rows several thousand.
"""

_ROWS_AT_ONCE = 256

_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


class ParquetRow(NamedTuple):
    """One row of a file with ``rows`` rows: its number from 1, and its content or its problem."""

    number: int
    rows: int
    value: dict[str, Any] | InputError


class _Size(NamedTuple):
    """The number of values in columns, lists and objects included, and the bytes of their texts."""

    values: int
    bytes: int

    def plus(self, other: _Size) -> _Size:
        return _Size(self.values + other.values, self.bytes + other.bytes)


def read_parquet(stream: BinaryIO, most_bytes: int) -> Iterator[ParquetRow]:
    """Yield the rows of a Parquet file.

    Args:
        stream: The file, which must be seekable.
        most_bytes: The most bytes of text in the whole file, without compression.

    Raises:
        InputError: The file can't be read, or holds more values or text than is allowed.

    """
    number, unpacked = 0, 0
    try:
        file = parquet.ParquetFile(stream)
        _check_claims(file, stream.seek(0, 2), most_bytes)
        texts = [column.path for column in _columns(file) if column.physical_type == "BYTE_ARRAY"]
        file = parquet.ParquetFile(stream, read_dictionary=texts)
        for batch in _read_batches(file):
            size = _size_of(batch)
            unpacked += size.bytes
            if unpacked > most_bytes:
                raise _oversized_error("text", "")
            for value in _values(batch, size):
                number += 1
                yield ParquetRow(number, file.metadata.num_rows, value)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"isn't a readable Parquet file ({str(error)[:120]})", hint="Write it again."
        ) from error


def _read_batches(file: parquet.ParquetFile) -> Iterator[RecordBatch]:
    """Yield the rows of a file in batches that don't cross row groups.

    Each group has references of its own, and Arrow can't join those of texts in lists and objects.
    """
    for group in range(file.metadata.num_row_groups):
        yield from file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=[group])


def _columns(file: parquet.ParquetFile) -> list[Any]:
    schema = file.metadata.schema
    return [schema.column(place) for place in range(len(schema))]


def _check_claims(file: parquet.ParquetFile, size: int, most_bytes: int) -> None:
    """Raise InputError if a file says that it holds too much.

    The reader doesn't read more values than a column's metadata claims.
    """
    values = fixed = 0
    columns = _columns(file)
    for group in range(file.metadata.num_row_groups):
        for place, column in enumerate(columns):
            count = file.metadata.row_group(group).column(place).num_values
            values += count
            if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                fixed += count * column.length
    if values > (most := max(FREE_VALUES, VALUES_PER_BYTE * size)):
        raise _oversized_error(f"{values:,} values", f", more than {most:,}")
    if fixed > most_bytes:
        raise _oversized_error("binary data", "")


def _oversized_error(what: str, than: str) -> InputError:
    more = than or " that unpacks to more than is allowed"
    return InputError(f"holds {what}{more}", hint="Import its parts.")


def _values(batch: RecordBatch, size: _Size) -> Iterator[dict[str, Any] | InputError]:
    """Yield the rows of a batch; each large one is measured by itself first."""
    if size.values <= limits.PARQUET_VALUES and size.bytes <= MAX_LINE_BYTES:
        yield from batch.to_pylist()
        return
    for place in range(batch.num_rows):
        row = batch.slice(place, 1)
        own = _size_of(row)
        if own.values > limits.PARQUET_VALUES:
            yield limits.limit_error("parquet_values", f"holds {own.values:,} values")
        elif own.bytes > MAX_LINE_BYTES:
            most = f"{MAX_LINE_BYTES // 2**20} MiB"
            yield InputError(f"holds more than {most} of text", hint="Split the case.")
        else:
            yield from row.to_pylist()


def _size_of(batch: RecordBatch) -> _Size:
    size = _Size(0, 0)
    for column in batch.columns:
        size = size.plus(_measure(column))
    return size


def _measure(array: Array) -> _Size:
    """Return the size of an array's values; a slice counts only its own."""
    kind, size = array.type, _Size(len(array), 0)
    if pa.types.is_dictionary(kind):
        # Text, as ``read_dictionary`` reads it, or a category of another kind.
        if not any(is_text(kind.value_type) for is_text in _TEXTS):
            return size
        lengths = pc.binary_length(array.dictionary)
        return size._replace(bytes=pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_map(kind):
        start, end = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        inner = [part.slice(start, end - start) for part in (array.keys, array.items)]
    elif pa.types.is_struct(kind):
        inner = array.flatten()
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        inner = [array.flatten()]
    elif any(is_text(kind) for is_text in _TEXTS):
        return size._replace(bytes=pc.sum(pc.binary_length(array)).as_py() or 0)
    else:
        inner = []
    for part in inner:
        size = size.plus(_measure(part))
    return size
