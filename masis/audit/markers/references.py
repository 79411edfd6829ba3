"""Reads the text between a marker's brackets into references, such as ``1, 3`` or ``Source 2``.

Text that has neither the shape of the case's ids nor that of a common reference isn't a reference;
``docs/audits.md`` lists both with examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from masis.audit.markers.resolution import NOTHING, EvidenceIds, Resolution, has_letter_and_digit
from masis.audit.markers.source_words import RESULT_WORD, SOURCE_WORD
from masis.schema.audit import ResolvedBy

CITATION_NEEDED = "[citation needed]"
"""A placeholder for a missing citation, which is never a citation itself, not even in
literal mode.
"""
LONGEST_RANGE = 50
"""Maximum number of references in a range. A longer range is looked up by its two ends, because
``[1-99999]`` isn't a hundred thousand references.
"""


class Reference(NamedTuple):
    """One reference in a marker: its position, its text, and the evidence that it names."""

    start: int
    end: int
    name: str
    evidence_id: str | None
    how: ResolvedBy | None


FIRST_YEAR, LAST_YEAR = 1500, 2100


def are_years(references: Sequence[Reference], index: EvidenceIds) -> bool:
    """Return whether four digits are years: ``Smith et al. [2004]``, ``[1914-1918]``.

    They aren't years if an evidence id has a number that high, or if a reference isn't four digits
    (``12-3``).
    """
    if index.highest_number >= 1000:
        return False
    return all(
        len(reference.name) == 4
        and reference.name.isdecimal()
        and FIRST_YEAR <= int(reference.name) < LAST_YEAR
        for reference in references
    )


class _MarkerPart(NamedTuple):
    start: int
    end: int
    text: str

    def after(self, count: int) -> _MarkerPart:
        """Return the part without its first ``count`` characters."""
        return _MarkerPart(self.start + count, self.end, self.text[count:])

    def split(self, separator: re.Pattern[str]) -> Iterator[_MarkerPart]:
        """Yield the parts between the separators, which may be empty."""
        position = 0
        for separator_match in separator.finditer(self.text):
            yield _MarkerPart(
                self.start + position,
                self.start + separator_match.start(),
                self.text[position : separator_match.start()],
            )
            position = separator_match.end()
        yield self.after(position)


_text_of = attrgetter("text")


# "and" and "or" in the languages of most answers.
_AND = r"(?:and|und|et|y|e|or|oder|o|en|och|og|i|oraz|ve|и|и|та|і|و|और|&)"
# "1, 3", "1 and 3", "1、3": the separators of a list.
_SEPARATOR = re.compile(
    rf"\s*(?:[,;，；、،]\s*(?:{_AND}\s+)?|\s{_AND}\s|&|[和与及])\s*", re.IGNORECASE
)
# "1-3", "1 to 3", "1..3".
_RANGE = re.compile(r"(\d{1,9})\s*(?:[-‐‑–—~]|\bto\b|\.\.\.?)\s*(\d{1,9})")
# A word for "source" and a number: Source 1, Doc. 1, Passage ID 2, 来源1, Sources 1-3, and
# RAGFlow's "ID:4". "ID 4711" without a colon more often identifies something else, so the lookahead
# after "ids?" excludes it.
_WORDED = re.compile(
    rf"({SOURCE_WORD}(?=\W|\d|_)|{RESULT_WORD}(?=\W|\d)|"
    r"ids?(?=\s?:))\.?(\s*(?:_?ids?|nos?\.?|numbers?|nr\.?)?\s*[:：=#]?\s*|"
    r"[_-])(\d{1,9})(?:\s*(?:[-–—]|\bto\b)\s*(\d{1,9}))?(?::\s.*)?",
    re.IGNORECASE | re.DOTALL,
)
# "chunk_1-chunk_3", "chunk_1-3": a range whose numbers follow a word. The lazy prefixes are limited
# to 60 characters, because every split of a long text would be tried otherwise.
_PREFIXED_RANGE = re.compile(
    r"(.{0,60}?\D)(\d{1,9})\s*(?:[-–—]|\bto\b)\s*(?:(.{0,60}?\D))?(\d{1,9})", re.DOTALL
)
# "Source: chunk_2", "ID: 4": a word for evidence before an id.
_LABEL = re.compile(rf"(?:{SOURCE_WORD}|ids?)(?:\s*[:：]\s*|\s+)(?=\S)", re.IGNORECASE)
# S1, D1, R1: the initial of "source", "document", "reference". Other letters are more often
# chemistry or vitamins.
_INITIAL = re.compile(r"(?:[SDR]|#\s?)(\d{1,3})", re.IGNORECASE)
# "1: p. 4", "9 (pp. 4-6)", "chunk_1, § 3": a location in the source after its name (group 1).
_WITH_LOCATION = re.compile(
    r"([^():,]{1,80}?)\s*[:,(|–—-]?\s*\(?\b(?:pp?\.|pages?\b|pgs?\.|lines?\b|paras?\b\.?|"
    r"paragraphs?\b|sections?\b|sec\.|secs\.|chapters?\b|ch\.|slides?\b|rows?\b|seiten?\b|s\.|"
    r"abschnitt\b|zeilen?\b|página\b|pág\.|page\b)\s{0,3}\d.{0,40}",
    re.IGNORECASE | re.DOTALL,
)
# "chunk_1, § 3": the same with a section sign, before which \b doesn't match.
_SECTION_SIGN = re.compile(r"([^():,]{1,80}?)\s*[:,(]?\s*§{1,2}\s{0,3}\d.{0,40}", re.DOTALL)
# "1.1 source", "4:0 source": a source and a location in it, as Azure's assistants write it.
_NUMBER_AND_SOURCE = re.compile(r"(\d{1,9})(?:[.:]\d{1,9})?\s*†?\s*source", re.IGNORECASE)
# "report.pdf", also with a fragment: "report.pdf#page=3".
_FILE_NAME = re.compile(
    r"([^/\\<>|*?\n]{1,120}\.(?:pdf|docx?|txt|md|html?|csv|tsv|xlsx?|pptx?|json|xml|rtf|"
    r"epub))(?:[#?][^\s]{1,60})?",
    re.IGNORECASE,
)
# A citation key of Pandoc: "@smith2020", "-@smith2020".
_KEY = re.compile(r"-?@([\w:.-]{2,60})")
# "1/9", "1 | 9", "1 + 9": see _read_choice.
_CHOICE = re.compile(r"\s*[/|+]\s*")
# Words before a reference: "see 9", "cf. chunk_2", "according to 3".
_LEAD = re.compile(
    r"(?:(?:see(?: also)?|cf\.?|siehe(?: auch)?|vgl\.?|voir|véase)|"
    r"(?P<common>from|per|in|e\.g\.,?|according to|cited in|adapted from|based on))\s+(?=\S)",
    re.IGNORECASE,
)
# A character that Markdown or LaTeX escapes: "chunk\_1".
_ESCAPED = re.compile(r"\\([_\[\]*#@&~^$%{}|/.-])")
# "1,500" is a number, not a list of the references 1 and 500.
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


def read_references(
    body: str, offset: int, index: EvidenceIds, *, is_parenthesized: bool = False
) -> list[Reference]:
    r"""Return the references between two brackets, or none if the text isn't a citation.

    Use it for text that might not be a citation. Only evidence ids and common reference forms
    count, not ``1,000`` or ``3.5``. Text that can only be ids, such as the attribute of a tag, is
    read by ``_parse_attribute``. The positions are those in the answer. Characters that Markdown or
    LaTeX escape (``chunk\_1``) are read without their backslash.

    Args:
        body: The text between the brackets.
        offset: The position of the text in the answer.
        index: The evidence of the case.
        is_parenthesized: Whether the text is in parentheses. Those are a citation only with a word
            for evidence or a worded id.

    """
    if "\\" in body and _ESCAPED.search(body) and body.strip() not in index.exact:
        backslashes = {match.start() for match in _ESCAPED.finditer(body)}
        positions = [position for position in range(len(body)) if position not in backslashes]
        unescaped = "".join(body[position] for position in positions)
        return [
            reference._replace(
                start=offset + positions[reference.start],
                end=offset + positions[reference.end - 1] + 1,
            )
            for reference in _read_references(unescaped, 0, index, is_parenthesized)
        ]
    return _read_references(body, offset, index, is_parenthesized)


_DECORATION = tuple("*\"'“”‘’`")


def _read_references(
    body: str, offset: int, index: EvidenceIds, is_parenthesized: bool
) -> list[Reference]:
    text = body.strip()
    start = offset + len(body) - len(body.lstrip())
    if text in index.exact and not (is_parenthesized and not has_letter_and_digit(text)):
        return [Reference(start, start + len(text), text, text, "exact")]
    if text.isdecimal():
        return (
            []
            if is_parenthesized or len(text) > 9
            else [_resolve_part(_MarkerPart(start, start + len(text), text), index)]
        )
    if not text or len(text) > 300 or _THOUSANDS.fullmatch(text):
        return []
    if text[0] in _DECORATION and text[-1] in _DECORATION:  # [**9**], ["chunk_9"]
        plain = text.strip("".join(_DECORATION))
        return (
            _read_references(plain, start + text.index(plain), index, is_parenthesized)
            if plain
            else []
        )
    return _read_list(_MarkerPart(start, start + len(text), text), index, is_parenthesized)


def _read_list(
    list_part: _MarkerPart, index: EvidenceIds, is_parenthesized: bool
) -> list[Reference]:
    if is_parenthesized and not _round_citation(list_part.text, index):
        return []
    references_of_whole = _read_part(list_part, index, is_parenthesized=is_parenthesized)
    if references_of_whole is not None:
        return references_of_whole
    if not is_parenthesized and (lead_match := _LEAD.match(list_part.text)):
        # [see 9], [cf. chunk_2]. After a common word ([in 9], [from 5 to 9]) plain numbers don't
        # count.
        later_references = _read_list(
            list_part.after(lead_match.end()), index, is_parenthesized=False
        )
        are_numbers = all(reference.name.isdecimal() for reference in later_references)
        return (
            []
            if are_numbers and (lead_match["common"] or are_years(later_references, index))
            else later_references
        )
    references: list[Reference] = []
    for number, part in enumerate(filter(_text_of, list_part.split(_SEPARATOR))):
        read_part = _read_part(part, index, is_parenthesized=is_parenthesized)
        if read_part is None and number == 0:
            return []
        references += read_part or []  # [1, p. 23]: a location in the source, not another source
    return references


def _read_choice(part: _MarkerPart, index: EvidenceIds) -> list[Reference] | None:
    """Read list members separated by a slash, a bar or a plus sign: ``chunk_1/chunk_9``, ``1 | 9``.

    Each must be a number or read like an id. Numbers alone may be a fraction, a rating or a ratio,
    so with a slash or a plus sign each of them must name evidence.
    """
    members = list(part.split(_CHOICE))
    if len(members) < 2 or not all(map(_text_of, members)):
        return None
    references: list[Reference] = []
    for member in members:
        member_references = _read_member(member, index)
        if not member_references:
            return None
        references += member_references
    are_numbers = all(member.text.isdecimal() for member in members)
    if (
        are_numbers
        and ("/" in part.text or "+" in part.text)
        and any(reference.evidence_id is None for reference in references)
    ):
        return None
    return references


def _read_member(member: _MarkerPart, index: EvidenceIds) -> list[Reference] | None:
    if member.text.isdecimal():
        return [_resolve_part(member, index)] if len(member.text) <= 9 else None
    if match := _WORDED.fullmatch(member.text):
        return _read_worded(member, match, index)
    return _read_id(member, index)


def _read_id(part: _MarkerPart, index: EvidenceIds) -> list[Reference] | None:
    """Return the reference of a text that names evidence or has the shape of this case's ids."""
    reference = _resolve_part(part, index)
    return [reference] if reference.evidence_id or index.is_shaped(part.text) else None


