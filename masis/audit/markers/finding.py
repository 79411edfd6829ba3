"""Finds the markers of a text, whatever their style; removes them; tells which of them end a
sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from masis.audit.markers import styles
from masis.audit.markers.references import Reference
from masis.audit.markers.resolution import EvidenceIds


class _StyleTable:
    """The styles arranged for speed: nearly every style is ruled out in nearly every answer."""

    def __init__(self, table: tuple[styles.MarkerStyle, ...]) -> None:
        self.styles = table
        self.signs = [(style.signs or tuple(style.opening), style) for style in table]
        self.signs_in_ascii = [
            (in_ascii, style)
            for signs, style in self.signs
            if (in_ascii := tuple(filter(str.isascii, signs)))
        ]
        self.by_opening: dict[str, list[styles.MarkerStyle]] = defaultdict(list)
        for style in table:
            for character in style.opening:
                self.by_opening[character].append(style)


_arranged = _StyleTable(styles.STYLES)


def _table() -> _StyleTable:
    global _arranged
    if _arranged.styles is not styles.STYLES:
        _arranged = _StyleTable(styles.STYLES)
    return _arranged


class Marker(NamedTuple):
    """A stretch of the answer that points at evidence, and the references that it holds."""

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
        code: Stretches, such as code blocks, in which there are none.

    """
    found = list(_bracketed_ids(answer, index)) if index.bracketed else []
    table = _table()
    for signs, style in table.signs_in_ascii if answer.isascii() else table.signs:
        for sign in signs:
            if sign in answer:
                break
        else:
            continue
        for match in style.pattern.finditer(answer):
            references = style.parse(match, index)
            if references is not None:
                found.append(Marker(match.start(), match.end(), tuple(references)))
    if not found:
        return []
    mask = mask_code(answer, code)
    markers: list[Marker] = []
    taken = -1
    found.sort(key=_longest_first)
    for marker in found:
        if marker.start >= taken and not mask.covers(marker.start):
            taken = marker.end
            if len(marker.references) == 1:
                markers.append(marker)
            elif marker.references:
                markers.append(_with_broken_ranges(marker, answer))
    return markers


def _longest_first(marker: Marker) -> tuple[int, int]:
    return marker.start, -marker.end


def marker_spans(text: str, index: EvidenceIds | None = None) -> list[tuple[int, int]]:
    """Return where the markers of a text are, in order.

    Without the ``index`` of the evidence only what is shaped like a common marker counts (``[1]``,
    ``【1†source】``, ``[chunk_1]``, ``(Source 1)``): brackets and raised digits that may carry
    meaning stay text (``CI of [2, 8]``, ``10[6]``, ``[18]F``, ``x[3]``, ``10⁸``), and so do ids in
    forms of their own (``[smith-2004]``).
    """
    code = (
        [match.span() for match in _FENCED.finditer(text)] if "```" in text or "~~~" in text else []
    )
    return [marker[:2] for marker in find_markers(text, index or NO_EVIDENCE_KNOWN, code)]


