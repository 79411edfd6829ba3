r"""Finds the markers of an answer: the stretches that point at evidence, and the references each holds.

Parsed: ``[chunk_1]`` ``[1]`` ``[1, 2]`` ``[1; 2]`` ``[1][2]`` ``[1-3]`` ``[1 and 3]`` ``【1†source】``
``【1:0†source】`` ``[^1]`` ``[Source 1]`` ``(Source 1)`` ``(Sources 1 and 2)`` ``(chunk_1)`` ``[chunk_1/chunk_2]``
``[1 | 2]`` ``[see 1]`` ``\[1\]`` ``[chunk\_1]`` ``\cite{key}`` ``[@key]`` and links. What is in brackets and
shaped neither like one of the case's ids nor like a common marker is no citation; ``docs/audits.md`` lists both with
examples.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from masis.audit.citations.resolution import NOTHING, EvidenceIndex, Resolution, worded
from masis.schema.audit import ResolvedBy

# Reads what stands between the brackets of a marker into references.

CITATION_NEEDED = "[citation needed]"
"""What stands where a citation should be. It is never one itself, in the literal mode neither."""
LONGEST_RANGE = 50
"""A range of more members is looked up by its two ends: ``[1-99999]`` is not a hundred thousand references."""


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

    def after(self, at: int) -> _Part:
        """What follows behind its first ``at`` characters."""
        return _Part(self.start + at, self.end, self.text[at:])

    def split(self, separator: re.Pattern[str]) -> Iterator[_Part]:
        """What stands between the separators; it may be empty."""
        at = 0
        for found in separator.finditer(self.text):
            yield _Part(self.start + at, self.start + found.start(), self.text[at : found.start()])
            at = found.end()
        yield self.after(at)


_text_of = attrgetter("text")


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
_KEY = re.compile(r"-?@([\w:.-]{2,60})")
_CHOICE = re.compile(r"\s*[/|+]\s*")
_LEAD = re.compile(
    r"(?:(?:see(?: also)?|cf\.?|siehe(?: auch)?|vgl\.?|voir|véase)|"
    r"(?P<common>from|per|in|e\.g\.,?|according to|cited in|adapted from|based on))\s+(?=\S)",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\([_\[\]*#@&~^$%{}|/.-])")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


def read_references(body: str, offset: int, index: EvidenceIndex, *, round_: bool = False) -> list[Reference]:
    r"""The references between two brackets, with offsets in the answer; none if the text is no citation.

    ``round_``: the brackets are round ones, which hold a citation only if a word or a worded id says so. Signs that
    Markdown or LaTeX escape (``chunk\_1``) are read without their backslash.
    """
    if "\\" in body and _ESCAPED.search(body) and body.strip() not in index.exact:
        plain, places = _unescaped(body)
        return [
            reference._replace(start=offset + places[reference.start], end=offset + places[reference.end - 1] + 1)
            for reference in _read(plain, 0, index, round_)
        ]
    return _read(body, offset, index, round_)


def _unescaped(body: str) -> tuple[str, list[int]]:
    """The text without the backslashes that escape a sign, and where each of its characters stands."""
    dropped = {match.start() for match in _ESCAPED.finditer(body)}
    places = [at for at in range(len(body)) if at not in dropped]
    return "".join(body[at] for at in places), places


def _read(body: str, offset: int, index: EvidenceIndex, round_: bool) -> list[Reference]:
    text = body.strip()
    start = offset + len(body) - len(body.lstrip())
    if text in index.exact and not (round_ and not worded(text)):
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
    if not round_ and (lead := _LEAD.match(whole.text)):
        # [see 9], [cf. chunk_2]; after a common word ([in 9], [from 5 to 9]) only what is no plain number
        read = _read_list(whole.after(lead.end()), index, round_=False)
        plain = all(reference.name.isdecimal() for reference in read)
        return [] if plain and (lead["common"] or _is_year(read, index)) else read
    references: list[Reference] = []
    for number, part in enumerate(filter(_text_of, whole.split(_SEPARATOR))):
        read_part = _read_part(part, index)
        if read_part is None and number == 0:
            return []
        references += read_part or []  # [1, p. 23]: where in the source, not another source
    return references


def _read_choice(part: _Part, index: EvidenceIndex) -> list[Reference] | None:
    """``chunk_1/chunk_9``, ``1 | 9``: members of a list that a slash, a bar or a plus sign divides.

    Each must be a number or read like an id. Numbers alone may be a fraction, a rating or a ratio: with a slash or a
    plus sign each of them must name evidence.
    """
    members = list(part.split(_CHOICE))
    if len(members) < 2 or not all(map(_text_of, members)):
        return None
    references: list[Reference] = []
    for member in members:
        read = _read_member(member, index)
        if not read:
            return None
        references += read
    numbers = all(member.text.isdecimal() for member in members)
    if numbers and ("/" in part.text or "+" in part.text) and any(each.evidence_id is None for each in references):
        return None
    return references


def _read_member(member: _Part, index: EvidenceIndex) -> list[Reference] | None:
    if member.text.isdecimal():
        return [_single(member, index)] if len(member.text) <= 9 else None
    if match := _WORDED.fullmatch(member.text):
        return _read_worded(member, match, index)
    return _read_id(member, index)


def _read_id(part: _Part, index: EvidenceIndex) -> list[Reference] | None:
    """What names evidence as it stands, or is written in the style of this case's ids."""
    reference = _single(part, index)
    return [reference] if reference.evidence_id or index.shaped(part.text) else None


