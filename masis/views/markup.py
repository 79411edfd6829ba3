"""Finds the Markdown markup of a text, and the block and style of all other characters.

The text isn't changed. The result consists of ranges of the text, so that marks and labels, which
are offsets too, stay valid. Hidden characters are markup that a style or a block shows instead.

markdown-it-py finds headings, paragraphs, lists, quotations, code, tables, rules, emphasis and
links. It stores the lines of blocks but no positions of inline elements, so the rules below record
them during parsing. HTML, images, entities and reference definitions are shown as typed. A link
shows its words and its address.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict, TypeVar, cast

from markdown_it import MarkdownIt, rules_block, rules_inline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

Tag = Literal[
    "p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "quote", "pre", "table", "tr", "th", "td", "hr"
]
Style = Literal["strong", "em", "code", "link", "url"]

DEEPEST = 24
"""Deepest nesting of blocks; anything deeper becomes a paragraph. A list counts twice."""

# Most opening brackets of a block with links. The parser reads from each of them to the end, so
# 30,000 unclosed brackets would take minutes.
_MOST_BRACKETS = 1_000

# Characters that a backslash escapes. CommonMark has more, but TeX such as ``\(x\)`` would lose its
# backslashes.
_ESCAPABLE = frozenset("*_`#|~+-.")

# A cheap test for text that may contain Markdown: "**", "](", or a line that starts with "- ".
_POSSIBLE_MARKUP = re.compile(
    r"[*_`]|\]\(|^[ \t]*(?:#{1,6}[ \t]|[-+][ \t]|\d{1,9}[.)][ \t]|>|~~~|---|___)|\|", re.MULTILINE
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
    tokens: list[Token] = []
    _PARSER.block.parse(text, _PARSER, {}, tokens)
    builder = _MarkupBuilder(text)
    builder.read_tokens(tokens)
    if (
        not builder.hidden
        and not builder.styles
        and all(block["tag"] == "p" for block in builder.blocks)
    ):
        return None
    return Markup(
        tuple(builder.blocks),
        tuple(builder.leaves),
        tuple(sorted(builder.hidden)),
        tuple(builder.styles),
    )


class _MarkupBuilder:
    """Turns the parser's tokens into blocks, and the words of each leaf into styles."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[MarkupBlock] = []
        self.leaves: list[tuple[Range, int]] = []
        self.hidden: list[Range] = []
        self.styles: list[tuple[Range, Style]] = []
        self._parents = [-1]
        self._levels: list[int] = []

    def read_tokens(self, tokens: Sequence[Token]) -> None:
        containers: dict[str, Tag] = {
            "bullet_list_open": "ul",
            "ordered_list_open": "ol",
            "list_item_open": "li",
            "blockquote_open": "quote",
        }
        for token in tokens:
            if token.type in containers:
                self._parents.append(self._add_block(containers[token.type]))
                if token.type == "list_item_open" and token.info:
                    self.blocks[-1]["number"] = int(token.info)
            elif token.type.replace("_close", "_open") in containers:
                self._parents.pop()
            elif token.type == "hr":
                self._add_block("hr")
            elif token.type == "paragraph_open":
                self._add_leaf("p", token.meta["lines"])
            elif token.type == "heading_open":
                self._add_leaf(self._heading_tag(int(token.tag[1])), token.meta["lines"])
            elif token.type == "fence":
                self._add_fence(token.meta["lines"], token.info)
            elif token.type == "table_open":
                self._add_table(token.meta["lines"])

    def _add_block(self, tag: Tag) -> int:
        self.blocks.append({"tag": tag, "parent": self._parents[-1]})
        return len(self.blocks) - 1

    def _add_leaf(self, tag: Tag, lines: Sequence[Range], *, inline: bool = True) -> None:
        """Add a block of words; the line feeds between its lines are visible."""
        block = self._add_block(tag)
        shown = [
            *(Range(line.start, min(line.end + 1, len(self.text))) for line in lines[:-1]),
            *lines[-1:],
        ]
        joined: list[Range] = []
        for line in shown:
            if joined and joined[-1].end == line.start:
                joined[-1] = Range(joined[-1].start, line.end)
            else:
                joined.append(line)
        self.leaves += [(stretch, block) for stretch in joined if stretch.start < stretch.end]
        if inline:
            self._add_inline_markup(shown)

    def _add_inline_markup(self, lines: Sequence[Range]) -> None:
        # The parser gets the lines without the markup of their blocks. ``places`` maps its
        # positions back to the text.
        words = "".join(self.text[line.start : line.end] for line in lines)
        places = [place for line in lines for place in range(line.start, line.end)]
        inline = _InlineMarkup([], [])
        parser = _PARSER if words.count("[") <= _MOST_BRACKETS else _PARSER_WITHOUT_LINKS
        tokens: list[Token] = []
        parser.inline.parse(words, parser, {"inline": inline}, tokens)
        inline.add_emphasis(tokens)
        self.hidden += [
            Range(places[start], places[end - 1] + 1) for start, end in inline.hidden if start < end
        ]
        self.styles += [
            (Range(places[start], places[end - 1] + 1), style)
            for (start, end), style in inline.styles
            if start < end
        ]

    def _heading_tag(self, level: int) -> Tag:
        # The depth counts, not the text's own level, so that no heading level is skipped. The top
        # heading is of level 3, because the answer and the evidence are below headings of level 2.
        while self._levels and self._levels[-1] >= level:
            self._levels.pop()
        self._levels.append(level)
        tags: tuple[Tag, ...] = ("h3", "h4", "h5", "h6")
        return tags[min(len(self._levels), len(tags)) - 1]

    def _add_fence(self, lines: Sequence[Range], info: str) -> None:
        opening, *inside = lines
        if language := info.strip():  # The name of the language stays visible.
            start = self.text.index(language, opening.start)
            inside.insert(0, Range(start, opening.end))
            self.styles.append((Range(start, opening.end), "url"))
        self._add_leaf("pre", inside, inline=False)

    def _add_table(self, lines: Sequence[Range]) -> None:
        # The parser drops cells beyond the last column of the header, so the cells are read here.
        header, _delimiters, *rows = lines
        self._parents.append(self._add_block("table"))
        for line in (header, *rows):
            self._parents.append(self._add_block("tr"))
            for cell in self._cell_ranges(line):
                self._add_leaf("th" if line is header else "td", [cell])
            self._parents.pop()
        self._parents.pop()

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


