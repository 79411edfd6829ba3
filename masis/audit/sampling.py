"""Asks a judge several times to show how much its scores vary.

A model that scores the same answer twice may give different scores. With ``judge_samples`` above 1,
critic and evaluator are asked that many times in parallel, and the mean is used. Each score has its
spread (highest minus lowest). A spread above ``max_judge_spread`` or a split vote on hallucination
sends the run to a person (``masis/audit/acceptance.py``). Failed samples are reported and left out
of the mean; if all failed, there is no score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from masis.audit.context import AuditContext
from masis.audit.control.concurrency import run_concurrently
from masis.audit.critique import Critic, CritiqueJudgement, RawIssue, reports_hallucination
from masis.audit.evaluation import DIMENSIONS, EvaluationJudgement, Evaluator
from masis.audit.measures.scores import normalize_score
from masis.audit.text.comparison import quotation_key
from masis.errors import StepError
from masis.schema.audit import Critique, JudgedBy
from masis.schema.base import Unscored

CRITIC_SCORES = ("confidence", "overall_quality_score", "critique_confidence")

JudgementT = TypeVar("JudgementT", CritiqueJudgement, EvaluationJudgement)


class Sample(NamedTuple):
    """The number of a sample of the same judgement, from 1, and the number of samples."""

    number: int = 1
    of: int = 1


SAMPLE: ContextVar[Sample] = ContextVar("sample", default=Sample())  # noqa: B039 (frozen)
"""The sample of the current question; recorded replies use it to tell samples apart."""


class SampledCritic(NamedTuple):
    """A critic asked ``times`` times."""

    critic: Critic
    times: int

    @property
    def judged_by(self) -> JudgedBy:
        """The critic that is asked."""
        return self.critic.judged_by

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        """Return the mean of the samples, with the distinct issues of all of them."""
        judgements, failures = _ask_samples(partial(self.critic.critique, context), self.times)
        if not judgements:
            return failures[0]
        nearest = _nearest_to_mean("overall_quality_score", judgements)
        votes = sum(map(reports_hallucination, judgements))
        means: dict[str, Any] = {name: _sample_mean(name, judgements) for name in CRITIC_SCORES}
        return nearest._replace(
            **means,
            hallucination_detected=2
            * sum(judgement.hallucination_detected for judgement in judgements)
            >= len(judgements),
            needs_retry=2 * sum(judgement.needs_retry for judgement in judgements)
            >= len(judgements),
            raw_issues=_unique_raw_issues(
                [
                    raw_issue
                    for judgement in (nearest, *judgements)
                    for raw_issue in judgement.raw_issues
                ]
            ),
            unsupported_claims=_merge_texts(judgements, "unsupported_claims"),
            logical_gaps=_merge_texts(judgements, "logical_gaps"),
            conflicting_evidence=_merge_texts(judgements, "conflicting_evidence"),
            samples={name: _sample_values(name, judgements) for name in CRITIC_SCORES},
            hallucination_votes=(votes, len(judgements)),
            notes=(*nearest.notes, *_sample_failures(failures, self.times)),
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
        """Return the mean of the samples for each score."""
        judgements, failures = _ask_samples(
            partial(self.evaluator.evaluate, context, critique), self.times
        )
        if not judgements:
            return failures[0]
        means: dict[str, Any] = {
            name: _sample_mean(name, judgements) for name in (*DIMENSIONS, "overall_score")
        }
        return judgements[0]._replace(
            **means,
            improvement_suggestions=_merge_texts(judgements, "improvement_suggestions"),
            measurements={
                name: _nearest_to_mean(name, judgements).measurements.get(name, ())
                for name in DIMENSIONS
            },
            samples={name: _sample_values(name, judgements) for name in DIMENSIONS},
            notes=_sample_failures(failures, self.times),
        )


def _ask_samples(
    judge: Callable[[], JudgementT | Unscored], times: int
) -> tuple[list[JudgementT], list[Unscored]]:
    """Ask a judge several times in parallel.

    Returns:
        Its judgements, and the reasons of the samples that failed.

    """

    def ask(number: int) -> JudgementT | Unscored:
        # The calling thread runs one of the samples itself and must not keep its number.
        token = SAMPLE.set(Sample(number, times))
        try:
            return judge()
        finally:
            SAMPLE.reset(token)

    judgements: list[JudgementT] = []
    failures: list[Unscored] = []
    for outcome in run_concurrently([partial(ask, number) for number in range(1, times + 1)]):
        if isinstance(outcome, StepError):
            failures.append(Unscored.of(outcome))
        elif isinstance(outcome, Unscored):
            failures.append(outcome)
        else:
            judgements.append(outcome)
    return judgements, failures


def _nearest_to_mean(name: str, judgements: Sequence[JudgementT]) -> JudgementT:
    """Return the sample whose score is nearest to the mean, the first one in a tie.

    Its words are used for all samples.
    """
    values = _sample_values(name, judgements)
    known_values = [value for value in values if value is not None]
    if not known_values:
        return judgements[0]
    mean = fmean(known_values)
    distances = [abs(value - mean) if value is not None else 2.0 for value in values]
    return judgements[distances.index(min(distances))]


def _unique_raw_issues(raw_issues: Sequence[RawIssue]) -> tuple[RawIssue, ...]:
    """Merge raw issues of the same type on the same words and keep the most serious."""
    severities = ("critical", "high", "medium", "low")
    unique: dict[tuple[str, str], RawIssue] = {}
    for raw_issue in raw_issues:
        key = (raw_issue.type, quotation_key(raw_issue.quote or raw_issue.description))
        earlier = unique.get(key)
        if earlier is None or severities.index(raw_issue.severity) < severities.index(
            earlier.severity
        ):
            unique[key] = raw_issue
    return tuple(unique.values())


def _merge_texts(judgements: Sequence[JudgementT], name: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(text for judgement in judgements for text in getattr(judgement, name))
    )


def _sample_values(name: str, judgements: Sequence[JudgementT]) -> tuple[float | None, ...]:
    return tuple(normalize_score(name, getattr(judgement, name)).value for judgement in judgements)


def _sample_mean(name: str, judgements: Sequence[JudgementT]) -> float | None:
    known_values = [value for value in _sample_values(name, judgements) if value is not None]
    # Rounded, so that the mean of three times 0.8 is 0.8.
    return round(fmean(known_values), 12) if known_values else None


def _sample_failures(failures: Sequence[Unscored], times: int) -> tuple[str, ...]:
    return (f"{len(failures)} of {times} samples failed: {failures[0].reason}",) if failures else ()
