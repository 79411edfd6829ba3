"""Finds the changes between two texts, word by word, in roughly linear time. Pure.

``difflib`` alone takes minutes if a word occurs thousands of times. So both texts are first split
at words that occur exactly once in each (patience diff), and only short parts are compared word by
word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from typing import Literal, NamedTuple

from masis.audit.markers import bracketed_words
from masis.audit.markers.styles import Brackets, style_table

ChangeKind = Literal["same", "out", "in"]


@cache
def _word_pattern(brackets: Brackets) -> re.Pattern[str]:
    # A token with the blanks before it: a marker ("[doc-1]"), a number ("3,400.5%"), one
    # ideograph, a word, or a sign. The last alternative matches trailing blanks.
    return re.compile(
        rf"\s*(?:{bracketed_words(brackets)}|\d+(?:[.,:]\d+)*%?|[\u3040-\u30ff\u3400-\u9fff]"
        r"|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s])|\s+"
    )


_FIGURE = re.compile(r"\d")


@cache
def _marker_pattern(brackets: Brackets) -> re.Pattern[str]:
    return re.compile(bracketed_words(brackets))


# Most pairs of equal words in a stretch that is compared word by word, which takes about 10 ms.
_PAIRS = 60_000

# Most nested splits at common words, which bounds the recursion.
_DEPTH = 12

# Unchanged signs and blanks up to this length are merged into the changes around them.
_SMALLEST_ISLAND = 3


class DiffChange(NamedTuple):
    """A stretch of both texts (``same``), only the first (``out``) or only the second (``in``)."""

    kind: ChangeKind
    text: str


def figures_and_markers(text: str) -> list[str]:
    """Return the figures written in digits and the citation markers of a text, in its order.

    Example:
        >>> figures_and_markers("It took 41 minutes, 3.5% longer [E1].")
        ['41', '3.5%', '[E1]']

    """
    brackets = style_table().brackets
    words = (word.strip() for word in _word_pattern(brackets).findall(text))
    return [word for word in words if _FIGURE.search(word) or _marker_pattern(brackets).match(word)]


def word_changes(before: str, after: str) -> list[DiffChange]:
    """Return the changes from one text to another.

    Joining ``same`` and ``out`` gives the first text, joining ``same`` and ``in`` the second.
    """
    words = _word_pattern(style_table().brackets)
    left, right = words.findall(before), words.findall(after)
    return list(_join_blocks(_merge_islands(_diff_blocks(left, right, _DEPTH))))


class _Block(NamedTuple):
    """A stretch that both sides share, or the differing text of each side."""

    same: str = ""
    out: str = ""
    new: str = ""


def _diff_blocks(left: Sequence[str], right: Sequence[str], depth: int) -> Iterator[_Block]:
    # Equal words at both ends need no comparison. Revisions mostly change a few sentences.
    start = _common_prefix_length(left, right)
    end = _common_prefix_length(left[start:][::-1], right[start:][::-1])
    if start:
        yield _Block(same="".join(left[:start]))
    yield from _diff_middle(left[start : len(left) - end], right[start : len(right) - end], depth)
    if end:
        yield _Block(same="".join(left[len(left) - end :]))


def _common_prefix_length(left: Sequence[str], right: Sequence[str]) -> int:
    shorter = min(len(left), len(right))
    return next((place for place in range(shorter) if left[place] != right[place]), shorter)


def _diff_middle(left: Sequence[str], right: Sequence[str], depth: int) -> Iterator[_Block]:
    if not left or not right:
        yield _Block(out="".join(left), new="".join(right))
        return
    counts, others = Counter(left), Counter(right)
    # difflib's time grows with the number of pairs of equal words.
    if sum(count * others[word] for word, count in counts.items()) <= _PAIRS:
        yield from _diff_words(left, right)
        return
    # Without anchors or depth left, the stretch is shown as one change instead of taking minutes.
    anchors = _find_anchors(left, right, counts, others) if depth else []
    if not anchors:
        yield _Block(out="".join(left), new="".join(right))
        return
    left_start, right_start = 0, 0
    for place, other in (*anchors, (len(left), len(right))):
        yield from _diff_blocks(left[left_start:place], right[right_start:other], depth - 1)
        left_start, right_start = place, other


def _diff_words(left: Sequence[str], right: Sequence[str]) -> Iterator[_Block]:
    # autojunk would ignore words that make up over 1% of a text of 200 words or more.
    for operation, start, end, other, other_end in SequenceMatcher(
        None, left, right, autojunk=False
    ).get_opcodes():
        if operation == "equal":
            yield _Block(same="".join(left[start:end]))
        else:
            yield _Block(out="".join(left[start:end]), new="".join(right[other:other_end]))


def _find_anchors(
    left: Sequence[str], right: Sequence[str], counts: Counter[str], others: Counter[str]
) -> list[tuple[int, int]]:
    """Return positions of words that occur once on each side and have the same order on both.

    These are the longest increasing subsequence of the positions, found by patience sorting.
    """
    places = {word: place for place, word in enumerate(right) if others[word] == 1}
    pairs = [
        (place, places[word])
        for place, word in enumerate(left)
        if counts[word] == 1 and word in places
    ]
    # For each length, ``tails`` holds the smallest last position of a subsequence and ``ends`` the
    # pair that it ends with. ``before`` links each pair to the one before it.
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, other) in enumerate(pairs):
        length = bisect_left(tails, other)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [other]
        ends[length : length + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _merge_islands(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """Merge changes that only a comma or a blank separates, so that they read as one edit."""
    # The end marker flushes the last change; ``_join_blocks`` drops it.
    out, new, island = "", "", ""
    for block in chain(blocks, [_Block(same="end")]):
        if not block.same:
            out, new, island = out + island + block.out, new + island + block.new, ""
        elif (
            (out or new)
            and not island
            and len(block.same) <= _SMALLEST_ISLAND
            and not any(map(str.isalnum, block.same))
        ):
            island = block.same
        else:
            if out or new:
                yield _Block(out=out, new=new)
            if island:
                yield _Block(same=island)
            out, new, island = "", "", ""
            yield block


def _join_blocks(blocks: Iterator[_Block]) -> Iterator[DiffChange]:
    same = ""
    *kept, _ = blocks  # the last block is the end marker of _merge_islands
    for block in kept:
        if block.same:
            same += block.same
            continue
        if same:
            yield DiffChange("same", same)
            same = ""
        if block.out:
            yield DiffChange("out", block.out)
        if block.new:
            yield DiffChange("in", block.new)
    if same:
        yield DiffChange("same", same)
