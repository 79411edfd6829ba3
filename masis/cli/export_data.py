"""``masis export``: what the database holds as JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Literal

import click

from masis.cli.options import STDIO, database_option, open_existing, operator, out_option
from masis.cli.output import say
from masis.datasets.writers import write_case, write_run
from masis.datasets.writers.files import whole_file
from masis.datasets.writers.lines import write_line
from masis.schema.wording import counted
from masis.services import Workbench


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "cases", "runs", "executions"]),
    default="jsonl",
    show_default=True,
    help="jsonl: everything, lossless. cases: the cases as imported. runs: the newest finished run of each case. "
    "executions: the log of executions, numbers without texts.",
)
@out_option(default="-", show_default=True, help="The file to write; '-' for stdout.")
@database_option
def export(form: Literal["jsonl", "cases", "runs", "executions"], out: Path, db: Path | None) -> None:
    """Write the database, its cases or its runs as JSON Lines.

    The format jsonl is lossless: importing it into an empty database reproduces cases, runs and the decision log, and
    exporting that again gives the same bytes. A file is replaced only once the new one is complete; a device, a
    pipe or a symbolic link is written through.

    \b
      masis export --out archive.jsonl
      masis export --format runs --out runs.jsonl
      masis export --format cases | head -1
    """  # noqa: D301 (click reads the backspace)
    workbench = open_existing(db)
    with whole_file(out) as stream:
        written = _write(form, workbench, stream)
    say(f"{counted(written, 'line')} written{'' if out == STDIO else f' to {out}'}.")


def _write(form: str, workbench: Workbench, stream: BinaryIO) -> int:
    if form == "jsonl":
        return workbench.exports.write_archive(operator(), stream)
    written = 0
    if form == "executions":
        for written, execution in enumerate(workbench.runs.iterate_executions(), 1):  # noqa: B007 (counts)
            write_line(execution.model_dump_json(), stream)
        return written
    for case in workbench.cases.iterate():
        if form == "cases":
            write_case(case, stream)
            written += 1
        elif (run := workbench.cases.open(case.id).run) is not None:
            write_run(run, stream)
            written += 1
    return written