class _InlineMarkup(NamedTuple):
    """The hidden ranges and the styles of a leaf, as positions in its words."""

    hidden: list[tuple[int, int]]
    styles: list[tuple[tuple[int, int], Style]]

    def add_emphasis(self, tokens: Sequence[Token]) -> None:
        """Add the pairs of stars and underscores that the parser matched."""
        openers: list[int] = []
        for token in tokens:
            if token.type not in ("em_open", "em_close", "strong_open", "strong_close"):
                continue
            start = token.meta["at"]
            # A pair for "strong" is two tokens, and the parser empties the outer one.
            width = len(token.markup)
            if token.nesting == 1:
                start -= width - 1
                openers.append(start + width)
            else:
                style: Style = "strong" if width == 2 else "em"
                self.styles.append(((openers.pop(), start), style))
            self.hidden.append((start, start + width))


def _is_word_char(char: str) -> bool:
    """Whether a character is neither a blank nor ASCII punctuation.

    CommonMark counts all punctuation, but Chinese has no blanks, so that the closing stars of
    "**重点。**内容" would not close anything.
    """
    return char.isalnum() or not (char.isspace() or char.isascii())


def _read_emphasis(state: StateInline, silent: bool) -> bool:
    """Push a token for each star or underscore of a run that may open or close emphasis."""
    char = state.src[state.pos]
    if silent or char not in "*_":
        return False
    start = end = state.pos
    while end < state.posMax and state.src[end] == char:
        end += 1
    before = state.src[start - 1] if start else " "
    after = state.src[end] if end < len(state.src) else " "
    # The flanking rules of CommonMark (section 6.2), with ``_is_word_char`` for its punctuation.
    opens = not after.isspace() and (_is_word_char(after) or not _is_word_char(before))
    closes = not before.isspace() and (_is_word_char(before) or not _is_word_char(after))
    if before.isascii() and after.isascii() and before.isalnum() and after.isalnum():
        opens = closes = False  # A product such as 5*3*2, or a name_like_this.
    if char == "_":
        opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
    if end - start > 3:  # "****" is a rule or a blank to fill in.
        opens = closes = False
    for place in range(start, end):
        token = state.push("text", "", 0)
        token.content, token.meta = char, {"at": place}
        state.delimiters.append(
            Delimiter(
                marker=ord(char),
                length=end - start,
                token=len(state.tokens) - 1,
                end=-1,
                open=opens,
                close=closes,
            )
        )
    state.pos = end
    return True


