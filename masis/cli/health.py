"""``masis health``: check that everything the workbench needs is in order."""

from __future__ import annotations

import json
from pathlib import Path

import click

from masis.cli.group import JobFailed
from masis.cli.options import chosen_settings, database_option, no_database, open_existing, settings_options
from masis.cli.output import printable
from masis.errors import StoreError
from masis.services.health import HealthReport, before_the_first_case, unopened
from masis.settings import Settings, database_path


@click.command()
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option(
    "--ask/--no-ask",
    default=True,
    show_default=True,
    help="Ask each language model that fills a role for a word, which may cost a fraction of a cent.",
)
@database_option
def health(models: tuple[str, ...], assignments: tuple[str, ...], as_json: bool, ask: bool, db: Path | None) -> None:
    """Check that everything the workbench needs is in order: database, decision log, auditor, models, disk.

    What is checked: the database (intact, current, writable), both logs, every module, a small audit, the models,
    room on the disk. docs/running.md says what each line means and what to do.

    \b
      masis health
      masis health --json --db review.db
      masis health --model critic=openai:gpt-4o     does this one answer?

    Exit code 0: all in order. 1: something is not.
    """  # noqa: D301 (click reads the backspace)
    settings = chosen_settings(models, assignments)
    path = database_path(db)
    if path.exists():
        report = _of_database(db, settings, ask=ask)
    elif db is None:
        report = before_the_first_case(path, settings, ask_models=ask)
    else:
        report = unopened(no_database(path), path, settings, ask_models=ask)
    if as_json:
        click.echo(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        width = max((len(item.name) for item in report.items), default=0)
        for item in report.items:
            sign = "BAD" if not item.ok else "-  " if item.absent else "ok "
            click.echo(f"{sign}  {item.name:<{width}}  {printable(item.message)}")
            if item.cure and not item.ok:
                click.echo(f"     {'':<{width}}  {printable(item.cure)}")
    if not report.ok:
        wrong = ", ".join(item.name for item in report.items if not item.ok)
        raise JobFailed(f"Not in order: {wrong}.")


def _of_database(named: Path | None, settings: Settings, *, ask: bool) -> HealthReport:
    """Return the report on a database, also on one that can't be opened."""
    try:
        return open_existing(named, "open").health(settings, ask_models=ask)
    except StoreError as error:
        return unopened(error, database_path(named), settings, ask_models=ask)
