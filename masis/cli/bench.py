"""``masis bench``: the offline auditor measured on labelled data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from masis.cli.options import STDIO, input_argument
from masis.cli.talk import say
from masis.datasets.bench import render, run_bench


@click.command()
@input_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--half",
    type=click.Choice(["report", "fit", "all"]),
    default="report",
    show_default=True,
    help="Which half of each file: the one nothing was fitted on, the other, or both.",
)
@click.option("--bootstrap", type=click.IntRange(0, 100_000), default=1000, show_default=True, help="Resamples.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a file instead of tables.")
def bench(files: tuple[Path, ...], half: Literal["report", "fit", "all"], bootstrap: int, as_json: bool) -> None:
    """Measure the auditor on labelled data: precision, recall, F1, AUROC and coverage, each with an interval.

    Each FILE is recognised by its keys: HAGRID, WiCE, SummEdits, ExpertQA, or cases with gold labels of our own. Beside
    the auditor stand two baselines, one that always says "not supported" and one that counts shared words.

    \b
      masis bench data/cases/*.jsonl
      masis bench hagrid_claims.jsonl --json > hagrid.json
    """  # noqa: D301 (click reads the backspace)
    for file in files:
        if file == STDIO:
            raise click.UsageError("bench reads files, not stdin.")
        say(f"{file} ...")
        report = run_bench(file, half=half, bootstrap=bootstrap)
        click.echo(json.dumps({"file": file.name, **report.to_dict()}) if as_json else render(report))
