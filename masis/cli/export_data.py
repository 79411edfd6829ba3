"""``masis export``: cases, runs and executions as they are, or data sets that train and measure models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from masis.cli.filters import chosen_filter, filter_options
from masis.cli.options import STDIO, database_option, not_a_folder, open_existing, operator, out_option
from masis.cli.output import Progress, printable, say
from masis.datasets.exports import DECIDED, ENCODINGS, FORMATS, SPLITS, Selection, Shares
from masis.datasets.writers import write_case, write_run
from masis.datasets.writers.files import whole_file
from masis.datasets.writers.lines import write_line
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.lake import is_lake

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = ("cases", "runs", "executions")
"""Formats that take no filter: they copy every record of their kind."""


class Parts(click.ParamType[Shares]):
    """Shares of train, validation and test, as ``80/10/10``."""

    name = "shares"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the shares; wrong use where they don't sum up to 100."""
        if isinstance(value, Shares):
            return value
        parts = value.split("/")
        if len(parts) != 3 or not all(each.isascii() and each.isdigit() and len(each) < 4 for each in parts):
            self.fail(f"{printable(value[:40])}: write the shares as 80/10/10.", param, ctx)
        shares = Shares(*map(int, parts))
        if sum(shares) != 100:
            self.fail(f"{printable(value[:40])}: the shares sum up to {sum(shares)}, not to 100.", param, ctx)
        return shares


def selection_options(command: F) -> F:
    """Add the filters of the queue, and the split by question: ``chosen_selection`` reads them."""
    command = click.option(
        "--shares", type=Parts(), default="80/10/10", show_default=True, help="Shares of train, validation and test."
    )(command)
    command = click.option("--split", type=click.Choice(SPLITS), help="Only one side of the split by question.")(
        command
    )
    return filter_options("those that a person decided")(command)


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([*WHOLE, *FORMATS]),
    required=True,
    help="cases: the cases as imported. runs: the newest finished run of each case. "
    "executions: the log of executions, numbers without texts. "
    + " ".join(f"{name}: {each.summary}." for name, each in FORMATS.items()),
)
@click.option(
    "--as",
    "encoding",
    type=click.Choice(ENCODINGS),
    default="jsonl",
    show_default=True,
    help=f"How rows are written; csv and parquet for flat ones: {', '.join(n for n, f in FORMATS.items() if f.flat)}; "
    "parquet for decided.",
)
@out_option(folders=True, default="-", show_default=True, help="The file to write (a folder for hf); '-' for stdout.")
@click.option("--manifest", type=click.Path(path_type=Path, dir_okay=False), help="Write the manifest here too.")
@selection_options
@database_option
@click.pass_context
def export(context: click.Context, /, form: str, encoding: str, out: Path, manifest: Path | None, **given: Any) -> None:
    """Write cases, runs or executions as they are, or data sets out of what people decided.

    'masis import' reads cases and decided again. 'masis db backup' makes a lossless copy of the whole database.

    The formats after executions are data sets: they take the filters of the queue, put near-duplicate questions on one
    side of a split, and come with a manifest beside the file: versions, filter, counts, class balance, provenance,
    licences and digests. A file is replaced only once the new one is complete; a device, a pipe or a symbolic link is
    written through. decided into a folder writes Parquet: a row for each decided case, with its digest and its whole
    record as JSON; in a folder of audited cases it goes to _decided/.

    \b
      masis export --format cases --out cases.jsonl
      masis export --format runs --out runs.jsonl
      masis export --format labels --as parquet --out labels.parquet
      masis export --format claims --state any --dataset pilot --out claims.jsonl
      masis export --format pairs --split train --out train.jsonl
      masis export --format hf --out dataset/
      masis export --format decided --out audited/
    """  # noqa: D301 (click reads the backspace)
    if form == "decided" and out != STDIO and out.is_dir():
        out, encoding = decisions_in(out), "parquet"
    if form != "hf":
        not_a_folder(out)
    workbench = open_existing(given.pop("db"))
    if form in WHOLE:
        _refuse_filters(context, form)
        _warn_of_hidden(workbench, form)
        with whole_file(out) as stream:
            written = _write_whole(form, workbench, stream)
        say(f"{counted(written, 'line')} written{'' if out == STDIO else f' to {out}'}.")
        return
    if form == "hf" and out == STDIO:
        raise click.UsageError("hf is a folder: name one with --out.")
    selection = chosen_selection(given)
    _warn_of_hidden(workbench, form, selection)
    total = workbench.cases.count(selection.cases)
    with Progress("Exporting", total) as progress:
        exported = workbench.exports.write_file(
            operator(),
            out,
            form,
            selection,
            encoding=encoding,
            on_case=lambda done: progress.move(done, f"{done:,} of {total:,}"),
        )
    if manifest is not None:
        with whole_file(manifest) as stream:
            stream.write((json.dumps(exported.manifest, ensure_ascii=False, indent=2) + "\n").encode())
    say_what(exported.manifest, out)


def decisions_in(folder: Path) -> Path:
    """Return where decisions go in a folder; in one of audited cases apart from these, which readers then pass over."""
    if not is_lake(str(folder)):
        return folder / "decided.parquet"
    apart = folder / "_decided"
    apart.mkdir(exist_ok=True)
    return apart / "decided.parquet"


def _refuse_filters(context: click.Context, form: str) -> None:
    """Raises UsageError where an option is given that a copy of all records would silently ignore."""
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and param.name not in ("form", "out", "db"):
            raise click.UsageError(f"{param.opts[-1]}: the format {form} takes no filter and no encoding.")


def _warn_of_hidden(workbench: Workbench, form: str, selection: Selection | None = None) -> None:
    """Warn where the file shows what reviewers must not see yet: a command reads all, as whoever has the file can."""
    if count := workbench.exports.shows_hidden(form, selection):
        say(
            f"Warning: the team's policy hides from reviewers what this shows of {counted(count, 'undecided case')}: "
            "what audits found. Don't give it to anybody who still decides them."
        )


def chosen_selection(given: dict[str, Any]) -> Selection:
    """Return the selection that the options describe."""
    return Selection(chosen_filter(given, DECIDED), given["split"], given["shares"])


def say_what(manifest: dict[str, Any], out: Path) -> None:
    """Say how much was written, and what was left out and why."""
    counts = manifest["counts"]
    written = f"{counted(counts['rows'], 'row')} of {counted(counts['cases'], 'case')}"
    say(f"{written} written{'' if out == STDIO else f' to {out}'}.")
    for reason, number in counts["left_out"].items():
        say(f"Left out: {number:,} ({reason}).")


def _write_whole(form: str, workbench: Workbench, stream: Any) -> int:
    written = 0
    if form == "executions":
        for written, execution in enumerate(workbench.store.executions.iterate(), 1):  # noqa: B007 (counts)
            write_line(execution.model_dump_json(), stream)
        return written
    for case in workbench.store.cases.iterate():
        if form == "cases":
            write_case(case, stream)
            written += 1
        elif (run := workbench.cases.open(case.id).run) is not None:
            write_run(run, stream)
            written += 1
    return written
