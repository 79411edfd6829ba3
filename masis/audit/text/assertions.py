"""Finds the sentences of an answer that assert something, and turns parts of them into claims."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from masis.audit.citations import CITATION_NEEDED, COVERED_BY_LEAD_IN
from masis.schema.audit import Citation, CitationAudit, Claim, Sentence

_CITATION_NEEDED_TAG = re.compile(re.escape(CITATION_NEEDED), re.IGNORECASE)


def is_assertion(sentence: Sentence) -> bool:
    """Return whether the sentence says something that evidence could support or contradict."""
    return sentence.status != "exempt" or sentence.why == COVERED_BY_LEAD_IN


def citations_by_sentence(audit: CitationAudit) -> Mapping[int, Sequence[Citation]]:
    """Return the citations in each sentence, by the sentence's number."""
    citations: dict[int, list[Citation]] = defaultdict(list)
    for citation in audit.citations:
        if citation.sentence is not None:
            citations[citation.sentence].append(citation)
    return citations


def sentence_claims(audit: CitationAudit) -> tuple[Claim, ...]:
    """Return a claim for each sentence that asserts something, with its citations."""
    citations = citations_by_sentence(audit)
    return tuple(
        claim_within(number, sentence.text, sentence.start, citations[number])
        for number, sentence in enumerate(audit.sentences)
        if is_assertion(sentence)
    )


def claim_within(
    number: int, text: str, start: int, citations: Sequence[Citation], statement: str = ""
) -> Claim:
    """Return a part of sentence ``number`` that begins at ``start`` as a claim.

    The citations of the sentence count for each part of it, because a marker at its end covers the
    whole sentence.
    """
    end = start + len(text)
    markers = dict.fromkeys(
        (max(citation.marker_start, start) - start, min(citation.marker_end, end) - start)
        for citation in citations
        if citation.marker_start < end and citation.marker_end > start
    )
    markers |= dict.fromkeys(match.span() for match in _CITATION_NEEDED_TAG.finditer(text))
    return Claim(
        text=text,
        statement=statement,
        markers=tuple(markers),
        start=start,
        end=end,
        sentence=number,
        cited=tuple(
            dict.fromkeys(
                citation.evidence_id for citation in citations if citation.evidence_id is not None
            )
        ),
    )


def plain_claim(claim: Claim) -> str:
    """Return a claim's text without its markers."""
    text = claim.text
    for start, end in sorted(claim.markers, reverse=True):
        text = f"{text[:start].rstrip()}{text[end:]}"
    return text.strip()
