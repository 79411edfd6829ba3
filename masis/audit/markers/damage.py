"""Finds markers that a revision or an edit damaged: emptied, left open, or cut in half."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# "[]", "【 】": a marker that lost its content.
_EMPTY = re.compile(r"\[\s{0,50}\]|【\s{0,50}】|［\s{0,50}］|〔\s{0,50}〕")
# An opening bracket that another one, the end of the line or of the text follows before it closes.
_OPENED = re.compile(r"[\[【［〔]([^\[\]【】［］〔〕\n]{0,300})(?=[\[【［〔\n]|\Z)")


def count_empty_markers(text: str) -> int:
    """Return the number of empty pairs of brackets."""
    return len(_EMPTY.findall(text))


def unclosed_markers(text: str, ids: Iterable[str]) -> int:
    """Return the number of brackets that open a citation and never close.

    A bracket at the very end of the text counts if it could begin an id.
    """
    names = set(ids)
    count = 0
    for match in _OPENED.finditer(text):
        inside = match[1].strip()
        first_word = re.split(r"[\s,;]", inside, maxsplit=1)[0].rstrip(".:!?")
        at_end = match.end() == len(text) and any(name.startswith(inside) for name in names)
        count += first_word in names or at_end
    return count


def half_bracketed_ids(text: str, ids: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the ids beside half a pair of brackets, as in ``[c1]c2]``.

    Each is a position and a text with the bracket. Ids in whole markers are found as well; the
    caller knows where those are.
    """
    alternatives = "|".join(sorted(map(re.escape, ids), key=len, reverse=True))
    if not alternatives:
        return
    pattern = rf"\[\s*(?P<open>{alternatives})(?!\w)|(?<!\w)(?P<close>{alternatives})\s*\]"
    for match in re.finditer(pattern, text):
        yield match.start(match.lastgroup or 0), match.group()
