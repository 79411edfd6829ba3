"""``masis report``: the audit of one case as a page of HTML that needs nothing else, or of several as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from masis.cli.filters import NAMES, STATES, chosen_filter, filter_options
from masis.cli.options import STDIO, database_option, open_existing, out_option
from masis.cli.output import Progress, say
from masis.datasets.writers.files import whole_file
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import CaseFilter


@click.command()
@click.argument("cases", metavar="[CASE]...", nargs=-1)
@click.option("--run", "run_id", metavar="ID", help="A run of the case.  [default: the newest finished one]")
@out_option(folders=True, default="-", show_default=True, help="The file to write ('-' for stdout), or a folder.")
@filter_options("every state, where another filter is given")
@database_option
@click.pass_context
def report(
    context: click.Context, /, cases: tuple[str, ...], run_id: str | None, out: Path, db: Path | None, **given: Any
) -> None:
    """Write the audit of one case as HTML, or of several as a folder.

    CASE is the id of a case. A page has its question, marked answers, evidence, scores and decisions; it needs nothing
    else and runs nothing: to print, to store, to pass on. Of several cases, or those that a filter finds, a folder is
    written with a page each and an index.html that lists them; it opens from disk.

    \b
      masis report strategy-01 --out audit.html
      masis report strategy-01 home-03 --out reports/
      masis report --state needs_review --field Medicine --out reports/
    """  # noqa: D301 (click reads the backspace)
    filtered = any(context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in NAMES)
    if filtered == bool(cases):
        raise click.UsageError("Name cases, or filter for them (--state any for all): one of both.")
    workbench = open_existing(db)
    if filtered or len(cases) > 1 or (out != STDIO and out.is_dir()):
        if run_id:
            raise click.UsageError("--run: belongs to one case and one file.")
        if out == STDIO:
            raise click.UsageError("Several reports are a folder: name one with --out.")
        _write_folder(workbench, out, chosen_filter(given, STATES) if filtered else cases)
    else:
        _write_page(workbench, out, cases[0], run_id)


def _write_page(workbench: Workbench, out: Path, case: str, run_id: str | None) -> None:
    from masis.services.reports import case_report  # its libraries take a second to import; --help must not wait

    view = workbench.cases.open(case)
    run = workbench.runs.get(run_id) if run_id else None
    if run is not None and run.case_id != case:
        raise click.UsageError(f"--run {run_id}: is a run of another case ({run.case_id}).")
    html = case_report(view, workbench.store.decisions.head(), run)
    with whole_file(out) as stream:
        stream.write(html.encode())
    if out != STDIO:
        say(f"The report is in {out}.")


def _write_folder(workbench: Workbench, out: Path, wanted: tuple[str, ...] | CaseFilter) -> None:
    from masis.services.reports import INDEX, write_reports

    total = workbench.cases.count(wanted) if isinstance(wanted, CaseFilter) else len(wanted)
    if not total:
        raise click.ClickException("No case matches the filter: nothing was written.")
    with Progress("Writing", total) as progress:
        written = write_reports(
            workbench, out, wanted, lambda done: progress.move(done, f"{done:,} of {total:,} reports")
        )
    say(f"{counted(written, 'report')} written: open {out / INDEX}.")
