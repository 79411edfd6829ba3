"""What the figures of runs are asked, and what they answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from masis.schema.base import Record
from masis.settings import Role

Period = Literal["day", "week", "month"]
Rate = Literal["hallucination", "revision", "converged", "convergence_ending", "needs_review"]
Measure = Literal[
    "critic_ms",
    "reviser_ms",
    "iteration_ms",
    "loop_ms",
    "iterations",
    "improvement_delta",
    "improvement_percentage",
    "issues",
    "claims",
    "confidence",
    "tokens",
    "cost_usd",
]
COLUMNS: dict[Measure, tuple[Literal["run", "iteration"], str]] = {
    "critic_ms": ("iteration", "critic_ms"),
    "reviser_ms": ("iteration", "reviser_ms"),
    "iteration_ms": ("iteration", "iteration_ms"),
    "loop_ms": ("run", "loop_ms"),
    "iterations": ("run", "iterations"),
    "improvement_delta": ("iteration", "improvement_delta"),
    "improvement_percentage": ("run", "improvement_percentage"),
    "issues": ("iteration", "issues"),
    "claims": ("run", "claims"),
    "confidence": ("run", "confidence"),
    "tokens": ("run", "(input_tokens + output_tokens)"),
    "cost_usd": ("run", "cost_usd"),
}
"""Where each figure stands: once a run, or once an iteration, which is one audited answer."""


class MeasureFilter(Record):
    """Which runs. Times are ISO 8601, ``until`` is excluded; ``models`` are those of ``role``. Empty doesn't filter."""

    since: str | None = None
    until: str | None = None
    role: Role = "critic"
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()


class Pick(Record):
    """The runs behind one figure: those of which ``rate`` is ``yes``, those that ended so, those with an iteration (or
    themselves) whose ``measure`` lies above ``above`` and at most at ``most``.
    """

    rate: Rate | None = None
    yes: bool = True
    termination: str | None = None
    measure: Measure | None = None
    above: float | None = None
    most: float | None = None


class Rates(Record):
    """Runs added up. Shares are 0..1, latency is the mean in milliseconds, the other figures are means but for calls,
    tokens and cost, which are sums. None: nothing was measured. ``name`` is the period's first day, or the model.

    ``converged_rate`` is the share of runs that ended well (by ``no_issues`` or ``convergence``), ``convergence_rate``
    that of ``convergence`` endings alone; the bases of the first two rates are ``hallucination_known`` and
    ``revision_known``, that of all others is ``runs``.
    """

    name: str | None
    runs: int
    critique_hallucination_rate: float | None
    critique_revision_rate: float | None
    hallucination_known: int
    revision_known: int
    critique_latency_ms: float | None
    critique_confidence_avg: float | None
    claims_per_draft: float | None
    converged_rate: float | None
    convergence_rate: float | None
    no_issues_rate: float | None
    error_rate: float | None
    needs_review_rate: float | None
    iterations: float | None
    improvement_percentage: float | None
    quality: float | None
    confidence: float | None
    overall: float | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Bin(Record):
    """How many values lie above ``low`` and at most at ``high``; None leaves a side open."""

    low: float | None
    high: float | None
    count: int


class Distribution(Record):
    """How one figure is spread over runs or iterations; percentiles are values that occurred."""

    measure: Measure
    count: int
    mean: float | None
    least: float | None
    most: float | None
    p50: float | None
    p95: float | None
    bins: tuple[Bin, ...]


class MeasuredRun(Record):
    """One run in a list of figures; ``value`` is the figure asked for. Without ``case_id`` the run is gone."""

    run_id: str
    case_id: str | None
    query: str | None
    finished_at: str
    models: dict[str, str]
    termination: str
    iterations: int
    loop_ms: float
    quality: float | None
    confidence: float | None
    improvement_percentage: float | None
    hallucination: bool | None
    revision: bool | None
    converged: bool
    needs_review: bool
    value: float | None


class MeasuredRuns(Record):
    """One page of runs, and how many there are in all."""

    rows: tuple[MeasuredRun, ...]
    total: int = Field(ge=0)
