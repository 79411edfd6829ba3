"""The citation engine: grammar, resolution, sentences, exemptions, penalties. See ``docs/citations.md``."""

from masis.audit.citations.engine import COVERED_BY_LEAD_IN, audit_citations
from masis.audit.citations.given import placed

__all__ = ["COVERED_BY_LEAD_IN", "audit_citations", "placed"]
