"""What a measurement runs on: rows of one shape for every set, and the split into a half to fit on
and one to report on.

A row is a claim, the evidence to check it against, and a label by people. Rows that share a
question or a document belong together: a group goes whole into one half, by a hash of its smallest
key, so that nothing is fitted on what is reported.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Half = Literal["report", "fit", "all"]


class BenchRow(NamedTuple):
    """A claim with its evidence (id, text) and label. `positive` says that people found it *not*
    supported.

    `keys` are what must not be shared between halves (the question, the documents). `strict` is a
    second reading of the label where a set has one (WiCE: not supported at all). `cites_nothing`:
    the claim has no reference, or none that names evidence, so that the citation engine decides
    before any evidence is weighed. `planted` is what was altered in it.
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
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    firsts = []
    for row in keys:
        row_keys = [_row_digest(key) for key in row]
        firsts.append(row_keys[0])
        for key in row_keys:
            a, b = sorted((root(row_keys[0]), root(key)))
            parent[b] = a
    return [root(first) for first in firsts]


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
    found = zip(rows, group_keys([row.keys for row in rows]), strict=True)
    return [(row, group) for row, group in found if half in ("all", half_of(group))]
