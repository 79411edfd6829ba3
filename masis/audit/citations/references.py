"""Reads what stands between the brackets of a marker into references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from masis.audit.citations.resolution import NOTHING, EvidenceIndex, Resolution
from masis.schema.audit import ResolvedBy

LONGEST_RANGE = 50
"""A range of more members is read as its two ends: ``[1-99999]`` names two references, not a hundred thousand."""


class Reference(NamedTuple):
    """One thing a marker points at: where and how it is written, and what it names."""

    start: int
    end: int
    name: str
    evidence_id: str | None
    how: ResolvedBy | None


class _Part(NamedTuple):
    start: int
    end: int
    text: str


_SEPARATOR = re.compile(
    r"\s*(?:[,;，；、]\s*(?:(?:and|und|et|y|or|&)\s+)?|\s(?:and|und|et|y|or|&)\s|&)\s*", re.IGNORECASE
)
_RANGE = re.compile(r"(\d{1,9})\s*(?:[-‐‑–—~]|\bto\b|\.\.\.?)\s*(\d{1,9})")
_WORDS = (
    r"(?:sources?|src|docs?|documents?|refs?|references?|chunks?|passages?|evidence|citations?|cite|snippets?|"
    r"contexts?|"
    r"excerpts?|footnotes?|quellen?|fuentes?)"
)
_WORDED = re.compile(
    rf"({_WORDS})(\s*(?:ids?|nos?\.?|numbers?|nr\.?)?\s*[:#]?\s*|[_-])(\d{{1,9}})(?:\s*(?:[-–—]|"
    rf"\bto\b)\s*(\d{{1,9}}))?(?::\s.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PREFIXED_RANGE = re.compile(r"(.{0,60}?\D)(\d{1,9})\s*(?:[-–—]|\bto\b)\s*(?:(.{0,60}?\D))?(\d{1,9})", re.DOTALL)
_LABEL = re.compile(rf"(?:{_WORDS}|ids?)(?:\s*:\s*|\s+)(?=\S)", re.IGNORECASE)
_KEY = re.compile(r"@[\w:.-]{2,60}")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


def read_references(body: str, offset: int, index: EvidenceIndex, *, round_: bool = False) -> list[Reference]:
    """The references between two brackets, with offsets in the answer; none if the text is no citation.

    ``round_``: the brackets are round ones, which hold a citation only if a word or a worded id says so.
    """
    text = body.strip()
    start = offset + len(body) - len(body.lstrip())
    if text in index.exact and not (round_ and not _worded(text)):
        return [Reference(start, start + len(text), text, text, "exact")]
    if text.isdecimal():
        return [] if round_ or len(text) > 9 else [_single(_Part(start, start + len(text), text), index)]
    if not text or len(text) > 300 or _THOUSANDS.fullmatch(text):
        return []
    return _read_list(_Part(start, start + len(text), text), index, round_)


def _read_list(whole: _Part, index: EvidenceIndex, round_: bool) -> list[Reference]:
    if round_ and not _round_citation(whole.text, index):
        return []
    found = _read_part(whole, index)
    if found is not None:
        return found
    references: list[Reference] = []
    for number, part in enumerate(_parts(whole)):
        read = _read_part(part, index)
        if read is None:
            if number == 0:
                return []
            continue  # [1, p. 23]: where in the source, not another source
        references += read
    return references


def _parts(whole: _Part) -> Iterator[_Part]:
    at = 0
    for separator in _SEPARATOR.finditer(whole.text):
        if separator.start() > at:
            yield _Part(whole.start + at, whole.start + separator.start(), whole.text[at : separator.start()])
        at = separator.end()
    if at < len(whole.text):
        yield _Part(whole.start + at, whole.end, whole.text[at:])


def _read_part(part: _Part, index: EvidenceIndex) -> list[Reference] | None:
    """The references of one member of a list; None if it is shaped like none."""
    text = part.text
    if text.isdecimal():
        return [_single(part, index)] if len(text) <= 9 else None
    found = index.resolve(text)
    if found.evidence_id:
        return [Reference(part.start, part.end, text, *found)]
    if index.shaped(text) or _KEY.fullmatch(text):
        return [Reference(part.start, part.end, text, None, None)]
    if range_ := _RANGE.fullmatch(text):
        return _expand(part, int(range_.group(1)), int(range_.group(2)), index)
    if range_ := _PREFIXED_RANGE.fullmatch(text):
        prefix, again = range_.group(1), range_.group(3)
        if (again is None or again.casefold() == prefix.casefold()) and _known_prefix(prefix + range_.group(2), index):
            return _expand(part, int(range_.group(2)), int(range_.group(4)), index, prefix)
    if match := _WORDED.fullmatch(text):
        return _read_worded(part, match, index)
    if "://" in text and not any(map(str.isspace, text)):
        named = index.resolve_source(text)
        if named or index.has_addresses:
            return [Reference(part.start, part.end, text, id_, "source" if id_ else None) for id_ in named or [None]]
    if label := _LABEL.match(text):
        rest = _Part(part.start + label.end(), part.end, text[label.end() :])
        found = index.resolve(rest.text)
        if found.evidence_id or index.shaped(rest.text):
            return [Reference(rest.start, rest.end, rest.text, *found)]
    if len(text) >= 3 and (ids := index.resolve_source(text)):
        return [Reference(part.start, part.end, text, id_, "source") for id_ in ids]
    return None


def _known_prefix(first: str, index: EvidenceIndex) -> bool:
    return index.resolve(first).evidence_id is not None or index.shaped(first)


def _single(part: _Part, index: EvidenceIndex) -> Reference:
    return Reference(part.start, part.end, part.text, *index.resolve(part.text))


def _read_worded(part: _Part, match: re.Match[str], index: EvidenceIndex) -> list[Reference]:
    """``Source 1``, ``Sources 1-3``, ``doc-7``: a word for evidence and a number."""
    number = int(match.group(3))
    if match.group(4):
        return _expand(part, number, int(match.group(4)), index)
    if match.group(2) in ("_", "-") or index.shaped(part.text):
        # written as an id: it names that id or, where ids are plain numbers, that number; no other id of that number
        found = _by_number(match.group(3), index) if index.bare_numbers else NOTHING
        return [Reference(part.start, part.end, part.text, *found)]
    digits = match.span(3)
    return [
        Reference(part.start + digits[0], part.start + digits[1], match.group(3), *_by_number(match.group(3), index))
    ]


def _by_number(digits: str, index: EvidenceIndex) -> Resolution:
    found = index.resolve(digits)
    return Resolution(found.evidence_id, "suffix") if found.how == "exact" else found


def _expand(part: _Part, first: int, last: int, index: EvidenceIndex, prefix: str = "") -> list[Reference]:
    """The members of a range, each with the span of the whole; the two ends of one too long to be meant."""
    too_long = last < first or last - first >= LONGEST_RANGE
    numbers = [first, last] if too_long else list(range(first, last + 1))
    names = [f"{prefix}{number}" for number in numbers]
    return [Reference(part.start, part.end, name, *index.resolve(name)) for name in names]


def _worded(text: str) -> bool:
    return any(map(str.isalpha, text)) and any(map(str.isdecimal, text))


def _round_citation(text: str, index: EvidenceIndex) -> bool:
    """Whether round brackets hold a citation: a word for evidence, or an id that is no plain word or number."""
    first = next(_parts(_Part(0, len(text), text)), _Part(0, 0, "")).text
    labelled = _LABEL.match(first)
    if _WORDED.fullmatch(first) or _WORDED.fullmatch(text):
        return True
    if labelled:
        first = first[labelled.end() :]
    if not labelled and not (index.worded and _worded(first)):
        return False
    return index.resolve(first).evidence_id is not None or index.shaped(first)
