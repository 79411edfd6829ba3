"""Compute the figures and plots of docs/trust.md.

    python tools/trust_figures.py [--sets 2000] [--out docs/images] [--data FOLDER]

Without ``--data``, simulates guarantees and intervals and draws the plots, which takes a few
minutes. With a folder that has ``expertqa_cases.jsonl``, audits these cases offline in a temporary
database instead, and prints agreement with the experts, calibration, yield and guarantees.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.trust_simulation import KINDS, coverage, guarantees, monte_carlo_bound
from masis import read_cases
from masis.bench.rows import half_of
from masis.services import Actor, Workbench
from masis.services.trust.service import TrustFilter
from masis.services.trust.summary import figure_text
from masis.settings import Settings
from masis.trust.guarantee import loosest_valid, thresholds_for, try_thresholds
from masis.trust.score import FITTED_ON, fit, probabilities, yield_curve

ROOT = Path(__file__).resolve().parent.parent
ADA = Actor(name="Ada")


class Dot(NamedTuple):
    """A point of a plot: its column, value and series."""

    column: str
    value: float
    series: int


def plot(
    file: Path,
    title: str,
    dots: Sequence[Dot],
    series: Sequence[str],
    top: float,
    lines: dict[str, float],
) -> None:
    """Write a dot plot as SVG, with a column for each name and horizontal lines at given values."""
    names = list(dict.fromkeys(dot.column for dot in dots))
    wide, high, left = 40 + 26 * len(names) + 180, 320, 60
    colours, shapes = ("#1f6f8b", "#c4552d", "#5b7a3a"), ("circle", "square", "triangle")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high + 110}"',
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="16" font-size="13">{title}</text>',
    ]

    def place(value: float) -> float:
        return 30 + (1 - value / top) * (high - 30)

    for value in np.linspace(0, top, 6):
        parts.append(
            f'<text x="{left - 6}" y="{place(value) + 4:.1f}" text-anchor="end">{value:.1%}</text>'
        )
        parts.append(f'<path d="M{left} {place(value):.1f}H{wide - 150}" stroke="#eee"/>')
    for name, value in lines.items():
        parts.append(
            f'<path d="M{left} {place(value):.1f}H{wide - 150}" stroke="#444" stroke-dasharray="4'
            ' 3"/>'
        )
        parts.append(f'<text x="{wide - 145}" y="{place(value) + 4:.1f}">{name}</text>')
    for number, name in enumerate(names):
        x = left + 15 + 26 * number
        parts.append(f'<text transform="translate({x + 4} {high + 8}) rotate(90)">{name}</text>')
        for dot in dots:
            if dot.column == name:
                y, colour = place(min(dot.value, top)), colours[dot.series]
                shape = {
                    "circle": f'<circle cx="{x}" cy="{y:.1f}" r="4"',
                    "square": f'<rect x="{x - 3.5}" y="{y - 3.5:.1f}" width="7" height="7"',
                    "triangle": f'<path d="M{x} {y - 4.5:.1f}l4 8h-8z"',
                }[shapes[dot.series]]
                parts.append(f'{shape} fill="{colour}"/>')
    for number, name in enumerate(series):
        parts.append(
            f'<text x="{wide - 145}" y="{40 + 16 * number}"'
            f' fill="{colours[number]}">{shapes[number]}: {name}</text>'
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def simulate(sets: int, out: Path) -> None:
    """Simulate and draw; print how often each kind of set got a guarantee, and a wrong one."""
    bound, dots = monte_carlo_bound(0.05, sets), list[Dot]()
    print(
        f"{sets} sets of each kind; 5% stated; wrong in at most {bound:.2%} within the 99% Monte"
        " Carlo band"
    )
    print("faulty  separation  draws  plans  given   wrong   accepted")
    for kind in KINDS:
        for series, plans in enumerate((1, 4)):
            result = guarantees(kind, sets, plans=plans)
            name = f"{kind.prevalence:.1%}, {kind.separation:.0f}, {kind.draws}"
            dots.append(Dot(name, result.wrong / sets, series))
            row = (
                f"{kind.prevalence:6.1%}  {kind.separation:10.1f}  {kind.draws:5}  {plans:5} "
                f" {result.given / sets:5.1%}"
            )
            print(f"{row}  {result.wrong / sets:6.2%}  {result.accepted:8.1%}", flush=True)
    title = "Wrong guarantees of 2% at 95% certainty (faulty, separation of the score, draws)"
    plot(
        out / "trust-guarantee.svg",
        title,
        dots,
        ("one plan", "up to four"),
        0.08,
        {"stated": 0.05, "99% band": bound},
    )
    covered = list[Dot]()
    for units in (50, 100, 200, 400):
        for prevalence in (0.02, 0.05, 0.1, 0.3, 0.5):
            for interval in coverage(units, prevalence, max(100, sets // 4)):
                at = {"kappa": 0, "AC1": 1, "share": 2}.get(interval.figure)
                if at is not None and interval.shown > sets // 16:
                    covered.append(Dot(f"{units}, {prevalence:.0%}", 1 - interval.covered, at))
                    print(
                        f"{units:4} units, {prevalence:.0%}: {interval.figure} covered"
                        f" {interval.covered:.1%} of {interval.shown}",
                        flush=True,
                    )
    title = (
        "Intervals that miss the truth, where they are shown (units, share of the rarer verdict)"
    )
    plot(
        out / "trust-coverage.svg",
        title,
        covered,
        ("kappa", "AC1", "share"),
        0.15,
        {"stated": 0.05},
    )


def measure(file: Path) -> None:
    """Audit ExpertQA offline and print the agreement with its experts' labels."""
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench.open(Path(folder) / "expertqa.db", Settings(spot_check_share=0))
        cases = list(read_cases(file))
        workbench.cases.add(ADA, cases)
        for case in cases:
            workbench.audits.audit(ADA, case)
        filters, trust = TrustFilter(source="gold"), workbench.trust
        report = trust.compare(ADA, filters)
        compared = {
            "answers": report.answers,
            "claims": trust.compare_parts(ADA, "claim", "gold").comparison,
        }
        for title, result in compared.items():
            print(f"{title}: n = {result.n}; {result.confusion}")
            for name in ("faulty", "precision", "recall", "accuracy"):
                print(f"  {name}: {figure_text(getattr(result, name))}")
            print(
                f"  kappa: {figure_text(result.kappa, share=False)}; always one verdict:"
                f" {result.constant or 0:.1%}"
            )
        print(
            f"calibration error of the built-in probability {report.answers.calibration:.3f}, "
            f"floor {report.answers.error_floor:.3f}"
        )
        rows = report.rows
        truth = rows["faulty"].to_numpy(dtype=bool)
        columns = {name: rows[name].to_numpy() for name in FITTED_ON}
        score, held_out = fit(columns, truth, rows["question"].tolist())
        print(
            f"fitted on {score.decisions} answers of {score.questions} questions, held out by"
            f" question: log loss {score.log_loss:.3f} (built-in {score.built_in:.3f}, constant"
            f" {score.baseline:.3f}), AUROC {score.auroc:.3f}, calibration error"
            f" {score.calibration_error:.3f}"
        )
        curves = {
            "fitted": yield_curve(truth, held_out),
            "built-in": trust.yield_report(ADA, filters).curves["built-in order"],
        }
        for name, curve in curves.items():
            print(
                f"yield, {name}: "
                + ", ".join(
                    f"{result:.0%} of faults in {read:.0%}" for read, result in curve[5:30:5]
                )
            )
        in_report = np.array([half_of(question) == "report" for question in rows["question"]])
        fitted = fit(
            {name: column[~in_report] for name, column in columns.items()},
            truth[~in_report],
            rows["question"][~in_report].tolist(),
        )
        coverable = in_report & rows["coverable"].fillna(0).astype(bool).to_numpy()
        named = fitted.score.model_copy(update={"version": 1})
        probability = probabilities(
            named, {name: column[coverable] for name, column in columns.items()}
        )
        print(
            f"held-out half: {coverable.sum()} answers that a guarantee may cover, "
            f"{truth[coverable].mean():.1%} of them faulty"
        )
        for tolerance in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
            cuts = thresholds_for(probability, len(probability), tolerance, 0.05)
            best = loosest_valid(
                try_thresholds(cuts, probability, truth[coverable], tolerance, 0.05)
            )
            outcome = (
                "none"
                if best is None
                else f"up to {best.threshold:.2f}: {best.n} answers, {best.faulty} faulty"
            )
            print(f"guarantee of {tolerance:.0%} at 95%: {outcome}")
        workbench.close()


def main() -> None:
    """Read the arguments, then simulate or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=2000, help="reviewed sets of each kind")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--data", type=Path, help="a folder with expertqa_cases.jsonl")
    options = parser.parse_args()
    if options.data:
        measure(options.data / "expertqa_cases.jsonl")
    else:
        simulate(options.sets, options.out)


if __name__ == "__main__":
    main()
