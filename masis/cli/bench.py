"""``masis bench``: the offline auditor measured on labelled data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from masis.bench import render, run_bench
from masis.cli.group import JobFailed
from masis.cli.options import sources_argument
from masis.cli.output import ErrorReport, say
from masis.errors import InputError
from masis.schema.wording import counted


@click.command()
@sources_argument("files", required=True, metavar="FILE...")
@click.option(
    "--half",
    type=click.Choice(["report", "fit", "all"]),
    default="report",
    show_default=True,
    help="Which half of each file: the one nothing was fitted on, the other, or both.",
)
@click.option("--bootstrap", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="Resamples.")
@click.option(
    "--runs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Audits of these cases, as masis audit --out wrote them; without it they are audited here, without a model.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file instead of tables.")
def bench(
    files: tuple[Path, ...],
    half: Literal["report", "fit", "all"],
    bootstrap: int,
    runs: Path | None,
    as_json: bool,
) -> None:
    """Measure the auditor on labelled data: precision, recall, F1, AUROC and coverage, each with an interval.

    Each FILE is recognised by its keys: HAGRID, WiCE, SummEdits, ExpertQA, or cases with gold labels of our own; the
    files of a folder are measured together. Beside the auditor stand two baselines: one always says "not supported",
    the other counts shared words. Our own cases are also audited from end to end: which planted issues are found,
    how often a revision improves an answer, how often the loop converges, how long it takes. A FILE of runs is measured
    likewise, without the issues.

    \b
      masis bench data/cases
      masis audit data/cases --model openai --out runs.jsonl && masis bench data/cases --half all --runs runs.jsonl
      masis bench hagrid_claims.jsonl wice_claims.jsonl --json > metrics.jsonl

    Exit code 0: every file was measured. 1: some were not. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    errors = ErrorReport()
    for file in files:
        say(f"{file} ...")
        try:
            report = run_bench(file, half=half, bootstrap=bootstrap, runs=runs)
        except UnicodeDecodeError as error:
            errors.add(InputError(f"is not UTF-8 ({error.reason})", cure="Save it as UTF-8.", file=str(file)))
        except InputError as error:
            errors.add(error.at(file=error.file or str(file)))
        else:
            click.echo(json.dumps({"file": str(file), **report.to_dict()}) if as_json else render(report))
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'file')} could not be measured, named above.")
