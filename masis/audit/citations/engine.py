"""The citation engine: which markers of an answer point at real evidence, which sentences carry none.

Deterministic code, no model (MASIS-CRITIC-P3, MASIS-CRITIC-P4, MASIS-CRITIC-P6).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

from masis.audit.citations.exemptions import source_list_opens, why_exempt
from masis.audit.citations.given import covered_units, quote_check, resolved
from masis.audit.citations.grammar import CITATION_NEEDED, Marker, find_markers
from masis.audit.citations.resolution import Resolution, index_of
from masis.audit.quotes import Located
from masis.audit.sentences import Unit, split_units
from masis.schema.audit import Citation, CitationAudit, QuoteCheck, Sentence, SentenceStatus
from masis.schema.base import Record
from masis.schema.case import Evidence, GivenCitation

# Records are made from values that the engine computed itself without validating them again: five times as fast as
# pydantic's ``model_construct``, and the records of an answer are the engine's largest cost. A test holds them equal to
# validated ones.

Made = TypeVar("Made", bound=Record)


def trusted(model: type[Made], **values: Any) -> Made:
    """The record of these values, which must be all of the model's fields and of their types."""
    record = model.__new__(model)
    put = object.__setattr__
    put(record, "__dict__", values)
    put(record, "__pydantic_fields_set__", set(values))
    put(record, "__pydantic_extra__", None)
    put(record, "__pydantic_private__", None)
    return record


# The source's two rules as written, with offsets (MASIS-CRITIC-LITERAL).
#
# Every bracket is a citation, valid only if it holds an id to the letter; sentences end at every ``.``, ``!`` and
# ``?``; a sentence without ``[`` is uncited unless it holds one of three phrases. One departure: ``[citation needed]``
# says that there is no citation, so it is none.

_BRACKET = re.compile(r"\[(.*?)\]")
_STOP = re.compile(r"[.!?]")
_HEDGES = ("insufficient evidence", "not provided", "cannot provide")


def literal_audit(answer: str, evidence: Sequence[Evidence]) -> tuple[list[Citation], list[Sentence]]:
    """Citations and sentences by the literal rules."""
    valid = {chunk.id for chunk in evidence}
    pieces = list(_pieces(answer))
    starts = [start for start, _ in pieces]
    citations = [_citation(match, valid, starts) for match in _brackets(answer)]
    by_sentence: dict[int | None, list[str]] = {}
    for citation in citations:
        if citation.evidence_id is not None:
            by_sentence.setdefault(citation.sentence, []).append(citation.evidence_id)
    return citations, [
        _sentence(answer, start, end, tuple(dict.fromkeys(by_sentence.get(number, ()))))
        for number, (start, end) in enumerate(pieces)
    ]


def _brackets(answer: str) -> Iterator[re.Match[str]]:
    """As ``re.findall`` finds them, but in linear time: no search where no ``]`` follows on the line."""
    at = answer.find("[")
    while at >= 0:
        close = answer.find("]", at)
        if close < 0:
            return
        match = _BRACKET.match(answer, at)
        if match:
            if match.group().casefold() != CITATION_NEEDED:
                yield match
            at = answer.find("[", match.end())
        else:  # the line ends before the bracket closes
            line_end = answer.find("\n", at)
            at = answer.find("[", line_end)


def _pieces(answer: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(match.start() for match in _STOP.finditer(answer)), len(answer)]:
        piece = answer[start:end]
        if piece.strip():
            left = len(piece) - len(piece.lstrip())
            yield start + left, start + len(piece.rstrip())
        start = end + 1


def _citation(match: re.Match[str], valid: set[str], starts: Sequence[int]) -> Citation:
    name = match.group(1)
    known = name in valid
    sentence = bisect_right(starts, match.start()) - 1
    return trusted(
        Citation,
        start=match.start(1),
        end=match.end(1),
        text=name,
        reference=name,
        marker_start=match.start(),
        marker_end=match.end(),
        evidence_id=name if known else None,
        status="valid" if known else "invalid",
        resolved_by="exact" if known else None,
        sentence=sentence if sentence >= 0 else None,
    )


