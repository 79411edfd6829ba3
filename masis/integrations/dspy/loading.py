"""From a compiled program back to the agent it is a program of."""

from __future__ import annotations

from typing import Any

from masis.errors import InputError
from masis.integrations.dspy.agents import CONTEXT, CriticAgent, RevisionAgent
from masis.integrations.dspy.fenced import check_demonstrations
from masis.integrations.dspy.programs import Program
from masis.settings import Settings


def agent_of(program: Program, settings: Settings) -> Any:
    """The agent with the program's instructions and demonstrations, asking whatever model it is given.

    Raises InputError for a program of an agent with other parts, or with demonstrations that show no case.
    """
    made = CriticAgent if program.role == "critic" else RevisionAgent
    agent = made(lm=CONTEXT, settings=settings)
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
