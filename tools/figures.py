"""Measure the figures in the docs and write them to ``benchmarks/results``.

    python tools/figures.py --data FOLDER [NAME ...]      # all, or those named; a few minutes
    python tools/figures.py --docs                        # copies the figures in the files into README and docs

Each file records its command, date, commit and machine. A page links each figure to its key in a
file, ``[0.36](../benchmarks/results/audits.json#found)``. A test compares the page with the file,
and the site shows the figure without the link. Files that no measure below writes need machines or
data that aren't available everywhere; each says how, when and where it was made.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)?benchmarks/results/([a-z-]+)\.json#([\w.-]+)\)")
SETS = ("hagrid_claims", "wice_claims", "expertqa_cases", "summedits")


class Measure(NamedTuple):
    """A command, and a function that turns its output into figures in the format of the docs."""

    command: str
    take: Callable[[str], dict[str, str]]


def _estimate(figure: Mapping[str, float]) -> str:
    return f"{figure['value']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"


def _auroc(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def claims(printed: str) -> dict[str, str]:
    """Return the figures of ``masis bench --json`` for each set of labeled claims and for all."""
    figures, counted, ordered = dict[str, str](), list[tuple[int, ...]](), list[tuple[float, ...]]()
    for line in printed.splitlines():
        result: dict[str, Any] = json.loads(line)
        counts, reading = result["counts"], result["readings"][0]
        right, wrong = counts["faulty claims accused"], counts["true claims accused"]
        row = (
            counts["true claims confirmed"],
            reading["n"] - reading["positives"],
            counts["faulty claims confirmed"],
            reading["positives"],
            right,
            right + wrong,
        )
        areas = tuple(judge["figures"]["auroc"]["value"] for judge in reading["judges"])
        counted.append(row)
        ordered.append((areas[0], *areas[2:4]))
        figures |= _claims_row(result["task"].lower(), row, ordered[-1])
    mean = tuple(sum(column) / len(ordered) for column in zip(*ordered, strict=True))
    return figures | _claims_row(
        "together", tuple(sum(column) for column in zip(*counted, strict=True)), mean
    )


def _claims_row(name: str, row: tuple[int, ...], areas: tuple[float, ...]) -> dict[str, str]:
    return {
        f"{name}.true": f"{row[0]} of {row[1]}",
        f"{name}.faulty": f"{row[2]} of {row[3]}",
        f"{name}.accused": (
            f"{row[4]} of {row[5]}" + (f" ({row[4] / row[5]:.0%})" if name == "together" else "")
        ),
        f"{name}.auroc": _auroc(areas[0]),
        f"{name}.overlap": f"{_auroc(areas[1])} / {_auroc(areas[2])}",
    }


def audits(printed: str) -> dict[str, str]:
    """Return the figures of ``masis bench --json`` for whole audits."""
    outcomes = {outcome["name"]: outcome for outcome in json.loads(printed)["outcomes"]}
    label_names = {
        "found": "planted issues found",
        "found-without-citations": "planted issues found, citations left out",
        "right": "issues that are right",
        "improved": "improved by 10% or more, of cases revised",
        "converged": "converged within 3 iterations",
    }
    figures = {key: _estimate(outcomes[name]["figure"]) for key, name in label_names.items()}
    figures |= {f"{key}.n": f"{outcomes[name]['n']:,}" for key, name in label_names.items()}
    for role in ("critic", "reviser", "iteration", "loop"):
        figures[role] = f"{outcomes[f'{role}, 95th percentile']['figure']['value'] / 1000:.2f}"
    met = {None: "", True: "met", False: "missed"}
    return figures | {
        f"{key}.met": met[outcomes[name]["met"]]
        for key, name in label_names.items()
        if outcomes[name]["target"]
    }


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {key: f"{count:,}" for key, count in counts.items()}


def other_sources(printed: str) -> dict[str, str]:
    """Return how many claims of each source and overall were confirmed or flagged, and how many of
    those correctly.
    """
    figures, together = dict[str, str](), Counter[str]()
    for line in printed.splitlines():
        result = json.loads(line)
        source = result.pop("source").lower()
        together.update(result)
        figures |= _source_row(source, Counter(result))
    return figures | _source_row("together", together)


def _source_row(name: str, counts: Counter[str]) -> dict[str, str]:
    true = sum(number for key, number in counts.items() if key.startswith("true"))
    confirmed = counts["true confirmed"] + counts["faulty confirmed"]
    flagged = counts["true flagged"] + counts["faulty flagged"]
    return {
        f"{name}.n": f"{counts.total():,}",
        f"{name}.true": f"{true:,}",
        f"{name}.confirmed": f"{confirmed}, {counts['true confirmed']}",
        f"{name}.accused": f"{flagged}, {counts['faulty flagged']}",
        f"{name}.confirmed-share": f"{counts['true confirmed'] / confirmed:.0%}",
        f"{name}.accused-share": f"{counts['faulty flagged'] / flagged:.0%}" if flagged else "none",
    }


def trust(printed: str) -> dict[str, str]:
    """Return the figures of tools/trust_figures.py: agreement with experts, and a fitted score."""
    figures = dict[str, str]()
    of_answers, of_claims = printed.split("claims: ")
    for part, text in {"answers": of_answers, "claims": of_claims}.items():
        figures[f"{part}.n"] = re.findall(r"n = (\d+)", text)[0]
        for name, share, n, interval in re.findall(
            r"  (\w+): (\S+%) \(\d+ of (\d+); 95% interval (.*?)\)", text
        ):
            figures[f"{part}.{name}"] = f"{share} ({interval})"
            figures[f"{part}.{name}.share"], figures[f"{part}.{name}.n"] = share, n
        kappa = re.search(
            r"kappa: (\S+) \(n = \d+; 95% interval (.*?)\); always one verdict: (\S+%)", text
        )
        if kappa is None:
            raise ValueError(f"no kappa of {part}")
        figures[f"{part}.kappa"], figures[f"{part}.constant"] = f"{kappa[1]} ({kappa[2]})", kappa[3]
    return figures | extract_patterns(
        calibration=r"calibration error of the built-in probability (\S+),",
        floor=r"floor (\S+)$",
        loss=r"log loss (\S+) ",
        loss_built_in=r"\(built-in (\S+),",
        loss_constant=r"constant (\S+)\)",
        auroc=r"AUROC (\S+),",
        fitted_calibration=r"AUROC \S+, calibration error (\S+)$",
        fitted_yield=r"yield, fitted:.*?(\d+%) of faults in 40%",
        built_in_yield=r"yield, built-in:.*?(\d+%) of faults in 40%",
        coverable=r"held-out half: (\d+) answers",
        coverable_faulty=r"cover, (\S+%) of them",
    )(printed)


def calls(printed: str) -> dict[str, str]:
    """Return the calls and tokens per answer by depth, and the share of repeated input."""
    depths = printed.splitlines()[0].split()[2:]
    label_names = {
        "calls": "calls per answer",
        "tokens": "tokens per answer",
        "cached": "share of repeated input",
    }
    rows = {
        key: next(line.split() for line in printed.splitlines() if line.startswith(label))
        for key, label in label_names.items()
    }
    return {
        f"{depth}.{key}": row[position - len(depths)]
        for key, row in rows.items()
        for position, depth in enumerate(depths)
    }


def extract_patterns(**patterns: str) -> Callable[[str], dict[str, str]]:
    """Return a function that extracts the groups of each pattern from a text, joined by spaces."""

    def take(printed: str) -> dict[str, str]:
        figures = {}
        for key, pattern in patterns.items():
            match = re.search(pattern, printed, re.MULTILINE | re.DOTALL)
            if match is None:
                raise ValueError(f"{key}: {pattern!r} doesn't match the output")
            figures[key] = " ".join(match.groups())
        return figures

    return take


MEASURES = {
    "claims": Measure(
        f"masis bench {' '.join(f'FOLDER/{name}.jsonl' for name in SETS)} --json", claims
    ),
    "audits": Measure("masis bench data/cases --half all --json", audits),
    "trust": Measure(
        "python tools/trust_figures.py --data FOLDER",
        trust,
    ),
    "other-sources": Measure("python benchmarks/other_sources.py --data FOLDER", other_sources),
    "strong-model": Measure(
        "python benchmarks/strong_model.py", lambda printed: _texts(json.loads(printed))
    ),
    "calls": Measure("python benchmarks/model_calls.py", calls),
    "screening-relevance": Measure(
        "python benchmarks/screening_relevance.py --data FOLDER",
        extract_patterns(
            auc=r"AUC (\S+)",
            own_off=r"own: (\S+%) off topic",
            own_relevant=r"own:.*?(\S+%) relevant",
            others_off=r"others: (\S+%) off topic",
            others_relevant=r"others:.*?, (\S+%) relevant",
        ),
    ),
    "screening-directions": Measure(
        "python benchmarks/screening_directions.py --data FOLDER",
        extract_patterns(
            stated=r"held out:.*?direction in (\d+)",
            right=r"held out:.*?correct in (\d+ \(\S+%\))",
            own_read=r"report: .*?read (\d+)",
            own_right=r"report: .*?right (\d+ \(\S+%\))",
            own_reversed=r"report: .*?reversed (\d+)",
        ),
    ),
    "screening-pages": Measure(
        "python benchmarks/screening_pages.py --data FOLDER",
        extract_patterns(
            equal=r"of \d+ questions (\d+) equal",
            questions=r"of (\d+) questions",
            no_more_lenient=r"equal.*?(\d+) no more lenient",
        ),
    ),
    "screening-thresholds": Measure(
        "python benchmarks/screening_thresholds.py --data FOLDER",
        extract_patterns(
            demo=r"demo: .*?memory requires 0.05 less: (\d+) end",
            demo_questions=r"demo: (\d+) questions",
        ),
    ),
    "screening-verdicts": Measure(
        "python benchmarks/screening_verdicts.py --data FOLDER",
        extract_patterns(
            off_topic=r"off_topic: (\d+ of \d+) discarded",
            weak=r"weak: (\d+ of \d+) discarded",
            keep_precision=r"keep: precision (\d+ of \d+)",
            keep_recall=r"keep: precision .*?, recall (\d+ of \d+)",
            more_precision=r"needs_more: precision (\d+ of \d+)",
            more_recall=r"needs_more: precision .*?, recall (\d+ of \d+)",
            discard_precision=r"  discard: precision (\d+ of \d+)",
            discard_recall=r"  discard: precision .*?, recall (\d+ of \d+)",
        ),
    ),
}


def measure(name: str, data: Path) -> str:
    """Run a measure and return its output."""
    command = [part.replace("FOLDER", str(data)) for part in MEASURES[name].command.split()]
    program = {"masis": [sys.executable, "-m", "masis.cli"], "python": [sys.executable]}[command[0]]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*program, *command[1:]],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def write(name: str, printed: str) -> None:
    """Write the file of a measure from its output."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    content = {
        "command": MEASURES[name].command,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "machine": (
            f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        ),
        "figures": MEASURES[name].take(printed),
    }
    (RESULTS / f"{name}.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def figure(name: str, key: str) -> str:
    """Return a figure in the format of the docs. Raises KeyError if the file lacks the key."""
    text: str = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"][key]
    return text


def current(page: str) -> str:
    """Return a page with its figures replaced by those in the files."""
    return LINK.sub(lambda link: link[0].replace(link[1], figure(link[2], link[3]), 1), page)


def main() -> None:
    """Measure the figures or, with --docs, only copy them into the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", choices=[*MEASURES, []], metavar="NAME", help=", ".join(MEASURES)
    )
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of public data")
    parser.add_argument("--docs", action="store_true", help="copy the figures into README and docs")
    options = parser.parse_args()
    for name in () if options.docs else options.names or MEASURES:
        print(name, flush=True)
        write(name, measure(name, options.data.absolute()))
    for page in PAGES:
        page.write_text(current(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