def _read_part(
    part: _MarkerPart, index: EvidenceIds, *, is_parenthesized: bool = False
) -> list[Reference] | None:
    """Return the references of one list member; None if it doesn't have the shape of any."""
    text = part.text
    if text.isdecimal():
        return [_resolve_part(part, index)] if len(text) <= 9 else None
    resolution = index.resolve(text)
    if resolution.evidence_id:
        return [Reference(part.start, part.end, text, *resolution)]
    if key := _KEY.fullmatch(text):
        return _read_key(part, key, index)
    if index.is_shaped(text):
        return [Reference(part.start, part.end, text, None, None)]
    if range_match := _RANGE.fullmatch(text):
        return _expand(part, int(range_match.group(1)), int(range_match.group(2)), index)
    if range_match := _PREFIXED_RANGE.fullmatch(text):
        prefix, second_prefix = range_match.group(1), range_match.group(3)
        has_known_shape = index.resolve(prefix + range_match[2]).evidence_id or index.is_shaped(
            prefix + range_match[2]
        )
        if has_known_shape and (
            second_prefix is None or second_prefix.casefold() == prefix.casefold()
        ):
            return _expand(
                part, int(range_match.group(2)), int(range_match.group(4)), index, prefix
            )
    if match := _WORDED.fullmatch(text):
        return _read_worded(part, match, index)
    if "://" in text and not any(map(str.isspace, text)):
        chunk_ids = index.resolve_source(text)
        if chunk_ids or index.has_addresses:
            return [
                Reference(part.start, part.end, text, id_, "source" if id_ else None)
                for id_ in chunk_ids or [None]
            ]
    if label := _LABEL.match(text):  # "Source: chunk_2", "Source: Document 9"
        labeled_part = part.after(label.end())
        worded = _WORDED.fullmatch(labeled_part.text)
        if references := (
            _read_worded(labeled_part, worded, index) if worded else _read_id(labeled_part, index)
        ):
            return references
    if len(text) >= 3 and (ids := index.resolve_source(text)):
        return [Reference(part.start, part.end, text, id_, "source") for id_ in ids]
    if (initial := _INITIAL.fullmatch(text)) and not is_parenthesized:
        return [_number_reference(part, initial, 1, index)]
    if number := _NUMBER_AND_SOURCE.fullmatch(text):
        return [_number_reference(part, number, 1, index)]
    if (file := _FILE_NAME.fullmatch(text)) and index.has_file_names:
        resolutions = [Resolution(id_, "source") for id_ in index.resolve_source(file.group(1))]
        return [
            Reference(part.start, part.end, text, *source_resolution)
            for source_resolution in resolutions or [NOTHING]
        ]
    if located := _WITH_LOCATION.fullmatch(text) or _SECTION_SIGN.fullmatch(text):
        return _read_member(
            _MarkerPart(part.start, part.start + located.end(1), located.group(1)), index
        )
    return _read_choice(part, index) if _CHOICE.search(text) else None


