"""The agents in the roles that the loop asks for, within one run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy

from masis.integrations.dspy.agents import CriticAgent, RevisionAgent
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.steps.conduct import Conduct
from masis.steps.context import AuditContext
from masis.steps.critique import CritiqueJudgement


@dataclass(frozen=True)
class DspyCritic:
    """A ``CriticAgent`` as the critic of a run; ``lm`` the model it asks there.

    ``traced``: DSPy may keep what is asked and replied for an optimiser. In an audit nobody reads it, and it would be
    kept as long as the process lives.
    """

    agent: CriticAgent
    lm: Any
    conduct: Conduct
    judged_by: JudgedBy
    traced: bool = True

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """The agent's judgement."""
        with _tracing(self.traced):
            return self.agent.judge(context, self.conduct, self.lm)


@dataclass(frozen=True)
class DspyReviser:
    """A ``RevisionAgent`` as the reviser of a run."""

    agent: RevisionAgent
    lm: Any
    conduct: Conduct
    judged_by: JudgedBy
    traced: bool = True

    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        """The agent's revision. Raises StepError where there is none."""
        with _tracing(self.traced):
            made = self.agent.revise(context, critique, issues, self.conduct, self.lm)
        return made.model_copy(update={"judged_by": self.judged_by})


def _tracing(wanted: bool) -> AbstractContextManager[None]:
    return nullcontext() if wanted else dspy.context(trace=None)
