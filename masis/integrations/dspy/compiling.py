"""Compiles a critic or a reviser on labelled answers with one of DSPy's optimizers, and measures
the gain.

The gain is measured on held-out questions. All calls share the session's control, so that tokens
are counted, the cost limit applies, and a person can stop the compilation.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import dspy
import numpy as np
import tqdm

from masis import version
from masis.audit.control.concurrency import run_concurrently
from masis.audit.control.run_control import RunControl
from masis.bench.metrics import MetricEstimate, Resamples
from masis.errors import MissingExtra, ProviderFailed, SettingsError, StepError
from masis.integrations.dspy import labelled, metric, programs
from masis.integrations.dspy.agents import (
    CONTEXT,
    CriticAgent,
    OptimizationStopped,
    RevisionAgent,
    language_model,
)
from masis.integrations.dspy.labelled import LabelledAnswer, TrainTestSplit
from masis.integrations.dspy.plugin import plain
from masis.integrations.dspy.programs import Plan, Role
from masis.llm import registry
from masis.llm.roles.prompting import load
from masis.schema.base import utc_now
from masis.schema.calls import Usage
from masis.settings import Settings


@dataclass
class Session:
    """One compilation, with its models and its usage.

    Before each call, ``watch`` receives the current step and the usage so far.
    """

    plan: Plan
    base: Settings
    stopping: Callable[[], bool] = lambda: False
    watch: Callable[[str, Usage], None] = lambda doing, spent: None
    doing: str = ""
    control: RunControl = field(default_factory=RunControl)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _running: int = 0

    def __post_init__(self) -> None:
        self.base = self.base.model_copy(
            update={"call_deadline_s": max(self.base.call_deadline_s, 60.0)}
        )
        self.control.budget.call_s = self.base.call_deadline_s
        model = registry.model_in_role(self.plan.model, self.plan.role, self.control, self.base)
        if self.plan.max_cost is not None and model.price is None:
            raise SettingsError(
                f"--max-cost: no price is known for {model.name}. Give one in masis.toml."
            )
        self.model_name, self.lm = model.name, self._lm(model, CriticAgent.temperature)
        writer = registry.model_in_role(
            self.plan.teacher or self.plan.model, self.plan.role, self.control, self.base
        )
        self.teacher_lm = (
            self._lm(writer, CriticAgent.temperature) if self.plan.teacher else self.lm
        )
        self.writer_lm = self._lm(writer, 1.0)
        self.concurrency = max(1, model.limiter.maximum)

    def _lm(self, model: Any, temperature: float) -> Any:
        recorded = f"{load(self.plan.role).version} compiled by {self.plan.optimizer}"
        return language_model(model, recorded, temperature=temperature, turn=self._turn)

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return Usage.of(self.control.calls.since())

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Make one call unless the compilation was stopped or the cost limit is reached.

        Calls in progress count with the mean cost of the calls so far. Raises OptimizationStopped.
        """
        with self._lock:
            usage = self.usage
            self.watch(self.doing, usage)
            if self.stopping():
                self.control.cancellation.cancel()
                raise OptimizationStopped("a person asked to stop")
            soon = (usage.cost_usd or 0.0) * (1 + self._running / max(1, usage.calls))
            if self.plan.max_cost is not None and soon >= self.plan.max_cost:
                raise OptimizationStopped(f"the limit of ${self.plan.max_cost:g} is reached")
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


class _Silent(tqdm.tqdm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"disable": True}))