def _sentence(answer: str, start: int, end: int, ids: tuple[str, ...]) -> Sentence:
    text = answer[start:end]
    status: SentenceStatus
    if "[" in text.casefold().replace(CITATION_NEEDED, ""):
        status, why = "cited", "holds a bracket"
    elif any(hedge in text.lower() for hedge in _HEDGES):
        status, why = "exempt", "says what is not known"
    else:
        status, why = "uncited", "holds no bracket"
    return trusted(Sentence, start=start, end=end, text=text, citation_ids=ids, status=status, why=why)


# What the citations cost the critic's confidence (MASIS-CRITIC-P3, MASIS-CRITIC-P4, MASIS-CRITIC-P6).


def finished(
    mode: Literal["standard", "literal"],
    citations: Sequence[Citation],
    sentences: Sequence[Sentence],
    invalid_penalty: float,
    uncited_penalty: float,
    quotes: Sequence[QuoteCheck] = (),
) -> CitationAudit:
    """The audit with its verdict: any invalid reference forces hallucination and retry.

    Uncited sentences count only if the answer cites at all; an invalid reference counts as citing.
    """
    invalid = tuple([citation.reference for citation in citations if citation.status == "invalid"])
    uncited = tuple([sentence.text for sentence in sentences if sentence.status == "uncited"])
    factor = 1.0
    if invalid:
        factor *= invalid_penalty
    if uncited and citations:
        factor *= uncited_penalty
    return trusted(
        CitationAudit,
        mode=mode,
        citations=tuple(citations),
        sentences=tuple(sentences),
        invalid_citations=invalid,
        uncited_claims=uncited,
        hallucination_detected=bool(invalid),
        needs_retry=bool(invalid),
        penalty_factor=factor,
        quotes=tuple(quotes),
        carried_references=(),
    )


COVERED_BY_LEAD_IN = "the citation of the list's lead-in covers it"
"""Why a list item may go uncited although it asserts something."""

_LISTS = ("item", "row", "code")
_ANNOUNCES = re.compile(r":[\s*_]*(?:[\[(【][^\n]{0,60}[\])】][\s*_]*)?\Z|[\])】][\s*_]*:[\s*_]*\Z")
_SEPARATOR_ROW = re.compile(r"[\s|:+-]+")
_ENTRY = re.compile(r"\s*(?:[-*+•]\s+)?(?:\[\^?[^\[\]]{1,60}\]|\d{1,3}[.)]|https?://)")


def audit_citations(
    answer: str,
    evidence: Sequence[Evidence],
    *,
    mode: Literal["standard", "literal"] = "standard",
    invalid_penalty: float = 0.5,
    uncited_penalty: float = 0.9,
    given: Sequence[GivenCitation] = (),
) -> CitationAudit:
    """Every reference of the answer with what it names, every sentence with whether it carries one, and the penalty.

    ``literal`` applies the two rules of MASIS-CRITIC-LITERAL. The penalties multiply the critic's
    confidence: for any invalid reference, and for any uncited sentence of an answer that cites at all. Citations
    ``given`` beside the answer count beside its markers; the literal rules know none.
    """
    quotes: list[QuoteCheck] = []
    if mode == "literal":
        citations, sentences = literal_audit(answer, evidence)
    else:
        citations, sentences, quotes = _standard_audit(answer, evidence, given)
    return finished(mode, citations, sentences, invalid_penalty, uncited_penalty, quotes)


def _standard_audit(
    answer: str, evidence: Sequence[Evidence], given: Sequence[GivenCitation]
) -> tuple[list[Citation], list[Sentence], list[QuoteCheck]]:
    index = index_of(tuple([chunk.id for chunk in evidence]), tuple([chunk.source for chunk in evidence]))
    units = split_units(answer)
    code = [(unit.start, unit.end) for unit in units if unit.kind == "code"]
    citations: list[Citation] = []
    by_unit: dict[int, list[Citation]] = {}
    at = 0
    for marker in find_markers(answer, index, code):
        while at + 1 < len(units) and units[at + 1].start <= marker.start:
            at += 1
        made = _citations(answer, marker, at)
        citations += made
        by_unit.setdefault(at, []).extend(made)
    quotes: list[QuoteCheck] = []
    for citation in given:
        named = resolved(citation, index)
        for number, place in covered_units(citation, answer, units):
            covering = _covering(answer, citation, named, number, place)
            citations.append(covering)
            by_unit.setdefault(number, []).append(covering)
        if named.evidence_id is not None and (check := quote_check(citation, named.evidence_id, evidence)):
            quotes.append(check)
    if given:
        citations.sort(key=lambda citation: (citation.start, citation.end))
    return citations, _judge(answer, units, by_unit), quotes


