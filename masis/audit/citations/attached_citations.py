"""Citations that came beside an answer: what they cover, what they name, and whether their quotes
stand there.

A quote counts as verbatim as a careful copyist may have written it
(``masis/audit/text/quotes.py``). What is not done here: no quote is checked against evidence
without text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from masis.audit.markers.resolution import NOTHING, EvidenceIds, Resolution
from masis.audit.sentences import SentenceUnit, split_sentences
from masis.audit.text.quotes import QuotePosition, locate_quote, located_parts
from masis.schema.audit import QuoteCheck
from masis.schema.case import Evidence, GivenCitation

MIN_SPLICE = 2
"""Words that each half of a spliced quote must have."""


def carry_over_citations(
    given: Sequence[GivenCitation], original: str, answer: str
) -> tuple[GivenCitation, ...]:
    """Return the citations of the original answer that a later one still carries, with their places
    in it.

    A citation is carried over where the sentences that it covers are unchanged: they stand in the
    later answer exactly once, word for word, and as sentences of their own.
    """
    if answer == original or not given:
        return tuple(given)
    units, later = split_sentences(original), split_sentences(answer)
    starts, ends = {unit.start for unit in later}, {unit.end for unit in later}
    carried = []
    for citation in given:
        covered = [number for number, _ in covered_units(citation, original, units)]
        if not covered:
            continue
        first = units[covered[0]].start
        sentences = original[first : units[covered[-1]].end]
        places = [
            at for at in starts if at + len(sentences) in ends and answer.startswith(sentences, at)
        ]
        if len(places) == 1:
            moved = places[0] - first
            carried.append(
                citation.model_copy(
                    update={"start": citation.start + moved, "end": citation.end + moved}
                )
            )
    return tuple(carried)


def resolve_citation(citation: GivenCitation, index: EvidenceIds) -> Resolution:
    """Return the evidence that a citation names: by its id, else as the source of one chunk."""
    found = index.resolve(citation.evidence_id)
    if found.evidence_id is None:
        sources = index.resolve_source(citation.evidence_id)
        found = Resolution(sources[0], "given") if len(sources) == 1 else NOTHING
    return Resolution(found.evidence_id, "given") if found.evidence_id is not None else NOTHING


def covered_units(
    citation: GivenCitation, answer: str, units: Sequence[SentenceUnit]
) -> Iterator[tuple[int, QuotePosition]]:
    """Yield the sentences that a citation covers, each with the stretch of it; a place alone covers
    the one before.
    """
    if not 0 <= citation.start <= citation.end <= len(answer):
        return
    if citation.start == citation.end:
        before = [
            number for number, unit in enumerate(units) if unit.start < max(citation.start, 1)
        ]
        if before:
            unit = units[before[-1]]
            yield before[-1], QuotePosition(unit.start, unit.end)
        return
    worded = any(map(str.isalnum, answer[citation.start : citation.end]))
    for number, unit in enumerate(units):
        start, end = max(citation.start, unit.start), min(citation.end, unit.end)
        if start < end and (not worded or any(map(str.isalnum, answer[start:end]))):
            yield number, QuotePosition(start, end)


def check_quote(
    citation: GivenCitation, evidence_id: str, evidence: Sequence[Evidence]
) -> QuoteCheck | None:
    """Return whether a citation's quote stands in the evidence it names; None where there is
    nothing to check.
    """
    text = next((chunk.text for chunk in evidence if chunk.id == evidence_id), "")
    if not citation.quote or not citation.quote.strip() or not text:
        return None
    place, found_in = locate_quote(citation.quote, text), None
    parts = located_parts(citation.quote, text)
    if place is not None and len(parts) == 1:
        finding = "verbatim"
    elif other := next(
        (c for c in evidence if c.id != evidence_id and _is_whole(citation.quote, c.text)), None
    ):
        finding, found_in, place = (
            "other_document",
            other.id,
            locate_quote(citation.quote, other.text),
        )
    elif place is not None or _is_spliced(citation.quote, text):
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
            "evidence_start": place.start if place else None,
            "evidence_end": place.end if place else None,
        }
    )


def _is_whole(quote: str, text: str) -> bool:
    return len(located_parts(quote, text)) == 1


def _is_spliced(quote: str, text: str) -> bool:
    """Return whether a quote is two stretches of the text put together: the longest beginning
    found, and the rest.
    """
    words = quote.split()
    low, high = 0, len(words)
    while low < high:  # a beginning that is found has only beginnings that are found
        middle = (low + high + 1) // 2
        if _is_whole(" ".join(words[:middle]), text):
            low = middle
        else:
            high = middle - 1
    return (
        low >= MIN_SPLICE
        and len(words) - low >= MIN_SPLICE
        and _is_whole(" ".join(words[low:]), text)
    )
