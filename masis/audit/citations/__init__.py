"""The citation engine: grammar, resolution, sentences, exemptions, penalties. See ``docs/audits.md``."""

from masis.audit.citations.engine import COVERED_BY_LEAD_IN, audit_citations
from masis.audit.citations.given import placed
from masis.audit.citations.grammar import CITATION_NEEDED

__all__ = ["CITATION_NEEDED", "COVERED_BY_LEAD_IN", "audit_citations", "placed"]
