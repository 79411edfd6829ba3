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
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
from pydantic import ValidationError

from masis.api.roles import build_roles
from masis.audit import loop
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement
from masis.audit.run_control import RunControl
from masis.errors import InputError, SettingsError
from masis.integrations.dspy.agents import CONTEXT, Chunks, CriticAgent, RevisionAgent
from masis.integrations.dspy.contracts import evidence_of, loop_output_of
from masis.integrations.dspy.fenced import check_demonstrations
from masis.integrations.dspy.programs import Program
from masis.observers.observation import run_to_completion
from masis.schema.audit import Critique, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.schema.case import Case
from masis.schema.run import Event, Run
from masis.settings import OFFLINE, Settings

# The agents in the roles that the loop asks for, within one run.


@dataclass(frozen=True)
class DspyCritic:
    """A ``CriticAgent`` as the critic of a run; ``lm`` the model it asks there.

    ``traced``: DSPy may keep what is asked and replied for an optimiser. In an audit nobody reads it, and it would be
    kept as long as the process lives.
    """

    agent: CriticAgent
    lm: Any
    control: RunControl
    judged_by: JudgedBy
    traced: bool = True

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """The agent's judgement."""
        with _tracing(self.traced):
            return self.agent.judge(context, self.control, self.lm)


@dataclass(frozen=True)
class DspyReviser:
    """A ``RevisionAgent`` as the reviser of a run."""

    agent: RevisionAgent
    lm: Any
    control: RunControl
    judged_by: JudgedBy
    traced: bool = True

    def revise(self, context: AuditContext, critique: Critique, issues: Sequence[Issue]) -> Revision:
        """The agent's revision. Raises StepError where there is none."""
        with _tracing(self.traced):
            made = self.agent.revise(context, critique, issues, self.control, self.lm)
        return made.model_copy(update={"judged_by": self.judged_by})


def _tracing(wanted: bool) -> AbstractContextManager[None]:
    return nullcontext() if wanted else dspy.context(trace=None)


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
            critic=DspyCritic(critic, critic.for_run(control), control, critic.judged_by),
            reviser=DspyReviser(reviser, reviser.for_run(control), control, reviser.judged_by),
            models=roles.models | {"critic": critic.model, "reviser": reviser.model},
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
    output = loop_output_of(run)
    return dspy.Prediction(**{name: getattr(output, name) for name in type(output).model_fields}, run=run)


# From a compiled program back to the agent it is a program of.


def agent_of(program: Program, settings: Settings) -> Any:
    """Return the agent of a compiled program, with its instructions and demonstrations, for any model.

    Raises InputError for a program of an agent with other parts, or with demonstrations that show no case.
    """
    kind = CriticAgent if program.role == "critic" else RevisionAgent
    agent = kind(lm=CONTEXT, settings=settings)
    agent.version = program.recorded
    parts = dict(agent.named_predictors())
    if set(parts) != set(program.state):
        raise InputError(f"{program.string} has other parts than this version's {program.role}", cure="Compile again.")
    for name, predictor in parts.items():
        part = program.state[name]
        predictor.signature = predictor.signature.with_instructions(part.instructions)
        predictor.demos = [dict(demo) for demo in part.demos]
        check_demonstrations(predictor.signature, predictor.demos)
    agent._compiled = True
    return agent
