"""``masis screening drift`` and ``labels``: the drift of graders and people, and decisions of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from masis.cli.abstract_files import read_shown
from masis.cli.group import JobFailed
from masis.cli.options import database_option, input_argument, open_existing, open_workbench, operator
from masis.cli.output import ErrorReport, Interruption, printable, say
from masis.errors import InputError
from masis.schema.screening import Abstract, Recommendation
from masis.schema.wording import counted
from masis.services.screening import DriftSeries, MemoryView
from masis.settings import database_path


@click.command()
@click.argument("screening")
@input_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as",
    "every",
    type=click.Choice(["keep", "discard", "needs_more"]),
    help="The decision about every record of the files: for Covidence, which exports a list for each.",
)
@database_option
def labels(screening: str, files: tuple[Path, ...], every: Recommendation | None, db: Path | None) -> None:
    """Take what people decided in another screening tool as overrides of a screening.

    A FILE is an export of ASReview, Rayyan or Covidence as RIS or CSV. Records are matched by id, DOI, PubMed id or
    title; a decision that differs from the grade becomes an override with the tool as its reason, and the outcome
    follows. 'masis screen --format csv' and '--format labels' write what those tools read.

    \b
      masis screening labels 0b7c2f... rayyan.csv
      masis screening labels 0b7c2f... covidence_excluded.ris --as discard

    Exit code 0: taken. 1: no such screening, or records that could not be read; the rest is taken. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    errors = ErrorReport()
    workbench = open_workbench(database_path(db))
    with Interruption("Stopping. Press Ctrl-C again to stop at once.") as stop:
        records = [each for file in files for each in read_shown(file, errors, stop)]
    found = workbench.screenings.take_labels(
        operator(), screening, [each for each in records if isinstance(each, Abstract)], every=every
    )
    for each in records:
        if isinstance(each, InputError):
            errors.add(each)
    say(
        f"{counted(found.changed, 'grade')} changed, {found.alike} as they were, {found.undecided} without a decision, "
        f"{found.unknown} not in the screening."
    )
    opened = workbench.screenings.open(screening).screening
    click.echo(f"{opened.outcome.replace('_', ' ')}, {counted(len(opened.kept), 'abstract')} kept")
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
@database_option
def drift(as_json: bool, db: Path | None) -> None:
    """Show whether people change grades of abstracts more often than before, and what the acceptance memory holds.

    A judgement is a grade that a person changed or agreed with. For each grader and each reviewer a cumulative sum
    over them says whether the share that is changed has drifted; 60 judgements are the baseline. docs/screening.md has
    the test, and what memory can change. Memory is switched on by the setting screening_memory.

    \b
      masis screening drift
      masis screening drift --json --db review.db

    Exit code 0: shown, whether anything drifted or not. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    screenings = open_existing(db).screenings
    series, memory = screenings.drifts(), screenings.memory()
    if as_json:
        click.echo(json.dumps(_record(series, memory), ensure_ascii=False))
        return
    if not series:
        click.echo("No grade has been changed or agreed with yet: there is no drift to look for.")
    for each in series:
        click.echo(printable(f"{each.who}: {each.what}. {each.drift.why}"))
    state = "on" if memory.on else "off"
    click.echo(
        f"Acceptance memory ({state}): {counted(len(memory.entries), 'acceptance')}. {memory.shift.why} "
        f"{'It changes' if memory.on else 'Switched on, it would change'} what is required by {memory.shift.by:+.3f}."
    )


def _record(series: tuple[DriftSeries, ...], memory: MemoryView) -> dict[str, Any]:
    return {
        "drift": [
            {
                "who": each.who,
                "judgements": len(each.drift.points),
                "disagreements": int(sum(point.value for point in each.drift.points)),
                "usual": each.drift.usual,
                "alarms": [number + 1 for number in each.drift.alarms],
                "direction": each.drift.direction,
                "why": each.drift.why,
            }
            for each in series
        ],
        "memory": {
            "on": memory.on,
            "acceptances": len(memory.entries),
            "shift": memory.shift.by,
            "why": memory.shift.why,
        },
    }
