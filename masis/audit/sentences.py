"""Splits a text into sentences with offsets, for the audit, citations and display.

Headings, list items, table rows and code blocks begin and end sentences of their own, and so do
lines, also in HTML. A citation after a stop belongs to the sentence before it. ``stops.py`` decides
whether a stop ends its sentence, with the words of each language in ``languages.toml``. It needs no
model and is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from masis.audit.languages import QUOTATION_GOES_ON, TextLanguages
from masis.audit.markers import (
    brackets_with_stops,
    holds_only_markers,
    opens_with_marker,
    puts_markers_first,
    trailing_markers_end,
)
from masis.audit.markers.styles import Brackets, style_table
from masis.audit.stops import SENTENCE_ENDS, ends_sentence, stops_of

# Splits a text into blocks by its lines: paragraphs, headings, list items, table rows, code, rules.
#
# It covers the Markdown that language models write but doesn't parse Markdown. A block is a span of
# the text with a kind, and every visible character is in exactly one block.

BlockKind = Literal["prose", "heading", "item", "row", "code", "rule", "note"]
"""``note`` is the definition of a footnote or of a numbered source: ``[^1]: Smith 2004``."""


class TextBlock(NamedTuple):
    """A span of the text, end excluded, without surrounding whitespace."""

    start: int
    end: int
    kind: BlockKind


# "```python" or "~~~", the beginning or end of a code block.
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
# The kind of a line by its beginning: "# Heading", "---", "| cell |", "[^1]: note", "- item",
# "(a) item".
_LINE_START = re.compile(
    r"""\s*(?:
      (?P<heading>\#{1,6}(?=\s)|={3,}\s*\Z|<h[1-6]>)
    | (?P<rule>(?:[-*_][ \t]*){3,}\s*\Z)
    | (?P<row>\|)
    | (?P<note>\[\^?[\w.-]{1,40}\]:)
    | (?P<item><li>|(?:[-*+•‣▪◦●○·–][ \t]+|[(]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})[.)][ \t]+(?=\S)))
    )""",
    re.VERBOSE,
)
# HTML tags that end a line like a line feed: "<br>", "</p>". Opening tags don't, because a closing
# one or a break precedes them.
_LINE_TAG = re.compile(
    r"(?:<[bh]r\s?/?>|</(?:p|li|ul|ol|div|h[1-6]|blockquote)>)\s*+", re.IGNORECASE
)
_ENDS_WITH_LINE_TAG = re.compile(_LINE_TAG.pattern + r"\Z", re.IGNORECASE)
_LONGEST_LINE_TAG = len("</blockquote>")
# "Sources: ..." always begins a block.
_SOURCE_LINE = re.compile(
    r"[*_]{0,3}(?:sources?|references?|citations?|quellen?)[*_]{0,3}:", re.IGNORECASE
)
# A line that ends in a comma or a word such as "the" continues on the next line.
_LINE_CONTINUES = re.compile(
    r"(?:[,;:–—-]|\b(?:a|an|the|of|in|on|at|to|for|by|with|and|or|but|from|as|that|which|is|are|"
    r"was|were|be|than))\s*\Z",
    re.IGNORECASE,
)
_WRAPPED_LINE_LENGTH = 55
"""The shortest line, in characters, that may have been wrapped. A shorter line ends on purpose."""


def split_blocks(text: str) -> list[TextBlock]:
    """Return the blocks of a text in order, in linear time."""
    lines = _split_lines(text)
    if len(lines) < 2:
        return [_trim_block(text, 0, len(text), _line_kind(text))] if text.strip() else []
    blocks: list[TextBlock] = []
    kind: BlockKind = "prose"
    start = end = -1  # of the current block; -1 if there is none
    fence = ""
    position = 0
    previous = ""
    for line in lines:
        line_start, position = position, position + len(line)
        if fence:
            end = position
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                blocks.append(_trim_block(text, start, end, "code"))
                fence, start = "", -1
            continue
        opening = _FENCE.match(line)
        line_kind = "code" if opening else _line_kind(line)
        if start >= 0 and (opening or not _continues_block(line, previous, kind, line_kind)):
            blocks.append(_trim_block(text, start, end, kind))
            start = -1
        if opening:
            fence, start, end = opening.group(1), line_start, position
        elif line.strip():
            if start < 0:
                start, kind = line_start, line_kind
            end = position
        previous = line
    if start >= 0:
        blocks.append(_trim_block(text, start, end, "code" if fence else kind))
    return blocks


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text; HTML tags end a line too, except in a table row."""
    lines = text.splitlines(keepends=True)
    if "<" not in text:
        return lines
    parts: list[str] = []
    for line in lines:
        position = 0
        if "<" in line and _line_kind(line) != "row":
            for tag in _LINE_TAG.finditer(line):
                parts.append(line[position : tag.end()])
                position = tag.end()
        if position < len(line):
            parts.append(line[position:])
    return parts


def _trim_block(text: str, start: int, end: int, kind: BlockKind) -> TextBlock:
    piece = text[start:end]
    indent = len(piece) - len(piece.lstrip())
    return TextBlock(start + indent, start + len(piece.rstrip()), kind)


def _line_kind(line: str) -> BlockKind:
    match = _LINE_START.match(line[:400] if len(line) > 400 else line)
    if match is None:
        return "row" if line.count(" | ") >= 2 and len(line) < 2000 else "prose"
    return match.lastgroup or "prose"  # type: ignore[return-value]


