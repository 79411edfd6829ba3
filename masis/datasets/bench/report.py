"""What a measurement found, as values, and as a table to read."""

from dataclasses import asdict, dataclass
from typing import Any

from masis.datasets.bench.metrics import FIGURES, Figure
from masis.datasets.bench.rows import Half


@dataclass(frozen=True, slots=True)
class Measured:
    """One judge's figures on one reading of a set."""

    judge: str
    figures: dict[str, Figure]


@dataclass(frozen=True, slots=True)
class Reading:
    """One question put to a set: what counts as positive, how many rows and positives, and how each judge fared."""

    name: str
    positive: str
    n: int
    positives: int
    groups: int
    judges: tuple[Measured, ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The measurement of one file: its task, the half reported, its readings, and plain counts where a task has
    some.
    """

    task: str
    half: Half
    bootstrap: int
    seed: int
    weights: str
    readings: tuple[Reading, ...]
    counts: dict[str, int]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, figures as {value, low, high}."""
        plain = asdict(self)
        for reading in plain["readings"]:
            for judge in reading["judges"]:
                judge["figures"] = {name: Figure(*figure)._asdict() for name, figure in judge["figures"].items()}
        return plain


def render(report: BenchReport) -> str:
    """The report as a plain table, intervals in brackets."""
    lines = [
        f"{report.task}: {report.half} half, weights {report.weights}, {report.bootstrap} resamples, seed {report.seed}"
    ]
    for reading in report.readings:
        lines += [
            "",
            f"  {reading.name}: n {reading.n}, groups {reading.groups}",
            f"  positive ({reading.positive}): {reading.positives}",
        ]
        width = max(len(measured.judge) for measured in reading.judges)
        lines.append(
            "  " + " " * width + "".join(f"{name.replace('balanced_accuracy', 'bal_acc'):>18}" for name in FIGURES)
        )
        for measured in reading.judges:
            cells = "".join(f"{_cell(measured.figures[name]):>18}" for name in FIGURES)
            lines.append(f"  {measured.judge:<{width}}{cells}")
    if report.counts:
        lines += ["", *(f"  {name}: {count}" for name, count in report.counts.items())]
    lines += [f"  note: {note}" for note in report.notes]
    return "\n".join(lines) + "\n"


def _cell(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.2f},{figure.high:.2f}]"
