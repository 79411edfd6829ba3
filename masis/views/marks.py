"""Cuts texts at the edges of marks, so that each piece has one set of marks. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, NotRequired, TypedDict

from masis.schema.audit import Citation, ClaimCheck
from masis.schema.run import Iteration
from masis.views.markup import Style
from masis.views.words import REFERENCE


class TextSpan(NamedTuple):
    """A range of a text; the end is excluded."""

    start: int
    end: int


class Bearing(NamedTuple):
    """A span of evidence that supports or contradicts a claim, given by its index in the iteration.

    If the span states a missing point, ``claim`` is the negative number of that issue.
    """

    span: TextSpan
    claim: int
    against: bool


FactKind = Literal["marked", "figure", "conflict", "absent"]


class AnswerPiece(TypedDict):
    """A span of the answer that is covered by one set of marks.

    ``citation``, ``sentence`` and ``claims`` are indices into the iteration's lists; ``issues`` are
    issue numbers. A range such as ``[1-3]`` has the indices of its citations in ``members``.
    ``closes`` is the verdict on a claim that ends with this piece, and ``ends`` lists the issues
    that end with it. ``beside`` is set for a citation that was supplied next to the answer: it
    names the citations that end with this piece. ``block``, ``styles`` and ``hidden`` describe how
    Markdown shows the piece (``markup.py``).
    """

    text: str
    sentence: NotRequired[int]
    status: NotRequired[str]
    why: NotRequired[str]
    reference: NotRequired[str]
    citation: NotRequired[int]
    evidence: NotRequired[str]
    members: NotRequired[list[int]]
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
    """A span of evidence with the ``claims`` it supports and those it is ``against``.

    ``instructs`` is true for text that tries to give orders to its reader.
    """

    text: str
    claims: NotRequired[list[int]]
    against: NotRequired[list[int]]
    instructs: NotRequired[bool]
    block: NotRequired[int]
    styles: NotRequired[list[Style]]
    hidden: NotRequired[bool]


def reference_marks(iteration: Iteration) -> dict[int, str]:
    """Return the mark of each citation by index: fabricated, misattributed, valid and so on.

    The verifier reports on a reference once, with one of the sentence's claims. If the cited chunk
    contradicts another claim that the reference is for, the mark says so.
    """
    checks: dict[tuple[int, str], str] = {}
    for check in iteration.claims:
        for reference in check.references:
            if check.claim.sentence is not None and reference.finding in REFERENCE:
                key = check.claim.sentence, reference.evidence_id
                checks[key] = _worst_mark(reference.finding, checks.get(key, "valid"))
    cited = cited_claims(iteration)
    return {
        index: (
            "contradicts"
            if any(
                citation.evidence_id in contradicting_chunks(iteration.claims[claim])
                for claim in cited[index]
            )
            else _reference_mark(citation, checks)
        )
        for index, citation in enumerate(iteration.citation_audit.citations)
    }


def _worst_mark(*marks: str) -> str:
    return min(marks, key=_REFERENCE_ORDER.index)


def _reference_mark(citation: Citation, checks: dict[tuple[int, str], str]) -> str:
    if citation.status == "invalid" or citation.evidence_id is None:
        return "fabricated"
    if citation.sentence is None:
        return "valid"
    return checks.get((citation.sentence, citation.evidence_id), "valid")


def contradicting_chunks(check: ClaimCheck) -> set[str]:
    """Return the ids of the chunks that contradict a claim.

    A contradiction without words of the evidence reports a figure that isn't in it.
    """
    named = {found.evidence_id for found in check.contradictions if found.evidence_text}
    if check.verdict == "contradicted" and not check.contradictions:
        return set(check.sources)
    return named


def cited_claims(iteration: Iteration) -> list[list[int]]:
    """Return the indices of the claims that each citation is for.

    They are the claims of its sentence between the marker and the one before it, because a marker
    cites the words in front of it; adjacent markers cite the same words. A marker at the start of
    a sentence is for the whole sentence, and a citation beside the answer for the words it covers.
    """
    citations = iteration.citation_audit.citations
    claims: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, check in enumerate(iteration.claims):
        if check.claim.sentence is not None:
            claims[check.claim.sentence].append((check.claim.start or 0, index))
    markers: dict[int, list[int]] = defaultdict(list)
    for citation in citations:
        if citation.sentence is not None and not _is_beside(citation):
            markers[citation.sentence].append(citation.marker_start)
    for sentence in claims:
        claims[sentence].sort()
        markers[sentence].sort()
    return [
        _claims_in_scope(citation, claims[citation.sentence], markers[citation.sentence], iteration)
        if citation.sentence is not None and citation.evidence_id is not None
        else []
        for citation in citations
    ]


def _claims_in_scope(
    citation: Citation,
    claims: Sequence[tuple[int, int]],
    markers: Sequence[int],
    iteration: Iteration,
) -> list[int]:
    if _is_beside(citation):
        return [
            index
            for start, index in claims
            if start < citation.end and citation.start < (iteration.claims[index].claim.end or 0)
        ]
    before = bisect_left(claims, (citation.marker_start, -1))
    if not before:
        return [index for _, index in claims]
    last_start = claims[before - 1][0]
    earlier = bisect_right(markers, last_start)
    first = bisect_left(claims, (markers[earlier - 1], -1)) if earlier else 0
    return [index for _, index in claims[first:before]]


def written_references(iteration: Iteration) -> list[str]:
    """Return each citation as the answer writes it, such as ``(Source 1)``.

    A reference among several of one marker is named without the marker.
    """
    citations = iteration.citation_audit.citations
    alone = _sole_references(citations)
    return [
        iteration.answer[citation.marker_start : citation.marker_end].strip()
        if index in alone and not _is_beside(citation)
        else citation.text
        for index, citation in enumerate(citations)
    ]


def answer_pieces(
    iteration: Iteration, marks: dict[int, str], issues: Sequence[Sequence[TextSpan]]
) -> Iterator[AnswerPiece]:
    """Yield the answer cut at every edge of a mark, each piece with the marks that cover it.

    ``issues`` are the spans of each issue in the order of their numbers. The number is shown at the
    end of the issue's first span.
    """
    answer, audit = iteration.answer, iteration.citation_audit
    layers = _mark_layers(iteration, issues)
    # Cutting at every edge means that all characters of a piece have the same marks.
    edges = {edge for layer in layers for span, _ in layer for edge in span if edge <= len(answer)}
    cuts = sorted({0, len(answer)} | edges)
    under = [_Cover(layer) for layer in layers]
    closing: dict[int, list[int]] = defaultdict(list)
    for number, marked in enumerate(issues, 1):
        if marked:
            closing[marked[0].end].append(number)
    spans = [(citation.start, citation.end) for citation in audit.citations]
    judged = _closing_verdicts(iteration, layers[2])
    for start, end in pairwise(cuts):
        in_citation, in_sentence, in_claim, in_fact, in_issue = (cover.at(start) for cover in under)
        piece: AnswerPiece = {"text": answer[start:end]}
        if in_sentence:
            sentence = audit.sentences[in_sentence[0]]
            piece |= {"sentence": in_sentence[0], "status": sentence.status, "why": sentence.why}
        if in_citation:
            # A citation supplied beside the answer can cover a whole sentence with a marker in it.
            # The shorter one is shown.
            shown = min(
                in_citation,
                key=lambda index: (
                    audit.citations[index].end - audit.citations[index].start,
                    _REFERENCE_ORDER.index(marks[index]),
                ),
            )
            piece |= {"reference": marks[shown], "citation": shown}
            piece["evidence"] = audit.citations[shown].evidence_id or ""
            members = [index for index in in_citation if spans[index] == spans[shown]]
            if len(members) > 1 and not _is_beside(audit.citations[shown]):
                piece["members"] = members
            if _is_beside(audit.citations[shown]):
                ending = (
                    audit.citations[index]
                    for index in in_citation
                    if audit.citations[index].end == end
                )
                piece["beside"] = list(
                    dict.fromkeys(citation.reference for citation in ending if _is_beside(citation))
                )
        # Overlapping claims: the piece shows the worst verdict, but lists all of them.
        if in_claim:
            piece |= {
                "claims": in_claim,
                "verdict": min(
                    (iteration.claims[index].verdict for index in in_claim),
                    key=_VERDICT_ORDER.index,
                ),
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


LONGEST_GAP = 3
"""Maximum number of blanks between a claim of one word and the claim that it leads to."""

# Worst first: if a place has several references, the worst one is shown.
_REFERENCE_ORDER = (
    "fabricated",
    "contradicts",
    "unsupported",
    "misattributed",
    "redundant",
    "valid",
)


def _is_beside(citation: Citation) -> bool:
    """Whether a citation was supplied next to the answer, so that it has no marker in the text."""
    return citation.marker_start == citation.marker_end


Layer = list[tuple[TextSpan, int]]


def _closing_verdicts(iteration: Iteration, claims: Layer) -> dict[int, str]:
    """Return the verdicts to mark at the ends of claims, by offset.

    Two ticks for the same words, or one for a lone "because", would only puzzle a reader. A
    supported claim has no tick of its own within another supported one, or if it's a single word
    right before one.
    """
    verdicts: dict[int, str] = {}
    by_place = sorted(claims, key=lambda claim: (claim[0].start, -claim[0].end))
    supported = [span for span, index in by_place if iteration.claims[index].verdict == "supported"]
    starts = {span.start for span in supported}
    covered, ticked = 0, set()
    for span in supported:
        words = iteration.answer[span.start : span.end].split()
        after = iteration.answer[span.end :][:LONGEST_GAP]
        next_start = span.end + len(after) - len(after.lstrip())
        if span.end > covered and not (len(words) == 1 and next_start in starts):
            ticked.add(span)
        covered = max(covered, span.end)
    for span, index in by_place:
        verdict = iteration.claims[index].verdict
        if verdict != "supported" or span in ticked:
            verdicts[span.end] = verdict
    return verdicts


def _mark_layers(
    iteration: Iteration, issues: Sequence[Sequence[TextSpan]]
) -> tuple[Layer, Layer, Layer, Layer, Layer]:
    """Return the spans of citations, sentences, claims, facts and numbered issues."""
    audit = iteration.citation_audit
    # A marker with one reference is marked with its brackets; in "[1, 2]" each number has its own
    # mark.
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
    """Finds the spans of a layer over a position; query positions in ascending order."""

    def __init__(self, layer: Iterable[tuple[TextSpan, int]]) -> None:
        # Reversed, because popping the next span from the end takes constant time.
        self._waiting = sorted(layer, reverse=True)
        self._open: list[tuple[TextSpan, int]] = []

    def at(self, place: int) -> list[int]:
        """Return the ids of the spans over ``place``, ordered by their start."""
        while self._waiting and self._waiting[-1][0].start <= place:
            self._open.append(self._waiting.pop())
        self._open = [item for item in self._open if item[0].end > place]
        return [name for _, name in self._open]


def _sole_references(citations: Sequence[Citation]) -> set[int]:
    members: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, citation in enumerate(citations):
        members[citation.marker_start, citation.marker_end].append(index)
    return {indexes[0] for indexes in members.values() if len(indexes) == 1}


# Worst first.
_VERDICT_ORDER = ("contradicted", "unsupported", "partial", "unscored", "unverifiable", "supported")


MARKED, FIGURE, CONFLICT, ABSENT = 0, 1, 2, 3
# How words can be marked, weakest first.
#
# They are marked by a tagger, a figure that may be calculated, different in the evidence, or absent
# from it.
_FACTS: tuple[FactKind, ...] = ("marked", "figure", "conflict", "absent")


def _fact_spans(check: ClaimCheck, answer: str) -> Iterator[tuple[TextSpan, int]]:
    """Yield the spans where the evidence contradicts the answer or lacks a figure or a quotation.

    Figures that may be calculated and words marked by a tagger are included with any verdict.
    """
    if (offset := check.claim.start) is None:
        return
    if check.verdict in ("contradicted", "unsupported"):
        # Uncovered words next to a contradiction are part of it.
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
        # If the claim was reworded, its offsets don't fit the answer, so the words are compared.
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
    """Count an answer's facts of this kind; one fact may be cut into several pieces."""
    return sum(is_one for is_one, _ in groupby(pieces, lambda piece: piece.get("fact") == kind))


def evidence_pieces(
    text: str, bearings: Sequence[Bearing], instructions: Sequence[TextSpan] = ()
) -> Iterator[EvidencePiece]:
    """Yield a chunk's text cut where claims bear on it or it gives orders.

    Spans must lie within it.
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
