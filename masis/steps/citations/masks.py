"""Stretches of an answer in which brackets are no markers: code, mathematics, definitions of footnotes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,500}\1(?!`)")
_MATHS = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\([^\n]{1,500}?\\\)|\\\[[^$]{1,1000}?\\\]|"
    r"(?<![\w$\\])\$(?=[^$\n]{0,200}[\\^_={}])[^\s$][^$\n]{0,200}\$(?!\d)"
)
_DEFINITION = re.compile(r"^[ \t]{0,3}\[\^?([\w.-]{1,40})\]:[ \t]*(.{0,500})", re.MULTILINE)


class Mask:
    """Stretches that do not overlap, looked up by position."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def covers(self, position: int) -> bool:
        """Whether the position lies in one of the stretches."""
        at = bisect_right(self._starts, position) - 1
        return at >= 0 and position < self._ends[at]


def masked(answer: str, code: Sequence[tuple[int, int]]) -> Mask | None:
    """The stretches of the answer that hold no markers, ``code`` among them; None if there are none."""
    spans = list(code)
    if "`" in answer:
        spans += _outside(spans, ((match.start(), match.end()) for match in _CODE_SPAN.finditer(answer)))
    if "$" in answer or "\\(" in answer or "\\[" in answer:
        spans += _outside(spans, ((match.start(), match.end()) for match in _MATHS.finditer(answer)))
    return Mask(spans) if spans else None


def footnote_definitions(answer: str) -> dict[str, str]:
    """What ``[^1]: ...`` and ``[1]: ...`` lines say, by label; the first one holds."""
    found: dict[str, str] = {}
    for match in _DEFINITION.finditer(answer):
        found.setdefault(match.group(1), match.group(2))
    return found


def _outside(taken: Sequence[tuple[int, int]], spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    mask = Mask(taken)
    return [span for span in spans if not mask.covers(span[0])]
