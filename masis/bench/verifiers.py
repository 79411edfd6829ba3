"""Several verifiers on the same labelled claims, side by side: what each lets through, accuses,
confirms, leaves open.

The verifiers are those of audits, with the same settings, so that what is measured is what an audit
gets. Intervals come from resampling the groups of rows (questions, documents); the same resamples
serve every verifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from masis.api.exam_results import line_about
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
from masis.schema.exam import ExamStanding
from masis.settings import OFFLINE, ROLES, Settings
from masis.views.numbers import cost_text

CURVE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
"""Thresholds of support at which the curve is drawn."""
EXACT_TAIL = 0.025
"""What a 95% interval leaves out at either end."""
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
    """What accepting every claim from this support on would let through and confirm."""

    threshold: float
    faulty_accepted: MetricEstimate
    true_confirmed: MetricEstimate


@dataclass(frozen=True, slots=True)
class VerifierReport:
    """What one verifier reached: shares, the curve over thresholds, what it took, and how it stands
    with the exam.
    """

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
    """Several verifiers on the same rows of one file."""

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
        return asdict(self) | {"verifiers": [each.to_dict() for each in self.verifiers]}


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
    """Measure verifiers, named as the setting ``verifier`` takes them, on the same labelled claims
    of a file or folder.

    ``settings`` give thresholds, providers and prices; their roles are not used. At most ``limit``
    claims are measured, whole groups of them drawn in an order that depends on nothing but their
    text. The 95% intervals come from ``bootstrap`` resamples of the groups. ``on_progress`` is
    called with how many claims of how many have been judged, over all verifiers. Raises InputError
    where the file is of no known set, SettingsError and MissingExtra where a verifier can't be
    used.
    """
    task, rows = read_rows(path, half)
    rows = _limit_rows(rows, limit)
    named = [resolve_model(verifier, "verifier", settings) for verifier in verifiers]
    resamples = Resamples([group for _, group in rows], bootstrap, seed)
    reports = []
    for number, verifier in enumerate(named):
        done = number * len(rows)
        checks, usage = _judge_rows(
            [row for row, _ in rows], verifier, settings, done, len(named) * len(rows), on_progress
        )
        report = _verifier_report(verifier, [row for row, _ in rows], checks, usage, resamples)
        exam = line_about(partial(_exam_status, settings, verifier))
        reports.append(replace(report, exam=exam))
    faulty = sum(row.positive for row, _ in rows)
    groups = len({group for _, group in rows})
    return VerifierComparison(
        task.name, half, len(rows), faulty, groups, bootstrap, seed, tuple(reports)
    )


def _exam_status(settings: Settings, verifier: str) -> ExamStanding:
    return exam_standing(exam_settings(settings, verifier))


def _limit_rows(rows: list[tuple[BenchRow, str]], limit: int | None) -> list[tuple[BenchRow, str]]:
    if limit is None or len(rows) <= limit:
        return rows
    order = sorted(
        {group for _, group in rows}, key=lambda group: hashlib.sha256(group.encode()).hexdigest()
    )
    sizes: dict[str, int] = {}
    for _, group in rows:
        sizes[group] = sizes.get(group, 0) + 1
    kept: set[str] = set()
    total = 0
    for group in order:
        if total + sizes[group] <= limit or not kept:
            kept.add(group)
            total += sizes[group]
    return [(row, group) for row, group in rows if group in kept]


def _judge_rows(
    rows: Sequence[BenchRow],
    verifier: str,
    settings: Settings,
    done: int,
    total: int,
    on_progress: OnProgress,
) -> tuple[list[ClaimCheck], Usage]:
    """Judge every row as an audit would; rows that follow each other and share their evidence are
    judged together.
    """
    alone: dict[str, str] = dict.fromkeys(ROLES, OFFLINE)
    roles = build_roles(settings.model_copy(update=alone | {"verifier": verifier}))
    checks: list[ClaimCheck] = []
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[end].evidence == rows[at].evidence:
            end += 1
        claims = [Claim(text=row.claim) for row in rows[at:end]]
        evidence = [Evidence(id=name, text=text) for name, text in rows[at].evidence]
        checks += one_check_each(claims, roles.verifier.verify(claims, evidence))
        at = end
        on_progress(done + at, total)
    return checks, Usage.of(roles.control.calls.since())


def _estimate_share(part: Array, whole: Array, resamples: Resamples) -> MetricEstimate:
    """Return the share of ``part`` in ``whole``, both true or false for each row, with its
    interval.
    """
    parts = np.bincount(resamples.member, part & whole, minlength=resamples.number)
    wholes = np.bincount(resamples.member, whole, minlength=resamples.number)
    if not wholes.sum():
        return MetricEstimate()
    value = float(parts.sum() / wholes.sum())
    if value in (0.0, 1.0):
        # Resamples of nothing are nothing; what can't be excluded follows from the number of
        # independent groups.
        reach = round(EXACT_TAIL ** (1 / int((wholes > 0).sum())), 4)
        return (
            MetricEstimate(value, 0.0, round(1 - reach, 4))
            if value == 0
            else MetricEstimate(value, reach, 1.0)
        )
    return MetricEstimate.of(
        value,
        [float(parts @ drawn / (wholes @ drawn)) for drawn in resamples.weights if wholes @ drawn],
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
    accused = np.array([check.verdict in ACCUSED for check in checks], dtype=bool)
    undecided = np.array(
        [check.verdict in ("unverifiable", "partial") for check in checks], dtype=bool
    )
    failed = np.array([check.verdict == "unscored" for check in checks], dtype=bool)
    support = np.array([0.0 if check.support is None else check.support for check in checks])
    answer_faulty, answer_accepted, first = _answer_outcomes(rows, faulty, confirmed)
    every = np.ones(len(rows), dtype=bool)

    def share(name: str, part: Array, whole: Array) -> EstimatedShare:
        return EstimatedShare(name, _estimate_share(part, whole, resamples), int(whole.sum()))

    shares = (
        share("faulty accepted", confirmed, faulty),
        share("accusations right", faulty, accused),
        share("true accused", accused, ~faulty),
        share("true confirmed", confirmed, ~faulty),
        share("left open", undecided, every),
        share("unscored", failed, every),
        share("faulty answers accepted", answer_accepted, first & answer_faulty),
        share("true answers accepted", answer_accepted, first & ~answer_faulty),
    )
    curve = tuple(
        CutoffPoint(
            cut,
            _estimate_share(support >= cut, faulty, resamples),
            _estimate_share(support >= cut, ~faulty, resamples),
        )
        for cut in CURVE
    )
    return VerifierReport(verifier, shares, curve, usage)


def _answer_outcomes(
    rows: Sequence[BenchRow], faulty: Array, confirmed: Array
) -> tuple[Array, Array, Array]:
    """Return for each row whether its answer has a faulty claim, has only confirmed ones, and
    whether it is its first.

    The claims of one answer share what stands before ``#`` in their ids; a row without is an answer
    of its own.
    """
    members: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        answer, mark, _ = row.id.rpartition("#")
        members.setdefault(answer if mark else f"row {at}", []).append(at)
    any_faulty, all_confirmed, first = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    for where in members.values():
        any_faulty[where], all_confirmed[where] = faulty[where].any(), confirmed[where].all()
        first[where[0]] = True
    return any_faulty, all_confirmed, first


def render_comparison(found: VerifierComparison) -> str:
    """Return the comparison as plain tables, intervals in brackets."""
    return "\n".join(_comparison_lines(found)) + "\n"


def _comparison_lines(found: VerifierComparison) -> Iterator[str]:
    yield (
        f"{found.task}: {found.half} half, {found.rows} claims, {found.faulty} of them faulty,"
        f" {found.groups} groups, {found.bootstrap} resamples, seed {found.seed}"
    )
    for report in found.verifiers:
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