def _read_escape(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "\\" or state.src[state.pos + 1 : state.pos + 2] not in _ESCAPABLE:
        return False
    if not silent:
        state.env["inline"].hidden.append((state.pos, state.pos + 1))
        state.pending += state.src[state.pos : state.pos + 2]
    state.pos += 2
    return True


def _read_code(state: StateInline, silent: bool) -> bool:
    start, count = state.pos, len(state.tokens)
    matched = rules_inline.backtick(state, silent)
    if len(state.tokens) > count and state.tokens[-1].type == "code_inline":
        width, inline = len(state.tokens[-1].markup), state.env["inline"]
        inline.hidden.extend([(start, start + width), (state.pos - width, state.pos)])
        inline.styles.append(((start + width, state.pos - width), "code"))
    return matched


def _read_link(state: StateInline, silent: bool) -> bool:
    start = state.pos
    matched = rules_inline.link(state, silent)
    if matched and not silent:
        end = state.pos
        close, inline = state.md.helpers.parseLinkLabel(state, start, True), state.env["inline"]
        state.pos = end
        inline.hidden.extend([(start, start + 1), (close, close + 1)])
        inline.styles.extend([((start + 1, close), "link"), ((close + 1, end), "url")])
    return matched


_BlockRule = Callable[[StateBlock, int, int, bool], bool]


def _with_lines(rule: _BlockRule) -> _BlockRule:
    """Return the rule, which also records the ranges of the lines in the block's first token.

    While a rule runs, the state's marks leave out the markup of enclosing lists and quotations.
    """

    def read(state: StateBlock, first: int, last: int, silent: bool) -> bool:
        count, indent = len(state.tokens), state.sCount[first]
        matched = rule(state, first, last, silent)
        if matched and not silent:
            block = state.tokens[count]
            start, end = block.map or (first, first + 1)
            lines = [
                Range(state.bMarks[line] + state.tShift[line], state.eMarks[line])
                for line in range(start, end)
            ]
            if block.type == "heading_open":
                words = state.tokens[count + 1].content
                at = state.src.index(words, lines[0].start + len(block.markup))
                lines = [Range(at, at + len(words))]
            elif block.type == "fence":
                final = state.src[lines[-1].start : lines[-1].end].strip()
                closed = final.startswith(block.markup) and not final.strip(block.markup[0])
                lines = lines[:1] + [
                    Range(state.bMarks[line] + min(state.tShift[line], indent), state.eMarks[line])
                    for line in range(start + 1, end - (closed and end - start > 1))
                ]
            block.meta = {"lines": lines}
        return matched

    return read


# "*", "12." or "##" with nothing after it.
_EMPTY_BLOCK = re.compile(r"(?:[-*+]|\d{1,9}[.)]|#{1,6}[ \t]*#*)[ \t]*$")


def _unless_empty(rule: _BlockRule) -> _BlockRule:
    """Return the rule without empty items and headings, and without blocks that are too deep.

    CommonMark takes a lone star for a list, and beyond its own limit the parser drops the lines.
    """

    def read(state: StateBlock, first: int, last: int, silent: bool) -> bool:
        words = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]]
        if state.level >= DEEPEST or _EMPTY_BLOCK.match(words):
            return False
        return rule(state, first, last, silent)

    return read


class _Parser(MarkdownIt):
    """markdown-it-py with rules that record positions."""

    def __init__(self, *, links: bool) -> None:
        # "zero" enables no rule, so that only those below apply.
        super().__init__("zero", {"maxNesting": 10 * DEEPEST})
        everywhere = ["paragraph", "reference", "blockquote", "list"]
        self.block.ruler.at("table", _with_lines(rules_block.table), {"alt": everywhere[:2]})
        self.block.ruler.at("fence", _with_lines(rules_block.fence), {"alt": everywhere})
        self.block.ruler.at(
            "blockquote", _unless_empty(rules_block.blockquote), {"alt": everywhere}
        )
        self.block.ruler.at("list", _unless_empty(rules_block.list_block), {"alt": everywhere[:3]})
        self.block.ruler.at(
            "heading", _with_lines(_unless_empty(rules_block.heading)), {"alt": everywhere[:3]}
        )
        self.block.ruler.at("paragraph", _with_lines(rules_block.paragraph))
        self.inline.ruler.at("escape", _read_escape)
        self.inline.ruler.at("backticks", _read_code)
        self.inline.ruler.at("emphasis", _read_emphasis)
        self.inline.ruler.at("link", _read_link)
        self.enable(["table", "fence", "blockquote", "hr", "list", "heading"])
        self.enable(["escape", "backticks", "emphasis", *(["link"] if links else [])])
        self.inline.ruler2.enable(["balance_pairs", "emphasis"])
        # Joining texts would lose the place of a star that opens nothing.
        self.inline.ruler2.disable("fragments_join")

    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Whether a link has an address: "[1](2)" is two notes, because "2" has no sign of one."""
        return bool(re.search(r"[/:#.]", url))

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        """Return the address as it is, because only its place in the text is used."""
        return url


_PARSER = _Parser(links=True)
_PARSER_WITHOUT_LINKS = _Parser(links=False)

P = TypeVar("P", bound=Mapping[str, object])


# Keys that describe a piece's end. If the piece is cut, only the last part keeps them.
def without_markup(text: str) -> str:
    """Return a text without the characters of its Markdown."""
    markup = find_markup(text)
    if markup is None:
        return text
    parts = with_markup([{"text": text}], markup)
    return "".join(str(part["text"]) for part in parts if "hidden" not in part)


_END_KEYS = ("closes", "ends")


def with_markup(pieces: Sequence[P], markup: Markup) -> list[P]:
    """Cut pieces where the Markdown begins or ends, and add to each how it is shown.

    A citation marker stays whole and is shown as typed, because the audit refers to its characters.
    """
    edges = sorted(
        {edge for span, _ in (*markup.leaves, *markup.styles) for edge in span}
        | {edge for span in markup.hidden for edge in span}
    )
    # All lists are sorted, so one pass over the pieces with queues takes linear time.
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
