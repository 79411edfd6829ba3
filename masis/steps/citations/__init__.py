"""The citation engine: grammar, resolution, sentences, exemptions, penalties. See ``docs/citations.md``."""

from masis.steps.citations.audit import audit_citations

__all__ = ["audit_citations"]
