"""The citation engine: finds references without evidence, and sentences without a reference.

It is deterministic code without a model (MASIS-CRITIC-P3, MASIS-CRITIC-P4, MASIS-CRITIC-P6).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from masis.audit.citations.attached_citations import check_quote, covered_units, resolve_citation
from masis.audit.citations.exemptions import exemption_reason, is_labelled_fact, source_list_opens
from masis.audit.markers import (
    CITATION_NEEDED,
    Reference,
    evidence_index,
    find_markers,
    leading_marker,
    without_spans,
)
from masis.audit.sentences import SentenceUnit, split_sentences
from masis.schema.audit import Citation, CitationAudit, QuoteCheck, Sentence, SentenceStatus
from masis.schema.base import Record
from masis.schema.case import Evidence, GivenCitation

COVERED_BY_LEAD_IN = "the citation of the list's lead-in covers it"
"""The reason why a list item may lack a citation although it asserts something."""

_LISTS = ("item", "row", "code")
# The line under the head of a Markdown table: "|:---|---:|".
_SEPARATOR_ROW = re.compile(r"[\s|:+-]+")
# "- " or spaces before an entry.
_BULLET = re.compile(r"\s*(?:[-*+•]\s+)?")
# The beginning of an entry in a list of sources: "3." or "https://".
_NUMBER_OR_ADDRESS = re.compile(r"\d{1,3}[.)]|https?://")


def audit_citations(
    answer: str,
    evidence: Sequence[Evidence],
    *,
    mode: Literal["standard", "literal"] = "standard",
    invalid_penalty: float = 0.5,
    uncited_penalty: float = 0.9,
    given: Sequence[GivenCitation] = (),
) -> CitationAudit:
    """Audit the references and sentences of an answer and compute the penalty.

    The penalties multiply the critic's confidence: one for any invalid reference, one for any
    uncited sentence in an answer that has citations. Any invalid reference forces the flags for
    hallucination and retry.

    Args:
        answer: The answer.
        evidence: The evidence of the case.
        mode: ``literal`` applies the two rules of MASIS-CRITIC-LITERAL.
        invalid_penalty: The factor for invalid references, 0 to 1.
        uncited_penalty: The factor for uncited sentences, 0 to 1.
        given: Citations attached to the answer, which count like its markers except in ``literal``
            mode.

    """
    quotes: list[QuoteCheck] = []
    if mode == "literal":
        citations, sentences = _literal_audit(answer, evidence)
    else:
        citations, sentences, quotes = _standard_audit(answer, evidence, given)
    invalid = tuple([citation.reference for citation in citations if citation.status == "invalid"])
    uncited = tuple([sentence.text for sentence in sentences if sentence.status == "uncited"])
    factor = 1.0
    if invalid:
        factor *= invalid_penalty
    if uncited and citations:  # an invalid reference counts as citing
        factor *= uncited_penalty
    return record_of(
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


# Records of values that the engine has computed are built without validation. This is five times
# as fast as pydantic's ``model_construct``, and building records takes most of the engine's time. A
# test compares them with validated ones.

ModelT = TypeVar("ModelT", bound=Record)


def record_of(model: type[ModelT], **values: Any) -> ModelT:
    """Return a record without validating its values.

    Args:
        model: The class of the record.
        values: A value of the right type for each field of the model.

    """
    record = model.__new__(model)
    set_attribute = object.__setattr__  # records are frozen
    set_attribute(record, "__dict__", values)
    set_attribute(record, "__pydantic_fields_set__", set(values))
    set_attribute(record, "__pydantic_extra__", None)
    set_attribute(record, "__pydantic_private__", None)
    return record


def _make_citation(
    answer: str, reference: Reference, marker: tuple[int, int], sentence: int | None
) -> Citation:
    return record_of(
        Citation,
        start=reference.start,
        end=reference.end,
        text=answer[reference.start : reference.end],
        reference=reference.name,
        marker_start=marker[0],
        marker_end=marker[1],
        evidence_id=reference.evidence_id,
        status="valid" if reference.evidence_id is not None else "invalid",
        resolved_by=reference.how,
        sentence=sentence,
    )


def _cited_ids(citations: Sequence[Citation]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            [citation.evidence_id for citation in citations if citation.evidence_id is not None]
        )
    )


# The spec's two rules as written, with offsets (MASIS-CRITIC-LITERAL).
#
# Every bracket is a citation, and it is valid only if its content is exactly an id. Sentences end
# at every ``.``, ``!`` and ``?``. A sentence without ``[`` is uncited unless it contains one of
# three phrases. The only exception to the spec's rules is that ``[citation needed]`` isn't a
# citation.

# "[chunk_1]" on one line. The expression is the spec's, so it stays lazy; see _brackets.
_BRACKET = re.compile(r"\[(.*?)\]")
# "It fell", "It rose": the text between stops.
_PIECE = re.compile(r"[^.!?]+")
# The phrases that the spec's rule exempts.
_HEDGES = ("insufficient evidence", "not provided", "cannot provide")


def _literal_audit(
    answer: str, evidence: Sequence[Evidence]
) -> tuple[list[Citation], list[Sentence]]:
    valid = {chunk.id for chunk in evidence}
    pieces = [match for match in _PIECE.finditer(answer) if match.group().strip()]
    texts = [match.group().strip() for match in pieces]
    starts = [match.end() - len(match.group().lstrip()) for match in pieces]
    citations: list[Citation] = []
    by_sentence: dict[int | None, list[Citation]] = defaultdict(list)
    for match in _brackets(answer):
        sentence_number = bisect_right(starts, match.start()) - 1
        is_known = match[1] in valid
        reference = Reference(
            *match.span(1), match[1], match[1] if is_known else None, "exact" if is_known else None
        )
        citations.append(
            _make_citation(
                answer, reference, match.span(), sentence_number if sentence_number >= 0 else None
            )
        )
        by_sentence[sentence_number].append(citations[-1])
    return citations, [
        _literal_sentence(text, start, _cited_ids(by_sentence.get(number, ())))
        for number, (text, start) in enumerate(zip(texts, starts, strict=True))
    ]


def _brackets(answer: str) -> Iterator[re.Match[str]]:
    """Yield the brackets that ``re.findall`` would find, but in linear time.

    It doesn't search where no ``]`` follows, because the lazy pattern would scan the rest of the
    line for each ``[``.
    """
    position = answer.find("[")
    while position >= 0:
        close = answer.find("]", position)
        if close < 0:
            return
        match = _BRACKET.match(answer, position)
        if match:
            if match.group().casefold() != CITATION_NEEDED:
                yield match
            position = answer.find("[", match.end())
        else:  # the line ends before the bracket closes
            line_end = answer.find("\n", position)
            position = answer.find("[", line_end)


def _literal_sentence(text: str, start: int, ids: tuple[str, ...]) -> Sentence:
    status: SentenceStatus
    if "[" in text.casefold().replace(CITATION_NEEDED, ""):
        status, reason = "cited", "has a bracket"
    elif any(hedge in text.lower() for hedge in _HEDGES):
        status, reason = "exempt", "says what is not known"
    else:
        status, reason = "uncited", "has no bracket"
    return record_of(
        Sentence,
        start=start,
        end=start + len(text),
        text=text,
        citation_ids=ids,
        status=status,
        why=reason,
    )


def _standard_audit(
    answer: str, evidence: Sequence[Evidence], given: Sequence[GivenCitation]
) -> tuple[list[Citation], list[Sentence], list[QuoteCheck]]:
    index = evidence_index(evidence)
    units = split_sentences(answer)
    starts = [unit.start for unit in units]
    # In code, brackets are indices and lists.
    code = [(unit.start, unit.end) for unit in units if unit.kind == "code"]
    citations: list[Citation] = []
    by_unit: dict[int, list[Citation]] = defaultdict(list)
    for marker in find_markers(answer, index, code):
        if marker.references[0].evidence_id is None and _repeats_evidence(
            marker.references, evidence
        ):
            continue
        # A marker belongs to the sentence in which it begins.
        unit_number = max(0, bisect_right(starts, marker.start) - 1)
        marker_citations = [
            _make_citation(answer, reference, marker[:2], unit_number)
            for reference in marker.references
        ]
        citations += marker_citations
        by_unit[unit_number] += marker_citations
    quotes: list[QuoteCheck] = []
    for citation in given:
        resolution = resolve_citation(citation, index)
        for number, span in covered_units(citation, answer, units):
            # The citation covers this part of the sentence, and the answer has no marker for it.
            reference = Reference(*span, citation.evidence_id, *resolution)
            citation_record = _make_citation(answer, reference, (span.end, span.end), number)
            citations.append(citation_record)
            by_unit[number].append(citation_record)
        if resolution.evidence_id is not None and (
            check := check_quote(citation, resolution.evidence_id, evidence)
        ):
            quotes.append(check)
    # Citations from markers are already in order.
    if given:
        citations.sort(key=lambda citation: (citation.start, citation.end))
    return citations, _judge_sentences(answer, units, by_unit), quotes


def _repeats_evidence(references: Sequence[Reference], evidence: Sequence[Evidence]) -> bool:
    """Return whether the references are addresses or file names that the evidence itself mentions.

    An answer that repeats "apply at https://..." from its evidence doesn't cite that address, so
    the reference isn't fabricated.
    """
    return all(
        reference.evidence_id is None
        and "." in reference.name
        and len(reference.name) >= _MIN_ADDRESS
        and any(reference.name in chunk.text for chunk in evidence)
        for reference in references
    )


_MIN_ADDRESS = 6
"""The length of the shortest address or file name that counts: "a.html"."""


def _judge_sentences(
    answer: str, units: Sequence[SentenceUnit], by_unit: Mapping[int, list[Citation]]
) -> list[Sentence]:
    sentences: list[Sentence] = []
    in_source_list = False  # whether the sentence is in a list of sources
    lead_in: int | None = None  # the cited sentence before a list
    for number, unit in enumerate(units):
        start, end, kind, opens = unit
        text = answer[start:end]
        citations = by_unit.get(number, ())
        source_list = source_list_opens(text, kind) if opens else None
        if source_list == "heading":
            in_source_list = True
        elif in_source_list and (
            kind == "heading" or (opens and not _is_entry(text) and kind not in ("item", "note"))
        ):
            in_source_list = False
        cited_ids = _cited_ids(citations)
        valid_count = sum([citation.status == "valid" for citation in citations])
        status: SentenceStatus
        if source_list or in_source_list or (kind == "note" and citations):
            status, reason = "exempt", "a list of sources"
        elif not citations:
            announced = (
                kind == "item"
                and lead_in is not None
                and _announces_list(answer, units[lead_in], by_unit[lead_in])
            )
            status, reason = _citation_status(text, units, number, announced, answer)
        elif valid_count == len(citations):
            status, reason = "cited", "has a citation"
        elif valid_count:
            status, reason = "cited", "has citations, but not all of them match evidence"
        else:
            status, reason = "cited", "has a citation, but it doesn't match any evidence"
        if kind != "item":
            lead_in = number if cited_ids else None
        sentences.append(
            record_of(
                Sentence,
                start=start,
                end=end,
                text=text,
                citation_ids=cited_ids,
                status=status,
                why=reason,
            )
        )
    return sentences


def _is_entry(text: str) -> bool:
    """Return whether a line begins like an entry of a source list.

    Such an entry begins with a marker, a number or an address.
    """
    bullet = _BULLET.match(text)
    rest = text[bullet.end() if bullet else 0 :][:400]
    return bool(leading_marker(rest) or _NUMBER_OR_ADDRESS.match(rest))


def _announces_list(answer: str, unit: SentenceUnit, citations: Sequence[Citation]) -> bool:
    """Return whether a sentence ends with a colon, ignoring markers and emphasis.

    It then announces a list: "There are two reasons [1]:".
    """
    spans = sorted(
        {
            (citation.marker_start - unit.start, citation.marker_end - unit.start)
            for citation in citations
        }
    )
    text = without_spans(
        answer[unit.start : unit.end], [(start, end) for start, end in spans if start < end]
    )
    return text.rstrip(" \t\r\n*_").endswith(":")


def _citation_status(
    text: str, units: Sequence[SentenceUnit], number: int, announced: bool, answer: str
) -> tuple[Literal["uncited", "exempt"], str]:
    unit = units[number]
    next_unit = units[number + 1] if number + 1 < len(units) else None
    if announced:
        return "exempt", COVERED_BY_LEAD_IN
    if unit.kind == "row":
        if _SEPARATOR_ROW.fullmatch(text):
            return "exempt", "a table separator row"
        if (
            next_unit
            and next_unit.kind == "row"
            and _SEPARATOR_ROW.fullmatch(answer, next_unit.start, next_unit.end)
        ):
            return "exempt", "a table header"
    reason = exemption_reason(
        text,
        unit.kind,
        alone=unit.opens and (next_unit is None or next_unit.opens),
        list_follows=next_unit is not None and next_unit.opens and next_unit.kind in _LISTS,
        more_follows=next_unit is not None,
        among_facts=unit.opens
        and is_labelled_fact(text)
        and any(
            is_labelled_fact(answer[neighbor.start : neighbor.end])
            for neighbor in (*units[max(number - 1, 0) : number], *units[number + 1 : number + 2])
        ),
    )
    return (
        ("exempt", reason) if reason else ("uncited", "asserts something and carries no citation")
    )
