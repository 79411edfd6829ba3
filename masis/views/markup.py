"""Find the Markdown of a text: which characters are markup, and the block and style of all others.

Nothing is rewritten. The result consists of ranges of the text, so that marks and labels, which are
offsets too, stay valid. No character is dropped either: hidden characters are markup that a style
or a block shows instead.

The module finds headings, paragraphs, lists, quotations, code, tables, rules, emphasis and links in
GitHub's dialect. HTML, images, entities and reference definitions are shown as typed. A link shows
its words and its address. It doesn't use a library because the popular Python ones return a tree of
rewritten text without the positions of inline elements.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict, TypeVar, cast

Tag = Literal[
    "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "quote", "pre", "table", "tr", "th", "td", "hr"
]
Style = Literal["strong", "em", "code", "link", "url"]

DEEPEST = 12
"""Deepest nesting of blocks; anything deeper becomes a paragraph."""

_MOST_OPENERS = 50
"""Openers of emphasis searched for each closer, so that a text full of stars takes linear time."""

_LONGEST_ADDRESS = 2_000
_ESCAPABLE = frozenset("*_`#|~+-.")
_FIRST_HEADING = 3
"""Level of the top heading, because the answer and the evidence are below headings of level 2."""

# A cheap test for text that may contain Markdown: "**", "](", or a line that starts with "- ".
_POSSIBLE_MARKUP = re.compile(
    r"[*_`]|\]\(|^[ \t]*(?:#{1,6}[ \t]|[-+][ \t]|\d{1,9}[.)][ \t]|>|~~~|---|___)|\|", re.MULTILINE
)
# "## Results ##": up to three spaces, one to six hashes, the words, optional closing hashes.
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t]*$")
# "---", "* * *" or "___": three or more of one sign, with nothing else on the line.
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
# "```python": the opening of a code block. The info string has no backtick (CommonMark).
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})([^`]*)$")
_QUOTE = re.compile(r" {0,3}> ?")
# "- words" or "12. words". CommonMark allows at most nine digits.
_ITEM = re.compile(r"([ \t]*)([-*+]|(\d{1,9})[.)])([ \t]+)(?=\S)")
# "| --- | :-: |": the line below the header of a table.
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
# "(https://example.org "title")" after the "]" of a link. The address may contain one pair of
# brackets, as in "(https://en.wikipedia.org/wiki/Foo_(bar))".
_LINK_END = re.compile(
    r"""\((<[^<>\n]*>|[^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*)(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'))?\)"""
)


class MarkupBlock(TypedDict):
    """One block.

    ``parent`` is the index of the enclosing block or -1; ``number`` is that of a list item.
    """

    tag: Tag
    parent: int
    number: NotRequired[int]


class Range(NamedTuple):
    """A range of the text; the end is excluded."""

    start: int
    end: int


class Markup(NamedTuple):
    """The markup of a text.

    ``leaves`` are the visible ranges in text order, each with the index of its block. Everything
    between them is hidden, and so is each range of ``hidden``. ``styles`` can be nested.
    """

    blocks: tuple[MarkupBlock, ...]
    leaves: tuple[tuple[Range, int], ...]
    hidden: tuple[Range, ...]
    styles: tuple[tuple[Range, Style], ...]


def find_markup(text: str) -> Markup | None:
    """Return the Markdown of a text, or None if it has none and is to be shown exactly as typed."""
    if not _POSSIBLE_MARKUP.search(text):
        return None
    reader = _BlockReader(text)
    reader.read_blocks(list(_line_ranges(text)), -1, 0)
    if (
        not reader.hidden
        and not reader.styles
        and all(block["tag"] == "p" for block in reader.blocks)
    ):
        return None
    return Markup(
        tuple(reader.blocks),
        tuple(reader.leaves),
        tuple(sorted(reader.hidden)),
        tuple(reader.styles),
    )


def _line_ranges(text: str) -> Iterator[Range]:
    """Yield the lines without their ends; only a line feed ends a line, as elsewhere."""
    start = 0
    for line in text.split("\n"):
        yield Range(start, start + len(line))
        start += len(line) + 1


class _BlockReader:
    """Finds blocks line by line, then the styles within each leaf."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[MarkupBlock] = []
        self.leaves: list[tuple[Range, int]] = []
        self.hidden: list[Range] = []
        self.styles: list[tuple[Range, Style]] = []
        self._levels: list[int] = []

    def read_blocks(self, lines: Sequence[Range], parent: int, depth: int) -> None:
        """Read the blocks of lines from which the markup of enclosing blocks was removed."""
        at = 0
        paragraph: list[Range] = []

        def flush() -> None:
            if paragraph:
                self._add_leaf("p", parent, [self._strip_line(line) for line in paragraph])
                paragraph.clear()

        while at < len(lines):
            line = lines[at]
            words = self.text[line.start : line.end]
            if not words.strip():
                flush()
                at += 1
                continue
            lines_read = self._read_block(
                lines, at, parent, depth, in_paragraph=bool(paragraph), flush=flush
            )
            if lines_read:
                at += lines_read
            else:
                paragraph.append(line)
                at += 1
        flush()

    def _read_block(
        self,
        lines: Sequence[Range],
        at: int,
        parent: int,
        depth: int,
        *,
        in_paragraph: bool,
        flush: Callable[[], None],
    ) -> int:
        """Read a block other than a paragraph; return its number of lines, or 0 if none starts."""
        line = lines[at]
        words = self.text[line.start : line.end]
        if match := _FENCE.match(words):
            flush()
            return self._read_fence(lines, at, parent, match)
        if _RULE.match(words):
            flush()
            self._add_block("hr", parent)
            return 1
        if match := _HEADING.match(words):
            flush()
            self._add_heading(
                parent, len(match[1]), Range(line.start + match.start(2), line.start + match.end(2))
            )
            return 1
        if self._is_table_start(lines, at):
            flush()
            return self._read_table_block(lines, at, parent)
        if depth >= DEEPEST:
            return 0
        if _QUOTE.match(words):
            flush()
            return self._read_quote_block(lines, at, parent, depth)
        item = _ITEM.match(words)
        # In a paragraph only a 1 starts a numbered list (CommonMark): a line that begins with
        # "1990. Then" continues the sentence.
        if item and not (in_paragraph and item[3] and item[3] != "1"):
            flush()
            return self._read_list_block(lines, at, parent, depth)
        return 0

    def _add_block(self, tag: Tag, parent: int) -> int:
        self.blocks.append({"tag": tag, "parent": parent})
        return len(self.blocks) - 1

    def _strip_line(self, line: Range) -> Range:
        words = self.text[line.start : line.end]
        return Range(line.start + len(words) - len(words.lstrip(" \t")), line.end)

    def _add_leaf(
        self, tag: Tag, parent: int, lines: Sequence[Range], *, inline: bool = True
    ) -> None:
        """Add a block of words; the line feeds between its lines are visible."""
        place = self._add_block(tag, parent)
        shown = [
            *(Range(line.start, min(line.end + 1, len(self.text))) for line in lines[:-1]),
            *([lines[-1]] if lines else []),
        ]
        joined: list[Range] = []
        for line in shown:
            if joined and joined[-1].end == line.start:
                joined[-1] = Range(joined[-1].start, line.end)
            else:
                joined.append(line)
        self.leaves += [(stretch, place) for stretch in joined if stretch.start < stretch.end]
        if inline:
            hidden, styles = _find_inline_markup(self.text, shown)
            self.hidden += hidden
            self.styles += styles

    def _add_heading(self, parent: int, level: int, words: Range) -> None:
        while self._levels and self._levels[-1] >= level:
            self._levels.pop()
        # The depth counts, not the text's own level, so that no heading level is skipped.
        self._levels.append(level)
        tags: dict[int, Tag] = {3: "h3", 4: "h4", 5: "h5"}
        self._add_leaf(tags.get(_FIRST_HEADING - 1 + len(self._levels), "h6"), parent, [words])

    def _read_fence(
        self, lines: Sequence[Range], at: int, parent: int, opening: re.Match[str]
    ) -> int:
        end = at + 1
        closing = re.compile(rf"[ ]{{0,3}}{re.escape(opening[1][0])}{{{len(opening[1])},}}[ \t]*$")
        while end < len(lines) and not closing.match(self.text[lines[end].start : lines[end].end]):
            end += 1
        info = opening[2].strip()
        inside = list(lines[at + 1 : end])
        if info:  # the name of the language stays visible
            start = lines[at].start + opening.start(2) + opening[2].index(info)
            inside.insert(0, Range(start, lines[at].end))
            self.styles.append((Range(start, lines[at].end), "url"))
        self._add_leaf("pre", parent, inside, inline=False)
        return min(end + 1, len(lines)) - at

    def _read_quote_block(self, lines: Sequence[Range], at: int, parent: int, depth: int) -> int:
        inner: list[Range] = []
        for line in lines[at:]:
            match = _QUOTE.match(self.text, line.start, line.end)
            if not match:
                break
            inner.append(Range(match.end(), line.end))
        self.read_blocks(inner, self._add_block("quote", parent), depth + 1)
        return len(inner)

    def _item_at(self, line: Range) -> re.Match[str] | None:
        if _RULE.match(self.text[line.start : line.end]):
            return None
        return _ITEM.match(self.text, line.start, line.end)

    def _read_list_block(self, lines: Sequence[Range], at: int, parent: int, depth: int) -> int:
        """Read a list: items of one kind at one depth, with the indented lines below each item."""
        first = self._item_at(lines[at])
        if first is None:
            return 0
        place = self._add_block("ol" if first[3] else "ul", parent)
        start = at
        while at < len(lines):
            item = self._item_at(lines[at])
            if item is None or bool(item[3]) != bool(first[3]) or len(item[1]) > len(first[1]) + 3:
                break
            inside, lines_read = self._item_lines(lines, at, item)
            item_block = self._add_block("li", place)
            if item[3]:
                self.blocks[item_block]["number"] = int(item[3])
            self.read_blocks(inside, item_block, depth + 1)
            at += lines_read
            following = at
            while following < len(lines) and not self._stripped_text(lines[following]):
                following += 1
            if following < len(lines) and self._item_at(lines[following]):
                at = following
        return at - start

    def _stripped_text(self, line: Range) -> str:
        return self.text[line.start : line.end].strip()

    def _item_lines(
        self, lines: Sequence[Range], at: int, item: re.Match[str]
    ) -> tuple[list[Range], int]:
        """Return an item's lines without marker and indentation, and how many lines they span."""
        indent = len(item[1])
        inside = [Range(item.end(), lines[at].end)]
        end = at + 1
        blank = False
        while end < len(lines):
            line = lines[end]
            words = self.text[line.start : line.end]
            if not words.strip():
                blank = True
                end += 1
                continue
            deep = len(words) - len(words.lstrip(" \t"))
            below = deep > indent + 1
            if not below and (blank or self._is_block_start(lines, end)):
                break
            if blank:
                # The blank line separates two paragraphs of the item.
                inside.append(Range(line.start, line.start))
            blank = False
            inside.append(
                Range(
                    line.start + (min(deep, item.end() - lines[at].start) if below else 0), line.end
                )
            )
            end += 1
        while end > at + 1 and not self._stripped_text(lines[end - 1]):
            end -= 1
        return inside, end - at

    def _is_block_start(self, lines: Sequence[Range], at: int) -> bool:
        words = self.text[lines[at].start : lines[at].end]
        patterns = (_FENCE, _RULE, _HEADING, _QUOTE, _ITEM)
        return any(pattern.match(words) for pattern in patterns) or self._is_table_start(lines, at)

    def _is_table_start(self, lines: Sequence[Range], at: int) -> bool:
        if at + 1 >= len(lines):
            return False
        below = self.text[lines[at + 1].start : lines[at + 1].end]
        if (
            "|" not in below
            or "|" not in self.text[lines[at].start : lines[at].end]
            or not _DELIMITERS.match(below)
        ):
            return False
        return len(self._cell_ranges(lines[at])) == len(self._cell_ranges(lines[at + 1]))

    def _read_table_block(self, lines: Sequence[Range], at: int, parent: int) -> int:
        place = self._add_block("table", parent)
        self._add_table_row(lines[at], place, "th")
        end = at + 2
        while end < len(lines) and "|" in self.text[lines[end].start : lines[end].end]:
            self._add_table_row(lines[end], place, "td")
            end += 1
        return end - at

    def _add_table_row(self, line: Range, parent: int, tag: Tag) -> None:
        row = self._add_block("tr", parent)
        for cell in self._cell_ranges(line):
            self._add_leaf(tag, row, [cell])

    def _cell_ranges(self, line: Range) -> list[Range]:
        """Return the cells of a row without blanks; a bar after a backslash doesn't end a cell."""
        words = self.text[line.start : line.end]
        bars = [bar.start() for bar in re.finditer(r"(?<!\\)\|", words)]
        edges = [-1, *bars, len(words)]
        cells = [(left + 1, right) for left, right in pairwise(edges)]
        if len(cells) > 1 and not words[slice(*cells[0])].strip():
            cells = cells[1:]
        if len(cells) > 1 and not words[slice(*cells[-1])].strip():
            cells = cells[:-1]
        ranges = []
        for left, right in cells:
            inner = words[left:right]
            start = left + len(inner) - len(inner.lstrip())
            ranges.append(
                Range(line.start + start, line.start + max(start, left + len(inner.rstrip())))
            )
        return ranges


class _DelimiterRun:
    """A run of stars or underscores that may open or close emphasis, as in CommonMark."""

    def __init__(self, char: str, start: int, end: int, *, opens: bool, closes: bool) -> None:
        self.char, self.start, self.end, self.opens, self.closes = char, start, end, opens, closes

    @property
    def length(self) -> int:
        return self.end - self.start


def _find_inline_markup(
    text: str, lines: Sequence[Range]
) -> tuple[list[Range], list[tuple[Range, Style]]]:
    """Return the hidden ranges and the styles within the lines of one leaf."""
    words = "".join(text[line.start : line.end] for line in lines)
    places = [place for line in lines for place in range(line.start, line.end)]

    def at(start: int, end: int) -> Range:
        return Range(places[start], places[end - 1] + 1)

    reader = _InlineReader(words)
    return (
        [at(*span) for span in reader.hidden],
        [(at(*span), style) for span, style in reader.styles if span.start < span.end],
    )


class _InlineReader:
    """Emphasis, code, links and escapes in the words of one leaf, as positions in these words."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.hidden: list[Range] = []
        self.styles: list[tuple[Range, Style]] = []
        self._runs: list[_DelimiterRun] = []
        self._scan()
        self._match_emphasis()

    def _scan(self) -> None:
        words = self.words
        fences: dict[int, deque[int]] = defaultdict(deque)
        for backticks in re.finditer(r"`+", words):
            fences[len(backticks[0])].append(backticks.start())
        brackets: list[int] = []
        at = 0
        while at < len(words):
            char = words[at]
            if char == "\\" and words[at + 1 : at + 2] in _ESCAPABLE and at + 1 < len(words):
                self.hidden.append(Range(at, at + 1))
                at += 2
            elif char == "`":
                at = self._read_code(at, fences)
            elif char in "*_":
                at = self._read_run(at)
            elif char == "[":
                brackets.append(at)
                at += 1
            elif char == "]":
                at = self._read_link(brackets.pop(), at) if brackets else at + 1
            else:
                at += 1

    def _read_code(self, at: int, fences: dict[int, deque[int]]) -> int:
        end = at
        while end < len(self.words) and self.words[end] == "`":
            end += 1
        same = fences[end - at]
        while same and same[0] < end:
            same.popleft()
        if not same:
            return end
        closing = same[0]
        self.hidden += [Range(at, end), Range(closing, closing + end - at)]
        self.styles.append((Range(end, closing), "code"))
        return closing + end - at

    def _read_run(self, at: int) -> int:
        char, end = self.words[at], at
        while end < len(self.words) and self.words[end] == char:
            end += 1
        before, after = self.words[at - 1 : at] if at else " ", self.words[end : end + 1] or " "
        left = not after.isspace() and (_is_word_char(after) or not _is_word_char(before))
        right = not before.isspace() and (_is_word_char(before) or not _is_word_char(after))
        if before.isascii() and after.isascii() and before.isalnum() and after.isalnum():
            left = right = False  # a product such as 5*3*2, or a name_like_this
        if char == "_":
            left, right = left and not before.isalnum(), right and not after.isalnum()
        if (left or right) and end - at <= 3:
            self._runs.append(_DelimiterRun(char, at, end, opens=left, closes=right))
        return end

    def _read_link(self, opened: int, closed: int) -> int:
        match = _LINK_END.match(self.words, closed + 1, closed + 1 + _LONGEST_ADDRESS)
        # "[1](2)" is two notes rather than a link, because "2" has no sign of an address.
        if not match or closed == opened + 1 or not re.search(r"[/:#.]", match[1]):
            return closed + 1
        self.hidden += [Range(opened, opened + 1), Range(closed, closed + 1)]
        self.styles += [
            (Range(opened + 1, closed), "link"),
            (Range(match.start(), match.end()), "url"),
        ]
        return match.end()

    def _match_emphasis(self) -> None:
        # A closer pairs with the nearest opener of the same sign; openers in between are dropped
        # (CommonMark, "process emphasis").
        waiting: list[_DelimiterRun] = []
        for run in self._runs:
            while run.closes and run.length:
                lowest = max(0, len(waiting) - _MOST_OPENERS)
                place = next(
                    (
                        at
                        for at in range(len(waiting) - 1, lowest - 1, -1)
                        if waiting[at].char == run.char
                    ),
                    -1,
                )
                if place < 0:
                    break
                opener = waiting[place]
                del waiting[place + 1 :]
                self._add_emphasis(opener, run, 2 if min(opener.length, run.length) >= 2 else 1)
                if not opener.length:
                    waiting.pop()
            if run.opens and run.length:
                waiting.append(run)

    def _add_emphasis(self, opener: _DelimiterRun, closer: _DelimiterRun, width: int) -> None:
        self.styles.append((Range(opener.end, closer.start), "strong" if width == 2 else "em"))
        self.hidden += [
            Range(opener.end - width, opener.end),
            Range(closer.start, closer.start + width),
        ]
        opener.end -= width
        closer.start += width


def _is_word_char(char: str) -> bool:
    """Whether a character is neither a blank nor ASCII punctuation."""
    return char.isalnum() or not (char.isspace() or char.isascii())


P = TypeVar("P", bound=Mapping[str, object])

_END_KEYS = ("closes", "ends")
"""Keys that describe a piece's end. If the piece is cut, only the last part keeps them."""


def with_markup(pieces: Sequence[P], markup: Markup) -> list[P]:
    """Cut pieces where the Markdown begins or ends, and add to each how it is shown.

    A citation marker stays whole and is shown as typed, because the audit refers to its characters.
    """
    edges = sorted(
        {edge for span, _ in (*markup.leaves, *markup.styles) for edge in span}
        | {edge for span in markup.hidden for edge in span}
    )
    leaves = deque(markup.leaves)
    hidden = deque(markup.hidden)
    styles = deque(sorted(markup.styles, key=lambda style: (style[0].start, -style[0].end)))
    open_styles: list[tuple[Range, Style]] = []
    done: list[P] = []
    place = 0
    for piece in pieces:
        text = str(piece["text"])
        end = place + len(text)
        marker = "reference" in piece and "beside" not in piece and "\n" not in text
        inner = [] if marker else edges[bisect_right(edges, place) : bisect_left(edges, end)]
        for left, right in pairwise((place, *inner, end)):
            while leaves and leaves[0][0].end <= left:
                leaves.popleft()
            while hidden and hidden[0].end <= left:
                hidden.popleft()
            while styles and styles[0][0].start <= left:
                open_styles.append(styles.popleft())
            open_styles = [open_style for open_style in open_styles if open_style[0].end > left]
            within = bool(leaves) and leaves[0][0].start < right
            part: dict[str, object] = {**piece, "text": text[left - place : right - place]}
            if right < end:
                part = {name: value for name, value in part.items() if name not in _END_KEYS}
                if "beside" in part:
                    part["beside"] = []
            if within:
                part["block"] = leaves[0][1]
            if open_styles:
                part["styles"] = [style for _, style in open_styles]
            if not marker and (not within or (hidden and hidden[0].start <= left)):
                part["hidden"] = True
            done.append(cast("P", part))
        place = end
    return done
