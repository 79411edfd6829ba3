"""Drafting: an answer for a case that came without one. The role alone; there is no rule in code around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from masis.schema.audit import Draft
from masis.schema.case import Evidence


class Drafter(Protocol):
    """Writes an answer from the evidence, citing it by id."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """An answer whose every assertion cites the chunk that bears it. Raises StepError where none can be had."""
        ...
