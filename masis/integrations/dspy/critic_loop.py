"""``MultiAgentCriticLoop``: the loop of every audit, with a ``CriticAgent`` and a ``RevisionAgent`` in their roles.

There is one order of steps, ``masis.audit.loop``'s (REQ-CRITIC-015 to -020): citations and claims are checked,
penalties laid on and the best answer chosen as in any audit. Wrapped as a module (REQ-CRITIC-029), so that an optimiser
reaches both agents through it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dspy
from pydantic import ValidationError

from masis.api.roles import build_roles
from masis.audit import loop
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.run_control import RunControl
from masis.errors import SettingsError
from masis.integrations.dspy.agents import Agent, Chunks, CriticAgent, RevisionAgent
from masis.integrations.dspy.contracts import CriticLoopOutput, evidence_of
from masis.observers.observation import run_to_completion
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.schema.case import Case
from masis.schema.run import Event, Run
from masis.settings import OFFLINE, Settings

A = TypeVar("A", bound=Agent)


@dataclass(frozen=True)
class _InRun(Generic[A]):
    """An agent in its role within one run; ``lm`` is the model it asks there."""

    agent: A
    lm: Any
    control: RunControl

    @property
    def judged_by(self) -> JudgedBy:
        """The agent's model and version."""
        return self.agent.judged_by


class _Critic(_InRun[CriticAgent]):
    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        return self.agent.judge(context, self.control, self.lm)


class _Reviser(_InRun[RevisionAgent]):
    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        return self.agent.revise(context, critique, issues, self.control, self.lm)


class MultiAgentCriticLoop(dspy.Module):
    """Improves an answer until it converges; the best one counts.

    ``settings`` rules the rest: who verifies claims (offline by default), the penalties, the deadlines.
    Raises SettingsError for ``max_iterations`` outside 1 to 5.
    """

    def __init__(
        self,
        critic_agent: CriticAgent,
        revision_agent: RevisionAgent,
        max_iterations: int = 3,
        improvement_threshold: float = 0.05,
        *,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.critic_agent, self.revision_agent = critic_agent, revision_agent
        self.max_iterations, self.improvement_threshold = max_iterations, improvement_threshold
        self.settings = (settings or Settings(evaluate="never")).model_copy(
            update={"critic": OFFLINE, "reviser": OFFLINE}
        )
        self._settings(max_iterations, improvement_threshold)

    def forward(
        self,
        initial_answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        max_iterations: int | None = None,
        improvement_threshold: float | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Any:
        """The fields of ``CriticLoopOutput``, and ``run``, the whole audit behind them.

        A failure of an agent ends the loop with the best answer so far and ``termination_reason`` "error", never with
        an exception (REQ-CRITIC-030, 031). Raises InputError for evidence that is none.
        """
        settings = self._settings(max_iterations, improvement_threshold)
        case = _case(initial_answer, original_query, evidence_chunks, reasoning_steps)
        return _prediction(self._run(case, settings, on_event, lambda: False))

    async def aforward(
        self,
        initial_answer: str,
        original_query: str,
        evidence_chunks: Chunks,
        reasoning_steps: Iterable[str] | None = None,
        max_iterations: int | None = None,
        improvement_threshold: float | None = None,
    ) -> Any:
        """``forward``, awaited: the loop runs on a thread of its own, and stops where the task is cancelled."""
        settings = self._settings(max_iterations, improvement_threshold)
        case = _case(initial_answer, original_query, evidence_chunks, reasoning_steps)
        stop = threading.Event()
        try:
            return _prediction(await asyncio.to_thread(self._run, case, settings, None, stop.is_set))
        finally:
            stop.set()

    def _settings(self, max_iterations: int | None, improvement_threshold: float | None) -> Settings:
        most = self.max_iterations if max_iterations is None else max_iterations
        least = self.improvement_threshold if improvement_threshold is None else improvement_threshold
        limits = {"max_iterations": most, "improvement_threshold": least}
        try:
            return Settings.model_validate(self.settings.model_dump() | limits)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(f"{first['loc'][0]}: {first['msg']} (got {first['input']!r})") from None

    def _run(
        self,
        case: Case,
        settings: Settings,
        on_event: Callable[[Event], None] | None,
        cancelled: Callable[[], bool],
    ) -> Run:
        return run_to_completion(
            loop.audit(
                case,
                self._roles(settings),
                settings,
                run_id=loop.new_run_id(),
                case_digest=case.digest(),
                cancelled=cancelled,
            ),
            on_event,
        )

    def _roles(self, settings: Settings) -> loop.Roles:
        roles = build_roles(settings)
        control, critic, reviser = roles.control, self.critic_agent, self.revision_agent
        return dataclasses.replace(
            roles,
            critic=_Critic(critic, critic.for_run(control), control),
            reviser=_Reviser(reviser, reviser.for_run(control), control),
            models=roles.models | {"critic": critic.judged_by.model, "reviser": reviser.judged_by.model},
            prompts=roles.prompts | {"critic": critic.version, "reviser": reviser.version},
            waits=True,
        )


def _case(answer: str, query: str, chunks: Chunks, steps: Iterable[str] | None) -> Case:
    return Case(
        id="dspy",
        query=query,
        answer=answer,
        evidence=evidence_of(chunks),
        reasoning_steps=tuple(steps or ()),
    )


def _prediction(run: Run) -> Any:
    output = CriticLoopOutput.model_validate(run, from_attributes=True)
    return dspy.Prediction(**{name: getattr(output, name) for name in CriticLoopOutput.model_fields}, run=run)
