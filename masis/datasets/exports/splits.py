"""Assigns questions to the sides of a split by a hash, with near-duplicates on the same side.

Two questions are near-duplicates if they share enough content words, estimated by MinHash. A
question takes 200 bytes, so a million fit into memory although their texts wouldn't.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SPLITS = ("train", "validation", "test")

_BANDS, _ROWS = 15, 5
"""Two questions are compared if they agree in one of 15 bands of 5 hashes.

That has a probability of 0.94 if they share 0.7 of their words, and of 0.99 at 0.8.
"""

_NEAR_SHARE = 0.7
"""The share of equal hashes, and so roughly of words, from which questions are near-duplicates."""

_MOST_NEIGHBOURS = 50
"""Maximum number of neighbors in a band that a question is compared with.

Templates fill a band with thousands of questions that differ.
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
    """The percentage of questions for each side; the sum is 100."""

    train: int = 80
    validation: int = 10
    test: int = 10


def assign_splits(
    questions: Iterable[str],
    shares: SplitShares = SplitShares(),  # noqa: B008 (a tuple)
) -> list[str]:
    """Return the side of each question, in order.

    A question's side depends on the hash of its words; near-duplicates of an earlier question join
    its side. Adding questions therefore moves no others, unless a new question is near to two
    questions that weren't near to each other.
    """
    bands: list[npt.NDArray[np.uint64]] = []
    bits: list[npt.NDArray[np.uint8]] = []
    points = bytearray()  # a hash of each question's words, from 0 to 99
    asked = map(content_words, questions)
    while some := list(islice(asked, _BATCH_OF_QUESTIONS)):
        lowest = _min_hashes(some)
        bands.append(_hash_bands(lowest))
        # The last 8 bits, which are equal by chance in 1 of 256.
        bits.append(lowest.astype(np.uint8))
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
    """Return the meaningful words of a question in lower case, without common endings.

    If there are none, all its words are returned.
    """
    words = _WORD.findall(question.casefold())
    content = [word for word in words if word not in _STOP]
    return frozenset(map(_stem, content or words))


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
    # 31 bits, so that the products with the coefficients fit into 64 bits. Python's own hash() of a
    # text differs between processes.
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) >> 1


def _min_hashes(questions: Sequence[frozenset[str]]) -> npt.NDArray[np.uint64]:
    """Return the lowest value of each hash function over the words of each question.

    The share of equal values estimates the share of common words (MinHash).
    """
    hashes = [[_hash_word(word) for word in words] or [0] for words in questions]
    flat = np.array(list(chain.from_iterable(hashes)), dtype=np.uint64)
    starts = np.cumsum([0, *map(len, hashes[:-1])])
    # reduceat() takes the minimum of each question's stretch of the flat array, which avoids a
    # Python loop over the questions. An empty question got the word 0, because reduceat() can't
    # reduce nothing.
    lowest: npt.NDArray[np.uint64] = np.minimum.reduceat(
        (flat[:, None] * _HASH_COEFFICIENTS[0] + _HASH_COEFFICIENTS[1]) % _PRIME, starts
    )
    return lowest


def _hash_bands(lowest: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    rows = lowest.reshape(len(lowest), _BANDS, _ROWS)
    mixed = np.zeros((len(lowest), _BANDS), dtype=np.uint64)
    for row in range(_ROWS):
        # Overflow is intended: this is a hash.
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + rows[:, :, row]
    return mixed


def _near_duplicate_groups(bands: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint8]) -> list[int]:
    """Return the first member of each question's group of direct or indirect near-duplicates."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    group = indexes = np.arange(len(bands))
    for band in range(_BANDS):
        # Equal values of a band become neighbors in this order. A stable sort keeps the earliest
        # question first.
        order = np.argsort(bands[:, band], kind="stable")
        values = bands[order, band]
        pairs = [np.stack((group, indexes))]
        for distance in range(1, min(_MOST_NEIGHBOURS, len(order) - 1) + 1):
            places = np.flatnonzero(values[distance:] == values[:-distance])
            if not len(places):
                break
            first_indexes, second_indexes = order[places], order[places + distance]
            apart = group[first_indexes] != group[second_indexes]
            first_indexes, second_indexes = first_indexes[apart], second_indexes[apart]
            near = (bits[first_indexes] == bits[second_indexes]).mean(axis=1) >= _NEAR_SHARE
            pairs.append(np.stack((first_indexes[near], second_indexes[near])))
        first_indexes, second_indexes = np.concatenate(pairs, axis=1)
        edges = np.ones(len(first_indexes), dtype=bool)
        joined = coo_array(  # type: ignore[no-untyped-call]
            (edges, (first_indexes, second_indexes)), shape=(len(bands),) * 2
        )
        _, label = connected_components(joined, directed=False)
        # The index of a label's first occurrence is the earliest question of the group.
        _, first = np.unique(label, return_index=True)
        group = first[label]
    return [int(member) for member in group]