def _covering(answer: str, citation: GivenCitation, named: Resolution, sentence: int, place: Located) -> Citation:
    """What a citation given beside the answer covers of one sentence; it has no marker there."""
    return trusted(
        Citation,
        start=place.start,
        end=place.end,
        text=answer[place.start : place.end],
        reference=citation.evidence_id,
        marker_start=place.end,
        marker_end=place.end,
        evidence_id=named.evidence_id,
        status="valid" if named.evidence_id is not None else "invalid",
        resolved_by=named.how,
        sentence=sentence,
    )


def _citations(answer: str, marker: Marker, sentence: int) -> list[Citation]:
    start, end, references = marker
    return [
        trusted(
            Citation,
            start=reference.start,
            end=reference.end,
            text=answer[reference.start : reference.end],
            reference=reference.name,
            marker_start=start,
            marker_end=end,
            evidence_id=reference.evidence_id,
            status="valid" if reference.evidence_id is not None else "invalid",
            resolved_by=reference.how,
            sentence=sentence,
        )
        for reference in references
    ]


def _judge(answer: str, units: Sequence[Unit], by_unit: dict[int, list[Citation]]) -> list[Sentence]:
    sentences: list[Sentence] = []
    in_sources = False
    lead = ""  # the cited sentence before a list
    for number, unit in enumerate(units):
        start, end, kind, opens = unit
        text = answer[start:end]
        cited = by_unit.get(number, ())
        listing = source_list_opens(text, kind) if opens else None
        if listing == "heading":
            in_sources = True
        elif in_sources and (kind == "heading" or (opens and not _ENTRY.match(text) and kind not in ("item", "note"))):
            in_sources = False
        ids = tuple(dict.fromkeys([c.evidence_id for c in cited if c.evidence_id is not None])) if cited else ()
        status: SentenceStatus
        if listing or in_sources or (kind == "note" and cited):
            status, why = "exempt", "a list of sources"
        elif cited:
            status, why = "cited", _why_cited(cited)
        else:
            status, why = _uncited(text, units, number, lead, answer)
        if kind != "item":
            lead = text if ids else ""
        sentences.append(trusted(Sentence, start=start, end=end, text=text, citation_ids=ids, status=status, why=why))
    return sentences


def _why_cited(cited: Sequence[Citation]) -> str:
    valid = sum([citation.status == "valid" for citation in cited])
    if valid == len(cited):
        return "carries a citation"
    return (
        "carries citations, one of which names no evidence" if valid else "carries a citation, but it names no evidence"
    )


def _uncited(
    text: str, units: Sequence[Unit], number: int, lead: str, answer: str
) -> tuple[Literal["uncited", "exempt"], str]:
    unit = units[number]
    following = units[number + 1] if number + 1 < len(units) else None
    if unit.kind == "item" and lead and _ANNOUNCES.search(lead):
        return "exempt", COVERED_BY_LEAD_IN
    if unit.kind == "row":
        if _SEPARATOR_ROW.fullmatch(text):
            return "exempt", "a rule of a table"
        if following and following.kind == "row" and _SEPARATOR_ROW.fullmatch(answer, following.start, following.end):
            return "exempt", "the head of a table"
    why = why_exempt(
        text,
        unit.kind,
        alone=unit.opens and (following is None or following.opens),
        list_follows=following is not None and following.opens and following.kind in _LISTS,
        more_follows=following is not None,
    )
    return ("exempt", why) if why else ("uncited", "asserts something and carries no citation")
