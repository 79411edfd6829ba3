"""What the loop reaches, beside the quality and latency that ``specs/critic-loop.md`` asks for (NFR-001 to 008).

Shares and 95th percentiles come with intervals from resampling cases. What they mean, and what they don't, is told in
docs/bench.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from masis.datasets.bench.findings import Hit, held
from masis.datasets.bench.metrics import Figure
from masis.schema.run import Run

FOUND, IMPROVED, CONVERGED = 0.80, 0.70, 0.80
"""The shares asked for: REQ-CRITIC-NFR-006, 007 and 008."""
IMPROVED_BY = 10.0
"""Percent of the quality score (REQ-CRITIC-NFR-007)."""
WITHIN = 3
"""Iterations (REQ-CRITIC-NFR-008)."""
CRITIC_MS, REVISER_MS, ITERATION_MS, LOOP_MS = 15_000.0, 15_000.0, 35_000.0, 90_000.0
"""Limits for the 95th percentile: REQ-CRITIC-NFR-001 to 004."""
_CALM = frozenset({"no_issues", "convergence"})

Values = Sequence[tuple[str, float]]
"""A value, and the case it comes from."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure beside what is asked for: a share (at least ``target``) or milliseconds (at most ``target``).

    ``n`` counts what the figure is over, ``cases`` the cases these come from; ``rule`` is the spec's number, empty for
    a second reading that no rule asks for.
    """

    name: str
    rule: str
    unit: str
    n: int
    cases: int
    figure: Figure
    target: float | None

    @property
    def met(self) -> bool | None:
        """Whether the figure reaches its target; None where there is no figure or no target."""
        if self.figure.value is None or self.target is None:
            return None
        return self.figure.value >= self.target if self.unit == "share" else self.figure.value <= self.target


def outcomes(runs: Sequence[Run], cases: Sequence[Mapping[str, Any]], bootstrap: int, seed: int) -> tuple[Outcome, ...]:
    """Every figure that these runs allow; those on findings where ``cases`` holds the gold of some of them."""

    def share(name: str, rule: str, values: Values, target: float | None) -> Outcome:
        return _outcome(name, rule, "share", values, target, _mean, bootstrap, seed)

    def p95(name: str, rule: str, values: Values, limit: float) -> Outcome:
        return _outcome(name, rule, "ms", values, limit, _p95, bootstrap, seed)

    return (
        *_on_findings(runs, cases, share),
        share("improved by 10% or more, of cases revised", "REQ-CRITIC-NFR-007", _improved(_revised(runs)), IMPROVED),
        share("improved by 10% or more, of all cases", "", _improved(runs), None),
        share("converged within 3 iterations", "REQ-CRITIC-NFR-008", _converged(runs), CONVERGED),
        p95("critic, 95th percentile", "REQ-CRITIC-NFR-001", _steps(runs, "critique"), CRITIC_MS),
        p95("reviser, 95th percentile", "REQ-CRITIC-NFR-002", _steps(runs, "revision"), REVISER_MS),
        p95("iteration, 95th percentile", "REQ-CRITIC-NFR-003", _iterations(runs), ITERATION_MS),
        p95("loop, 95th percentile", "REQ-CRITIC-NFR-004", _loops(runs), LOOP_MS),
    )


def _on_findings(
    runs: Sequence[Run], cases: Sequence[Mapping[str, Any]], share: Callable[..., Outcome]
) -> Iterable[Outcome]:
    by_case = {run.case_id: run for run in runs if run.iterations}
    known = [
        held(case, run.iterations[0].issues)
        for case in cases
        if case.get("answer") and (run := by_case.get(str(case["id"])))
    ]
    if not known:
        return
    found = [hit for each in known for hit in each.found]
    right = [hit for each in known for hit in each.right]
    yield share("planted issues found", "REQ-CRITIC-NFR-006", _hits(found), FOUND)
    yield share("planted issues found, citations left out", "", _hits(hit for hit in found if hit.content), None)
    yield share("issues that are right", "", _hits(right), None)
    yield share("issues that are right, citations left out", "", _hits(hit for hit in right if hit.content), None)


def _hits(hits: Iterable[Hit]) -> Values:
    return [(hit.case, float(hit.hit)) for hit in hits]


def _revised(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if any(iteration.revision is not None for iteration in run.iterations)]


def _improved(runs: Sequence[Run]) -> Values:
    return [(run.case_id, float((run.improvement_percentage or 0.0) >= IMPROVED_BY)) for run in runs]


def _converged(runs: Sequence[Run]) -> Values:
    return [
        (run.case_id, float(run.termination_reason in _CALM and run.total_iterations <= WITHIN))
        for run in runs
        if run.termination_reason != "cancelled"
    ]


def _steps(runs: Sequence[Run], step: str) -> Values:
    return [(run.case_id, it.step_ms[step]) for run in runs for it in run.iterations if step in it.step_ms]


def _iterations(runs: Sequence[Run]) -> Values:
    return [(run.case_id, sum(it.step_ms.values())) for run in runs for it in run.iterations]


def _loops(runs: Sequence[Run]) -> Values:
    return [(run.case_id, sum(sum(it.step_ms.values()) for it in run.iterations)) for run in runs if run.iterations]


Array = np.ndarray[Any, np.dtype[Any]]


def _mean(values: Array) -> float:
    return float(values.mean())


def _p95(values: Array) -> float:
    return float(np.percentile(values, 95))


def _outcome(
    name: str,
    rule: str,
    unit: str,
    values: Values,
    target: float | None,
    of: Callable[[Array], float],
    bootstrap: int,
    seed: int,
) -> Outcome:
    by_case: dict[str, list[float]] = {}
    for case, value in values:
        by_case.setdefault(case, []).append(value)
    groups = [np.array(each) for each in by_case.values()]
    figure = Figure(None, None, None)
    if groups:
        draws = np.random.default_rng(seed)
        samples = [
            of(np.concatenate([groups[i] for i in draws.integers(0, len(groups), len(groups))]))
            for _ in range(bootstrap)
        ]
        low, high = np.percentile(samples, (2.5, 97.5)) if samples else (None, None)
        figure = Figure(_rounded(of(np.concatenate(groups))), _rounded(low), _rounded(high))
    return Outcome(name, rule, unit, len(values), len(groups), figure, target)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)
