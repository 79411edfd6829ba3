"""The table of all metrics that a spec requires: name, kind, unit, rule and source field.

If a rule names a metric, that name is used; if it only describes one ("CriticAgent execution time
(histogram)"), the name is chosen here. The OpenTelemetry instruments, the table in
``docs/running.md`` and the tests derive from this table.

A rate is a histogram of 0 and 1: its mean, the sum divided by the count, is the share.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from masis.audit.measures.run_metrics import CritiqueMeasures, IterationMeasures, RunMeasures

SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 20, 35, 60, 90, 120, 300)
MILLISECONDS = tuple(1000 * seconds for seconds in SECONDS)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COUNTS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
NO_OR_YES = (0, 1)
DELTAS = (-0.5, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5)
PERCENTAGES = (-50, -20, -10, 0, 5, 10, 20, 50, 100, 200)
CALL_SECONDS = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
"""Buckets that the GenAI semantic conventions recommend, as are ``TOKENS``."""
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)

LOOP = "REQ-CRITIC-OBS-001"
DRAFT = "DRAFT-CRITIQUE-METRICS"
CRITIC = "MASIS-CRITIC-TELEMETRY"
EVALUATOR = "MASIS-EVAL-TELEMETRY"
GEN_AI = "GenAI semantic conventions"


class Metric(NamedTuple):
    """One metric; ``bounds`` are the upper bounds of a histogram's buckets, empty for a counter."""

    name: str
    kind: Literal["histogram", "counter"]
    unit: str
    description: str
    spec: str
    bounds: tuple[float, ...] = ()


Recorded = tuple[str, float]
Measured = dict[Metric, str]
"""Metrics, each with the field of the measures that it is read from."""


def _histograms(spec: str, *rows: tuple[Any, ...]) -> Measured:
    """Return the histograms of a rule from rows of name, unit, description, bounds and field.

    The field may be left out if it is the last part of the name.
    """
    return {
        Metric(name, "histogram", unit, description, spec, bounds): (
            field[0] if field else name.rpartition(".")[2]
        )
        for name, unit, description, bounds, *field in rows
    }


OF_RUN = _histograms(
    LOOP,
    (
        "masis.loop.duration",
        "s",
        "Total refinement loop duration, in wall-clock time",
        SECONDS,
        "loop_ms",
    ),
    (
        "masis.loop.iterations",
        "{iteration}",
        "Number of iterations per query",
        (1, 2, 3, 4, 5),
        "run.total_iterations",
    ),
    (
        "masis.loop.improvement_percentage",
        "%",
        "Improvement percentage, from the first score to the best one",
        PERCENTAGES,
        "run.improvement_percentage",
    ),
    (
        "masis.loop.converged_rate",
        "1",
        "The share of runs that converged: the loop ended well, by no_issues or convergence",
        NO_OR_YES,
        "run.ended_well",
    ),
    (
        "masis.loop.convergence_rate",
        "1",
        "Convergence endings: the share of runs whose loop ended by convergence alone",
        NO_OR_YES,
        "run.converged",
    ),
) | _histograms(
    "a run that needs review",
    (
        "masis.loop.needs_review_rate",
        "1",
        "The share of runs that a person should look at",
        NO_OR_YES,
        "run.needs_review",
    ),
)
"""Recorded for each run of the loop."""

OF_ITERATION = (
    _histograms(
        LOOP,
        ("masis.critic.duration", "s", "CriticAgent execution time", SECONDS, "critic_ms"),
        ("masis.reviser.duration", "s", "RevisionAgent execution time", SECONDS, "reviser_ms"),
        (
            "masis.loop.improvement_delta",
            "1",
            "Quality score improvement delta, between two iterations",
            DELTAS,
        ),
        ("masis.loop.issues", "{issue}", "Issue identification rate: issues per answer", COUNTS),
    )
    | _histograms(
        CRITIC,
        ("masis.critic.confidence", "1", "Confidence in the answer, after the penalties", SHARES),
        ("masis.critic.conflicts", "{conflict}", "Conflicts between sources", COUNTS),
        ("masis.critic.invalid_citations", "{citation}", "References to no evidence", COUNTS),
        ("masis.critic.uncited_claims", "{claim}", "Sentences that should cite and don't", COUNTS),
    )
    | _histograms(
        EVALUATOR,
        (
            "masis.evaluator.duration",
            "s",
            "The evaluator's execution time",
            SECONDS,
            "evaluator_ms",
        ),
        ("masis.evaluator.overall_score", "1", "The evaluator's overall score", SHARES, "overall"),
        ("masis.evaluator.faithfulness", "1", "Faithfulness, after the clamps", SHARES),
        ("masis.evaluator.relevance", "1", "Relevance", SHARES),
        ("masis.evaluator.completeness", "1", "Completeness", SHARES),
    )
)
"""Recorded for each iteration of a run, that is, each audited answer."""

OF_CRITIQUE = _histograms(
    DRAFT,
    (
        "critique_hallucination_rate",
        "1",
        "Share of drafts with hallucinations",
        NO_OR_YES,
        "hallucination",
    ),
    ("critique_revision_rate", "1", "Share of answers that needed revision", NO_OR_YES, "revision"),
    ("critique_latency_ms", "ms", "Time for full critique cycle", MILLISECONDS, "latency_ms"),
    (
        "critique_confidence_avg",
        "1",
        "Average confidence score, of the claims",
        SHARES,
        "confidence",
    ),
    ("claims_per_draft", "{claim}", "Average claims extracted", COUNTS, "claims"),
)
"""Recorded for each original answer or draft."""

LOOP_TOKENS = Metric(
    "masis.loop.tokens", "counter", "{token}", "LLM token usage for critic loop", LOOP
)
COST = Metric(
    "masis.loop.cost",
    "counter",
    "{USD}",
    "Cost of calls to models, where a price is known",
    "prices of calls",
)
CALL_DURATION = Metric(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    "GenAI operation duration.",
    GEN_AI,
    CALL_SECONDS,
)
CALL_TOKENS = Metric(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    "Number of input and output tokens used.",
    GEN_AI,
    TOKENS,
)
OF_CALL = (LOOP_TOKENS, COST, CALL_DURATION, CALL_TOKENS)
"""Recorded for each call to a model."""

METRICS: tuple[Metric, ...] = (*OF_RUN, *OF_ITERATION, *OF_CRITIQUE, *OF_CALL)


def of_run(measures: RunMeasures) -> Iterator[Recorded]:
    """Yield the recorded metrics of a run; unknown values are left out."""
    yield from _recorded_metrics(OF_RUN, measures)
    for iteration in measures.iterations:
        yield from _recorded_metrics(OF_ITERATION, iteration)


def of_critique(measures: CritiqueMeasures) -> Iterator[Recorded]:
    """Return the recorded metrics of an original answer or a draft."""
    return _recorded_metrics(OF_CRITIQUE, measures)


def _recorded_metrics(
    metrics: Measured, measures: RunMeasures | IterationMeasures | CritiqueMeasures
) -> Iterator[Recorded]:
    for metric, field in metrics.items():
        if (value := attrgetter(field)(measures)) is not None:
            yield metric.name, value / 1000 if metric.unit == "s" else float(value)