def is_file_name(name: str) -> bool:
    """Return whether a name is a document's file name: ``report.pdf``."""
    return _FILE_NAME.fullmatch(name) is not None


def _number_reference(
    part: _MarkerPart, match: re.Match[str], group: int, index: EvidenceIds
) -> Reference:
    """Return the reference of a number in a part."""
    start, end = match.span(group)
    return Reference(
        part.start + start,
        part.start + end,
        match.group(group),
        *_resolve_number(match.group(group), index),
    )


def _read_key(part: _MarkerPart, key: re.Match[str], index: EvidenceIds) -> list[Reference] | None:
    """Read an id after ``@``, as in Pandoc: ``@smith2020``.

    A word without a number is somebody's name (``@editor``).
    """
    name = key.group(1).rstrip(":.-")
    resolution = index.resolve(name)
    if not resolution.evidence_id and not index.is_shaped(name) and not index.is_keyed(name):
        return None
    start = part.start + key.start(1)
    return [Reference(start, start + len(name), name, *resolution)]


def _resolve_part(part: _MarkerPart, index: EvidenceIds) -> Reference:
    return Reference(part.start, part.end, part.text, *index.resolve(part.text))


def _read_worded(part: _MarkerPart, match: re.Match[str], index: EvidenceIds) -> list[Reference]:
    """Read a word for evidence with a number: ``Source 1``, ``Sources 1-3``, ``doc-7``."""
    number = int(match.group(3))
    if match.group(4):
        return _expand(part, number, int(match.group(4)), index)
    if match.group(2) in ("_", "-") or index.is_shaped(part.text):
        # It is written as an id, so it names that id or, if ids are plain numbers, that number. It
        # doesn't name another id with that number.
        name = part.text[: match.end(3)]  # without the location in it: [chunk_1: page 3]
        resolution = (
            _resolve_number(match.group(3), index) if index.bare_numbers else index.resolve(name)
        )
        return [Reference(part.start, part.start + len(name), name, *resolution)]
    return [_number_reference(part, match, 3, index)]