_ALONE = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the optimizers' progress bars and banners, because stdout is for data.

    This replaces attributes of the whole process, so only one session can run at a time.
    """
    gepa_engine: Any = importlib.import_module("gepa.core.engine")
    log = logging.getLogger("dspy")
    with _ALONE, contextlib.ExitStack() as undo, contextlib.redirect_stdout(io.StringIO()):
        undo.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        for module in (tqdm, gepa_engine):
            undo.callback(setattr, module, "tqdm", tqdm.tqdm)
        tqdm.tqdm = gepa_engine.tqdm = _Silent
        yield


def grade_prediction(role: Role, case: LabelledAnswer, prediction: Any) -> metric.GradedPrediction:
    """Score a prediction against the labels."""
    if role == "critic":
        unscored = getattr(prediction, "unscored", "no critique")
        return metric.of_critique(case, getattr(prediction, "critic_issues", ()), unscored)
    return metric.of_revision(case, getattr(prediction, "revised_answer", None))


def inputs_of(role: Role, case: LabelledAnswer) -> dict[str, Any]:
    """Return the agent's arguments for a labelled answer."""
    shared = {"original_query": case.query, "evidence_chunks": list(case.evidence)}
    if role == "critic":
        return {**shared, "answer": case.answer, "reasoning_steps": list(case.reasoning_steps)}
    issues = [
        {"severity": fault.severity, "type": fault.kind, "quote": fault.words or None}
        | dict.fromkeys(("description", "reason"), fault.description)
        for fault in case.expected
    ]
    critique = {"issues": issues, "critique_reasoning": ""}
    return {**shared, "original_answer": case.answer, "critique": critique}


