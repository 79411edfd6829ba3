"""Cuts a text into sentences with offsets: what the audit counts, cites and shows.

A stop ends a sentence unless it stands in a number, an abbreviation, an initial, an address, code, or brackets; a
citation behind the stop belongs to the sentence before it. Headings, list items, table rows and code blocks begin and
end sentences of their own. Knows the stops of Chinese, Japanese, Hindi and Arabic; the abbreviations of English,
German, French and Spanish. Linear in the length of the text; no model, no data files.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

from masis.audit.markers import holds_only_markers, opens_with_marker, puts_markers_first, trailing_markers_end

# Cuts a text into blocks by its lines: paragraphs, headings, list items, table rows, code, rules.
#
# Understands as much of Markdown as language models write. It does not parse Markdown: a block is a stretch of the text
# with a kind, and every character that is not blank lies in exactly one of them.

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
        return [_trimmed(text, 0, len(text), _kind_of(text))] if text.strip() else []
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
    """Whether a line belongs to the block before it: its writer did not mean to begin another."""
    stripped = line.strip()
    if not stripped or found != "prose" or kind in ("heading", "rule", "row"):
        return False
    if holds_only_markers(stripped[:200]):
        return True
    if opens_with_marker(stripped) or _SOURCE_LINE.match(stripped):
        return False
    before = previous.rstrip()
    if not before:
        return False
    if before[-1] in _SENTENCE_ENDS:
        return len(before) >= _FULL_LINE and before[-1] != ":"
    first = stripped[0]
    return first.islower() or bool(_GOES_ON.search(before[-12:])) or len(before) >= _FULL_LINE


class Unit(NamedTuple):
    """A sentence, start included, end excluded, with the kind of its block and whether it opens that block."""

    start: int
    end: int
    kind: BlockKind
    opens: bool


def split_sentences(text: str) -> list[Unit]:
    """The sentences of a text, in order, blanks around each cut off, with the kind of block that each comes from.

    Every character that is not blank belongs to exactly one of them.
    """
    units: list[Unit] = []
    for block in split_blocks(text):
        if block.kind in ("prose", "item", "note"):
            units.extend(_sentences(text, block))
        else:
            units.append(Unit(block.start, block.end, block.kind, True))
    return units


_CLOSERS = "\"'”’»›」』）)］】}*_"
_STOP = re.compile(rf"(?:[.!?…‽]+|[。！？｡．؟।॥]+[.!?…]*)[{re.escape(_CLOSERS)}]*")
_WIDE_STOPS = frozenset("。！？｡．؟।॥")
# each alternative opens with a plain character, so that the search skips from one such character to the next
_BRACKETED = r"`[^`\n]{1,300}`|\[[^\[\].!?…\n]{0,200}[.!?…][^\[\]\n]{0,200}\]|\((?<=[^\s.!?…\"”]\s\()[^()\n]{1,200}\)"
_BRACKETS = re.compile(_BRACKETED)
_BRACKETS_AND_ADDRESSES = re.compile(_BRACKETED + r"|https?://[^\s<>\])】]+|www\.[^\s<>\])】]+")
_LAST_WORD = re.compile(r"[^\s(\[{\"'“”‘’«»/—–*]+\Z")
_NEXT_WORD = re.compile(r"[\s\"'“‘«(\[*_]*([^\W_][\w’'-]*)?")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_INNER_CAPITAL = re.compile(r"[a-z]{1,3}[A-Z]")  # iPhone, mRNA, pH begin sentences as they are


# never end a sentence: something always follows
_ABBREVIATIONS = frozenset(
    """al approx assoc ca cf capt cmdr col comdr dept det dr drs ed eds esp est ex fr gen gov hon hr incl lt maj mag
    messrs mme mlle mr mrs ms mt mts prof pres rep rev resp sen sgt sr st ste supt univ v viz vs e.g i.e eg ie e.i n.b
    nb p.ex bzw vgl z.b u.a d.h sog ggf evtl hrsg nr art abs inkl geb gest bspw sra dña lic ing av pág núm""".split()
)
# end none when a number follows: No. 5, Fig. 3, Sept. 11
_BEFORE_NUMBERS = frozenset(
    """no nos fig figs eq eqs vol vols p pp pg pt ch chap sec sect para tab art arts suppl app ref refs nr abb ver v cl
    jan feb mar apr jun jul aug sep sept oct nov dec c""".split()
)
# end one only before a word that seldom follows a name: Apple Inc. The ... but Apple Inc. CEO ...
_BEFORE_NAMES = frozenset(
    """inc ltd corp co llc plc bros jr esq phd ph.d m.d b.a m.a m.sc b.sc a.m p.m u.s u.k u.n e.u d.c b.c a.d b.c.e c.e
    u.s.a gmbh s.a ave blvd rd ft mt jan feb mar apr jun jul aug sep sept oct nov dec""".split()
)
_STARTERS = frozenset(
    """a after all also although an and another as at because before both but by can could despite during each even
    finally first for from furthermore given he hence her his how however i if in indeed instead it its later many
    meanwhile moreover most my no nor not now on once one other our overall over second several she since so some still
    such that the their then there therefore these they this those though through thus to today under until we what when
    where whether which while who why with without yet you your der die das ein eine es er sie wir im le la les il elle
    un une el los las""".split()
)


def _sentences(text: str, block: Block) -> Iterator[Unit]:
    start, opens = block.start, True
    for end in _boundaries(text, block):
        piece = text[start:end]
        left = len(piece) - len(piece.lstrip())
        if left < len(piece):
            yield Unit(start + left, start + len(piece.rstrip()), block.kind, opens)
            start, opens = end, False
    if start < block.end:
        start += len(text[start : block.end]) - len(text[start : block.end].lstrip())
        yield Unit(start, block.end, block.kind, opens)


def _boundaries(text: str, block: Block) -> Iterator[int]:
    """Where a sentence ends, the closing quotes and citations behind its stop included."""
    # Stretches in which no stop counts: code, brackets, addresses.
    addressed = text.find("http", block.start, block.end) >= 0 or text.find("www.", block.start, block.end) >= 0
    pattern = _BRACKETS_AND_ADDRESSES if addressed else _BRACKETS
    spans = [match.span() for match in pattern.finditer(text, block.start, block.end)]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    # Whether the block puts its markers before its sentences: [1] The sky is blue. [2] Grass is green.
    leads = puts_markers_first(text, block.start, block.end)
    last = block.start
    for stop in _STOP.finditer(text, block.start, block.end):
        at, after = stop.start(), stop.end()
        if at < last:
            continue
        index = bisect_right(starts, at) - 1
        if index >= 0 and at < ends[index] and not (after >= ends[index] and text[ends[index] - 1] in ".!?"):
            continue  # a stop that is the last thing of an address is more likely the sentence's
        trailing = None if leads else trailing_markers_end(text, after, block.end)
        end = trailing or after
        if end >= block.end:
            return
        if _ends_sentence(text, stop, end, last, block, cited=trailing is not None):
            yield end
            last = end


def _ends_sentence(text: str, stop: re.Match[str], end: int, last: int, block: Block, *, cited: bool) -> bool:
    at = stop.start()
    if text[at] in _WIDE_STOPS:
        return True
    following = text[end]
    if not following.isspace():
        # no blank behind the stop: a number, an address, a file name; a marker between them makes it one all the same
        return cited and (following.isupper() or following == "<" or ord(following) > 0x2E80)
    word = _NEXT_WORD.match(text, end, min(block.end, end + 60))
    assert word is not None  # it matches the empty string
    following_word = word.group(1) or ""
    blanks = text[end : end + 40].lstrip()
    if blanks and blanks[0] in ",;:)]}%=<>" and not (cited and blanks[0] == "<"):
        return False
    lower_follows = following_word[:1].islower() and not _INNER_CAPITAL.match(following_word)
    if text[at] != "." or stop.group().startswith(("..", ".!", ".?")):
        return not lower_follows or (text[at] == "." and cited)
    before = _LAST_WORD.search(text[max(last, at - 30) : at])
    token = before.group().lower() if before else ""
    if token in _ABBREVIATIONS or _is_list_number(text, token, at, last, block):
        return False
    if following_word[:1].isdigit() and token in _BEFORE_NUMBERS:
        return False
    if lower_follows:
        return cited and len(token) > 2 and "." not in token and token not in _BEFORE_NAMES
    if len(following_word) == 1 and text[word.end() : word.end() + 1] == "." and len(token) == 1 and token.isalpha():
        return False  # A. A. Milne
    if token in _BEFORE_NAMES or (before is not None and _may_be_initial(before.group())):
        return following_word.lower() in _STARTERS or not following_word
    return True


def _may_be_initial(token: str) -> bool:
    return (len(token) == 1 and token.isalpha() and token.isupper()) or _DOTTED.match(token) is not None


def _is_list_number(text: str, token: str, at: int, last: int, block: Block) -> bool:
    """Whether the stop belongs to the number of a list item: ``1. Wash``, ``a. Wash``."""
    if not (token.isdigit() and len(token) <= 3) and not (len(token) == 1 and token.isalpha()):
        return False
    return not text[last : at - len(token)].strip(" \t\r\n*_-(")