def _read_part(part: _Part, index: EvidenceIndex) -> list[Reference] | None:
    """The references of one member of a list; None if it is shaped like none."""
    text = part.text
    if text.isdecimal():
        return [_single(part, index)] if len(text) <= 9 else None
    found = index.resolve(text)
    if found.evidence_id:
        return [Reference(part.start, part.end, text, *found)]
    if key := _KEY.fullmatch(text):
        return _read_key(part, key, index)
    if index.shaped(text):
        return [Reference(part.start, part.end, text, None, None)]
    if range_ := _RANGE.fullmatch(text):
        return _expand(part, int(range_.group(1)), int(range_.group(2)), index)
    if range_ := _PREFIXED_RANGE.fullmatch(text):
        prefix, again = range_.group(1), range_.group(3)
        known = index.resolve(prefix + range_[2]).evidence_id or index.shaped(prefix + range_[2])
        if known and (again is None or again.casefold() == prefix.casefold()):
            return _expand(part, int(range_.group(2)), int(range_.group(4)), index, prefix)
    if match := _WORDED.fullmatch(text):
        return _read_worded(part, match, index)
    if "://" in text and not any(map(str.isspace, text)):
        named = index.resolve_source(text)
        if named or index.has_addresses:
            return [Reference(part.start, part.end, text, id_, "source" if id_ else None) for id_ in named or [None]]
    if (label := _LABEL.match(text)) and (read := _read_id(part.after(label.end()), index)):
        return read
    if len(text) >= 3 and (ids := index.resolve_source(text)):
        return [Reference(part.start, part.end, text, id_, "source") for id_ in ids]
    return _read_choice(part, index) if _CHOICE.search(text) else None


def _read_key(part: _Part, key: re.Match[str], index: EvidenceIndex) -> list[Reference] | None:
    """``@smith2020``, as in Pandoc: an id behind ``@``. A word without a number is somebody's name (``@editor``)."""
    name = key.group(1).rstrip(":.-")
    found = index.resolve(name)
    if not found.evidence_id and not index.shaped(name) and not index.keyed(name):
        return None
    start = part.start + key.start(1)
    return [Reference(start, start + len(name), name, *found)]


def _single(part: _Part, index: EvidenceIndex) -> Reference:
    return Reference(part.start, part.end, part.text, *index.resolve(part.text))


def _read_worded(part: _Part, match: re.Match[str], index: EvidenceIndex) -> list[Reference]:
    """``Source 1``, ``Sources 1-3``, ``doc-7``: a word for evidence and a number."""
    number = int(match.group(3))
    if match.group(4):
        return _expand(part, number, int(match.group(4)), index)
    if match.group(2) in ("_", "-") or index.shaped(part.text):
        # written as an id: it names that id or, where ids are plain numbers, that number; no other id of that number
        name = part.text[: match.end(3)]  # less the place in it: [chunk_1: page 3]
        found = _by_number(match.group(3), index) if index.bare_numbers else index.resolve(name)
        return [Reference(part.start, part.start + len(name), name, *found)]
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


def _round_citation(text: str, index: EvidenceIndex) -> bool:
    """Whether round brackets hold a citation: a word for evidence, or an id that is no plain word or number."""
    first = next(filter(None, _SEPARATOR.split(text)), "")
    labelled = _LABEL.match(first)
    if _WORDED.fullmatch(first) or _WORDED.fullmatch(text):
        return True
    if labelled:
        first = first[labelled.end() :]
    if not labelled and not (index.worded and worded(first)):
        return False
    return index.resolve(first).evidence_id is not None or index.shaped(first, loosely=False)


