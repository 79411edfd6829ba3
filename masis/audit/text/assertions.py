"""Which sentences of an answer assert something, and a stretch of one as a claim with its markers
and citations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from masis.audit.citations import CITATION_NEEDED, COVERED_BY_LEAD_IN
from masis.schema.audit import Citation, CitationAudit, Claim, Sentence

_ASKS_FOR_CITATION = re.compile(re.escape(CITATION_NEEDED), re.IGNORECASE)


def asserts(sentence: Sentence) -> bool:
    """Whether the sentence says something that evidence could support or contradict."""
    return sentence.status != "exempt" or sentence.why == COVERED_BY_LEAD_IN


def citations_by_sentence(audit: CitationAudit) -> Mapping[int, Sequence[Citation]]:
    """The references that stand in each sentence, by the sentence's number; none for
    one without.
    """
    inside: dict[int, list[Citation]] = defaultdict(list)
    for citation in audit.citations:
        if citation.sentence is not None:
            inside[citation.sentence].append(citation)
    return inside


def sentence_claims(audit: CitationAudit) -> tuple[Claim, ...]:
    """Return a claim for each sentence that asserts something, with what it cites."""
    inside = citations_by_sentence(audit)
    return tuple(
        claim_within(number, sentence.text, sentence.start, inside[number])
        for number, sentence in enumerate(audit.sentences)
        if asserts(sentence)
    )


def claim_within(
    number: int, text: str, start: int, inside: Sequence[Citation], statement: str = ""
) -> Claim:
    """A stretch of sentence ``number`` that begins at ``start`` as a claim.

    What the sentence cites counts as cited for each stretch of it: a marker at its end stands for
    the whole.
    """
    end = start + len(text)
    markers = dict.fromkeys(
        (max(citation.marker_start, start) - start, min(citation.marker_end, end) - start)
        for citation in inside
        if citation.marker_start < end and citation.marker_end > start
    )
    markers |= dict.fromkeys(found.span() for found in _ASKS_FOR_CITATION.finditer(text))
    return Claim(
        text=text,
        statement=statement,
        markers=tuple(markers),
        start=start,
        end=end,
        sentence=number,
        cited=tuple(dict.fromkeys(c.evidence_id for c in inside if c.evidence_id is not None)),
    )


def plain_claim(claim: Claim) -> str:
    """Return a claim's text without its markers."""
    text = claim.text
    for start, end in sorted(claim.markers, reverse=True):
        text = f"{text[:start].rstrip()}{text[end:]}"
    return text.strip()
