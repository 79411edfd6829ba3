"""The rows of a measurement, in the same form for all sets, and their split into two halves.

A row is a claim, the evidence to check it against, and a label by people. Rows that share a
question or a document form a group. A whole group belongs to one half, by a hash of its smallest
key, so that nothing is fitted on reported rows.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Half = Literal["report", "fit", "all"]


class BenchRow(NamedTuple):
    """A claim with its evidence (id, text) and label.

    Attributes:
        positive: Whether people found the claim *not* supported.
        keys: The values that the halves must not share (the question, the documents).
        strict: A second reading of the label, if the set has one (WiCE: not supported at all).
        cites_nothing: Whether the claim has no reference, or none that names evidence. The citation
            engine then decides, and no evidence is weighed.
        planted: The change that was planted in the claim.

    """

    id: str
    claim: str
    evidence: tuple[tuple[str, str], ...]
    positive: bool
    keys: tuple[str, ...]
    strict: bool | None = None
    cites_nothing: bool = False
    planted: str | None = None


def group_keys(keys: Sequence[Iterable[str]]) -> list[str]:
    """Return for each row the smallest key of all rows connected with it through shared keys."""
    # Union-find: the smaller of two roots becomes the parent, so that the root of a group is its
    # smallest key, regardless of the order of the rows.
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]  # halve the path for later lookups
            key = parent[key]
        return key

    first_keys = []
    for row in keys:
        row_keys = [_row_digest(key) for key in row]
        first_keys.append(row_keys[0])
        for key in row_keys:
            smaller, larger = sorted((root(row_keys[0]), root(key)))
            parent[larger] = smaller
    return [root(first) for first in first_keys]


def _row_digest(key: str) -> str:
    return hashlib.sha256(" ".join(key.split()).encode()).hexdigest()


def half_of(group: str) -> Literal["fit", "report"]:
    """Return the half a group belongs to, by the parity of a hash of its key."""
    return (
        "fit"
        if int(hashlib.sha256(f"masis:{group}".encode()).hexdigest(), 16) % 2 == 0
        else "report"
    )


def in_half(rows: Sequence[BenchRow], half: Half) -> list[tuple[BenchRow, str]]:
    """Return the rows of the half, each with its group."""
    grouped = zip(rows, group_keys([row.keys for row in rows]), strict=True)
    return [(row, group) for row, group in grouped if half in ("all", half_of(group))]
