"""The citation engine: references, sentences, exemptions and penalties.

Users read about it in ``docs/audits.md``.
"""

from masis.audit.citations.attached_citations import carry_over_citations
from masis.audit.citations.engine import COVERED_BY_LEAD_IN, audit_citations
from masis.audit.markers import CITATION_NEEDED

__all__ = ["CITATION_NEEDED", "COVERED_BY_LEAD_IN", "audit_citations", "carry_over_citations"]
