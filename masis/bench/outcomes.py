"""Compares the loop with its targets for quality and latency (REQ-CRITIC-NFR-001 to 008).

Shares and 95th percentiles have intervals from resampling cases. docs/models.md explains how to
interpret them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from masis.audit.measures.statistics import percentile
from masis.bench.metrics import MetricEstimate
from masis.schema.audit import Issue
from masis.schema.rules import CRITIC_LOOP_TYPE, OMISSIONS, RULES, rule_of
from masis.schema.run import Run

# Compares the issues of an audit with the gold findings of a case: which findings were found, and
# which issues are right.
#
# An issue matches a finding if it points at the same words of the answer and is of its kind. A
# citation issue matches the finding with the gold label of its rule (``gold_label``), and any other
# issue matches any finding about content. A finding about the whole answer (an omission) is matched
# by an issue about an omission. A language model's issues have no such labels, so they match every
# kind.

_REDUNDANT = "redundant"
"""The gold label of a citation that is valid, but that the sentence doesn't need."""
_CRITIC_PREFIX = "critic_"


class Hit(NamedTuple):
    """Whether an issue found a gold finding, or whether a gold finding confirms an issue.

    Attributes:
        case: The id of the case.
        content: Whether the finding or issue is about content and not about citations.
        hit: The result.

    """

    case: str
    content: bool
    hit: bool


class IssueScores(NamedTuple):
    """The issues of one answer compared with its gold findings.

    ``found`` has a hit for each finding, ``right`` one for each issue.
    """

    found: tuple[Hit, ...]
    right: tuple[Hit, ...]


class _Finding(NamedTuple):
    kind: str
    span: tuple[int, int] | None


def score_issues(case: Mapping[str, Any], issues: Sequence[Issue]) -> IssueScores:
    """Compare the issues of a case's original answer with its gold labels.

    Args:
        case: The case with ``labels``, as in a file of labeled cases.
        issues: The issues that the audit raised.

    """
    answer, labels = case.get("answer") or "", case.get("labels") or {}
    findings = [
        _Finding(label["type"], find_span(answer, label.get("text")))
        for label in labels.get("findings", ())
    ]
    redundant = [
        find_span(answer, label.get("sentence"))
        for label in labels.get("citations", ())
        if label["status"] == _REDUNDANT
    ]
    case_id = str(case["id"])
    reference_labels = {rule.gold_label for rule in RULES.values() if rule.gold_label}
    return IssueScores(
        tuple(
            Hit(
                case_id,
                finding.kind not in reference_labels,
                any(_matches_finding(issue, finding, reference_labels) for issue in issues),
            )
            for finding in findings
        ),
        tuple(
            Hit(
                case_id,
                not rule_of(issue.rule).gold_label,
                any(_matches_finding(issue, finding, reference_labels) for finding in findings)
                or (
                    rule_of(issue.rule).gold_label == _REDUNDANT
                    and any(_issue_overlaps(issue, span) for span in redundant)
                ),
            )
            for issue in issues
        ),
    )


def find_span(answer: str, text: str | None) -> tuple[int, int] | None:
    """Return the start and end of a text in an answer, or None if the answer lacks it."""
    start = answer.find(text) if text else -1
    return (start, start + len(text or "")) if start >= 0 else None


def _matches_finding(issue: Issue, finding: _Finding, reference_labels: Set[str]) -> bool:
    if finding.span is None:
        is_omission = issue.type in OMISSIONS or CRITIC_LOOP_TYPE[issue.type] == finding.kind
        return is_omission and (issue.source != "citations")
    if not _issue_overlaps(issue, finding.span):
        return False
    if issue.rule.startswith(_CRITIC_PREFIX):
        return True  # a model's rule doesn't correspond to a check
    label = rule_of(issue.rule).gold_label
    return label == finding.kind if label else finding.kind not in reference_labels


def _issue_overlaps(issue: Issue, span: tuple[int, int] | None) -> bool:
    if span is None or issue.start is None or issue.end is None:
        return False
    return issue.start < span[1] and span[0] < issue.end


FOUND_TARGET, IMPROVED_TARGET, CONVERGED_TARGET = 0.80, 0.70, 0.80
"""The required shares: REQ-CRITIC-NFR-006, 007 and 008."""
IMPROVED_BY = 10.0
"""The percentage by which the quality score of an improved answer rises (REQ-CRITIC-NFR-007)."""
CONVERGENCE_LIMIT = 3
"""The number of iterations within which a run should converge (REQ-CRITIC-NFR-008)."""
CRITIC_MS, REVISER_MS, ITERATION_MS, LOOP_MS = 15_000.0, 15_000.0, 35_000.0, 90_000.0
"""The limits for the 95th percentiles in milliseconds (REQ-CRITIC-NFR-001 to 004)."""

