"""Cuts a text into blocks by its lines: paragraphs, headings, list items, table rows, code, rules.

Understands as much of Markdown as language models write. It does not parse Markdown: a block is a stretch of the text
with a kind, and every character that is not blank lies in exactly one of them.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

BlockKind = Literal["prose", "heading", "item", "row", "code", "rule", "note"]
"""``note`` is the definition of a footnote or of a numbered source: ``[^1]: Smith 2004``."""


class Block(NamedTuple):
    """A stretch of the text, start included, end excluded, blanks at both ends cut off."""

    start: int
    end: int
    kind: BlockKind


_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_LINE_START = re.compile(
    r"""\s*(?:
      (?P<heading>\#{1,6}(?=\s)|={3,}\s*\Z)
    | (?P<rule>(?:[-*_][ \t]*){3,}\s*\Z)
    | (?P<row>\|)
    | (?P<note>\[\^?[\w.-]{1,40}\]:)
    | (?P<item>(?:[-*+•‣▪◦●○·–][ \t]+|[(]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})[.)][ \t]+(?=\S)))
    )""",
    re.VERBOSE,
)
_MARKERS_ONLY = re.compile(r"\s*(?:(?:\[[^\[\]\n]{1,60}\]|【[^【】\n]{1,60}】)[\s.,;]{0,4})+\Z")
_OPENS_WITH_MARKER = re.compile(r"\s*(?:\[[^\[\]\n]{0,30}\d[^\[\]\n]{0,30}\]|【)")
_SOURCE_LINE = re.compile(r"[*_]{0,3}(?:sources?|references?|citations?|quellen?)[*_]{0,3}:", re.IGNORECASE)
_GOES_ON = re.compile(
    r"(?:[,;:–—-]|\b(?:a|an|the|of|in|on|at|to|for|by|with|and|or|but|from|as|that|which|is|are|was|were|be|than))\s*\Z",
    re.IGNORECASE,
)
_FULL_LINE = 55  # characters: a line this long was broken by its width, a shorter one by its writer
_SENTENCE_ENDS = ".!?…。！？｡:।؟"


def split_blocks(text: str) -> list[Block]:
    """The blocks of a text, in order. Linear in its length."""
    if "\n" not in text and "\r" not in text:
        return _single_line(text)
    blocks: list[Block] = []
    kind: BlockKind = "prose"
    start = end = -1  # of the block being gathered; -1 when there is none
    fence = ""
    position = 0
    previous = ""
    for line in text.splitlines(keepends=True):
        line_start, position = position, position + len(line)
        if fence:
            end = position
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                blocks.append(_trimmed(text, start, end, "code"))
                fence, start = "", -1
            continue
        opening = _FENCE.match(line)
        found = "code" if opening else _kind_of(line)
        if start >= 0 and (opening or not _continues(line, previous, kind, found)):
            blocks.append(_trimmed(text, start, end, kind))
            start = -1
        if opening:
            fence, start, end = opening.group(1), line_start, position
        elif line.strip():
            if start < 0:
                start, kind = line_start, found
            end = position
        previous = line
    if start >= 0:
        blocks.append(_trimmed(text, start, end, "code" if fence else kind))
    return blocks


def _single_line(text: str) -> list[Block]:
    return [_trimmed(text, 0, len(text), _kind_of(text))] if text.strip() else []


def _trimmed(text: str, start: int, end: int, kind: BlockKind) -> Block:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Block(start + left, start + len(piece.rstrip()), kind)


def _kind_of(line: str) -> BlockKind:
    match = _LINE_START.match(line[:400] if len(line) > 400 else line)
    if match is None:
        return "row" if line.count(" | ") >= 2 and len(line) < 2000 else "prose"
    return match.lastgroup or "prose"  # type: ignore[return-value]


def _continues(line: str, previous: str, kind: BlockKind, found: BlockKind) -> bool:
    """Whether a line belongs to the block before it: its writer did not mean to begin anew."""
    stripped = line.strip()
    if not stripped or found != "prose" or kind in ("heading", "rule", "row"):
        return False
    if _MARKERS_ONLY.match(stripped[:200]):
        return True
    if _OPENS_WITH_MARKER.match(stripped) or _SOURCE_LINE.match(stripped):
        return False
    before = previous.rstrip()
    if not before:
        return False
    if before[-1] in _SENTENCE_ENDS:
        return len(before) >= _FULL_LINE and before[-1] != ":"
    first = stripped[0]
    return first.islower() or bool(_GOES_ON.search(before[-12:])) or len(before) >= _FULL_LINE
