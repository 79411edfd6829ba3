"""``masis report``: the audit of one case as a page of HTML that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from masis.cli.options import STDIO, database_option, open_existing, out_option
from masis.cli.output import say
from masis.datasets.writers.files import whole_file


@click.command()
@click.argument("case")
@click.option("--run", "run_id", metavar="ID", help="A run of the case.  [default: the newest finished one]")
@out_option(default="-", show_default=True, help="The file to write; '-' for stdout.")
@database_option
def report(case: str, run_id: str | None, out: Path, db: Path | None) -> None:
    """Write the audit of one case as HTML: question, marked answers, evidence, scores, decisions.

    CASE is the id of the case. The file needs nothing else and runs nothing: to print, to store, to pass on.

    \b
      masis report strategy-01 --out audit.html
    """  # noqa: D301 (click reads the backspace)
    from masis.ui.review.report import (
        case_report,  # its libraries take a second to import, and --help must not wait for them
    )

    workbench = open_existing(db)
    view = workbench.cases.open(case)
    run = workbench.runs.get(run_id) if run_id else None
    if run is not None and run.case_id != case:
        raise click.UsageError(f"--run {run_id}: is a run of another case ({run.case_id}).")
    html = case_report(view, workbench.reviews.head(), run)
    with whole_file(out) as stream:
        stream.write(html.encode())
    if out != STDIO:
        say(f"The report is in {out}.")
