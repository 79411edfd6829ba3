"""What the citations cost the critic's confidence (``specs/masis-critic.md``, Problems 3, 4 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from masis.schema.audit import Citation, CitationAudit, Sentence
from masis.steps.citations.records import trusted


def finished(
    mode: Literal["standard", "literal"],
    citations: Sequence[Citation],
    sentences: Sequence[Sentence],
    invalid_penalty: float,
    uncited_penalty: float,
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
    )