def _resolve_number(digits: str, index: EvidenceIds) -> Resolution:
    resolution = index.resolve(digits)
    return Resolution(resolution.evidence_id, "suffix") if resolution.how == "exact" else resolution


def _expand(
    part: _MarkerPart, first: int, last: int, index: EvidenceIds, prefix: str = ""
) -> list[Reference]:
    """Return the members of a range, or only its two ends if it is too long.

    Each member has the span of the whole range.
    """
    is_too_long = last < first or last - first >= LONGEST_RANGE
    numbers = [first, last] if is_too_long else list(range(first, last + 1))
    names = [f"{prefix}{number}" for number in numbers]
    return [Reference(part.start, part.end, name, *index.resolve(name)) for name in names]


# "(ID: 4711)", "(in footnote 273)", "(result 9)": in parentheses these name something else.
_NEVER_IN_PARENTHESES = re.compile(rf"ids?\b|footnotes?\b|fußnoten?\b|{RESULT_WORD}", re.IGNORECASE)


def _round_citation(text: str, index: EvidenceIds) -> bool:
    """Return whether the text of round brackets is a citation.

    It is one if it has a word for evidence, or an id with letters and digits.
    """
    first = next(filter(None, _SEPARATOR.split(text)), "")
    label = _LABEL.match(first)
    if _WORDED.fullmatch(first) or _WORDED.fullmatch(text):
        # (ID: 4711) is a patient's or a product's, (in footnote 273) another text's
        return not _NEVER_IN_PARENTHESES.match(first)
    if index.has_file_names and _FILE_NAME.fullmatch(first):
        return True
    if label:
        first = first[label.end() :]
    elif not (index.has_worded_ids and has_letter_and_digit(first)):
        return False
    return index.resolve(first).evidence_id is not None or index.is_shaped(first, loosely=False)
