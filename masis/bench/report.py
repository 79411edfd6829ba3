"""The report of a measurement, as values and as a text table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from masis.bench.metrics import METRICS, MetricEstimate
from masis.bench.outcomes import TargetOutcome
from masis.bench.rows import Half


@dataclass(frozen=True, slots=True)
class JudgeMetrics:
    """The metrics of one judge on one reading of a set."""

    judge: str
    figures: dict[str, MetricEstimate]


@dataclass(frozen=True, slots=True)
class SetReading:
    """One reading of a set: the meaning of positive, the counts, and the metrics of each judge."""

    name: str
    positive: str
    n: int
    positives: int
    groups: int
    judges: tuple[JudgeMetrics, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The measurement of one file.

    Attributes:
        half: The reported half.
        counts: Plain counts, if the task has some.
        outcomes: The results of whole audits, if there are any.

    """

    task: str
    half: Half
    bootstrap: int
    seed: int
    rules: str
    readings: tuple[SetReading, ...]
    counts: dict[str, int]
    notes: tuple[str, ...] = ()
    outcomes: tuple[TargetOutcome, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, metrics as {value, low, high}."""
        plain = asdict(self)
        for outcome, values in zip(self.outcomes, plain["outcomes"], strict=True):
            values["met"] = outcome.is_met
        return plain


def render(report: BenchReport) -> str:
    """Return the report as a plain-text table, with intervals in brackets."""
    title = f"{report.task}: {report.half} half, rules {report.rules}"
    lines = [f"{title}, {report.bootstrap} resamples, seed {report.seed}"]
    for reading in report.readings:
        lines += [
            "",
            f"  {reading.name}: n {reading.n}, groups {reading.groups}",
            f"  positive ({reading.positive}): {reading.positives}",
        ]
        width = max(len(measured.judge) for measured in reading.judges)
        lines.append(
            "  "
            + " " * width
            + "".join(f"{name.replace('balanced_accuracy', 'bal_acc'):>18}" for name in METRICS)
        )
        for measured in reading.judges:
            cells = "".join(f"{with_interval(measured.figures[name]):>18}" for name in METRICS)
            lines.append(f"  {measured.judge:<{width}}{cells}")
    lines += _outcome_lines(report.outcomes)
    if report.counts:
        lines += ["", *(f"  {name}: {count}" for name, count in report.counts.items())]
    lines += [f"  note: {note}" for note in report.notes]
    return "\n".join(lines) + "\n"


def with_interval(
    estimate: MetricEstimate, value: str = ".3f", bound: str = ".2f", unit: str = ""
) -> str:
    """Return a value with its interval in brackets, in these number formats."""
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:{value}}{unit}"
    return f"{estimate.value:{value}} [{estimate.low:{bound}},{estimate.high:{bound}}]{unit}"


def _outcome_lines(outcomes: Sequence[TargetOutcome]) -> list[str]:
    if not outcomes:
        return []
    width = max(len(outcome.name) for outcome in outcomes)
    lines = [
        "",
        "  whole audits" + " " * (width - 10) + f"{'figure':>24}{'n':>7}{'cases':>7}  asked for",
    ]
    for outcome in outcomes:
        target_text = ""
        if outcome.target is not None:
            verdict = {True: "met", False: "missed", None: "-"}[outcome.is_met]
            bound = (
                f"at least {outcome.target:.2f}"
                if outcome.unit == "share"
                else f"at most {outcome.target:.0f} ms"
            )
            target_text = f"{bound} ({outcome.rule}): {verdict}"
        cell = (
            with_interval(outcome.figure)
            if outcome.unit == "share"
            else with_interval(outcome.figure, ".0f", ".0f", " ms")
        )
        counts = f"{outcome.n:>7}{outcome.cases:>7}"
        lines.append(f"  {outcome.name:<{width}}  {cell:>24}{counts}  {target_text}".rstrip())
    return lines
