"""Ids that occur in several rows of a lake: parts are audited side by side, so that only the whole shows them."""

from __future__ import annotations

from typing import NamedTuple

from masis.datasets.lake import open_lake

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
    """Return the ids that occur in several rows; ``named`` of them with their rows. Holds the column of ids.

    Raises InputError where ``place``, a folder or an address that fsspec reads, is no lake.
    """
    from pyarrow import compute, dataset

    lake = open_lake(place)
    counts = lake.to_table(columns=["case_id"]).group_by("case_id").aggregate([("case_id", "count")])
    twice = sorted(counts.filter(compute.field("case_id_count") > 1)["case_id"].to_pylist())
    if not twice:
        return Repeats(0, ())
    wanted = dataset.field("case_id").isin(twice[:named])
    found = lake.to_table(columns=["case_id", "source", "source_offset", "source_row"], filter=wanted).to_pylist()
    rows: dict[str, list[tuple[str, int, int]]] = {name: [] for name in twice[:named]}
    for row in found:
        rows[row["case_id"]].append((row["source"], row["source_offset"], row["source_row"]))
    return Repeats(len(twice), tuple(Repeat(name, tuple(sorted(places))) for name, places in rows.items()))
