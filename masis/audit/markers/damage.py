"""Finds markers that a revision or a person's edit has damaged: emptied, left open, or
cut in half.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_EMPTY = re.compile(r"\[\s{0,50}\]|【\s{0,50}】|［\s{0,50}］|〔\s{0,50}〕")
_OPENED = re.compile(r"[\[【［〔]([^\[\]【】［］〔〕\n]{0,300})(?=[\[【［〔\n]|\Z)")


def count_empty_markers(text: str) -> int:
    """Return how many pairs of brackets hold nothing."""
    return len(_EMPTY.findall(text))


def unclosed_markers(text: str, ids: Iterable[str]) -> int:
    """Return how many brackets open a citation and never close; one at the very end may be the
    beginning of any.
    """
    names = set(ids)
    halves = 0
    for found in _OPENED.finditer(text):
        inside = found[1].strip()
        first = re.split(r"[\s,;]", inside, maxsplit=1)[0].rstrip(".:!?")
        at_end = found.end() == len(text) and any(name.startswith(inside) for name in names)
        halves += first in names or at_end
    return halves


def half_bracketed_ids(text: str, ids: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the ids beside half a pair of brackets, as in ``[c1]c2]``, each with its place and the
    bracket.

    An id within a whole marker is found as well: the caller knows where the markers are.
    """
    alternatives = "|".join(sorted(map(re.escape, ids), key=len, reverse=True))
    if not alternatives:
        return
    pattern = rf"\[\s*(?P<open>{alternatives})(?!\w)|(?<!\w)(?P<close>{alternatives})\s*\]"
    for found in re.finditer(pattern, text):
        yield found.start(found.lastgroup or 0), found.group()