def _continues_block(line: str, previous: str, kind: BlockKind, line_kind: BlockKind) -> bool:
    """Return whether a line continues the block before it."""
    stripped = line.strip()
    if not stripped or line_kind != "prose" or kind in ("heading", "rule", "row"):
        return False
    if holds_only_markers(stripped[:200]):
        return True
    if opens_with_marker(stripped) or _SOURCE_LINE.match(stripped):
        return False
    if _LINE_TAG.fullmatch(stripped):
        return True
    previous_text = previous.rstrip()
    tag = (
        _ENDS_WITH_LINE_TAG.search(previous_text, max(0, len(previous_text) - _LONGEST_LINE_TAG))
        if previous_text[-1:] == ">"
        else None
    )
    if tag:
        previous_text = previous_text[: tag.start()].rstrip()
    if not previous_text:
        return False
    if previous_text[-1] in SENTENCE_ENDS or previous_text[-1] == ":":
        return len(previous_text) >= _WRAPPED_LINE_LENGTH and previous_text[-1] != ":" and not tag
    if stripped[0].islower() or _LINE_CONTINUES.search(previous_text[-12:]):
        return True
    return len(previous_text) >= _WRAPPED_LINE_LENGTH and not tag


class SentenceUnit(NamedTuple):
    """A sentence, end excluded, with the kind of its block and whether it begins the block."""

    start: int
    end: int
    kind: BlockKind
    opens: bool


def split_sentences(text: str) -> list[SentenceUnit]:
    """Return the sentences of a text in order, with the kind of their block.

    Every visible character belongs to exactly one sentence, and no sentence begins or ends with
    whitespace.
    """
    units: list[SentenceUnit] = []
    languages = TextLanguages(text)
    for block in split_blocks(text):
        if block.kind in ("prose", "item", "note"):
            units.extend(_block_sentences(text, block, languages))
        else:
            units.append(SentenceUnit(block.start, block.end, block.kind, True))
    return units


# Stops in code, brackets and titles don't end a sentence: "`a.b`", "[p. 3]", "(see Fig. 2)".
# Each alternative begins with a plain character, so that the search can skip to the next such
# character; that is why the lookbehinds are after the bracket. They exclude brackets that follow a
# stop, which are sentences of their own: "It fell. (It rose later.)"
_BRACKETED = (
    r"`[^`\n]{1,300}`|"
    r"\((?<=[^\s.!?…\"”]\s\()[^()\n]{1,200}\)|《[^《》\n]{1,100}》|"
    r"（(?<=[^\s。！？…”」』]（)[^（）\n]{1,200}）"
    # a quotation after which the sentence continues
    rf"|「[^「」\n]{{1,200}}」(?={QUOTATION_GOES_ON.pattern})"
    rf"|『[^『』\n]{{1,200}}』(?={QUOTATION_GOES_ON.pattern})"
)
# Addresses, whose dots aren't stops either: "https://a.example/x.html", "www.a.example".
_ADDRESS = r"https?://[^\s<>\])】]+|www\.[^\s<>\])】]+"


@cache
def _pattern_without_stops(brackets: Brackets, has_address: bool) -> re.Pattern[str]:
    parts = (_BRACKETED, brackets_with_stops(brackets), _ADDRESS if has_address else "")
    return re.compile("|".join(filter(None, parts)))


def _block_sentences(
    text: str, block: TextBlock, languages: TextLanguages
) -> Iterator[SentenceUnit]:
    start, opens = block.start, True
    for end in _boundaries(text, block, languages):
        piece = text[start:end]
        indent = len(piece) - len(piece.lstrip())
        if indent < len(piece):
            yield SentenceUnit(start + indent, start + len(piece.rstrip()), block.kind, opens)
            start, opens = end, False
    if start < block.end:
        start += len(text[start : block.end]) - len(text[start : block.end].lstrip())
        yield SentenceUnit(start, block.end, block.kind, opens)


def _boundaries(text: str, block: TextBlock, languages: TextLanguages) -> Iterator[int]:
    """Yield the ends of sentences, after the closing quotes and citations of their stops."""
    # Stops don't count in code, brackets and addresses.
    has_address = (
        text.find("http", block.start, block.end) >= 0
        or text.find("www.", block.start, block.end) >= 0
    )
    pattern = _pattern_without_stops(style_table().brackets, has_address)
    spans = [match.span() for match in pattern.finditer(text, block.start, block.end)]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    # Some blocks put markers before sentences: [1] The sky is blue. [2] Grass is green.
    has_leading_markers = puts_markers_first(text, block.start, block.end)
    block_languages = TextLanguages(text, block.start, block.end, around=languages)
    last_end = block.start
    for stop in stops_of(text, block.start, block.end):
        stop_start, stop_end = stop.start(), stop.end()
        if stop_start < last_end:
            continue
        index = bisect_right(starts, stop_start) - 1
        if (
            index >= 0
            and stop_start < ends[index]
            and not (stop_end >= ends[index] and text[ends[index] - 1] in ".!?")
        ):
            continue  # a stop at the end of an address is more likely the sentence's
        markers_end = trailing_markers_end(text, stop_end, block.end)
        cited = markers_end is not None and not has_leading_markers
        end = markers_end if markers_end is not None and cited else stop_end
        if end >= block.end:
            return
        if ends_sentence(
            text,
            stop,
            end,
            last_end,
            block.end,
            block_languages,
            cited=cited,
            marked=markers_end is not None and not cited,
        ):
            yield end
            last_end = end
