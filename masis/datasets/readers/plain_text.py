"""Finds chunks in plain text.

They are separated by blank lines, ``[id] text`` labels or numbered headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from masis.errors import InputError
from masis.schema.wording import shorten

NAME_SHOWN = 40
"""Maximum number of characters of a label or name to show in errors."""

_LABELLED = (
    r"^[ \t]{0,8}\["
    r"([^\[\]\s]{1,100}|(?i:chunk|source|doc|document|passage|evidence) \d{1,6})"
    r"\](?!\()[ \t:]*"
)
"""A label at the start of a line: ``[doc-1]``, ``[Source 2]:``. A Markdown link isn't one."""
_LABEL = re.compile(_LABELLED, re.MULTILINE)
_LABEL_OR_BLANK = re.compile(rf"{_LABELLED}|^[^\S\n]*\n", re.MULTILINE)
_NAMED_HEADING = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]{1,4})?(?:\*\*)?"
    r"(?i:source|document|doc|passage|chunk|evidence|reference)[ \t]{1,4}#?"
    r"(\d{1,6})(?:\*\*)?(?:[ \t]{0,4}[:.)\u2013\u2014-](?:\*\*)?(?=\s|$)|[ \t]*$)",
    re.MULTILINE,
)
"""A heading such as ``Source 1: https://...``, ``## Document 2`` or ``**Passage 3**``.

``Source 1 says`` begins a sentence and doesn't match.
"""
_NUMBERED_HEADING = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]{1,4})?(?:\*\*)?(\d{1,6})[.):](?=[ \t])", re.MULTILINE
)
"""A numbered heading: ``1. Title``, ``## 2) Title``."""
_ADDRESS = re.compile(r"<?(https?://[^\s<>]{1,2000})>?", re.IGNORECASE)
"""An address that may be in angle brackets."""


class FoundChunk(NamedTuple):
    """A chunk with its line; ``id`` is "" if it has none."""

    line: int
    id: str
    text: str
    source: str | None = None


def read_plain(
    text: str,
) -> tuple[Literal["blocks", "labelled", "headings"], Iterator[FoundChunk | InputError]]:
    """Return the form of a text, and its chunks with an error for each label without text."""
    if _LABEL.match(text.lstrip()):
        return "labelled", _labelled_chunks(text)
    if headings := _headings(text):
        return "headings", _headed_chunks(text, headings)
    return "blocks", _labelled_chunks(text, _LABEL_OR_BLANK)


def _texts_between(
    text: str, marks: Sequence[re.Match[str]]
) -> Iterator[tuple[int, re.Match[str] | None, str]]:
    """Yield the text before the first mark and after each one, with the mark and its line."""
    line, at = 1, 0
    for mark, following in pairwise((None, *marks, None)):
        start = mark.start() if mark else 0
        line, at = line + text.count("\n", at, start), start
        yield (
            line,
            mark,
            text[mark.end() if mark else 0 : following.start() if following else len(text)],
        )


def _found_chunk(
    line: int, label: str, text: str, source: str | None = None
) -> Iterator[FoundChunk | InputError]:
    if text.strip():
        yield FoundChunk(line, label, text.strip(), source)
    elif label:
        hint = "Write the text after the label, or remove the label."
        yield InputError(f"[{shorten(label, NAME_SHOWN)}] has no text", hint=hint, line=line)


def _labelled_chunks(
    text: str, marks: re.Pattern[str] = _LABEL
) -> Iterator[FoundChunk | InputError]:
    """Yield chunks of the form ``[id] text``, each of which ends at the next mark.

    The line of a chunk without a label is the one where its text begins.
    """
    for line, mark, body in _texts_between(text, list(marks.finditer(text))):
        label = mark[1] or "" if mark else ""
        before = "" if label else (mark[0] if mark else "") + body[: len(body) - len(body.lstrip())]
        yield from _found_chunk(line + before.count("\n"), label, body)


def _headings(text: str) -> list[re.Match[str]]:
    """Return the headings that begin chunks: ``Source 1: ...``, else paragraphs numbered from 1.

    Plain numbers only count as headings if the text begins with the first and each follows a blank
    line, since a list inside a source is numbered too.
    """
    named_headings = list(_NAMED_HEADING.finditer(text))
    if named_headings and len({heading[1] for heading in named_headings}) == len(named_headings):
        has_text = any(
            body.strip() for _, mark, body in _texts_between(text, named_headings) if mark
        )
        if has_text:
            return (
                named_headings
                if len(named_headings) > 1 or not text[: named_headings[0].start()].strip()
                else []
            )
    numbered = [  # that begin the text or follow a blank line
        heading
        for heading in _NUMBERED_HEADING.finditer(text)
        if (at := heading.start()) == 0 or not text[text.rfind("\n", 0, at - 1) + 1 : at].strip()
    ]
    begins = numbered and not text[: numbered[0].start()].strip()
    counted = [heading[1] for heading in numbered] == [
        str(number) for number in range(1, len(numbered) + 1)
    ]
    return numbered if begins and counted and len(numbered) > 1 else []


def _headed_chunks(text: str, headings: list[re.Match[str]]) -> Iterator[FoundChunk | InputError]:
    """Yield chunks that extend from one heading to the next, across blank lines.

    An address in a heading is the source.
    """
    for line, mark, body in _texts_between(text, headings):
        first, _, rest = (
            body.lstrip(" \t").removeprefix("**").partition("\n") if mark else ("", "", body)
        )
        first = first.strip().removesuffix("**").strip()
        address = _ADDRESS.fullmatch(first)
        label, source = (mark[1], address[1] if address else None) if mark else ("", None)
        yield from _found_chunk(line, label, rest if address else f"{first}\n{rest}", source)
