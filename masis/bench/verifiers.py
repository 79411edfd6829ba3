"""Compares verifiers on the same labeled claims, by the shares of accepted, flagged, confirmed and
undecided claims.

The verifiers are those of audits with the same settings, so the results hold for audits. Intervals
come from resampling the groups of rows (questions, documents), with the same resamples for every
verifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from masis.api.exam_results import describe_exam_standing
from masis.api.roles import build_roles, exam_standing, resolve_model
from masis.audit.claims import one_check_each
from masis.bench import read_rows
from masis.bench.exam import exam_settings
from masis.bench.metrics import MetricEstimate, Resamples
from masis.bench.report import with_interval
from masis.bench.rows import BenchRow, Half
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.calls import Usage
from masis.schema.case import Evidence
from masis.settings import OFFLINE, ROLES, Settings
from masis.views.numbers import cost_text

CURVE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
"""The support thresholds of the curve."""
EXACT_TAIL = 0.025
"""The share that a 95% interval leaves out at either end."""
ACCUSED = frozenset({"contradicted", "unsupported"})

OnProgress = Callable[[int, int], None]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class EstimatedShare:
    """A share with its interval and its base: ``of`` rows or answers."""

    name: str
    estimate: MetricEstimate
    of: int


@dataclass(frozen=True, slots=True)
class CutoffPoint:
    """The effect of accepting every claim whose support is at least this threshold."""

    threshold: float
    faulty_accepted: MetricEstimate
    true_confirmed: MetricEstimate


@dataclass(frozen=True, slots=True)
class VerifierReport:
    """The results of one verifier: shares, the curve over thresholds, usage and exam status."""

    verifier: str
    shares: tuple[EstimatedShare, ...]
    curve: tuple[CutoffPoint, ...]
    usage: Usage
    exam: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        plain = asdict(self) | {"usage": self.usage.model_dump()}
        plain["shares"] = {
            share.name: {**asdict(share.estimate), "of": share.of} for share in self.shares
        }
        return plain


@dataclass(frozen=True, slots=True)
class VerifierComparison:
    """The results of several verifiers on the same rows of one file."""

    task: str
    half: Half
    rows: int
    faulty: int
    groups: int
    bootstrap: int
    seed: int
    verifiers: tuple[VerifierReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return asdict(self) | {"verifiers": [verifier.to_dict() for verifier in self.verifiers]}


def compare_verifiers(
    path: Path,
    verifiers: Sequence[str],
    settings: Settings,
    *,
    half: Half = "report",
    limit: int | None = None,
    bootstrap: int = 1000,
    seed: int = 20250101,
    on_progress: OnProgress = lambda done, total: None,
) -> VerifierComparison:
    """Measure several verifiers on the same labeled claims of a file or folder.

    The 95% intervals come from ``bootstrap`` resamples of the groups.

    Args:
        path: The file or folder.
        verifiers: Model strings, as for the setting ``verifier``.
        settings: The thresholds, providers and prices; their roles are not used.
        half: The half of the rows to measure.
        limit: The most claims to measure, in whole groups, drawn in an order that depends only on
            their text.
        bootstrap: The number of resamples.
        seed: The seed of the resamples.
        on_progress: Called with the number of judged claims and their total, over all verifiers.

    Raises:
        InputError: The file isn't of a known set.
        SettingsError: A verifier can't be used.
        MissingExtra: A verifier's package is not installed.

    """
    task, rows = read_rows(path, half)
    rows = _limit_rows(rows, limit)
    resolved = [resolve_model(verifier, "verifier", settings) for verifier in verifiers]
    resamples = Resamples([group for _, group in rows], bootstrap, seed)
    reports = []
    for number, verifier in enumerate(resolved):
        done = number * len(rows)
        checks, usage = _judge_rows(
            [row for row, _ in rows],
            verifier,
            settings,
            done,
            len(resolved) * len(rows),
            on_progress,
        )
        report = _verifier_report(verifier, [row for row, _ in rows], checks, usage, resamples)
        exam = describe_exam_standing(partial(exam_standing, exam_settings(settings, verifier)))
        reports.append(replace(report, exam=exam))
    faulty = sum(row.positive for row, _ in rows)
    groups = len({group for _, group in rows})
    return VerifierComparison(
        task.name, half, len(rows), faulty, groups, bootstrap, seed, tuple(reports)
    )


def _limit_rows(rows: list[tuple[BenchRow, str]], limit: int | None) -> list[tuple[BenchRow, str]]:
    if limit is None or len(rows) <= limit:
        return rows
    # By a hash of the group, so that the sample depends neither on the file's order nor on a seed.
    order = sorted(
        {group for _, group in rows}, key=lambda group: hashlib.sha256(group.encode()).hexdigest()
    )
    sizes: dict[str, int] = {}
    for _, group in rows:
        sizes[group] = sizes.get(group, 0) + 1
    chosen_groups: set[str] = set()
    total = 0
    for group in order:
        if total + sizes[group] <= limit or not chosen_groups:
            chosen_groups.add(group)
            total += sizes[group]
    return [(row, group) for row, group in rows if group in chosen_groups]


def _judge_rows(
    rows: Sequence[BenchRow],
    verifier: str,
    settings: Settings,
    done: int,
    total: int,
    on_progress: OnProgress,
) -> tuple[list[ClaimCheck], Usage]:
    """Judge every row as an audit would; consecutive rows with the same evidence are judged
    together.
    """
    offline_roles: dict[str, str] = dict.fromkeys(ROLES, OFFLINE)
    roles = build_roles(settings.model_copy(update=offline_roles | {"verifier": verifier}))
    checks: list[ClaimCheck] = []
    start = 0
    while start < len(rows):
        end = start + 1
        while end < len(rows) and rows[end].evidence == rows[start].evidence:
            end += 1
        claims = [Claim(text=row.claim) for row in rows[start:end]]
        evidence = [Evidence(id=name, text=text) for name, text in rows[start].evidence]
        checks += one_check_each(claims, roles.verifier.verify(claims, evidence))
        start = end
        on_progress(done + start, total)
    return checks, Usage.of(roles.control.calls.since())


def _estimate_share(in_part: Array, in_base: Array, resamples: Resamples) -> MetricEstimate:
    """Return the share of the base rows that are in the part, with its interval."""
    part_counts = np.bincount(resamples.member, in_part & in_base, minlength=resamples.number)
    base_counts = np.bincount(resamples.member, in_base, minlength=resamples.number)
    if not base_counts.sum():
        return MetricEstimate()
    value = float(part_counts.sum() / base_counts.sum())
    if value in (0.0, 1.0):
        # All resamples of 0% or 100% are equal, so the exact bound for the number of independent
        # groups is used.
        exact_bound = round(EXACT_TAIL ** (1 / int((base_counts > 0).sum())), 4)
        return (
            MetricEstimate(value, 0.0, round(1 - exact_bound, 4))
            if value == 0
            else MetricEstimate(value, exact_bound, 1.0)
        )
    return MetricEstimate.of(
        value,
        [
            float(part_counts @ weights / (base_counts @ weights))
            for weights in resamples.weights
            if base_counts @ weights
        ],
    )


def _verifier_report(
    verifier: str,
    rows: Sequence[BenchRow],
    checks: Sequence[ClaimCheck],
    usage: Usage,
    resamples: Resamples,
) -> VerifierReport:
    faulty = np.array([row.positive for row in rows], dtype=bool)
    confirmed = np.array([check.verdict == "supported" for check in checks], dtype=bool)
    flagged = np.array([check.verdict in ACCUSED for check in checks], dtype=bool)
    undecided = np.array(
        [check.verdict in ("unverifiable", "partial") for check in checks], dtype=bool
    )
    failed = np.array([check.verdict == "unscored" for check in checks], dtype=bool)
    support = np.array([0.0 if check.support is None else check.support for check in checks])
    answer_faulty, answer_accepted, first = _answer_outcomes(rows, faulty, confirmed)
    all_rows = np.ones(len(rows), dtype=bool)

    def share(name: str, part: Array, whole: Array) -> EstimatedShare:
        return EstimatedShare(name, _estimate_share(part, whole, resamples), int(whole.sum()))

    shares = (
        share("faulty accepted", confirmed, faulty),
        share("accusations right", faulty, flagged),
        share("true accused", flagged, ~faulty),
        share("true confirmed", confirmed, ~faulty),
        share("left open", undecided, all_rows),
        share("unscored", failed, all_rows),
        share("faulty answers accepted", answer_accepted, first & answer_faulty),
        share("true answers accepted", answer_accepted, first & ~answer_faulty),
    )
    curve = tuple(
        CutoffPoint(
            threshold,
            _estimate_share(support >= threshold, faulty, resamples),
            _estimate_share(support >= threshold, ~faulty, resamples),
        )
        for threshold in CURVE
    )
    return VerifierReport(verifier, shares, curve, usage)


def _answer_outcomes(
    rows: Sequence[BenchRow], faulty: Array, confirmed: Array
) -> tuple[Array, Array, Array]:
    """Return for each row whether its answer has a faulty claim, has only confirmed ones, and is
    its first row.

    The claims of one answer share the part of their ids before ``#``; a row without it is a
    separate answer.
    """
    members: dict[str, list[int]] = {}
    for row_number, row in enumerate(rows):
        answer, separator, _ = row.id.rpartition("#")
        members.setdefault(answer if separator else f"row {row_number}", []).append(row_number)
    any_faulty, all_confirmed, is_first_row = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    for row_numbers in members.values():
        any_faulty[row_numbers], all_confirmed[row_numbers] = (
            faulty[row_numbers].any(),
            confirmed[row_numbers].all(),
        )
        is_first_row[row_numbers[0]] = True
    return any_faulty, all_confirmed, is_first_row


def render_comparison(comparison: VerifierComparison) -> str:
    """Return the comparison as plain-text tables, with intervals in brackets."""
    return "\n".join(_comparison_lines(comparison)) + "\n"


def _comparison_lines(comparison: VerifierComparison) -> Iterator[str]:
    yield (
        f"{comparison.task}: {comparison.half} half, {comparison.rows} claims,"
        f" {comparison.faulty} of them faulty, {comparison.groups} groups,"
        f" {comparison.bootstrap} resamples, seed {comparison.seed}"
    )
    for report in comparison.verifiers:
        yield from ("", f"  {report.verifier}", *([f"    {report.exam}"] if report.exam else []))
        for share in report.shares:
            yield f"    {share.name:<26}{with_interval(share.estimate):>24}   of {share.of}"
        if report.usage.calls:
            cost = cost_text(report.usage.cost_usd)
            yield f"    calls to models {report.usage.calls}, {cost}"
        yield f"    {'if accepted from support':<26}{'faulty accepted':>24}{'true confirmed':>24}"
        for point in report.curve:
            cells = map(with_interval, (point.faulty_accepted, point.true_confirmed))
            yield f"    {point.threshold:<26.2f}{''.join(f'{cell:>24}' for cell in cells)}"
