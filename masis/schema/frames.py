"""Rows of data frames, Arrow tables and Hugging Face data sets.

They are recognised by their attributes, so that none of these libraries is imported.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.reading import FieldMap, check_field_map, columns_in


def is_frame(source: Any) -> bool:
    """Return whether a value is a data frame, an Arrow table or a Hugging Face data set."""
    return (
        hasattr(source, "to_pylist")
        or (hasattr(source, "columns") and hasattr(source, "itertuples"))
        or (hasattr(source, "column_names") and hasattr(source, "features"))
    )


def rows_of(source: Any, names: FieldMap | None = None) -> Iterable[Mapping[str, Any]]:
    """Return the rows of a frame, table, data set or iterable as mappings of plain values.

    Missing values of a frame are left out.

    Raises:
        InputError: The source is none of these, or lacks a column that ``names`` maps.

    """
    if isinstance(source, str | bytes | Mapping | BaseModel) or (
        not isinstance(source, Iterable) and not is_frame(source)
    ):
        raise InputError(
            f"is {kind_of(source)}, not rows",
            hint="Give a path, a data frame, or a list of mappings.",
            field="cases",
        )
    if not is_frame(source):
        rows: Iterable[Mapping[str, Any]] = source
        return rows
    columns = [str(column) for column in getattr(source, "column_names", None) or source.columns]
    for field, key in check_field_map(names or {}).items():
        for part in () if key is None or "." in field else columns_in(columns, key):
            if part not in columns and part.partition(".")[0] not in columns:
                near = difflib.get_close_matches(part, columns, n=1)
                hint = (
                    f"Did you mean {near[0]!r}?"
                    if near
                    else f"There are: {', '.join(columns[:20])}."
                )
                raise InputError(
                    f"names the column {part!r} for {field}, which doesn't exist",
                    hint=hint,
                    field="map",
                )
    return _frame_rows(source)


def _frame_rows(source: Any) -> Iterator[dict[str, Any]]:
    if hasattr(source, "to_pylist"):
        rows: Iterable[Any] = (
            # to_pylist() of the whole table would build a Python object of every cell at once.
            row
            for batch in source.to_batches(1000)
            for row in batch.to_pylist()
        )
    elif hasattr(source, "itertuples"):
        columns = [str(column) for column in source.columns]
        rows = (
            dict(zip(columns, row, strict=True))
            # name=None gives plain tuples. Named ones rename columns that aren't identifiers.
            for row in source.itertuples(index=False, name=None)
        )
    else:
        rows = iter(source)
    for row in rows:
        yield {key: value for key, value in to_plain_value(row).items() if value is not None}


def to_plain_value(value: Any) -> Any:
    """Convert a value of a data frame or Parquet file to JSON types.

    Dates become ISO 8601 texts, arrays lists, and NaN None.
    """
    match value:
        case dict():
            return {str(key): to_plain_value(item) for key, item in value.items()}
        case list() | tuple():
            return [to_plain_value(item) for item in value]
        case None | str() | bool() | int():
            return value
        case float():
            return None if value != value else value  # NaN, as pandas writes what is missing
        case Decimal():
            return float(value)
        case datetime() | date() | time():
            # pandas' NaT is a datetime and, like NaN, differs from itself.
            return None if value != value else value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return to_plain_value(value.tolist())
    # pd.NA can't be compared: pd.NA == pd.NA is pd.NA, whose truth value is an error.
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)
