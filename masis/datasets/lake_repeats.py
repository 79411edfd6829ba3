"""Ids that occur in several rows of a lake: parts are audited side by side, so that only the whole shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from masis.datasets.lake import open_lake

ROWS_AT_ONCE = 50_000
NAMED = 10
"""Ids that are named; the others are counted."""


class Repeat(NamedTuple):
    """An id, and the rows of the input that have it: file, what its rows are counted from, and the row from there."""

    case_id: str
    rows: tuple[tuple[str, int, int], ...]


class Repeats(NamedTuple):
    """How many ids occur in several rows, and the first of them by name."""

    total: int
    named: tuple[Repeat, ...]


def repeated_ids(place: str, named: int = NAMED) -> Repeats:
    """Return the ids that occur in several rows. Holds eight bytes a row while it reads the column of ids.

    Args:
        place: A lake: a folder, or an address that fsspec reads.
        named: How many ids are named, with their rows.

    Raises:
        InputError: There is no lake.

    """
    hashes = np.concatenate([_hashed(ids) for (ids,) in _columns(place, "case_id")] or [np.empty(0, np.uint64)])
    hashes.sort()
    twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    del hashes
    if not len(twice):
        return Repeats(0, ())
    rows: dict[str, list[tuple[str, int, int]]] = {}
    for ids, *where in _columns(place, "case_id", "source", "source_offset", "source_row"):
        for index in np.flatnonzero(np.isin(_hashed(ids), twice)):
            source, offset, row = (column[index] for column in where)
            rows.setdefault(ids[index], []).append((str(source), int(offset), int(row)))
    found = sorted(case_id for case_id, places in rows.items() if len(places) > 1)
    return Repeats(len(found), tuple(Repeat(case_id, tuple(sorted(rows[case_id]))) for case_id in found[:named]))


def _columns(place: str, *names: str) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield columns, some thousand rows at a time; rows that hold no case have no id and are left out."""
    for batch in open_lake(place).to_batches(columns=list(names), batch_size=ROWS_AT_ONCE):
        held = batch.filter(batch.column("case_id").is_valid())
        if held.num_rows:
            yield tuple(held.column(name).to_numpy(zero_copy_only=False) for name in names)


def _hashed(ids: NDArray[Any]) -> NDArray[np.uint64]:
    return pd.util.hash_array(ids, categorize=False)