def optimize(session: Session, student: Any, cases: Sequence[LabelledAnswer]) -> Any:
    """Compile the student with the plan's optimizer.

    Raises OptimizationStopped, and MissingExtra if the optimizer needs another package.
    """
    plan = session.plan
    rows = [(case, inputs_of(plan.role, case)) for case in cases]
    examples = [dspy.Example(**inputs, labelled=case).with_inputs(*inputs) for case, inputs in rows]

    def score(example: Any, prediction: Any, trace: Any = None) -> float:
        return grade_prediction(plan.role, example.labelled, prediction).score

    def with_feedback(
        example: Any, prediction: Any, trace: Any = None, name: Any = None, step: Any = None
    ) -> Any:
        grade = grade_prediction(plan.role, example.labelled, prediction)
        return dspy.Prediction(score=grade.score, feedback=grade.feedback)

    bootstrap = {
        "metric": score,
        "metric_threshold": plan.accept,
        "max_bootstrapped_demos": plan.most_demonstrations,
        "max_labeled_demos": 0,
        "max_errors": len(examples) + 1,
    }
    if plan.optimizer == "bootstrap":
        teacher = {} if session.teacher_lm is session.lm else {"lm": session.teacher_lm}
        return dspy.BootstrapFewShot(teacher_settings=teacher, **bootstrap).compile(
            student, trainset=examples
        )
    # The optimizer writes instructions from one half, and chooses among them by the other.
    random.Random(plan.seed).shuffle(examples)
    cut = max(1, len(examples) // 2)
    halves = {"trainset": examples[:cut], "valset": examples[cut:] or examples[:cut]}
    if plan.optimizer == "gepa":
        gepa = dspy.GEPA(
            metric=with_feedback,
            max_full_evals=plan.trials,
            reflection_lm=session.writer_lm,
            num_threads=session.concurrency,
            seed=plan.seed,
            warn_on_score_mismatch=False,
        )
        return gepa.compile(student, **halves)
    mipro = dspy.MIPROv2(
        prompt_model=session.writer_lm,
        task_model=session.lm,
        auto=None,
        num_candidates=max(2, plan.trials // 2),
        num_threads=session.concurrency,
        seed=plan.seed,
        **bootstrap,
    )
    try:
        return mipro.compile(
            student, **halves, num_trials=plan.trials, minibatch=False, program_aware_proposer=False
        )
    except ImportError as error:
        raise MissingExtra(
            f"MIPROv2 needs another package: pip install 'dspy[optuna]' ({error})"
        ) from error


RESAMPLES = 2_000


def compile_program(session: Session, parts: TrainTestSplit) -> programs.Program:
    """Compile a program and measure its gain on the held-out answers, without saving it.

    Its version is 1. Raises OptimizationStopped if a person or the cost limit stopped it, and
    MissingExtra if the optimizer needs another package.
    """
    plan = session.plan
    train = labelled.shuffle_labels(parts.train, plan.seed) if plan.shuffled else parts.train
    student = (CriticAgent if plan.role == "critic" else RevisionAgent)(
        lm=CONTEXT, settings=session.base
    )
    with _quiet(), dspy.context(lm=session.lm, trace=[], disable_history=True):
        session.doing = "measuring the uncompiled program"
        before = measure_program(session, student, parts.held_out)
        session.doing = f"compiling with {plan.optimizer}"
        program = optimize(session, student, train)
        session.doing = "measuring the compiled program"
        after = measure_program(session, program, parts.held_out)
    state = state_of(program)
    gains = [
        score_after - score_before for score_after, score_before in zip(after, before, strict=True)
    ]
    gain, usage = _mean_with_interval(gains, parts.held_out, plan.seed), session.usage
    return programs.Program(
        **(plan.model_dump() | {"model": session.model_name}),
        version=1,
        data=programs.MadeFrom(
            digest=labelled.digest((*parts.train, *parts.held_out)),
            train=len(parts.train),
            held_out=len(parts.held_out),
        ),
        metric=metric.NAME,
        before=_mean_with_interval(before, parts.held_out, plan.seed),
        after=_mean_with_interval(after, parts.held_out, plan.seed),
        gain=gain,
        improved=gain.low is not None and gain.low > 0,
        base_prompt=load(plan.role).version,
        made_at=utc_now(),
        masis=version.APP,
        dspy=dspy.__version__,
        calls=usage.calls,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        cost_usd=usage.cost_usd,
        digest=programs.digest(state),
        state=state,
    )


def measure_program(session: Session, program: Any, cases: Sequence[LabelledAnswer]) -> list[float]:
    """Score the program on each answer, with as many calls at once as the provider allows.

    Raises ProviderFailed if the model can't be called, because a score of 0 would blame the
    program.
    """
    role = session.plan.role

    def score(case: LabelledAnswer) -> float:
        prediction = program(**inputs_of(role, case))
        unscored = prediction.verdict.unscored if role == "critic" else None
        if unscored is not None and unscored.code == ProviderFailed.code:
            raise ProviderFailed(unscored.reason)
        return grade_prediction(role, case, prediction).score

    scores: list[float] = []
    for start in range(0, len(cases), session.concurrency):
        tasks = [partial(score, case) for case in cases[start : start + session.concurrency]]
        for outcome in run_concurrently(tasks):
            if isinstance(outcome, ProviderFailed):
                raise outcome
            scores.append(0.0 if isinstance(outcome, StepError) else outcome)
    return scores


def state_of(program: Any) -> dict[str, programs.Predictor]:
    """Return a program's instructions and demonstrations as JSON types, without its model."""
    state: dict[str, programs.Predictor] = {}
    for name, predictor in program.named_predictors():
        demos = tuple(
            {key: plain(value) for key, value in dict(demo.items()).items() if key != "augmented"}
            for demo in predictor.demos
        )
        state[name] = programs.Predictor(
            instructions=str(predictor.signature.instructions), demos=demos
        )
    return state


def _mean_with_interval(
    values: Sequence[float], cases: Sequence[LabelledAnswer], seed: int
) -> programs.HeldOutScore:
    """Return the mean with its 95% interval from resampling questions."""
    resamples = Resamples([case.query for case in cases], RESAMPLES, seed)
    means = [
        float(np.average(values, weights=drawn[resamples.member])) for drawn in resamples.weights
    ]
    estimate = MetricEstimate.of(fmean(values), means)
    return programs.HeldOutScore(
        mean=estimate.value or 0.0, low=estimate.low, high=estimate.high, answers=len(values)
    )
