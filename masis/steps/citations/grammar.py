"""Finds the markers of an answer: the stretches that point at evidence, and the references each holds.

Parsed: ``[chunk_1]`` ``[1]`` ``[1, 2]`` ``[1; 2]`` ``[1][2]`` ``[1-3]`` ``[1 and 3]`` ``【1†source】``
``【1:0†source】`` ``[^1]`` ``[Source 1]`` ``(Source 1)`` ``(Sources 1 and 2)`` ``(chunk_1)`` and links. What is in
brackets and shaped neither like one of the case's ids nor like a common marker is no citation; ``docs/citations.md``
lists both with examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from masis.steps.citations.context import reads_as_something_else
from masis.steps.citations.masks import Mask, footnote_definitions, masked
from masis.steps.citations.references import Reference, read_references
from masis.steps.citations.resolution import EvidenceIndex


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
_CLAUSE_END = re.compile(r"\s*(?:[.,;:!?)\[]|\Z|\n)")
_BARE_ADDRESS = re.compile(r"https?://[^\s<>\[\]{}\"'`|]{3,800}")


def find_markers(answer: str, index: EvidenceIndex, code: Sequence[tuple[int, int]] = ()) -> list[Marker]:
    """All markers in order. ``code`` names stretches, such as code blocks, in which there are none."""
    mask = masked(answer, code)
    found: list[Marker] = []
    if "[" in answer or "［" in answer:
        found += _bracketed_ids(answer, index, mask)
        found += _square(answer, index, mask, {marker.start for marker in found})
    if ":" in answer:
        found += _source_lines(answer, index, mask)
    if "【" in answer:
        found += _lens(answer, index, mask)
    if "(" in answer and (_ROUND_WORDS.search(answer) or index.worded):
        found += _round(answer, index, mask)
    if "://" in answer and index.has_addresses:
        found += _bare_addresses(answer, index, mask)
    if len(found) > 1:
        found.sort(key=lambda marker: (marker.start, -marker.end))
        found = list(_without_overlaps(found))
    return found


def _square(answer: str, index: EvidenceIndex, mask: Mask | None, taken: Iterable[int]) -> Iterator[Marker]:
    definitions: dict[str, tuple[str, ...]] | None = None
    skip_until = -1
    for match in _SQUARE.finditer(answer):
        start, end = match.span()
        if start < skip_until or start in taken or (mask and mask.covers(start)):
            continue
        if answer[start - 1 : start] == "\\" or answer[end - 2] == "\\":
            continue  # LaTeX, or brackets that stand for themselves
        if answer[end : end + 1] == "(" or answer[end : end + 2] == "](":
            link = _TARGET.match(answer, end)
            if link and _is_target(link.group(1)):
                skip_until = link.end()
                yield from _link(answer, match, link, index)
                continue
        group = 1 if match.group(1) is not None else 2
        body, offset = match.group(group), match.start(group)
        if body[0] == "^":
            if definitions is None:
                definitions = {label: _named_by(text, index) for label, text in footnote_definitions(answer).items()}
            if answer[end : end + 1] == ":" and _opens_line(answer, start):
                continue
            references = _footnote(body, offset, index, definitions)
        else:
            references = read_references(body.partition("†")[0] or body, offset, index)
            if not references and index.slug(body) and _CLAUSE_END.match(answer, end):
                references = [Reference(offset, offset + len(body), body, None, None)]
        if references and not reads_as_something_else(answer, start, end, body, references, index):
            yield Marker(start, end, tuple(references))


def _is_target(target: str) -> bool:
    return "://" in target or target.startswith(("www.", "/", "#", "mailto:"))


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
    if labelled:
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


def _lens(answer: str, index: EvidenceIndex, mask: Mask | None) -> Iterator[Marker]:
    for match in _LENS.finditer(answer):
        if mask and mask.covers(match.start()):
            continue
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


def _round(answer: str, index: EvidenceIndex, mask: Mask | None) -> Iterator[Marker]:
    for match in _ROUND.finditer(answer):
        if mask and mask.covers(match.start()):
            continue
        body, offset = match.group(1), match.start(1)
        if lead := _ROUND_LEAD.match(body):
            body, offset = body[lead.end() :], offset + lead.end()
        if body and not body[0].isdecimal() and (references := read_references(body, offset, index, round_=True)):
            yield Marker(match.start(), match.end(), tuple(references))


def _source_lines(answer: str, index: EvidenceIndex, mask: Mask | None) -> Iterator[Marker]:
    """``Sources: chunk_1, chunk_9``: a list without brackets, if it names any evidence at all."""
    for match in _SOURCE_LINE.finditer(answer):
        references = read_references(match.group(1), match.start(1), index)
        if any(reference.evidence_id for reference in references) and not (mask and mask.covers(match.start(1))):
            yield Marker(references[0].start, references[-1].end, tuple(references))


def _bracketed_ids(answer: str, index: EvidenceIndex, mask: Mask | None) -> Iterator[Marker]:
    """Ids that hold brackets themselves: ``[report[2]]``."""
    for id_ in index.bracketed:
        at = answer.find(f"[{id_}]")
        while at >= 0:
            end = at + len(id_) + 2
            if not (mask and mask.covers(at)):
                yield Marker(at, end, (Reference(at + 1, end - 1, id_, id_, "exact"),))
            at = answer.find(f"[{id_}]", end)


def _bare_addresses(answer: str, index: EvidenceIndex, mask: Mask | None) -> Iterator[Marker]:
    """An address standing in the text cites the chunks that come from it; one that names none is only an address."""
    for match in _BARE_ADDRESS.finditer(answer):
        address = _trimmed_address(match.group())
        start, end = match.start(), match.start() + len(address)
        if (mask and mask.covers(start)) or _DEFINES.search(answer[max(0, start - 60) : start]):
            continue
        if ids := index.resolve_source(address):
            yield Marker(start, end, tuple(Reference(start, end, address, id_, "source") for id_ in ids))


def _trimmed_address(address: str) -> str:
    address = address.rstrip(".,;:!?*_")
    while address.endswith(")") and address.count("(") < address.count(")"):
        address = address[:-1].rstrip(".,;:!?*_")
    return address


def _without_overlaps(markers: Iterable[Marker]) -> Iterator[Marker]:
    last = -1
    for marker in markers:
        if marker.start >= last:
            yield marker
            last = marker.end


def _opens_line(answer: str, start: int) -> bool:
    before = answer[max(0, start - 8) : start]
    return not before.rpartition("\n")[2].strip() and (start <= 8 or "\n" in before)
