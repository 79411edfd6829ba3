"""A critic or a reviser compiled on labelled answers by one of DSPy's optimisers, and what that gained.

What is measured, is measured on answers to questions that nothing was learnt from. Every call goes through one model of
ours, so that its tokens are counted, a limit on cost holds, and a person can stop it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import dspy
import numpy as np

from masis import version
from masis.errors import ProviderFailed, StepError
from masis.integrations.dspy import labelled, metric, programs
from masis.integrations.dspy.agents import CONTEXT, CriticAgent, RevisionAgent
from masis.integrations.dspy.engine import Stopped
from masis.integrations.dspy.fenced import plain
from masis.integrations.dspy.labelled import Labelled, Parts, Role
from masis.integrations.dspy.optimisers import graded, inputs_of, optimised
from masis.integrations.dspy.quiet import QUIET
from masis.integrations.dspy.session import Plan, Session, Watched
from masis.llm.prompting import load
from masis.schema.base import utc_now
from masis.settings import Settings
from masis.steps.conduct import together

__all__ = ["Plan", "Session", "Stopped", "Watched", "agent_for", "compiled", "measured", "state_of"]

RESAMPLES = 2_000


def agent_for(role: Role, settings: Settings) -> Any:
    """An agent that nobody compiled yet, which asks whatever model the context names."""
    made = CriticAgent if role == "critic" else RevisionAgent
    return made(lm=CONTEXT, settings=settings)


def compiled(session: Session, parts: Parts) -> programs.Program:
    """The program, not yet saved (its version is 1), with what it gained on the held-out answers.

    Raises Stopped where a person or the limit on cost ended it, and MissingExtra where an optimiser lacks a package.
    """
    plan = session.plan
    train = labelled.shuffled(parts.train, plan.seed) if plan.shuffled else parts.train
    student = agent_for(plan.role, session.base)
    with QUIET, dspy.context(lm=session.lm, trace=[], disable_history=True):
        session.doing = "measuring what there is"
        before = measured(session, student, parts.held_out)
        session.doing = f"compiling with {plan.optimizer}"
        program = optimised(session, student, train)
        session.doing = "measuring what came of it"
        after = measured(session, program, parts.held_out)
    state = state_of(program)
    gains = [new - old for new, old in zip(after, before, strict=True)]
    gain, spent = _figure(gains, parts.held_out, plan.seed), session.usage
    return programs.Program(
        name=plan.name,
        version=1,
        role=plan.role,
        model=session.model_name,
        optimizer=plan.optimizer,
        settings=plan.settings(),
        data=programs.MadeFrom(
            source=plan.source,
            digest=labelled.digest((*parts.train, *parts.held_out)),
            train=len(parts.train),
            held_out=len(parts.held_out),
            seed=plan.seed,
            shuffled=plan.shuffled,
        ),
        metric=metric.NAME,
        before=_figure(before, parts.held_out, plan.seed),
        after=_figure(after, parts.held_out, plan.seed),
        gain=gain,
        improved=gain.low is not None and gain.low > 0,
        base_prompt=load(plan.role).version,
        made_at=utc_now(),
        masis=version.APP,
        dspy=dspy.__version__,
        calls=spent.calls,
        tokens=spent.prompt_tokens + spent.completion_tokens,
        cost_usd=spent.cost_usd,
        digest=programs.digest(state),
        state=state,
    )


def measured(session: Session, program: Any, cases: Sequence[Labelled]) -> list[float]:
    """What the program's work on each answer is worth; as many asked at once as the provider may be.

    Raises ProviderFailed where the model could not be asked: that says nothing about the program.
    """

    def worth(case: Labelled) -> Callable[[], float]:
        return lambda: _worth(session.plan.role, program, case)

    found: list[float] = []
    for start in range(0, len(cases), session.concurrency):
        for outcome in together([worth(case) for case in cases[start : start + session.concurrency]]):
            if isinstance(outcome, ProviderFailed):
                raise outcome
            found.append(0.0 if isinstance(outcome, StepError) else outcome)
    return found


def _worth(role: Role, program: Any, case: Labelled) -> float:
    prediction = program(**inputs_of(role, case))
    unscored = prediction.verdict.unscored if role == "critic" else None
    if unscored is not None and unscored.code == ProviderFailed.code:
        raise ProviderFailed(unscored.reason)
    return graded(role, case, prediction).score


def state_of(program: Any) -> dict[str, programs.Part]:
    """Instructions and demonstrations of a program, JSON-ready; nothing of the model it was compiled with."""
    state: dict[str, programs.Part] = {}
    for name, predictor in program.named_predictors():
        demos = tuple(
            {key: plain(value) for key, value in dict(demo.items()).items() if key != "augmented"}
            for demo in predictor.demos
        )
        state[name] = programs.Part(instructions=str(predictor.signature.instructions), demos=demos)
    return state


def _figure(values: Sequence[float], cases: Sequence[Labelled], seed: int) -> programs.Measured:
    """The mean with its 95% interval from resampling questions."""
    by_question: dict[str, list[float]] = {}
    for case, value in zip(cases, values, strict=True):
        by_question.setdefault(case.query, []).append(value)
    members = [np.array(each) for each in by_question.values()]
    draws = np.random.default_rng(seed)
    means = [
        float(np.concatenate([members[at] for at in draws.integers(0, len(members), len(members))]).mean())
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(means, (2.5, 97.5))
    return programs.Measured(
        mean=round(fmean(values), 4), low=round(float(low), 4), high=round(float(high), 4), answers=len(values)
    )