# Stretches of an answer in which brackets are no markers: code, mathematics, definitions of footnotes.

_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,500}\1(?!`)")
_MATHS = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\([^\n]{1,500}?\\\)|\\\[[^$]{1,1000}?\\\]|"
    r"(?<![\w$\\])\$(?=[^$\n]{0,200}[\\^_={}])[^\s$][^$\n]{0,200}\$(?!\d)"
)
# \[9\] and \[chunk\_1\]: brackets that Markdown escapes. Formulas have blanks at the brackets, or signs of their own.
_ESCAPED_MARKER = re.compile(r"\\\[(?!\s)((?:[^\\\[\]\n^{}=$<>]|\\[_*#&.|/@-]){1,200})(?<!\s)\\\]")
_DEFINITION = re.compile(r"^[ \t]{0,3}\[\^?([\w.-]{1,40})\]:[ \t]*(.{0,500})", re.MULTILINE)


class Mask:
    """Stretches that do not overlap, looked up by position."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def covers(self, position: int) -> bool:
        """Whether the position lies in one of the stretches."""
        at = bisect_right(self._starts, position) - 1
        return at >= 0 and position < self._ends[at]


def masked(answer: str, code: Sequence[tuple[int, int]]) -> Mask:
    """The stretches of the answer that hold no markers, ``code`` among them."""
    spans = list(code)
    if "`" in answer:
        spans += _outside(spans, (match.span() for match in _CODE_SPAN.finditer(answer)))
    if "$" in answer or "\\(" in answer or "\\[" in answer:
        maths = (match.span() for match in _MATHS.finditer(answer) if not _ESCAPED_MARKER.fullmatch(match.group()))
        spans += _outside(spans, maths)
    return Mask(spans)


def _outside(taken: Sequence[tuple[int, int]], spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    mask = Mask(taken)
    return [span for span in spans if not mask.covers(span[0])]


# Tells citations from what only looks like one: years, intervals, indices, isotopes, checkboxes.

_NUMBERS_ONLY = re.compile(r"[\d\s,;–—|/+-]+")
_INTERVAL_BEFORE = re.compile(
    r"(?:\b(?:CI|CrI|IQR)\b\)?|[∈=≈±]|"
    r"\b(?:in|within|from|over|on) (?:the |a )?(?:\w+ )?(?:interval|range|scale|domain)|"
    r"\b(?:range|scale|interval)(?: of|:))\s*(?:of|from|was|is)?\s*[:=,]?\s*\Z"
)
_STATISTIC_BEFORE = re.compile(r"\b(?:median|mean|average|IQR|range|versus|vs)\b[^.;!?]{0,40}\d[\w%°/ .-]{0,12}\s\Z")
_POWER_BEFORE = re.compile(
    r"(?:[^\w\]][kcdmµμn]?m|\b[Rr]|(?<!War )(?<!ype )(?<!ase )(?<!age )(?<!ass )(?<!art )\bI|[χη]|[×x·*] ?10)\Z"
)
_POWER_ENDS = frozenset("mRrIχη0")
_NAME_BEFORE = re.compile(r"[A-Za-z_][\w.]*\Z")
_ARRAY_NAMES = frozenset(
    {"arr", "array", "list", "args", "argv", "data", "dict", "items", "matrix", "vec", "row", "rows", "col", "cols"}
    | {"nums", "values", "str", "params", "idx", "buf", "tmp"}
)
_CODE_AFTER = re.compile(r"\.\w+\(|\s{0,2}[-+*/]?=")
_ELEMENT_AFTER = re.compile(r"[A-Z][a-z]?(?![A-Za-z])")
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


def reads_as_something_else(
    answer: str, start: int, end: int, body: str, references: Sequence[Reference], index: EvidenceIndex
) -> bool:
    """Whether a bracket that could be a marker is likely no citation, by what it says and stands next to."""
    before, after = answer[start - 1 : start], answer[end : end + 1]
    several = len(references) > 1
    if not _NUMBERS_ONLY.fullmatch(body):
        checkbox = body in "xX" and answer[max(0, start - 2) : start] in ("- ", "* ", "+ ")
        return checkbox or (before.islower() and after.islower())  # pyrazolo[1,5-a]pyrimidine: letters touch both
    if several and _INTERVAL_BEFORE.search(answer[max(0, start - 24) : start]):
        return True  # 95% CI [2, 8]
    if before in _POWER_ENDS and len(body) <= 2 and _POWER_BEFORE.search(answer[max(0, start - 6) : start]):
        return True  # mm[2], R[2], 5 × 10[7]: a power whose raised digit came in brackets
    if after == "=" and before.isalnum():
        return True  # ?ids[1]=7
    element = _ELEMENT_AFTER.match(answer, end) is not None
    if before == "[" and element:
        return True  # [[3]H]ketanserin
    if all(reference.evidence_id is not None for reference in references):
        return False
    return (
        _is_year(references, index)
        # [0, 1], [0-35]: an interval or a scale; a lone [0] is a reference that names nothing
        or (several and references[0].name == "0" and references[0].evidence_id is None)
        or _is_index(answer, start, end, references)
        or (several and _STATISTIC_BEFORE.search(answer[max(0, start - 70) : start]) is not None)
        # [125]I-labelled, [99][m]Tc: a mass number before its element
        or answer.startswith("[m]", end)
        or (element and before not in (".", "!", "?"))
    )


def _is_year(references: Sequence[Reference], index: EvidenceIndex) -> bool:
    """``Smith et al. [2004]``, ``[1914-1918]``: four digits, and no evidence is numbered so high."""
    if index.highest_number >= 1000:
        return False
    return all(len(reference.name) == 4 and _FIRST_YEAR <= int(reference.name) < _LAST_YEAR for reference in references)


def _is_index(answer: str, start: int, end: int, references: Sequence[Reference]) -> bool:
    """``x[3]``, ``rows[0].name``: an index, in text that does not mark its code."""
    name = _NAME_BEFORE.search(answer[max(0, start - 40) : start])
    if name is None or len(references) > 2:
        return False
    word = name.group()
    named = (len(word) == 1 and word.islower()) or "_" in word or word.casefold() in _ARRAY_NAMES
    return named or _CODE_AFTER.match(answer, end) is not None


class Marker(NamedTuple):
    """A stretch of the answer that points at evidence, and what it points with."""

    start: int
    end: int
    references: tuple[Reference, ...]


_SQUARE = re.compile(r"\[([^\[\]]{1,300})\]|［([^［］]{1,300})］")
_LENS = re.compile(r"【([^【】\n]{1,300})】")
_LENS_BODY = re.compile(r"(?:(?:source|ref|doc)\w*\s*)?(\d{1,9})(?::(\d{1,9}))?(?:†[^†]*)?\Z", re.IGNORECASE)
_ROUND = re.compile(r"\(([^()\[\]]{2,200})\)")
_ROUND_LEAD = re.compile(r"(?:see(?:\s+also)?|cf\.?|from|per|in|e\.g\.,?|according to|siehe|vgl\.)\s+", re.IGNORECASE)
_ROUND_WORDS = re.compile(
    r"\(\s*(?:[a-z. ]{2,14}\s)?(?:sources?|src|docs?|documents?|refs?|references?|chunks?|passages?|evidence|"
    r"citations?|"
    r"snippets?|contexts?|excerpts?|quellen?|fuentes?)\b",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"\]?\(\s*<?([^()\s<>]{1,800}(?:\([^()\s]{0,200}\)[^()\s<>]{0,200})?)>?(?:\s+[\"'][^\"'\n]{0,200}[\"'])?\s*\)"
)
_DEFINES = re.compile(r"(?:\A|\n)[ \t]{0,3}\[\^?[\w.-]{1,40}\]:[^\n]*\Z")
_SOURCE_LINE = re.compile(
    r"^[ \t*_]{0,8}(?:sources?|references?|citations?|quellen?)[*_]{0,3}:[*_ \t]{0,6}([^\s\[\]【(][^\[\]【\n]{0,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_LATEX_CITE = re.compile(
    r"\\(?:paren|text|auto|foot|smart|super|full)?cite(?:s|p|t|alp|alt|author|year|yearpar|title|num|text)?\*?"
    r"(?:\[[^\[\]\n]{0,100}\]){0,2}\{([^{}\n]{1,300})\}",
    re.IGNORECASE,
)
_CITE_KEY = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
_CLAUSE_END = re.compile(r"\s*(?:[.,;:!?)\[]|\Z|\n)")
_BARE_ADDRESS = re.compile(r"https?://[^\s<>\[\]{}\"'`|]{3,800}")


def find_markers(answer: str, index: EvidenceIndex, code: Sequence[tuple[int, int]] = ()) -> list[Marker]:
    """All markers in order. ``code`` names stretches, such as code blocks, in which there are none."""
    mask = masked(answer, code)
    found: list[Marker] = []
    if "[" in answer or "［" in answer:
        found += _bracketed_ids(answer, index)
        found += _square(answer, index, mask, {marker.start for marker in found})
    if "\\[" in answer:
        found += _escaped(answer, index)
    if "cite" in answer.casefold() and "\\" in answer:
        found += _latex(answer, index)
    if ":" in answer:
        found += _source_lines(answer, index)
    if "【" in answer:
        found += _lens(answer, index)
    if "(" in answer and (_ROUND_WORDS.search(answer) or index.worded):
        found += _round(answer, index)
    if "://" in answer and index.has_addresses:
        found += _bare_addresses(answer, index)
    markers: list[Marker] = []
    for marker in sorted(found, key=lambda marker: (marker.start, -marker.end)):
        if not mask.covers(marker.start) and (not markers or marker.start >= markers[-1].end):
            markers.append(_with_broken_ranges(marker, answer))
    return markers


def _with_broken_ranges(marker: Marker, answer: str) -> Marker:
    """Return the marker with each range that leads past the evidence as one reference that names nothing.

    Whoever wrote ``[2-7]`` beside five chunks counted sources that are not there: its first members are no more to be
    relied on than its last.
    """
    references: list[Reference] = []
    for (start, end), members in groupby(marker.references, key=lambda reference: (reference.start, reference.end)):
        found = list(members)
        broken = len(found) > 1 and any(reference.evidence_id is None for reference in found)
        references += [Reference(start, end, answer[start:end], None, None)] if broken else found
    return marker._replace(references=tuple(references)) if len(references) < len(marker.references) else marker


def _square(answer: str, index: EvidenceIndex, mask: Mask, taken: Iterable[int]) -> Iterator[Marker]:
    defined = reversed(list(_DEFINITION.finditer(answer))) if "^" in answer else ()
    definitions = {match[1]: _named_by(match[2], index) for match in defined}  # the first one holds
    skip_until = -1
    for match in _SQUARE.finditer(answer):
        start, end = match.span()
        if start < skip_until or start in taken or mask.covers(start):
            continue
        if match.group().casefold() == CITATION_NEEDED:
            continue
        if answer[start - 1 : start] == "\\" or answer[end - 2] == "\\":
            continue  # LaTeX, or escaped brackets, which are read apart
        if answer[end : end + 1] == "(" or answer[end : end + 2] == "](":
            link = _TARGET.match(answer, end)
            if link and ("://" in link[1] or link[1].startswith(("www.", "/", "#", "mailto:"))):
                skip_until = link.end()
                yield from _link(answer, match, link, index)
                continue
        group = 1 if match.group(1) is not None else 2
        body, offset = match.group(group), match.start(group)
        if body[0] == "^":
            if answer[end : end + 1] == ":" and _opens_line(answer, start):
                continue
            references = _footnote(body, offset, index, definitions)
        else:
            references = read_references(body.partition("†")[0] or body, offset, index)
            if not references and index.slug(body) and _CLAUSE_END.match(answer, end):
                references = [Reference(offset, offset + len(body), body, None, None)]
        if references and not reads_as_something_else(answer, start, end, body, references, index):
            yield Marker(start, end, tuple(references))


def _escaped(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    r"""``\[9\]``: a marker whose brackets were escaped, so that they show in Markdown."""
    for match in _ESCAPED_MARKER.finditer(answer):
        start, end = match.span()
        body = match.group(1)
        references = read_references(body, match.start(1), index)
        if references and not reads_as_something_else(answer, start, end, body, references, index):
            yield Marker(start, end, tuple(references))


def _latex(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    r"""``\cite{smith2020, chunk_9}``: every key is a reference, whatever its shape."""
    for match in _LATEX_CITE.finditer(answer):
        references = []
        for key in _CITE_KEY.finditer(match.group(1)):
            name = key.group()
            start = match.start(1) + key.start()
            found = index.resolve(name)
            named = [found] if found.evidence_id else [Resolution(id_, "source") for id_ in index.resolve_source(name)]
            references += [Reference(start, start + len(name), name, *each) for each in named or [NOTHING]]
        if references:
            yield Marker(match.start(), match.end(), tuple(references))


def _link(answer: str, match: re.Match[str], link: re.Match[str], index: EvidenceIndex) -> Iterator[Marker]:
    """A link cites the chunks of its address; one labelled like a marker is a citation whatever its address."""
    start, end = match.start(), link.end()
    if answer[start - 1 : start] == "!":
        return
    target = link.group(1)
    span = link.span(1)
    if ids := index.resolve_source(target):
        yield Marker(start, end, tuple(Reference(*span, target, id_, "source") for id_ in ids))
        return
    body = match.group(1) or match.group(2)
    labelled = read_references(body.lstrip("^"), match.start() + 1 + (body[0] == "^"), index)
    handle = body.startswith("@") and not any(reference.evidence_id for reference in labelled)
    if labelled and not handle:
        yield Marker(start, end, tuple(labelled))
    elif index.has_addresses and target.startswith(("http://", "https://", "www.")):
        yield Marker(start, end, (Reference(*span, target, None, None),))


def _footnote(body: str, offset: int, index: EvidenceIndex, definitions: dict[str, tuple[str, ...]]) -> list[Reference]:
    """``[^1]`` names what its definition names, else the evidence of that number."""
    label = body[1:].strip()
    start = offset + 1 + (len(body[1:]) - len(body[1:].lstrip()))
    end = start + len(label)
    if named := definitions.get(label):
        return [Reference(start, end, label, id_, "source") for id_ in named]
    if label.isdecimal() or index.resolve(label).evidence_id or index.shaped(label):
        return read_references(label, start, index)
    return []


def _named_by(definition: str, index: EvidenceIndex) -> tuple[str, ...]:
    text = definition.strip().strip("[]().")
    if not text.isdecimal() and (found := index.resolve(text).evidence_id):
        return (found,)
    if ids := index.resolve_source(text):
        return ids
    for address in _BARE_ADDRESS.finditer(definition):
        if ids := index.resolve_source(_trimmed_address(address.group())):
            return ids
    return ()


def _lens(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    for match in _LENS.finditer(answer):
        body, offset = match.group(1), match.start(1)
        plain = _LENS_BODY.match(body)
        if plain is None:
            references = read_references(body.partition("†")[0].rstrip(), offset, index)
        else:
            # 【4:0†source】 names source 4 and a place in it, unless 4:0 is an id of the case
            references = read_references(plain.group(1), offset + plain.start(1), index)
            whole = body.partition("†")[0].strip()
            if plain.group(2) and (found := index.resolve(whole)).evidence_id:
                references = [Reference(offset, offset + len(whole), whole, *found)]
        if references:
            yield Marker(match.start(), match.end(), tuple(references))


def _round(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    for match in _ROUND.finditer(answer):
        body, offset = match.group(1), match.start(1)
        if lead := _ROUND_LEAD.match(body):
            body, offset = body[lead.end() :], offset + lead.end()
        if body and not body[0].isdecimal() and (references := read_references(body, offset, index, round_=True)):
            yield Marker(match.start(), match.end(), tuple(references))


def _source_lines(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    """``Sources: chunk_1, chunk_9``: a list without brackets, if it names any evidence at all."""
    for match in _SOURCE_LINE.finditer(answer):
        references = read_references(match.group(1), match.start(1), index)
        if any(reference.evidence_id for reference in references):
            yield Marker(references[0].start, references[-1].end, tuple(references))


def _bracketed_ids(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    """Ids that hold brackets themselves: ``[report[2]]``."""
    for id_ in index.bracketed:
        at = answer.find(f"[{id_}]")
        while at >= 0:
            end = at + len(id_) + 2
            yield Marker(at, end, (Reference(at + 1, end - 1, id_, id_, "exact"),))
            at = answer.find(f"[{id_}]", end)


def _bare_addresses(answer: str, index: EvidenceIndex) -> Iterator[Marker]:
    """An address standing in the text cites the chunks that come from it; one that names none is only an address."""
    for match in _BARE_ADDRESS.finditer(answer):
        address = _trimmed_address(match.group())
        start, end = match.start(), match.start() + len(address)
        defines = _DEFINES.search(answer[max(0, start - 60) : start])
        if not defines and (ids := index.resolve_source(address)):
            yield Marker(start, end, tuple(Reference(start, end, address, id_, "source") for id_ in ids))


def _trimmed_address(address: str) -> str:
    address = address.rstrip(".,;:!?*_")
    while address.endswith(")") and address.count("(") < address.count(")"):
        address = address[:-1].rstrip(".,;:!?*_")
    return address


def _opens_line(answer: str, start: int) -> bool:
    before = answer[max(0, start - 8) : start]
    return not before.rpartition("\n")[2].strip() and (start <= 8 or "\n" in before)
