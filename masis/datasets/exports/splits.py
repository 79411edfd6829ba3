"""On which side of a split a question stands: by a hash of the question, near-duplicates on one
side.

Whether two questions are near-duplicates follows from the content words they share, estimated by
MinHash: a question takes 200 bytes, so that a million fit into memory where their texts would not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SPLITS = ("train", "validation", "test")

_BANDS, _ROWS = 15, 5
"""Questions are compared where they agree in one of 15 bands of 5 hashes: with probability 0.94
where they share 0.7 of their words, 0.99 at 0.8."""

_NEAR_SHARE = 0.7
"""Share of hashes, and so about of words, from which on two questions are near-duplicates."""

_MOST_NEIGHBOURS = 50
"""Neighbours that a question is compared with in a band; templates fill bands with thousands that
differ.
"""

_BATCH_OF_QUESTIONS = 1_000

_PRIME = np.uint64((1 << 31) - 1)
_HASH_COEFFICIENTS = np.random.default_rng(20260101).integers(
    1, 1 << 31, size=(2, _BANDS * _ROWS), dtype=np.uint64
)
_STOP = frozenset(
    "a an and are as at be been by can could did do does for from had has have how in into is it"
    " its of on or should that the their there these they this to was were what when where which"
    " who whom whose why will with would".split()
)
_WORD = re.compile(r"\w+")


class SplitShares(NamedTuple):
    """How much of the questions goes to each side, in parts of a hundred; they sum up to 100."""

    train: int = 80
    validation: int = 10
    test: int = 10


def assign_splits(questions: Iterable[str], shares: SplitShares = SplitShares()) -> list[str]:  # noqa: B008 (a tuple)
    """Return the side of each question, in order.

    A question goes where the hash of its words sends it, and questions near to an earlier one go
    where that went: so adding questions moves none, unless a new one is near to two that were not
    near to each other.
    """
    bands: list[npt.NDArray[np.uint64]] = []
    bits: list[npt.NDArray[np.uint8]] = []
    points = bytearray()  # of each question, from 0 to 99, by a hash of its words
    asked = map(content_words, questions)
    while some := list(islice(asked, _BATCH_OF_QUESTIONS)):
        lowest = _min_hashes(some)
        bands.append(_hash_bands(lowest))
        bits.append(lowest.astype(np.uint8))  # the last 8 bits: by chance they agree in one of 256
        digests = (hashlib.sha256(" ".join(sorted(words)).encode()).digest() for words in some)
        points.extend(int.from_bytes(digest[:8]) % 100 for digest in digests)
    if not bands:
        return []
    sides = [side for side, share in zip(SPLITS, shares, strict=True) for _ in range(share)]
    return [
        sides[points[group]]
        for group in _near_duplicate_groups(np.concatenate(bands), np.concatenate(bits))
    ]


def content_words(question: str) -> frozenset[str]:
    """The words of a question that carry its meaning, lower case, without common endings; all if
    none is left.
    """
    words = _WORD.findall(question.casefold())
    kept = [word for word in words if word not in _STOP]
    return frozenset(map(_stem, kept or words))


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    fitting = (
        ending
        for ending in ("ing", "ed", "es", "s")
        if word.endswith(ending) and len(word) - len(ending) >= 3
    )
    return word.removesuffix(next(fitting, ""))


@lru_cache(maxsize=100_000)
def _hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) >> 1


def _min_hashes(questions: Sequence[frozenset[str]]) -> npt.NDArray[np.uint64]:
    """For each question the lowest value of each hash function over its words: two agree in as many
    as they share.
    """
    hashes = [[_hash_word(word) for word in words] or [0] for words in questions]
    flat = np.array([each for some in hashes for each in some], dtype=np.uint64)
    starts = np.cumsum([0, *map(len, hashes[:-1])])
    found: npt.NDArray[np.uint64] = np.minimum.reduceat(
        (flat[:, None] * _HASH_COEFFICIENTS[0] + _HASH_COEFFICIENTS[1]) % _PRIME, starts
    )
    return found


def _hash_bands(lowest: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    rows = lowest.reshape(len(lowest), _BANDS, _ROWS)
    mixed = np.zeros((len(lowest), _BANDS), dtype=np.uint64)
    for row in range(_ROWS):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + rows[:, :, row]  # wraps round: a hash
    return mixed


def _near_duplicate_groups(bands: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint8]) -> list[int]:
    """For each question the first one of its group: near-duplicates, directly or through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    group = every = np.arange(len(bands))
    for band in range(_BANDS):
        order = np.argsort(bands[:, band], kind="stable")
        values = bands[order, band]
        pairs = [np.stack((group, every))]
        for distance in range(1, min(_MOST_NEIGHBOURS, len(order) - 1) + 1):
            places = np.flatnonzero(values[distance:] == values[:-distance])
            if not len(places):
                break
            ones, others = order[places], order[places + distance]
            apart = group[ones] != group[others]
            ones, others = ones[apart], others[apart]
            near = (bits[ones] == bits[others]).mean(axis=1) >= _NEAR_SHARE
            pairs.append(np.stack((ones[near], others[near])))
        ones, others = np.concatenate(pairs, axis=1)
        edges = np.ones(len(ones), dtype=bool)
        joined = coo_array((edges, (ones, others)), shape=(len(bands),) * 2)  # type: ignore[no-untyped-call]
        _, label = connected_components(joined, directed=False)
        _, first = np.unique(label, return_index=True)
        group = first[label]
    return [int(each) for each in group]