def without_markers(text: str, index: EvidenceIds | None = None) -> str:
    """Return a text without its markers, the blanks before them, and the commas between them.

    The words of a link stay. Without the ``index`` of the evidence, see ``marker_spans``.
    """
    return without_spans(text, marker_spans(text, index))


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without these markers, which are in order and don't overlap; see
    ``without_markers``.
    """
    kept, at = [], 0
    for start, end in spans:
        between, words = text[at:start], words_of_marker(text, start, end)
        if words:
            kept += [between, words]
        else:  # "long [1], [2]." becomes "long."
            kept.append("" if at and not between.strip(" \t,;") else between.rstrip(" \t"))
        at = end
    return "".join([*kept, text[at:]])


def style_of_marker(text: str, start: int, end: int) -> styles.MarkerStyle | None:
    """Return the style of a marker that was found here."""
    for style in _table().by_opening.get(text[start : start + 1], ()):
        if style.pattern.fullmatch(text, start, end):
            return style
    return None


def words_of_marker(text: str, start: int, end: int) -> str:
    """Return what a marker says in its sentence: the label of ``[the report](https://...)``, else
    nothing.
    """
    for style in _table().by_opening.get(text[start : start + 1], ()):
        if match := style.pattern.fullmatch(text, start, end):
            return style.words(match)
    return ""


def trailing_markers_end(text: str, at: int, end: int) -> int | None:
    """Return where the markers end that follow a full stop and belong to the sentence before it;
    None without any.

    The evidence isn't known here. In "It is long. [1] It is red." and "It is long.<sup>[1]</sup> It
    is red." the marker cites the first sentence.
    """
    position = at
    while position < end and text[position] in " \t":
        position += 1
    if position >= end or (
        text[position] not in _MAY_LEAD and text[position] not in _table().by_opening
    ):
        return None  # an ordinary sentence follows
    place = None
    lead = _LEAD.match(text, at, end)
    at = position = lead.end() if lead else at
    while True:
        while position < end and text[position] in " \t\r\n,;" and position - (place or at) < 3:
            position += 1
        marker_end = _marker_end(text, position, end)
        while marker_end is None and (wrapper := _WRAPPER_OPENS.match(text, position, end)):
            position = wrapper.end()
            marker_end = _marker_end(text, position, end)
            if (
                marker_end is not None
                and text[position - 1] == "["
                and text[marker_end : marker_end + 1] != "]"
            ):
                return place  # [[3]H]ketanserin
        if marker_end is None:
            return place
        closing = _BEHIND_MARKER.match(text, marker_end, end)
        place = position = closing.end() if closing else marker_end
        if text[place - 1] == "." and place > marker_end:
            return place  # the sentence's stop behind its citations: "It is long. [1]. It is red."


# Around the markers behind a stop: "(see [1])", "<sup>[1]</sup>", "**[1]**", "[[1]]", "Source:
# [1]".
_LEAD = re.compile(
    r"[ ]{1,3}[([]?(?:[Ss]ources?|[Rr]eferences?|[Cc]itations?|[Ss]ee):?(?=[ ]{0,2}[\[【])"
)
_MAY_LEAD = frozenset("SsRrCc([<*^,;\r\n")  # what a lead, a wrapper or a separator begins with
_WRAPPER = r"(?:sup|small|cite|citation|ref|span|strong|em|b|i|u)"
_WRAPPER_OPENS = re.compile(
    r"(?:\((?:[Ss]ee |cf\."
    rf" )?|<{_WRAPPER}(?:\s[^<>]{{0,60}})?>(?=[\[【(<])|\*{{1,2}}|\^(?=\[)|\[(?=\[))"
)
_BEHIND_MARKER = re.compile(
    rf"(?:\(\)|\)|\]|</(?:{_WRAPPER}|statement|p|li|div)>|\*{{1,2}})*+[.,;]?"
)
# What is left where a model that cites by tags cites nothing: LongCite's <cite></cite></statement>
_EMPTY_TAG = re.compile(rf"<({_WRAPPER})>\s{{0,3}}</\1>|</statement>")


def _marker_end(text: str, at: int, end: int) -> int | None:
    """Return where the longest marker ends that begins here and may stand behind a stop."""
    if at >= end:
        return None
    if text[at] == "<" and (empty := _EMPTY_TAG.match(text, at, end)):
        return empty.end()
    found = None
    for style in _table().by_opening.get(text[at], ()):
        match = style.pattern.match(text, at, end)
        if match and style.may_follow_stop(match):
            found = max(found or 0, match.end())
    return found


def leading_marker(line: str) -> str:
    """Return the bracketed marker with which a line begins, as an entry of a list of sources does;
    empty if none.
    """
    stripped = line[:400].lstrip()
    if stripped[:1] not in _BRACKETS:
        return ""
    return stripped[: _marker_end(stripped, 0, len(stripped)) or 0]


def opens_with_marker(line: str) -> bool:
    """Return whether a line begins with a bracketed marker that holds a number."""
    marker = leading_marker(line)
    return marker[:1] == "【" or any(map(str.isdecimal, marker))


_BRACKETS = tuple("[［〔〖【")
_LIST_PREFIX = re.compile(r"(?:[-*+•]\s+|\d{1,3}[.)]\s+)?")
_WORDS_AFTER = re.compile(r":?\s+\S")


def puts_markers_first(text: str, start: int, end: int) -> bool:
    """Return whether a paragraph puts its markers before its sentences: ``[1] The sky is blue. [2]
    Grass is green.``
    """
    prefix = _LIST_PREFIX.match(text, start, end)
    at = prefix.end() if prefix else start
    if text[at : at + 1] not in _BRACKETS or text[end - 1] in "]】］〕〗":
        return False
    found = _marker_end(text, at, end)
    return (
        found is not None
        and found - at <= 44
        and any(map(str.isdecimal, text[at:found]))
        and _WORDS_AFTER.match(text, found, end) is not None
    )


_BETWEEN_MARKERS = frozenset(" \t\r\n.,;")


def holds_only_markers(line: str) -> bool:
    """Return whether a line holds nothing but markers and punctuation, and so belongs to the line
    before it.
    """
    at, end = 0, len(line)
    found = False
    while at < end:
        if line[at] in _BETWEEN_MARKERS:
            at += 1
            continue
        if line[at] not in _BRACKETS or (next_end := _marker_end(line, at, end)) is None:
            return False
        at, found = next_end, True
    return found


# Stretches in which brackets are no markers: code and mathematics.

_FENCED = re.compile(
    r"^[ ]{0,3}(`{3,}+|~{3,}+)[^\n]*+\n(?:.*?)(?:^[ ]{0,3}\1|\Z)", re.MULTILINE | re.DOTALL
)
_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,500}\1(?!`)")
# Dollars are more often money than mathematics: "$5 [9] and 4$". Mathematics has no blank inside
# its dollars and no digit behind them (Pandoc's rule), and holds a command of LaTeX, or a sign of
# formulas and no word: "$x_{[9]}$".
_MATHS = re.compile(
    r"\\\([^\n]{1,500}?\\\)|\\\[[^$]{1,1000}?\\\]|"
    r"(?<![\w$\\])(?P<dollars>\$\$?)(?![\s$\d])"
    r"(?:(?=[^$\n]{0,500}\\[a-zA-Z])|(?=[^$\n]{0,200}[\^_={}])(?![^$\n]{0,500}[A-Za-z]{3}))[^$\n]{1,500}(?<![\s\\])(?P=dollars)(?![\d$])"
)


class Mask:
    """Stretches that do not overlap, looked up by position."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def covers(self, position: int) -> bool:
        """Return whether the position lies in one of the stretches."""
        at = bisect_right(self._starts, position) - 1
        return at >= 0 and position < self._ends[at]


def mask_code(answer: str, code: Sequence[tuple[int, int]]) -> Mask:
    """Return the stretches of the answer that hold no markers, ``code`` among them."""
    spans = list(code)
    if "`" in answer:
        spans += _outside(spans, (match.span() for match in _CODE_SPAN.finditer(answer)))
    if "\\" in answer or "$" in answer:
        formulas = (
            match.span()
            for match in _MATHS.finditer(answer)
            if not styles.ESCAPED_MARKER.fullmatch(match.group())
        )
        spans += _outside(spans, formulas)
    return Mask(spans)


def _outside(
    taken: Sequence[tuple[int, int]], spans: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    mask = Mask(taken)
    return [span for span in spans if not mask.covers(span[0])]


def _bracketed_ids(answer: str, index: EvidenceIds) -> Iterator[Marker]:
    """Find ids that hold brackets themselves: ``[report[2]]``."""
    for id_ in index.bracketed:
        at = answer.find(f"[{id_}]")
        while at >= 0:
            end = at + len(id_) + 2
            yield Marker(at, end, (Reference(at + 1, end - 1, id_, id_, "exact"),))
            at = answer.find(f"[{id_}]", end)


def _with_broken_ranges(marker: Marker, answer: str) -> Marker:
    """Return the marker with each range that leads past the evidence as one reference that names
    nothing.

    If part of ``[2-7]`` is out of bounds, the writer was counting something else, so its first
    members can't be relied on either.
    """
    references: list[Reference] = []
    for (start, end), members in groupby(
        marker.references, key=lambda reference: (reference.start, reference.end)
    ):
        found = list(members)
        broken = len(found) > 1 and any(reference.evidence_id is None for reference in found)
        references += [Reference(start, end, answer[start:end], None, None)] if broken else found
    return (
        marker._replace(references=tuple(references))
        if len(references) < len(marker.references)
        else marker
    )
