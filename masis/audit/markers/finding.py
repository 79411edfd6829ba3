"""Finds and removes the markers of a text, and decides which of them end a sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from masis.audit.markers import styles
from masis.audit.markers.references import Reference
from masis.audit.markers.resolution import EvidenceIds


class Marker(NamedTuple):
    """A part of the answer that points at evidence, with its references."""

    start: int
    end: int
    references: tuple[Reference, ...]


NO_EVIDENCE_KNOWN = EvidenceIds.unknown()


def find_markers(
    answer: str, index: EvidenceIds, code: Sequence[tuple[int, int]] = ()
) -> list[Marker]:
    """Return all markers of an answer in order; they don't overlap.

    Args:
        answer: The text.
        index: The evidence that its markers may name.
        code: Parts without markers, such as code blocks.

    """
    candidates = list(_bracketed_ids(answer, index)) if index.bracketed else []
    table = styles.style_table()
    for signs, style in table.signs_in_ascii if answer.isascii() else table.signs:
        if not any(sign in answer for sign in signs):
            continue
        for match in style.pattern.finditer(answer):
            references = style.parse(match, index)
            if references is not None:
                candidates.append(Marker(match.start(), match.end(), tuple(references)))
    if not candidates:
        return []
    mask = mask_code(answer, code)
    markers: list[Marker] = []
    last_end = -1
    candidates.sort(key=lambda marker: (marker.start, -marker.end))  # the longest first
    for marker in candidates:
        if marker.start >= last_end and not mask.contains(marker.start):
            last_end = marker.end
            if len(marker.references) == 1:
                markers.append(marker)
            elif marker.references:
                markers.append(_with_broken_ranges(marker, answer))
    return markers


def marker_spans(text: str, index: EvidenceIds | None = None) -> list[tuple[int, int]]:
    """Return the positions of the markers of a text, in order.

    Without the ``index`` of the evidence, only common markers count (``[1]``, ``【1†source】``,
    ``[chunk_1]``, ``(Source 1)``). Brackets and raised digits that may have another meaning stay
    text (``CI of [2, 8]``, ``10[6]``, ``[18]F``, ``x[3]``, ``10⁸``), as do ids of an unusual form
    (``[smith-2004]``).
    """
    code = (
        [match.span() for match in _FENCED.finditer(text)] if "```" in text or "~~~" in text else []
    )
    return [marker[:2] for marker in find_markers(text, index or NO_EVIDENCE_KNOWN, code)]


def without_markers(text: str, index: EvidenceIds | None = None) -> str:
    """Return a text without its markers, the spaces before them, and the commas between them.

    The words of a link are kept. See ``marker_spans`` for texts without an ``index``.
    """
    return without_spans(text, marker_spans(text, index))


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without these markers, which are in order and don't overlap.

    See ``without_markers``.
    """
    parts, position = [], 0
    for start, end, kept_words in _removable_spans(text, spans):
        text_before_marker = text[position:start]
        if kept_words:
            parts += [text_before_marker, kept_words]
        else:
            # "long [1], [2]." becomes "long."
            parts.append(
                ""
                if position and not text_before_marker.strip(_MARKER_SEPARATORS)
                else text_before_marker.rstrip(" \t")
            )
        position = end
    return "".join([*parts, text[position:]])


# Characters between two adjacent markers: "[1], [2]".
_MARKER_SEPARATORS = " \t,;"


