"""Texts cut at every edge of a mark, each piece with the marks that cover it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict

from masis.schema.audit import Citation, ClaimCheck
from masis.schema.run import Iteration
from masis.views.markup import Style
from masis.views.words import REFERENCE


class TextSpan(NamedTuple):
    """A stretch of text, end excluded."""

    start: int
    end: int


class Bearing(NamedTuple):
    """A stretch of evidence that supports a claim (by its place in the iteration), or contradicts
    it.

    Where it says a missing point, ``claim`` is the number of that issue below zero.
    """

    span: TextSpan
    claim: int
    against: bool


FactKind = Literal["marked", "figure", "conflict", "absent"]


class AnswerPiece(TypedDict):
    """A stretch of the answer under one set of marks.

    ``citation``, ``sentence`` and ``claims`` are places in the iteration's lists, ``issues`` are
    numbers; ``closes`` is the verdict on a claim that ends with this piece, ``ends`` the issues
    that do. ``beside`` is there where the citation came beside the answer: what the citations that
    end with this piece name. ``block``, ``styles`` and ``hidden`` are how the Markdown of the text
    shows it (``markup.py``).
    """

    text: str
    sentence: NotRequired[int]
    status: NotRequired[str]
    why: NotRequired[str]
    reference: NotRequired[str]
    citation: NotRequired[int]
    evidence: NotRequired[str]
    beside: NotRequired[list[str]]
    claims: NotRequired[list[int]]
    verdict: NotRequired[str]
    closes: NotRequired[str]
    fact: NotRequired[FactKind]
    issues: NotRequired[list[int]]
    ends: NotRequired[list[int]]
    block: NotRequired[int]
    styles: NotRequired[list[Style]]
    hidden: NotRequired[bool]


class EvidencePiece(TypedDict):
    """A stretch of evidence: the ``claims`` it supports, those it is ``against``; ``instructs``: it
    gives orders.
    """

    text: str
    claims: NotRequired[list[int]]
    against: NotRequired[list[int]]
    instructs: NotRequired[bool]
    block: NotRequired[int]
    styles: NotRequired[list[Style]]
    hidden: NotRequired[bool]


def reference_marks(iteration: Iteration) -> dict[int, str]:
    """Return what each citation (by its place in the audit) is: fabricated, misattributed,
    redundant... or valid.
    """
    checks: dict[tuple[int, str], str] = {}
    for check in iteration.claims:
        for reference in check.references:
            if check.claim.sentence is not None and reference.finding in REFERENCE:
                checks[check.claim.sentence, reference.evidence_id] = reference.finding
    return {
        index: _reference_mark(citation, checks)
        for index, citation in enumerate(iteration.citation_audit.citations)
    }


def _reference_mark(citation: Citation, checks: dict[tuple[int, str], str]) -> str:
    if citation.status == "invalid" or citation.evidence_id is None:
        return "fabricated"
    if citation.sentence is None:
        return "valid"
    return checks.get((citation.sentence, citation.evidence_id), "valid")


def answer_pieces(
    iteration: Iteration, marks: dict[int, str], issues: Sequence[Sequence[TextSpan]]
) -> Iterator[AnswerPiece]:
    """Yield the answer cut wherever a mark begins or ends, each piece with the marks that cover it.

    ``issues`` are the places of each, in the order of their numbers; the number stands where the
    first of them ends.
    """
    answer, audit = iteration.answer, iteration.citation_audit
    layers = _mark_layers(iteration, issues)
    edges = {edge for layer in layers for span, _ in layer for edge in span if edge <= len(answer)}
    cuts = sorted({0, len(answer)} | edges)
    under = [_Cover(layer) for layer in layers]
    closing: dict[int, list[int]] = defaultdict(list)
    for number, spans in enumerate(issues, 1):
        if spans:
            closing[spans[0].end].append(number)
    judged = {span.end: iteration.claims[index].verdict for span, index in layers[2]}
    for start, end in pairwise(cuts):
        in_citation, in_sentence, in_claim, in_fact, in_issue = (cover.at(start) for cover in under)
        piece: AnswerPiece = {"text": answer[start:end]}
        if in_sentence:
            sentence = audit.sentences[in_sentence[0]]
            piece |= {"sentence": in_sentence[0], "status": sentence.status, "why": sentence.why}
        if in_citation:
            # a marker lies within what a citation given beside the answer covers: the shorter one
            # is shown
            shown = min(
                in_citation,
                key=lambda index: (
                    _citation_length(audit.citations[index]),
                    _REFERENCE_ORDER.index(marks[index]),
                ),
            )
            piece |= {"reference": marks[shown], "citation": shown}
            piece["evidence"] = audit.citations[shown].evidence_id or ""
            if _is_beside(audit.citations[shown]):
                ending = (
                    audit.citations[index]
                    for index in in_citation
                    if audit.citations[index].end == end
                )
                piece["beside"] = list(
                    dict.fromkeys(citation.reference for citation in ending if _is_beside(citation))
                )
        if in_claim:
            piece |= {
                "claims": in_claim,
                "verdict": _worst_verdict(iteration.claims[index] for index in in_claim),
            }
        if in_claim and end in judged:
            piece["closes"] = judged[end]
        if in_fact:
            piece["fact"] = _FACTS[max(in_fact)]
        if in_issue:
            piece["issues"] = list(dict.fromkeys(in_issue))
        if ends := closing.get(end):
            piece["ends"] = sorted(ends)
        yield piece


_REFERENCE_ORDER = (
    "fabricated",
    "contradicts",
    "unsupported",
    "misattributed",
    "redundant",
    "valid",
)


def _citation_length(citation: Citation) -> int:
    return citation.end - citation.start


def _is_beside(citation: Citation) -> bool:
    """Return whether a citation came beside the answer: it has no marker."""
    return citation.marker_start == citation.marker_end


Layer = list[tuple[TextSpan, int]]


def _mark_layers(
    iteration: Iteration, issues: Sequence[Sequence[TextSpan]]
) -> tuple[Layer, Layer, Layer, Layer, Layer]:
    """Citations, sentences, claims, figures and other facts, numbered issues."""
    audit = iteration.citation_audit
    # A marker with a single reference is marked whole, brackets included; of several references
    # each for itself.
    alone = _sole_references(audit.citations)
    citations = [
        (
            (
                TextSpan(citation.marker_start, citation.marker_end)
                if index in alone and not _is_beside(citation)
                else TextSpan(citation.start, citation.end)
            ),
            index,
        )
        for index, citation in enumerate(audit.citations)
    ]
    sentences = [
        (TextSpan(sentence.start, sentence.end), index)
        for index, sentence in enumerate(audit.sentences)
    ]
    claims = [
        (TextSpan(check.claim.start, check.claim.end), index)
        for index, check in enumerate(iteration.claims)
        if check.claim.start is not None and check.claim.end is not None
    ]
    facts = [fact for check in iteration.claims for fact in _fact_spans(check, iteration.answer)]
    numbered = [(span, number) for number, spans in enumerate(issues, 1) for span in spans]
    return citations, sentences, claims, facts, numbered


class _Cover:
    """Which spans of a layer lie over a place, asked for at growing places."""

    def __init__(self, layer: Iterable[tuple[TextSpan, int]]) -> None:
        self._waiting = sorted(layer, reverse=True)
        self._open: list[tuple[TextSpan, int]] = []

    def at(self, place: int) -> list[int]:
        """Return the names of the spans over ``place``, in the order of their beginning."""
        while self._waiting and self._waiting[-1][0].start <= place:
            self._open.append(self._waiting.pop())
        self._open = [item for item in self._open if item[0].end > place]
        return [name for _, name in self._open]


def _sole_references(citations: Sequence[Citation]) -> set[int]:
    members: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, citation in enumerate(citations):
        members[citation.marker_start, citation.marker_end].append(index)
    return {indexes[0] for indexes in members.values() if len(indexes) == 1}


_VERDICT_ORDER = ("contradicted", "unsupported", "partial", "unscored", "unverifiable", "supported")


def _worst_verdict(checks: Iterable[ClaimCheck]) -> str:
    return min((check.verdict for check in checks), key=_VERDICT_ORDER.index)


MARKED, FIGURE, CONFLICT, ABSENT = 0, 1, 2, 3
_FACTS: tuple[FactKind, ...] = ("marked", "figure", "conflict", "absent")
"""What words may be: marked by a tagger; a figure that may be calculated; what the evidence has
otherwise; what it lacks."""


def _fact_spans(check: ClaimCheck, answer: str) -> Iterator[tuple[TextSpan, int]]:
    """Yield where the answer has what the evidence contradicts, and the figures and quotations that
    it lacks.

    A figure that may be calculated, and words that a tagger marks, are marked whatever became of
    their claim.
    """
    if (offset := check.claim.start) is None:
        return
    if check.verdict in ("contradicted", "unsupported"):
        # words that only lie beside a contradiction are part of it
        kind = (
            CONFLICT
            if any(contradiction.evidence_text for contradiction in check.contradictions)
            else ABSENT
        )
        yield from (
            (TextSpan(offset + start, offset + end), kind) for start, end in check.uncovered
        )
    for contradiction in check.contradictions:
        span = TextSpan(offset + contradiction.claim_start, offset + contradiction.claim_end)
        if span.start < span.end and answer[span.start : span.end] == contradiction.claim_text:
            yield span, CONFLICT if contradiction.evidence_text else ABSENT
    for figure in check.figures:
        span = TextSpan(offset + figure.claim_start, offset + figure.claim_end)
        if span.start < span.end and answer[span.start : span.end] == figure.claim_text:
            yield span, FIGURE
    for words in check.marked:
        span = TextSpan(offset + words.claim_start, offset + words.claim_end)
        if span.start < span.end and answer[span.start : span.end] == words.claim_text:
            yield span, MARKED


def count_facts(pieces: Iterable[AnswerPiece], kind: FactKind) -> int:
    """Return how many places of an answer are a fact of this kind; one may be cut into several
    pieces.
    """
    return sum(is_one for is_one, _ in groupby(pieces, lambda piece: piece.get("fact") == kind))


def evidence_pieces(
    text: str, bearings: Sequence[Bearing], instructions: Sequence[TextSpan] = ()
) -> Iterator[EvidencePiece]:
    """Yield the text of a chunk cut where claims bear on it or it gives orders; the spans must lie
    inside it.
    """
    cuts = sorted(
        {0, len(text)}
        | {edge for bearing in bearings for edge in bearing.span}
        | {e for s in instructions for e in s}
    )
    supported = _Cover((bearing.span, bearing.claim) for bearing in bearings if not bearing.against)
    refutes = _Cover((bearing.span, bearing.claim) for bearing in bearings if bearing.against)
    for start, end in pairwise(cuts):
        piece: EvidencePiece = {"text": text[start:end]}
        if claims := supported.at(start):
            piece["claims"] = sorted(set(claims))
        if against := refutes.at(start):
            piece["against"] = sorted(set(against))
        if any(span.start <= start < span.end for span in instructions):
            piece["instructs"] = True
        yield piece
