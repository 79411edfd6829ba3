"""DSPy's optimisers at work on our agents: how each is asked, and what it is told a reply is worth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import dspy

from masis.errors import MissingExtra
from masis.integrations.dspy import labelled, metric
from masis.integrations.dspy.labelled import Labelled, Role
from masis.integrations.dspy.session import Session


def graded(role: Role, case: Labelled, prediction: Any) -> metric.Graded:
    """A prediction beside what was labelled."""
    if role == "critic":
        unscored = getattr(prediction, "unscored", "no critique")
        return metric.of_critique(case, getattr(prediction, "objections", ()), unscored)
    return metric.of_revision(case, getattr(prediction, "revised_answer", None))


def inputs_of(role: Role, case: Labelled) -> dict[str, Any]:
    """What the agent is given of a labelled answer."""
    shared = {"original_query": case.query, "evidence_chunks": list(case.evidence)}
    if role == "critic":
        return {**shared, "answer": case.answer, "reasoning_steps": list(case.reasoning_steps)}
    told = labelled.reviser_inputs(case)
    critique = {"issues": told["issues"], "critique_reasoning": ""}
    return {**shared, "original_answer": case.answer, "critique": critique}


def _example(role: Role, case: Labelled) -> Any:
    inputs = inputs_of(role, case)
    return dspy.Example(**inputs, labelled=case).with_inputs(*inputs)


def optimised(session: Session, student: Any, cases: Sequence[Labelled]) -> Any:
    """The program that the optimiser of the plan makes of the student. Raises Stopped and MissingExtra."""
    plan, examples = session.plan, [_example(session.plan.role, case) for case in cases]

    def score(example: Any, prediction: Any, trace: Any = None) -> float:
        return graded(plan.role, example.labelled, prediction).score

    def with_feedback(example: Any, prediction: Any, trace: Any = None, name: Any = None, step: Any = None) -> Any:
        found = graded(plan.role, example.labelled, prediction)
        return dspy.Prediction(score=found.score, feedback=found.feedback)

    if plan.optimizer == "bootstrap":
        teacher = {} if session.teacher_lm is session.lm else {"lm": session.teacher_lm}
        optimizer = dspy.BootstrapFewShot(
            metric=score,
            metric_threshold=plan.accept,
            teacher_settings=teacher,
            max_bootstrapped_demos=plan.demonstrations,
            max_labeled_demos=0,
            max_errors=len(examples) + 1,
        )
        return optimizer.compile(student, trainset=examples)
    learn, check = _halves(examples, plan.seed)
    if plan.optimizer == "gepa":
        gepa = dspy.GEPA(
            metric=with_feedback,
            max_full_evals=plan.trials,
            reflection_lm=session.writer_lm,
            num_threads=session.concurrency,
            seed=plan.seed,
            warn_on_score_mismatch=False,
        )
        return gepa.compile(student, trainset=learn, valset=check)
    return _mipro(session, score, student, learn, check)


def _mipro(session: Session, score: Any, student: Any, learn: list[Any], check: list[Any]) -> Any:
    plan = session.plan
    mipro = dspy.MIPROv2(
        metric=score,
        prompt_model=session.writer_lm,
        task_model=session.lm,
        max_bootstrapped_demos=plan.demonstrations,
        max_labeled_demos=0,
        auto=None,
        num_candidates=max(2, plan.trials // 2),
        num_threads=session.concurrency,
        max_errors=len(learn) + len(check) + 1,
        metric_threshold=plan.accept,
        seed=plan.seed,
    )
    try:
        return mipro.compile(
            student,
            trainset=learn,
            valset=check,
            num_trials=plan.trials,
            minibatch=False,
            program_aware_proposer=False,
        )
    except ImportError as error:
        raise MissingExtra(f"MIPROv2 needs a package more: pip install 'dspy[optuna]' ({error})") from error


def _halves(examples: Sequence[Any], seed: int) -> tuple[list[Any], list[Any]]:
    """What instructions are written from, and what the optimiser itself chooses by."""
    drawn = list(examples)
    random.Random(seed).shuffle(drawn)
    cut = max(1, len(drawn) // 2)
    return drawn[:cut], drawn[cut:] or drawn[:cut]
