"""What the loop reaches beside its targets of quality and latency (REQ-CRITIC-NFR-001 to 008).

Shares and 95th percentiles come with intervals from resampling cases. docs/models.md explains what
they mean and what they don't.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from masis.audit.issues import CRITIC_LOOP_TYPE
from masis.audit.measures.statistics import percentile
from masis.bench.metrics import MetricEstimate
from masis.schema.audit import Issue
from masis.schema.run import Run

# The issues an audit raises compared with the gold findings of a case: which were found, which
# issues are right.
#
# An issue finds a finding where it points at the same words of the answer and is of its kind: a
# fabricated, misattributed or missing citation is found by the issue of that name, what is wrong
# with the content by any issue about content. A finding about the whole answer (something left out)
# is found by an issue that says something is left out. An issue of a language model has no such
# name, so that it counts for every kind.

REFERENCE_RULES = {
    "fabricated_reference": "fabricated_citation",
    "misattributed_reference": "misattributed",
    "uncited_sentence": "uncited",
}
"""The issues about citations, by rule, and the gold finding of each."""
REFERENCE_TYPES = frozenset(REFERENCE_RULES.values())
LEFT_OUT = frozenset({"missing_info", "incomplete", "incomplete_reasoning"})
_BY_A_MODEL = "critic_"


class Hit(NamedTuple):
    """A finding, and whether an issue found it; or an issue, and whether a finding confirms it."""

    case: str
    content: bool
    hit: bool


class IssueScores(NamedTuple):
    """The issues of one answer compared with its gold findings."""

    found: tuple[Hit, ...]
    right: tuple[Hit, ...]


class _Finding(NamedTuple):
    kind: str
    span: tuple[int, int] | None


def score_issues(case: Mapping[str, Any], issues: Sequence[Issue]) -> IssueScores:
    """Return each gold finding with whether it was found, and each issue with whether
    it is right.
    """
    answer, labels = case.get("answer") or "", case.get("labels") or {}
    findings = [
        _Finding(label["type"], place_of(answer, label.get("text")))
        for label in labels.get("findings", ())
    ]
    redundant = [
        place_of(answer, label.get("sentence"))
        for label in labels.get("citations", ())
        if label["status"] == "redundant"
    ]
    name = str(case["id"])
    return IssueScores(
        tuple(
            Hit(
                name,
                finding.kind not in REFERENCE_TYPES,
                any(_finds(issue, finding) for issue in issues),
            )
            for finding in findings
        ),
        tuple(
            Hit(
                name,
                issue.rule not in REFERENCE_RULES and issue.rule != "redundant_reference",
                any(_finds(issue, finding) for finding in findings)
                or (
                    issue.rule == "redundant_reference"
                    and any(_issue_overlaps(issue, span) for span in redundant)
                ),
            )
            for issue in issues
        ),
    )


def place_of(answer: str, text: str | None) -> tuple[int, int] | None:
    """Return where a text begins and ends in an answer; None where it is not in it."""
    at = answer.find(text) if text else -1
    return (at, at + len(text or "")) if at >= 0 else None


def _finds(issue: Issue, finding: _Finding) -> bool:
    by_model = issue.rule.startswith(_BY_A_MODEL)
    if finding.span is None:
        omission = issue.type in LEFT_OUT or CRITIC_LOOP_TYPE[issue.type] == finding.kind
        return omission and (issue.source != "citations")
    if not _issue_overlaps(issue, finding.span):
        return False
    if by_model:
        return True
    if finding.kind in REFERENCE_TYPES or issue.rule in REFERENCE_RULES:
        return REFERENCE_RULES.get(issue.rule) == finding.kind
    return issue.rule != "redundant_reference"


def _issue_overlaps(issue: Issue, span: tuple[int, int] | None) -> bool:
    if span is None or issue.start is None or issue.end is None:
        return False
    return issue.start < span[1] and span[0] < issue.end


FOUND, IMPROVED, CONVERGED = 0.80, 0.70, 0.80
"""The shares asked for: REQ-CRITIC-NFR-006, 007 and 008."""
IMPROVED_BY = 10.0
"""Percent of the quality score (REQ-CRITIC-NFR-007)."""
WITHIN = 3
"""Iterations (REQ-CRITIC-NFR-008)."""
CRITIC_MS, REVISER_MS, ITERATION_MS, LOOP_MS = 15_000.0, 15_000.0, 35_000.0, 90_000.0
"""Limits for the 95th percentile: REQ-CRITIC-NFR-001 to 004."""

Values = Sequence[tuple[str, float]]
"""A value, and the case it comes from."""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """One metric beside its target: a share (at least ``target``) or milliseconds (at most
    ``target``).

    ``n`` counts what the metric is over, ``cases`` the cases these come from; ``rule`` is the
    spec's number, empty for a second reading that no rule asks for.
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
        """Whether the metric reaches its target; None without a value or a target."""
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
    """Return every metric that these runs allow; those on findings where ``cases`` holds the gold
    of some of them.
    """

    def share(name: str, rule: str, values: Values, target: float | None) -> TargetOutcome:
        return _target_outcome(name, rule, "share", values, target, _mean_value, bootstrap, seed)

    def p95(name: str, rule: str, values: Values, limit: float) -> TargetOutcome:
        return _target_outcome(
            name, rule, "ms", values, limit, partial(percentile, percent=95), bootstrap, seed
        )

    def improved(runs: Sequence[Run]) -> Values:
        return [
            (run.case_id, float((run.improvement_percentage or 0.0) >= IMPROVED_BY)) for run in runs
        ]

    def step(name: str) -> Values:
        return [(case, it.step_ms[name]) for case, it in iterations if name in it.step_ms]

    iterations = [(run.case_id, it) for run in runs for it in run.iterations]
    revised = [run for run in runs if any(it.revision is not None for it in run.iterations)]
    ended = [run for run in runs if run.termination_reason != "cancelled"]
    converged = [
        (run.case_id, float(run.ended_well and run.total_iterations <= WITHIN)) for run in ended
    ]
    convergence = [(run.case_id, float(run.termination_reason == "convergence")) for run in ended]
    each_iteration = [(case, sum(it.step_ms.values())) for case, it in iterations]
    each_loop = [
        (run.case_id, sum(sum(it.step_ms.values()) for it in run.iterations))
        for run in runs
        if run.iterations
    ]
    return (
        *_finding_outcomes(runs, cases, share),
        share(
            "improved by 10% or more, of cases revised",
            "REQ-CRITIC-NFR-007",
            improved(revised),
            IMPROVED,
        ),
        share("improved by 10% or more, of all cases", "", improved(runs), None),
        share("converged within 3 iterations", "REQ-CRITIC-NFR-008", converged, CONVERGED),
        share("convergence endings, of all cases", "", convergence, None),
        p95("critic, 95th percentile", "REQ-CRITIC-NFR-001", step("critique"), CRITIC_MS),
        p95("reviser, 95th percentile", "REQ-CRITIC-NFR-002", step("revision"), REVISER_MS),
        p95("iteration, 95th percentile", "REQ-CRITIC-NFR-003", each_iteration, ITERATION_MS),
        p95("loop, 95th percentile", "REQ-CRITIC-NFR-004", each_loop, LOOP_MS),
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
    found = [hit for each in scored for hit in each.found]
    right = [hit for each in scored for hit in each.right]
    yield share("planted issues found", "REQ-CRITIC-NFR-006", _hit_values(found), FOUND)
    yield share(
        "planted issues found, citations left out",
        "",
        _hit_values(hit for hit in found if hit.content),
        None,
    )
    yield share("issues that are right", "", _hit_values(right), None)
    yield share(
        "issues that are right, citations left out",
        "",
        _hit_values(hit for hit in right if hit.content),
        None,
    )


def _hit_values(hits: Iterable[Hit]) -> Values:
    return [(hit.case, float(hit.hit)) for hit in hits]


Array = np.ndarray[Any, np.dtype[Any]]


def _mean_value(values: Array) -> float:
    return float(values.mean())


def _target_outcome(
    name: str,
    rule: str,
    unit: str,
    values: Values,
    target: float | None,
    of: Callable[[Array], float],
    bootstrap: int,
    seed: int,
) -> TargetOutcome:
    by_case: dict[str, list[float]] = {}
    for case, value in values:
        by_case.setdefault(case, []).append(value)
    groups = [np.array(each) for each in by_case.values()]
    figure = MetricEstimate()
    if groups:
        draws = np.random.default_rng(seed)
        samples = [
            of(np.concatenate([groups[i] for i in draws.integers(0, len(groups), len(groups))]))
            for _ in range(bootstrap)
        ]
        figure = MetricEstimate.of(of(np.concatenate(groups)), samples)
    return TargetOutcome(name, rule, unit, len(values), len(groups), figure, target)
