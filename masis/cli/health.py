"""``masis health``: whether everything the workbench needs is in order."""

from __future__ import annotations

import json
from pathlib import Path

import click

from masis.cli.group import JobFailed
from masis.cli.options import database_option, opened_for_reading
from masis.cli.talk import printable, say
from masis.settings import database_path


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option(
    "--ask/--no-ask",
    default=True,
    show_default=True,
    help="Ask each language model that fills a role for a word, which may cost a fraction of a cent.",
)
@database_option
def health(as_json: bool, ask: bool, db: Path | None) -> None:
    """Check that everything the workbench needs is in order: database, decision log, auditor, models, disk.

    \b
      masis health
      masis health --json --db review.db

    Exit code 0: all in order. 1: something is not.
    """  # noqa: D301 (click reads the backspace)
    if db is None and not database_path().exists():
        say(f"There is no database yet; the first import or audit makes {database_path()}.")
        if as_json:
            click.echo(json.dumps({"ok": True, "items": []}))
        return
    report = opened_for_reading(db, "open").health(ask_models=ask)
    if as_json:
        items = [{"name": item.name, "ok": item.ok, "message": item.message} for item in report.items]
        click.echo(json.dumps({"ok": report.ok, "items": items}, ensure_ascii=False))
    else:
        width = max((len(item.name) for item in report.items), default=0)
        for item in report.items:
            click.echo(f"{'ok ' if item.ok else 'BAD'}  {item.name:<{width}}  {printable(item.message)}")
    if not report.ok:
        wrong = ", ".join(item.name for item in report.items if not item.ok)
        raise JobFailed(f"Not in order: {wrong}.")