def _removable_spans(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """Return the spans to remove with the markers of a text, each with the words to keep.

    Adjacent markers are one span, which includes everything that would enclose nothing without
    them.
    """
    stretches: list[tuple[int, int, str]] = []
    for marker_start, marker_end in spans:
        if words := words_of_marker(text, marker_start, marker_end):
            stretches.append((marker_start, marker_end, words))
            continue
        previous_end = stretches[-1][1] if stretches else 0
        start, end = _with_wrappers(text, marker_start, marker_end, previous_end)
        if (
            stretches
            and not stretches[-1][2]
            and not text[previous_end:start].strip(_MARKER_SEPARATORS)
        ):
            start, _, _ = stretches.pop()
            previous_end = stretches[-1][1] if stretches else 0
            start, end = _with_wrappers(text, start, end, previous_end)
        stretches.append((start, end, ""))
    return stretches


# "<sup>", '<span class="x">': a tag that ends here.
_OPEN_TAG = re.compile(r"<([a-z]{1,9})(?:\s[^<>]{0,60})?>\Z", re.IGNORECASE)
# "(", "**": signs of text and Markdown that enclose markers, the longest first.
_ENCLOSING = (
    ("(", ")"),
    ("（", "）"),
    ("***", "***"),
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("_", "_"),
    ("^", "^"),
)
# The character after a sign of emphasis that opens instead of closing: "**b" in "**a**[1]**b**".
_EMPHASIZED = re.compile(r"[\w*]")


def _with_wrappers(text: str, start: int, end: int, earliest: int) -> tuple[int, int]:
    """Return the span of a marker including the signs that enclose only the marker.

    ``[[1]]``, ``([1])``, ``**[1]**`` and ``<sup>[1]</sup>`` would stay as ``[]``, ``()``, ``****``
    and ``<sup></sup>`` without their marker. The result begins at or after ``earliest``.
    """
    while wrapper := _wrapper_around(text, start, end, earliest):
        opening, closing = wrapper
        start, end = start - len(opening), end + len(closing)
    return start, end


def _wrapper_around(text: str, start: int, end: int, earliest: int) -> tuple[str, str] | None:
    """Return the signs directly before and after a span that enclose it, if any do."""
    for opening, closing in (*styles.style_table().outer_brackets, *_ENCLOSING):
        if (
            text.endswith(opening, earliest, start)
            and text.startswith(closing, end)
            # In "**a**[1]**b**", emphasis encloses the words and not the marker.
            and not (opening == closing and _EMPHASIZED.match(text, end + len(closing)))
        ):
            return opening, closing
    if start > earliest and text[start - 1] == ">":
        tag = _OPEN_TAG.search(text, max(earliest, start - 80), start)
        if tag and re.fullmatch(_WRAPPER, tag[1], re.IGNORECASE):
            closing = text[end : end + len(tag[1]) + 3]
            if closing.casefold() == f"</{tag[1]}>".casefold():
                return tag.group(), closing
    return None


def style_of_marker(text: str, start: int, end: int) -> styles.MarkerStyle | None:
    """Return the style of a marker at this position."""
    for style in styles.style_table().by_opening.get(text[start : start + 1], ()):
        if style.pattern.fullmatch(text, start, end):
            return style
    return None


# "</sup>", ")", "】": the signs at the end of a marker.
_LAST_SIGN = re.compile(r"(?:</\w+>|[^\w\s])\Z")


def marker_end_pattern() -> str:
    r"""Return a pattern of the last signs of a marker, such as ``\]|】|</sup>``.

    It's for scripts in the browser, so it uses only syntax that JavaScript has too.
    """
    table = styles.style_table()
    ends = set(table.closing_brackets)
    for style in table.styles:
        if style.example[-1] in style.opening:
            ends.update(style.opening)  # raised digits consist of the signs that they begin with
        written = style.write(["1"]) if style.write else ""
        ends.update(
            match.group() for text in (style.example, written) if (match := _LAST_SIGN.search(text))
        )
    return styles.alternatives(sorted(ends))


def words_of_marker(text: str, start: int, end: int) -> str:
    """Return the words of a marker in its sentence, or "" if it has none.

    These are the label of a link: ``[the report](https://...)``.
    """
    for style in styles.style_table().by_opening.get(text[start : start + 1], ()):
        if match := style.pattern.fullmatch(text, start, end):
            return style.words(match)
    return ""


def bracketed_numbers(text: str) -> frozenset[str]:
    """Return the numbers in brackets of a text as written: ``12`` of ``[12]`` and of ``[^12]``.

    Brackets that only citations have, such as ``【】``, don't count.
    """
    pattern = _numbers_pattern(styles.style_table().ambiguous_brackets)
    return frozenset(match[match.lastindex or 0] for match in pattern.finditer(text))


@cache
def _numbers_pattern(brackets: styles.Brackets) -> re.Pattern[str]:
    return re.compile(
        "|".join(
            rf"{re.escape(pair[0])}\^?(\d{styles.none_of(pair)}]{{0,60}}){re.escape(pair[1])}"
            for pair in brackets
        )
    )


def without_brackets(marker: str) -> str:
    """Return the content of a marker: ``12`` for ``[12]``."""
    for opening, closing in styles.style_table().brackets:
        if marker.startswith(opening) and marker.endswith(closing):
            return marker[len(opening) : -len(closing)]
    return marker[1:-1]


def without_last_brackets(text: str) -> str:
    """Return a text without the short brackets at its end, such as ``[3] [see note]``."""
    return _last_brackets_pattern(styles.style_table().brackets).sub("", text)


@cache
def _last_brackets_pattern(brackets: styles.Brackets) -> re.Pattern[str]:
    pairs = "|".join(
        rf"{re.escape(pair[0])}{styles.none_of(pair)}]{{1,20}}{re.escape(pair[1])}"
        for pair in brackets
    )
    return re.compile(rf"(?:\s*(?:{pairs}))+$")


@cache
def bracketed_words(brackets: styles.Brackets) -> str:
    """Return the pattern of brackets without whitespace inside: ``[doc-1]``."""
    return "|".join(
        rf"{re.escape(pair[0])}{styles.none_of(pair)}\s]{{1,80}}{re.escape(pair[1])}"
        for pair in brackets
    )


@cache
def brackets_with_stops(brackets: styles.Brackets) -> str:
    """Return the pattern of brackets that have a stop inside: ``[p. 3]``."""
    return "|".join(
        rf"{re.escape(pair[0])}{styles.none_of(pair)}.!?…\n]{{0,200}}[.!?…]"
        rf"{styles.none_of(pair)}\n]{{0,200}}{re.escape(pair[1])}"
        for pair in brackets
    )


def trailing_markers_end(text: str, start: int, end: int) -> int | None:
    """Return the end of the markers that follow a full stop and belong to the sentence before it.

    The evidence isn't known here. In "It is long. [1] It is red." and "It is long.<sup>[1]</sup> It
    is red." the marker cites the first sentence. None if there are no such markers.
    """
    position = start
    while position < end and text[position] in " \t":
        position += 1
    if position >= end or (
        text[position] not in _LEAD_CHARACTERS
        and text[position] not in styles.style_table().by_opening
    ):
        return None  # an ordinary sentence follows
    markers_end = None
    brackets = styles.style_table().brackets
    outer_brackets = styles.style_table().outer_brackets
    lead_match = _lead_pattern(brackets).match(text, start, end)
    start = position = lead_match.end() if lead_match else start
    while True:
        while (
            position < end
            and text[position] in " \t\r\n,;"
            and position - (markers_end or start) < 3
        ):
            position += 1
        marker_end = _marker_end(text, position, end)
        while marker_end is None and (
            wrapper := _wrapper_pattern(brackets, outer_brackets).match(text, position, end)
        ):
            position = wrapper.end()
            marker_end = _marker_end(text, position, end)
            closing_bracket = dict(outer_brackets).get(wrapper.group())
            if (
                marker_end is not None
                and closing_bracket is not None
                and not text.startswith(closing_bracket, marker_end)
            ):
                return markers_end  # [[3]H]ketanserin
        if marker_end is None:
            return markers_end
        closing = _closing_pattern(outer_brackets).match(text, marker_end, end)
        markers_end = position = closing.end() if closing else marker_end
        if text[markers_end - 1] == "." and markers_end > marker_end:
            # The sentence's stop follows its citations: "It is long. [1]. It is red."
            return markers_end


@cache
def _lead_pattern(brackets: styles.Brackets) -> re.Pattern[str]:
    # "Source: [1]", "(see [1]": words after a full stop and before the first marker.
    return re.compile(
        r"[ ]{1,3}[([]?(?:[Ss]ources?|[Rr]eferences?|[Cc]itations?|[Ss]ee):?"
        rf"(?=[ ]{{0,2}}(?:{styles.alternatives(opening for opening, _ in brackets)}))"
    )


# The characters that begin a lead, a wrapper or a separator.
_LEAD_CHARACTERS = frozenset("SsRrCc([<*^,;\r\n")
_WRAPPER = r"(?:sup|small|cite|citation|ref|span|strong|em|b|i|u)"


@cache
def _wrapper_pattern(brackets: styles.Brackets, outer: styles.Brackets) -> re.Pattern[str]:
    # "(see ", "<sup>", "**", "^" or a bracket before a marker: "<sup>[1]</sup>", "**[1]**",
    # "[[1]]". Models often write the brackets of a style twice.
    opening = styles.alternatives(opening for opening, _ in brackets)
    outer_opening = styles.alternatives(opening for opening, _ in outer)
    nested = rf"(?:{outer_opening}){{0,3}}(?:{opening})"
    return re.compile(
        rf"(?:\((?:[Ss]ee |cf\. )?|<{_WRAPPER}(?:\s[^<>]{{0,60}})?>(?={nested}|[(<])|\*{{1,2}}"
        rf"|(?:\^|{outer_opening})(?={nested}))"
    )


@cache
def _closing_pattern(brackets: styles.Brackets) -> re.Pattern[str]:
    # ")", "</sup>", "**", a closing bracket and the stop of the sentence after a marker:
    # "<sup>[1]</sup>." The repetition is possessive (*+), so that a long run of closing tags isn't
    # tried again in shorter pieces.
    closing = styles.alternatives(closing for _, closing in brackets)
    return re.compile(
        rf"(?:\(\)|\)|{closing}|</(?:{_WRAPPER}|statement|p|li|div)>|\*{{1,2}})*+[.,;]?"
    )


# "<cite></cite>", "</statement>": LongCite leaves an empty tag after a statement without citations.
_EMPTY_TAG = re.compile(rf"<({_WRAPPER})>\s{{0,3}}</\1>|</statement>")


def _marker_end(text: str, start: int, end: int) -> int | None:
    """Return the end of the longest marker that begins here and may follow a stop."""
    if start >= end:
        return None
    if text[start] == "<" and (empty_tag := _EMPTY_TAG.match(text, start, end)):
        return empty_tag.end()
    longest_end = None
    for style in styles.style_table().by_opening.get(text[start], ()):
        match = style.pattern.match(text, start, end)
        if match and style.may_follow_stop(match):
            longest_end = max(longest_end or 0, match.end())
    return longest_end


def leading_marker(line: str) -> str:
    """Return the bracketed marker at the beginning of a line, or "" if there is none."""
    stripped = line[:400].lstrip()
    if not stripped.startswith(styles.style_table().opening_brackets):
        return ""
    return stripped[: _marker_end(stripped, 0, len(stripped)) or 0]


def opens_with_marker(line: str) -> bool:
    """Return whether a line begins with a bracketed marker.

    In most brackets, only a marker with a number counts: ``[sic]`` begins no entry.
    """
    marker = leading_marker(line)
    style = style_of_marker(marker, 0, len(marker))
    has_number = any(map(str.isdecimal, marker))
    return has_number or (style is not None and style.is_ambiguous is False)


# "- " or "2. " before the first marker of a paragraph.
_LIST_PREFIX = re.compile(r"(?:[-*+•]\s+|\d{1,3}[.)]\s+)?")
# ": The sky", " The sky": words after a marker, and not a stop.
_WORDS_AFTER = re.compile(r":?\s+\S")


def puts_markers_first(text: str, start: int, end: int) -> bool:
    """Return whether a paragraph puts markers before sentences, as in ``[1] The sky is blue.``"""
    prefix = _LIST_PREFIX.match(text, start, end)
    marker_start = prefix.end() if prefix else start
    table = styles.style_table()
    if not text.startswith(table.opening_brackets, marker_start) or text.endswith(
        table.closing_brackets, start, end
    ):
        return False
    marker_end = _marker_end(text, marker_start, end)
    return (
        marker_end is not None
        and marker_end - marker_start <= 44
        and any(map(str.isdecimal, text[marker_start:marker_end]))
        and _WORDS_AFTER.match(text, marker_end, end) is not None
    )


_BETWEEN_MARKERS = frozenset(" \t\r\n.,;")


def holds_only_markers(line: str) -> bool:
    """Return whether a line has only markers and punctuation.

    Such a line belongs to the line before it.
    """
    position, end = 0, len(line)
    has_marker = False
    openings = styles.style_table().opening_brackets
    while position < end:
        if line[position] in _BETWEEN_MARKERS:
            position += 1
            continue
        if (
            not line.startswith(openings, position)
            or (next_end := _marker_end(line, position, end)) is None
        ):
            return False
        position, has_marker = next_end, True
    return has_marker


# Code and mathematics, in which brackets aren't markers.

# A fenced block of Markdown: "```python\n...\n```", or "~~~". A block that never closes ends with
# the text, as in CommonMark. Possessive quantifiers ({3,}+, *+) keep a line of backticks from being
# tried at every length.
_FENCED = re.compile(
    r"^[ ]{0,3}(`{3,}+|~{3,}+)[^\n]*+\n(?:.*?)(?:^[ ]{0,3}\1|\Z)", re.MULTILINE | re.DOTALL
)
# `code` or ``code`` of Markdown, on one line. The length limit bounds the search after a backtick
# that never closes.
_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,500}\1(?!`)")
# "\(x_{[9]}\)", "\[ x = [1] \]", "$x_{[9]}$": formulas. Dollars are more often money than
# mathematics: "$5 [9] and 4$". By Pandoc's rule, mathematics has no space inside its dollars and no
# digit after them. The lookaheads also require a LaTeX command, or a sign of formulas and no word.
_MATHS = re.compile(
    r"\\\([^\n]{1,500}?\\\)|\\\[[^$]{1,1000}?\\\]|"
    r"(?<![\w$\\])(?P<dollars>\$\$?)(?![\s$\d])"
    r"(?:(?=[^$\n]{0,500}\\[a-zA-Z])|(?=[^$\n]{0,200}[\^_={}])(?![^$\n]{0,500}[A-Za-z]{3}))"
    r"[^$\n]{1,500}(?<![\s\\])(?P=dollars)(?![\d$])"
)


class Mask:
    """Non-overlapping spans that are looked up by position."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def contains(self, position: int) -> bool:
        """Return whether the position is in one of the spans."""
        index = bisect_right(self._starts, position) - 1
        return index >= 0 and position < self._ends[index]


def mask_code(answer: str, code: Sequence[tuple[int, int]]) -> Mask:
    """Return the spans of the answer without markers, including ``code``."""
    spans = list(code)
    if "`" in answer:
        spans += _spans_outside(spans, (match.span() for match in _CODE_SPAN.finditer(answer)))
    if "\\" in answer or "$" in answer:
        formulas = (
            match.span()
            for match in _MATHS.finditer(answer)
            if not styles.ESCAPED_MARKER.fullmatch(match.group())
        )
        spans += _spans_outside(spans, formulas)
    return Mask(spans)


def _spans_outside(
    masked: Sequence[tuple[int, int]], spans: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    mask = Mask(masked)
    return [span for span in spans if not mask.contains(span[0])]


def _bracketed_ids(answer: str, index: EvidenceIds) -> Iterator[Marker]:
    """Find ids that contain brackets themselves: ``[report[2]]``."""
    for id_ in index.bracketed:
        start = answer.find(f"[{id_}]")
        while start >= 0:
            end = start + len(id_) + 2
            yield Marker(start, end, (Reference(start + 1, end - 1, id_, id_, "exact"),))
            start = answer.find(f"[{id_}]", end)


def _with_broken_ranges(marker: Marker, answer: str) -> Marker:
    """Return the marker with each range that exceeds the evidence as one invalid reference.

    If part of ``[2-7]`` is out of bounds, the writer was counting something else, so its first
    members can't be relied on either.
    """
    references: list[Reference] = []
    for (start, end), members in groupby(
        marker.references, key=lambda reference: (reference.start, reference.end)
    ):
        range_references = list(members)
        is_broken = len(range_references) > 1 and any(
            reference.evidence_id is None for reference in range_references
        )
        references += (
            [Reference(start, end, answer[start:end], None, None)]
            if is_broken
            else range_references
        )
    return (
        marker._replace(references=tuple(references))
        if len(references) < len(marker.references)
        else marker
    )
