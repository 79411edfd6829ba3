"""Grading, as a protocol: anyone who can judge an abstract against a question fills it.

What a grader returns has been through the rules: the prior is a floor (``max(score, prior)``) and the recommendation
follows from the written rules, never from the grader's mood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from masis.schema.audit import JudgedBy
from masis.schema.calls import Usage
from masis.schema.screening import Abstract, Grade


class Grader(Protocol):
    """Judges abstracts against a question."""

    @property
    def judged_by(self) -> JudgedBy:
        """Who judges, with the version of rules or prompt."""
        ...

    @property
    def usage(self) -> Usage:
        """Calls and tokens spent so far; all zero where no language model is involved."""
        ...

    def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple[Grade, ...]:
        """One grade for each abstract, in the same order. One that can't be graded is unscored, never left out."""
        ...
