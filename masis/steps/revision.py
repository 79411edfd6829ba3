"""Revision: a better answer, saying what was changed and why (``specs/critic-loop.md``, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from masis.schema.audit import Critique, Issue, Revision
from masis.steps.context import AuditContext


class Reviser(Protocol):
    """Improves an answer on the issues found, keeping what was right."""

    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        """A revision; equal to the answer where nothing can be improved. Raises StepError on failure."""
        ...
