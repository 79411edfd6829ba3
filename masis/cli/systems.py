"""``masis systems``: the systems whose answers are stored, and what they are."""

from __future__ import annotations

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup
from masis.cli.output import Emit, say, table
from masis.schema.systems import SystemDetails
from masis.services import Workbench


@click.group(cls=CommandGroup)
def systems() -> None:
    """List and describe the systems whose answers are stored.

      masis import answers.jsonl --system v2
      masis systems list
      masis systems describe v2 --model gpt-4o

    docs/comparing_systems.md says how a case gets its system.
    """


@systems.command("list", cls=Command)
@shared.json_option
@shared.workbench_option
def list_systems(emit: Emit, workbench: Workbench) -> None:
    """List the systems with their number of cases.

    masis systems list
    masis systems list --json | jq -r .name
    """
    rows = workbench.systems.all(shared.operator())
    if not rows:
        say("There are no cases yet. Import some: masis import answers.jsonl --system v2")
    cells = [
        (row.name, f"{row.cases:,}", row.model, row.version, row.date, row.prompt) for row in rows
    ]
    emit(list(rows), table(("system", "cases", "model", "version", "date", "prompt"), cells))


@systems.command("describe", cls=Command)
@click.argument("name")
@click.option("--model", metavar="MODEL", help="The model that answered.")
@click.option("--prompt", metavar="TEXT", help="The prompt, or where it's kept.")
@click.option("--version", metavar="TEXT", help="The version of the program around the model.")
@click.option("--date", metavar="TEXT", help="When it answered.")
@shared.json_option
@shared.workbench_option
def describe(
    name: str,
    model: str | None,
    prompt: str | None,
    version: str | None,
    date: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Set the model, prompt, version or date of the system NAME. Options left out change nothing.

    masis systems describe v2 --model gpt-4o --date 2026-05-01
    """
    given = {"model": model, "prompt": prompt, "version": version, "date": date}
    stored = workbench.systems.get(shared.operator(), name)
    details = SystemDetails(
        **{
            field: getattr(stored, field) if value is None else value
            for field, value in given.items()
        }
    )
    changed = workbench.systems.describe(shared.operator(), name, details)
    emit(changed, [f"{changed.name}: described."])
