"""Ids that a file names twice are found however far apart they stand, and remembering them takes little memory."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest

from masis.datasets.readers import seen
from masis.datasets.readers.seen import First, SeenIds


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_an_id_is_found_again_whether_it_is_held_or_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "HELD", 7)
    ids = SeenIds()
    names = [f"case-{number}" for number in range(40)] + ["", "\ud800", "é"]
    for number, name in enumerate(names, 1):
        assert ids.first(name, number, digest_of(repr(name))).number == number
    for number, name in enumerate(names, 1):
        wanted = First(number, int(digest_of(repr(name))[:16], 16))
        assert ids.first(name, number + 1000, digest_of("other content")) == wanted


@pytest.mark.slow
def test_a_hundred_thousand_ids_take_less_than_4_megabytes() -> None:
    ids = SeenIds()
    ids.first("warm", 1, digest_of("warm"))
    tracemalloc.start()
    for number in range(100_000):
        ids.first(f"a-rather-long-identifier-of-a-case-{number}", number + 2, f"{number:064x}")
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 4_000_000
