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
        self._packed: npt.NDArray[np.void] | None = None
        """Sorted by key."""

    def first(self, identifier: str, number: int, digest: str) -> First:
        """Return where this id came first: here, unless it was seen before. ``digest`` is hexadecimal."""
        key = int.from_bytes(hashlib.blake2b(identifier.encode(errors="surrogatepass"), digest_size=8).digest())
        found = self._recent.get(key) or self._of_packed(key)
        if found is None:
            found = self._recent[key] = First(number, int(digest[:16], 16))
            if len(self._recent) >= HELD:
                self._pack()
        return found

    def _of_packed(self, key: int) -> First | None:
        if self._packed is None:
            return None
        keys = self._packed["key"]
        at = int(keys.searchsorted(keys.dtype.type(key)))
        if at == len(keys) or int(keys[at]) != key:
            return None
        return First(int(self._packed["number"][at]), int(self._packed["digest"][at]))

    def _pack(self) -> None:
        import numpy as np  # here: most files are smaller, and it takes longer to load than these to read

        rows = [(key, first.digest, first.number) for key, first in self._recent.items()]
        packed = np.array(rows, dtype=[("key", np.uint64), ("digest", np.uint64), ("number", np.uint32)])
        packed = packed if self._packed is None else np.concatenate((self._packed, packed))
        packed.sort(order="key")
        self._packed, self._recent = packed, {}
