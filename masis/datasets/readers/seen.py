"""Which ids a file has named so far, and for which content: 20 bytes a row, so that a million rows take 20 MB."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

HELD = 20_000
"""Ids that are held one by one before they are packed."""


class First(NamedTuple):
    """Where an id came first, and the beginning of the digest of its content."""

    number: int
    digest: int


class SeenIds:
    """Remembers ids by 64 bits of their digest: of a million, two are taken for one once in 37 million files."""

    def __init__(self) -> None:
        self._recent: dict[int, First] = {}
        self._keys: npt.NDArray[np.uint64] | None = None
        self._digests: npt.NDArray[np.uint64] | None = None
        self._numbers: npt.NDArray[np.uint32] | None = None

    def first(self, identifier: str, number: int, digest: str) -> First:
        """Return where this id came first: here, unless it was seen before. ``digest`` is hexadecimal."""
        key = int.from_bytes(hashlib.blake2b(identifier.encode(errors="surrogatepass"), digest_size=8).digest())
        found = self._recent.get(key) or self._packed(key)
        if found is not None:
            return found
        self._recent[key] = First(number, int(digest[:16], 16))
        if len(self._recent) >= HELD:
            made = self._recent[key]
            self._pack()
            return made
        return self._recent[key]

    def _packed(self, key: int) -> First | None:
        if self._keys is None or self._digests is None or self._numbers is None:
            return None
        at = int(self._keys.searchsorted(self._keys.dtype.type(key)))
        if at == len(self._keys) or int(self._keys[at]) != key:
            return None
        return First(int(self._numbers[at]), int(self._digests[at]))

    def _pack(self) -> None:
        import numpy as np  # here: most files are smaller, and it takes longer to load than these to read

        keys = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
        digests = np.array([each.digest for each in self._recent.values()], dtype=np.uint64)
        numbers = np.array([each.number for each in self._recent.values()], dtype=np.uint32)
        if self._keys is not None and self._digests is not None and self._numbers is not None:
            keys = np.concatenate((self._keys, keys))
            digests = np.concatenate((self._digests, digests))
            numbers = np.concatenate((self._numbers, numbers))
        order = np.argsort(keys, kind="stable")
        self._keys, self._digests, self._numbers = keys[order], digests[order], numbers[order]
        self._recent = {}
