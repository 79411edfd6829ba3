"""Checks citations that are attached to an answer instead of written in it.

APIs with grounded answers return a span of the answer, the evidence and often a quote. A
quote counts as verbatim despite differences in quotation marks, spaces and the like
(``masis/audit/text/quotes.py``). Quotes aren't checked against evidence without text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from masis.audit.markers.resolution import NOTHING, EvidenceIds, Resolution
from masis.audit.sentences import SentenceUnit, split_sentences
from masis.audit.text.quotes import QuotePosition, locate_quote, located_parts
from masis.schema.audit import QuoteCheck
from masis.schema.case import Evidence, GivenCitation

MIN_WORDS_PER_HALF = 2
"""The number of words that each half of a spliced quote must have."""


def carry_over_citations(
    citations: Sequence[GivenCitation], original: str, answer: str
) -> tuple[GivenCitation, ...]:
    """Return the citations of the original answer that still hold for a later answer.

    A citation does if the sentences that it covers are unchanged: they occur in the later answer
    exactly once, word for word, and as sentences of their own. Otherwise it would be attached to
    words that its author never cited.

    Args:
        citations: The citations of the original answer.
        original: The original answer.
        answer: The later answer; the positions of the result are those in it.

    """
    if answer == original or not citations:
        return tuple(citations)
    units, later_units = split_sentences(original), split_sentences(answer)
    starts, ends = {unit.start for unit in later_units}, {unit.end for unit in later_units}
    carried_citations = []
    for citation in citations:
        covered = [number for number, _ in covered_units(citation, original, units)]
        if not covered:
            continue
        first = units[covered[0]].start
        sentences = original[first : units[covered[-1]].end]
        matching_starts = [
            start
            for start in starts
            if start + len(sentences) in ends and answer.startswith(sentences, start)
        ]
        if len(matching_starts) == 1:
            offset = matching_starts[0] - first
            carried_citations.append(
                citation.model_copy(
                    update={"start": citation.start + offset, "end": citation.end + offset}
                )
            )
    return tuple(carried_citations)


def resolve_citation(citation: GivenCitation, index: EvidenceIds) -> Resolution:
    """Return the evidence that a citation names: by its id, or by a source that one chunk has."""
    resolution = index.resolve(citation.evidence_id)
    if resolution.evidence_id is None:
        sources = index.resolve_source(citation.evidence_id)
        resolution = Resolution(sources[0], "given") if len(sources) == 1 else NOTHING
    return (
        Resolution(resolution.evidence_id, "given")
        if resolution.evidence_id is not None
        else NOTHING
    )


def covered_units(
    citation: GivenCitation, answer: str, units: Sequence[SentenceUnit]
) -> Iterator[tuple[int, QuotePosition]]:
    """Yield the number of each sentence that a citation covers, with the covered part.

    A citation of length zero covers the sentence before it, as a marker would. A part without
    letters and digits, such as the stop of the next sentence, isn't covered.
    """
    if not 0 <= citation.start <= citation.end <= len(answer):
        return
    if citation.start == citation.end:
        preceding = [
            number for number, unit in enumerate(units) if unit.start < max(citation.start, 1)
        ]
        if preceding:
            unit = units[preceding[-1]]
            yield preceding[-1], QuotePosition(unit.start, unit.end)
        return
    has_words = any(map(str.isalnum, answer[citation.start : citation.end]))
    for number, unit in enumerate(units):
        start, end = max(citation.start, unit.start), min(citation.end, unit.end)
        if start < end and (not has_words or any(map(str.isalnum, answer[start:end]))):
            yield number, QuotePosition(start, end)


def check_quote(
    citation: GivenCitation, evidence_id: str, evidence: Sequence[Evidence]
) -> QuoteCheck | None:
    """Check whether the quote of a citation is in the evidence that it names.

    The result is None if there is no quote or the evidence has no text.
    """
    text = next((chunk.text for chunk in evidence if chunk.id == evidence_id), "")
    if not citation.quote or not citation.quote.strip() or not text:
        return None
    position, found_in = locate_quote(citation.quote, text), None
    # A quote with "[...]" has several parts, so it may be found in the text and still be spliced.
    parts = located_parts(citation.quote, text)
    if position is not None and len(parts) == 1:
        finding = "verbatim"
    elif other_chunk := next(
        (
            chunk
            for chunk in evidence
            if chunk.id != evidence_id and _is_contiguous(citation.quote, chunk.text)
        ),
        None,
    ):
        finding, found_in, position = (
            "other_document",
            other_chunk.id,
            locate_quote(citation.quote, other_chunk.text),
        )
    elif position is not None or _is_spliced(citation.quote, text):
        finding = "spliced"
    else:
        finding = "fabricated"
    return QuoteCheck.model_validate(
        {
            "start": citation.start,
            "end": citation.end,
            "evidence_id": evidence_id,
            "quote": citation.quote,
            "finding": finding,
            "found_in": found_in,
            "evidence_start": position.start if position else None,
            "evidence_end": position.end if position else None,
        }
    )


def _is_contiguous(quote: str, text: str) -> bool:
    return len(located_parts(quote, text)) == 1


def _is_spliced(quote: str, text: str) -> bool:
    """Return whether the text has the quote in two parts.

    The first part is the longest beginning of the quote that is in the text; the second is the
    rest.
    """
    words = quote.split()
    low, high = 0, len(words)
    # A text that has a passage also has every prefix of the passage, so binary search works.
    while low < high:
        middle = (low + high + 1) // 2
        if _is_contiguous(" ".join(words[:middle]), text):
            low = middle
        else:
            high = middle - 1
    return (
        low >= MIN_WORDS_PER_HALF
        and len(words) - low >= MIN_WORDS_PER_HALF
        and _is_contiguous(" ".join(words[low:]), text)
    )
