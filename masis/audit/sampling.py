"""Judge variance: a judge asked several times, so that its own noise shows.

A model that scores the same answer twice need not give the same score. With ``judge_samples`` above
1 the critic and the evaluator are asked that often side by side; the mean counts, the spread
(highest less lowest) is kept with each score, and a spread above ``max_judge_spread`` or a split
vote on hallucination sends the run to a person (``masis/audit/control/routing.py``). Samples that
failed are reported and left out of the mean; where all failed there is no score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from masis.audit.context import AuditContext
from masis.audit.control.concurrency import run_concurrently
from masis.audit.critique import Critic, CritiqueJudgement, Objection, reports_hallucination
from masis.audit.evaluation import DIMENSIONS, EvaluationJudgement, Evaluator
from masis.audit.measures.scores import normalise_score
from masis.audit.text.comparison import quotation_key
from masis.errors import StepError
from masis.schema.audit import Critique, JudgedBy
from masis.schema.base import Unscored

CRITIC_SCORES = ("confidence", "overall_quality_score", "critique_confidence")

J = TypeVar("J", CritiqueJudgement, EvaluationJudgement)


class Sample(NamedTuple):
    """Which of how many times the same judge is being asked the same, from 1."""

    number: int = 1
    of: int = 1


SAMPLE: ContextVar[Sample] = ContextVar("sample", default=Sample())  # noqa: B039 (frozen)
"""Of the question that is being asked: what tells the recorded replies to it apart."""


class SampledCritic(NamedTuple):
    """A critic asked ``times`` times."""

    critic: Critic
    times: int

    @property
    def judged_by(self) -> JudgedBy:
        """The critic that is asked."""
        return self.critic.judged_by

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """The mean of the samples; objections of all of them, each once."""
        found, failed = _ask_samples(partial(self.critic.critique, context), self.times)
        if not found:
            return failed[0]
        nearest = _nearest_to_mean("overall_quality_score", found)
        votes = sum(map(reports_hallucination, found))
        means: dict[str, Any] = {name: _sample_mean(name, found) for name in CRITIC_SCORES}
        return nearest._replace(
            **means,
            hallucination_detected=2 * sum(judgement.hallucination_detected for judgement in found)
            >= len(found),
            needs_retry=2 * sum(judgement.needs_retry for judgement in found) >= len(found),
            objections=_unique_objections(
                [objection for judgement in (nearest, *found) for objection in judgement.objections]
            ),
            unsupported_claims=_all(found, "unsupported_claims"),
            logical_gaps=_all(found, "logical_gaps"),
            conflicting_evidence=_all(found, "conflicting_evidence"),
            samples={name: _sample_values(name, found) for name in CRITIC_SCORES},
            hallucination_votes=(votes, len(found)),
            notes=(*nearest.notes, *_sample_failures(failed, self.times)),
        )


class SampledEvaluator(NamedTuple):
    """An evaluator asked ``times`` times."""

    evaluator: Evaluator
    times: int

    @property
    def judged_by(self) -> JudgedBy:
        """The evaluator that is asked."""
        return self.evaluator.judged_by

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """The mean of the samples, score by score."""
        found, failed = _ask_samples(
            partial(self.evaluator.evaluate, context, critique), self.times
        )
        if not found:
            return failed[0]
        means: dict[str, Any] = {
            name: _sample_mean(name, found) for name in (*DIMENSIONS, "overall_score")
        }
        return found[0]._replace(
            **means,
            improvement_suggestions=_all(found, "improvement_suggestions"),
            measurements={
                name: _nearest_to_mean(name, found).measurements.get(name, ())
                for name in DIMENSIONS
            },
            samples={name: _sample_values(name, found) for name in DIMENSIONS},
            notes=_sample_failures(failed, self.times),
        )


def _ask_samples(judge: Callable[[], J | Unscored], times: int) -> tuple[list[J], list[Unscored]]:
    """Ask a judge so many times side by side; return its judgements, and why the other samples gave
    none.
    """

    def ask(number: int) -> J | Unscored:
        before = SAMPLE.set(Sample(number, times))
        try:
            return judge()
        finally:
            SAMPLE.reset(before)

    found: list[J] = []
    failed: list[Unscored] = []
    for outcome in run_concurrently([partial(ask, number) for number in range(1, times + 1)]):
        if isinstance(outcome, StepError):
            failed.append(Unscored.of(outcome))
        elif isinstance(outcome, Unscored):
            failed.append(outcome)
        else:
            found.append(outcome)
    return found, failed


def _nearest_to_mean(name: str, found: Sequence[J]) -> J:
    """The sample whose words stand for all: the one with this score nearest to the mean, the first
    on a tie.
    """
    values = _sample_values(name, found)
    known = [value for value in values if value is not None]
    if not known:
        return found[0]
    mean = fmean(known)
    distances = [abs(value - mean) if value is not None else 2.0 for value in values]
    return found[distances.index(min(distances))]


def _unique_objections(objections: Sequence[Objection]) -> tuple[Objection, ...]:
    """Objections with the same type on the same words are one, the most serious of them."""
    grades = ("critical", "high", "medium", "low")
    kept: dict[tuple[str, str], Objection] = {}
    for objection in objections:
        key = (objection.type, quotation_key(objection.quote or objection.description))
        known = kept.get(key)
        if known is None or grades.index(objection.severity) < grades.index(known.severity):
            kept[key] = objection
    return tuple(kept.values())


def _all(found: Sequence[J], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for judgement in found for text in getattr(judgement, name)))


def _sample_values(name: str, found: Sequence[J]) -> tuple[float | None, ...]:
    return tuple(normalise_score(name, getattr(judgement, name)).value for judgement in found)


def _sample_mean(name: str, found: Sequence[J]) -> float | None:
    known = [value for value in _sample_values(name, found) if value is not None]
    return round(fmean(known), 12) if known else None  # so that thrice 0.8 is 0.8


def _sample_failures(failed: Sequence[Unscored], asked: int) -> tuple[str, ...]:
    return (f"{len(failed)} of {asked} samples failed: {failed[0].reason}",) if failed else ()
