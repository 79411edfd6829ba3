"""``masis import``: read cases, or an archive of ours, into the database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from masis.cli.group import JobFailed
from masis.cli.options import STDIO, database_option, input_argument, open_workbench, operator
from masis.cli.output import ErrorReport, Progress, say
from masis.datasets.archive import is_archive
from masis.datasets.readers import read_case_lines
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.wording import counted
from masis.services import Workbench
from masis.settings import database_path

_BATCH = 500
"""Cases a transaction at most."""

_BATCH_BYTES = 4_000_000
"""Bytes of the file a transaction at most, but for a single case that is larger."""


@click.command("import")
@input_argument("files", nargs=-1, required=True, metavar="FILE...")
@database_option
def import_files(files: tuple[Path, ...], db: Path | None) -> None:
    """Read cases, or an archive, into the database, without auditing them.

    A FILE holds cases, one a line ('-' for stdin), or is an archive that 'masis export' wrote; an archive goes into an
    empty database only, which it then reproduces. A case that is there already is left alone; another case under an id
    that is taken is an error, for decisions refer to ids.

    \b
      masis import cases.jsonl more-cases.jsonl
      masis import archive.jsonl --db copy.db

    Exit code 0: everything was read. 1: some of it was not; the rest is stored. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    database = database_path(db)
    workbench = open_workbench(database)
    errors = ErrorReport()
    for file in files:
        if file != STDIO and is_archive(file):
            say(f"{file}: {workbench.exports.read_archive(operator(), file)}")
        else:
            _import_cases(file, workbench, errors)
    say(f"Database: {database}")
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. Everything else is stored.")


def _import_cases(file: Path, workbench: Workbench, errors: ErrorReport) -> None:
    progress = Progress("Importing", None if file == STDIO else file.stat().st_size)
    added = unchanged = 0
    try:
        with progress:
            for batch in _batches(file, errors, progress):
                report = workbench.cases.add(operator(), batch)
                added, unchanged = added + report.added, unchanged + report.unchanged
                errors.add_all(f"{file}: {error}" for error in report.conflicts)
    finally:
        there = f", {counted(unchanged, 'case')} there already" if unchanged else ""
        say(f"{file}: {counted(added, 'case')} imported{there}.")


def _batches(file: Path, errors: ErrorReport, progress: Progress) -> Iterator[list[Case]]:
    """Yield the cases that can be read, as many at a time as fit in little memory; the others are reported."""
    batch: list[Case] = []
    begun = 0
    try:
        lines = read_case_lines(sys.stdin.buffer if file == STDIO else file)
        for number, line in enumerate(lines, 1):
            progress.move(line.end, f"{number:,} read")
            if isinstance(line.found, InputError):
                errors.add(line.found)
                continue
            batch.append(line.found)
            if len(batch) >= _BATCH or line.end - begun >= _BATCH_BYTES:
                yield batch
                batch, begun = [], line.end
    except InputError as error:  # of another format, or broken off: what was read before is stored
        errors.add(error)
    if batch:
        yield batch
