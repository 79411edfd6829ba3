"""The input of every role in one iteration."""

from __future__ import annotations

from dataclasses import dataclass

from masis.schema.audit import CitationAudit, ClaimCheck, Issue, MissingPoint
from masis.schema.case import Evidence


@dataclass(frozen=True, slots=True)
class AuditContext:
    """One answer with all results about it so far.

    ``issues`` has those of citations and claims. The critic's issues are added after the critique.
    """

    query: str
    answer: str
    evidence: tuple[Evidence, ...]
    citation_audit: CitationAudit
    claims: tuple[ClaimCheck, ...]
    missing: tuple[MissingPoint, ...]
    issues: tuple[Issue, ...]
    iteration_number: int
    reasoning_steps: tuple[str, ...] = ()
