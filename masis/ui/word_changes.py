"""What changed between two texts, word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n.]*[\n.]?")
_MOST_WORDS = 6_000


class Change(NamedTuple):
    """A stretch that both texts have (``same``), only the first (``out``) or only the second (``in``)."""

    kind: Literal["same", "out", "in"]
    text: str


def word_changes(before: str, after: str) -> list[Change]:
    """The way from one text to the other; very long texts are compared sentence by sentence."""
    long = len(before) + len(after) > _MOST_WORDS * 5
    return list(_changes(_cut(before, long=long), _cut(after, long=long)))


def _cut(text: str, *, long: bool) -> list[str]:
    return [part for part in (_LINES if long else _WORDS).findall(text) if part]


def _changes(before: list[str], after: list[str]) -> Iterator[Change]:
    for what, start, end, other_start, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            yield Change("same", "".join(before[start:end]))
            continue
        if start < end:
            yield Change("out", "".join(before[start:end]))
        if other_start < other_end:
            yield Change("in", "".join(after[other_start:other_end]))
