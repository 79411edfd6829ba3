"""Minimal evidence: whether a claim's verdict changes once its deciding passages are removed."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from masis.schema.audit import ClaimCheck
from masis.schema.base import Record
from masis.schema.calls import Usage
from masis.schema.case import ClaimVerdict
from masis.schema.labels import LabelPassage, Stance

STANCE_OF_VERDICT: dict[str, Stance] = {
    "supported": "supports",
    "partial": "supports",
    "contradicted": "contradicts",
}
"""The stance of the passage that decides a verdict or label. Others rest on no passage."""


class MinimalEvidence(Record):
    """The verdicts on a claim with and without the passages that decide it.

    Both verdicts are by the verifier of the audit, with the audit's settings, on the claim alone.

    Attributes:
        iteration: The number of the iteration, from 1.
        claim: The number of the claim among those of the iteration, from 1.
        text: The claim, in the words of the answer.
        start: Offset in the answer, in characters; None for a claim without a place.
        end: Offset in the answer.
        passages: The passages that were removed.
        label_by: The reviewer whose label names the passages; "" if the audit named them.
        entry_id: The log entry with that label; "" if the audit named the passages.
        audited: The verdict of the audit.
        before: The verdict with all the evidence.
        after: The verdict without the passages.
        decisive: Whether the verdict changed, so that it rests on the passages.
        judged_by: The verifier of the second verdict.
        usage: Calls and tokens of both verdicts.
        by: The person who asked.
        at: The time, ISO 8601 in UTC.

    """

    case_id: str
    run_id: str
    iteration: int = Field(ge=1)
    claim: int = Field(ge=1)
    text: str
    start: int | None = None
    end: int | None = None
    passages: tuple[LabelPassage, ...] = Field(min_length=1)
    label_by: str = ""
    entry_id: str = ""
    audited: ClaimVerdict
    before: ClaimVerdict
    after: ClaimVerdict
    decisive: bool
    judged_by: str
    usage: Usage = Usage()
    by: str
    at: str


def audit_passages(check: ClaimCheck) -> tuple[LabelPassage, ...]:
    """Return the passages on which the audit's verdict rests: contradictions first, then quotes.

    A contradiction with the line that names a chunk's source has no place in the text, and is left
    out.
    """
    stance = STANCE_OF_VERDICT.get(check.verdict)
    if stance is None:
        return ()
    places = [(quote.evidence_id, quote.start, quote.end, quote.text) for quote in check.quotes]
    if stance == "contradicts":
        places = [
            *(
                (fact.evidence_id, fact.evidence_start, fact.evidence_end, fact.evidence_text)
                for fact in check.contradictions
            ),
            *places,
        ]
    return tuple(
        LabelPassage(evidence_id=evidence_id, start=start, end=end, text=text, stance=stance)
        for evidence_id, start, end, text in places
        if text and start >= 0 and end - start == len(text)
    )


def passages_in(
    evidence_id: str, text: str, passages: Iterable[LabelPassage]
) -> list[LabelPassage]:
    """Return the passages of a chunk whose words are at their place in its text."""
    return [
        passage
        for passage in passages
        if passage.evidence_id == evidence_id and text[passage.start : passage.end] == passage.text
    ]


def remove_passages(evidence_id: str, text: str, passages: Iterable[LabelPassage]) -> str:
    """Return the text of a chunk without the words of these passages.

    Words that would be joined are separated by a space. Passages of other chunks, and those whose
    words aren't at their place, have no effect.
    """
    kept, position = "", 0
    found = passages_in(evidence_id, text, passages)
    for passage in sorted(found, key=lambda passage: (passage.start, passage.end)):
        if passage.end > position:
            kept = _join(kept, text[position : max(position, passage.start)])
            position = passage.end
    return _join(kept, text[position:]) if position else text


def _join(before: str, after: str) -> str:
    glued = before and after and not before[-1].isspace() and not after[0].isspace()
    return f"{before} {after}" if glued else before + after