Values = Sequence[tuple[str, float]]
"""Pairs of a case's id and a value."""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """A metric compared with its target.

    A share should be at least the target, and a time in milliseconds at most the target.

    Attributes:
        rule: The id in the spec, or "" for an additional metric without a target.
        unit: ``share`` or ``ms``.
        n: The number of values.
        cases: The number of cases from which the values come.
        figure: The estimate with its interval.

    """

    name: str
    rule: str
    unit: str
    n: int
    cases: int
    figure: MetricEstimate
    target: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether the metric meets its target; None if it has no value or no target."""
        if self.figure.value is None or self.target is None:
            return None
        return (
            self.figure.value >= self.target
            if self.unit == "share"
            else self.figure.value <= self.target
        )


def target_outcomes(
    runs: Sequence[Run], cases: Sequence[Mapping[str, Any]], bootstrap: int, seed: int
) -> tuple[TargetOutcome, ...]:
    """Return all metrics for these runs.

    Metrics about gold findings need the labels of the cases.

    Args:
        runs: The runs to measure.
        cases: The labeled cases of the runs; may be empty.
        bootstrap: The number of resamples for an interval; 0 for none.
        seed: The seed of the resampling.

    """

    def share(name: str, rule: str, values: Values, target: float | None) -> TargetOutcome:
        return _target_outcome(name, rule, "share", values, target, np.mean, bootstrap, seed)

    def p95(name: str, rule: str, values: Values, limit: float) -> TargetOutcome:
        return _target_outcome(
            name, rule, "ms", values, limit, partial(percentile, percent=95), bootstrap, seed
        )

    def improved(runs: Sequence[Run]) -> Values:
        return [
            (run.case_id, float((run.improvement_percentage or 0.0) >= IMPROVED_BY)) for run in runs
        ]

    def step(name: str) -> Values:
        return [
            (case, iteration.step_ms[name])
            for case, iteration in iterations
            if name in iteration.step_ms
        ]

    iterations = [(run.case_id, iteration) for run in runs for iteration in run.iterations]
    revised_runs = [
        run for run in runs if any(iteration.revision is not None for iteration in run.iterations)
    ]
    completed_runs = [run for run in runs if run.termination_reason != "cancelled"]
    # A cancelled run can't show convergence, so it isn't in the base.
    converged = [
        (run.case_id, float(run.ended_well and run.total_iterations <= CONVERGENCE_LIMIT))
        for run in completed_runs
    ]
    convergence = [
        (run.case_id, float(run.termination_reason == "convergence")) for run in completed_runs
    ]
    iteration_ms = [(case, sum(iteration.step_ms.values())) for case, iteration in iterations]
    loop_ms = [
        (run.case_id, sum(sum(iteration.step_ms.values()) for iteration in run.iterations))
        for run in runs
        if run.iterations
    ]
    return (
        *_finding_outcomes(runs, cases, share),
        share(
            "improved by 10% or more, of cases revised",
            "REQ-CRITIC-NFR-007",
            improved(revised_runs),
            IMPROVED_TARGET,
        ),
        share("improved by 10% or more, of all cases", "", improved(runs), None),
        share("converged within 3 iterations", "REQ-CRITIC-NFR-008", converged, CONVERGED_TARGET),
        share("convergence endings, of all cases", "", convergence, None),
        p95("critic, 95th percentile", "REQ-CRITIC-NFR-001", step("critique"), CRITIC_MS),
        p95("reviser, 95th percentile", "REQ-CRITIC-NFR-002", step("revision"), REVISER_MS),
        p95("iteration, 95th percentile", "REQ-CRITIC-NFR-003", iteration_ms, ITERATION_MS),
        p95("loop, 95th percentile", "REQ-CRITIC-NFR-004", loop_ms, LOOP_MS),
    )


def _finding_outcomes(
    runs: Sequence[Run], cases: Sequence[Mapping[str, Any]], share: Callable[..., TargetOutcome]
) -> Iterable[TargetOutcome]:
    by_case = {run.case_id: run for run in runs if run.iterations}
    scored = [
        score_issues(case, run.iterations[0].issues)
        for case in cases
        if case.get("answer") and (run := by_case.get(str(case["id"])))
    ]
    if not scored:
        return
    found = [hit for scores in scored for hit in scores.found]
    right = [hit for scores in scored for hit in scores.right]
    for name, rule, hits, target in (
        ("planted issues found", "REQ-CRITIC-NFR-006", found, FOUND_TARGET),
        ("issues that are right", "", right, None),
    ):
        yield share(name, rule, _hit_values(hits), target)
        # The citation engine is deterministic, so the share without citations says more about
        # verifier and critic.
        about_content = _hit_values(hit for hit in hits if hit.content)
        yield share(f"{name}, citations left out", "", about_content, None)


def _hit_values(hits: Iterable[Hit]) -> Values:
    return [(hit.case, float(hit.hit)) for hit in hits]


Array = np.ndarray[Any, np.dtype[Any]]


def _target_outcome(
    name: str,
    rule: str,
    unit: str,
    values: Values,
    target: float | None,
    statistic: Callable[[Array], float],
    bootstrap: int,
    seed: int,
) -> TargetOutcome:
    by_case: dict[str, list[float]] = {}
    for case, value in values:
        by_case.setdefault(case, []).append(value)
    groups = [np.array(case_values) for case_values in by_case.values()]
    figure = MetricEstimate()
    if groups:
        draws = np.random.default_rng(seed)
        # Whole cases are resampled, because the values of one case depend on each other.
        samples = [
            statistic(
                np.concatenate([groups[i] for i in draws.integers(0, len(groups), len(groups))])
            )
            for _ in range(bootstrap)
        ]
        figure = MetricEstimate.of(statistic(np.concatenate(groups)), samples)
    return TargetOutcome(name, rule, unit, len(values), len(groups), figure, target)
