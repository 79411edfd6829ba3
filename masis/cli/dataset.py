"""``masis dataset``: freeze data sets under names, compare them, write them again byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from masis.cli.export_data import chosen_selection, say_what, selection_options
from masis.cli.group import Command, CommandGroup
from masis.cli.options import (
    STDIO,
    confirm_removal,
    database_option,
    json_option,
    not_a_folder,
    open_existing,
    operator,
    out_option,
)
from masis.cli.output import Progress, emit, printable, say
from masis.datasets.exports import ENCODINGS, FORMATS, Change
from masis.schema.wording import counted
from masis.views.numbers import moment

COMMANDS = {
    "freeze": Command("masis.cli.dataset:freeze", "Freeze the cases that match, in a format, under a name."),
    "list": Command("masis.cli.dataset:list_all", "List the dataset versions."),
    "show": Command("masis.cli.dataset:show", "Show one: its manifest, and whether it can be rebuilt."),
    "compare": Command(
        "masis.cli.dataset:compare", "Say which cases two versions differ in: added, removed, relabelled."
    ),
    "export": Command(
        "masis.cli.dataset:export", "Write a version again: the same bytes, or an error that says why not."
    ),
    "remove": Command("masis.cli.dataset:remove", "Remove a version; cases and decisions stay."),
}

KIND_SAYS = {
    "added": "added",
    "removed": "removed",
    "relabelled": "relabelled",
    "moved": "moved to another side of the split",
    "audited_anew": "decided about another audit or answer",
}
"""The kinds of changes in words."""


@click.group("dataset", cls=CommandGroup, entries=COMMANDS)
def dataset() -> None:
    """Freeze data sets under names, compare them, and write them again byte for byte.

    \b
      masis dataset freeze pilot-1 --format labels --dataset pilot --description "before the second round"
      masis dataset compare pilot-1 pilot-2
      masis dataset export pilot-1 --out pilot-1.jsonl

    A version keeps which cases, decisions and audits it was made of, and the digest of its bytes: decisions, undos and
    audits that come later change none of it. Once a case of it is redacted, or retention has removed its audit, it can
    be compared still, but not rebuilt, and says so.
    """  # noqa: D301 (click reads the backspace)


@click.command()
@click.argument("name")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), required=True, help="As in 'masis export'.")
@click.option(
    "--as",
    "encoding",
    type=click.Choice(ENCODINGS),
    default="jsonl",
    show_default=True,
    help="How rows are written; csv and parquet for flat formats.",
)
@click.option("--description", default="", metavar="TEXT", help="What it is for; stored with it.")
@click.option("--by", metavar="NAME", help="Who freezes it. Default: the name you are logged in with.")
@selection_options
@database_option
def freeze(
    name: str, form: str, encoding: str, description: str, by: str | None, db: Path | None, **given: Any
) -> None:
    """Freeze what an export of the cases that match holds now, under NAME (letters, digits, '.', '-', '_').

    Exit code 0: frozen. 1: the name is taken, or no case that matches gives a row.
    """
    workbench = open_existing(db)
    selection = chosen_selection(given)
    total = workbench.cases.count(selection.cases)
    with Progress("Freezing", total) as progress:
        version = workbench.datasets.freeze(
            operator(by),
            name,
            form,
            selection,
            description=description,
            encoding=encoding,
            on_case=lambda done: progress.move(done, f"{done:,} of {total:,}"),
        )
    say(f"Dataset version {name} is frozen: {counted(version.rows, 'row')} of {counted(version.cases, 'case')}.")


@click.command("list")
@json_option
@database_option
def list_all(as_json: bool, db: Path | None) -> None:
    """List the dataset versions, the newest first: name, when, format, rows, who froze it, what it is for.

    \b
      masis dataset list
    """  # noqa: D301 (click reads the backspace)
    found = open_existing(db).store.datasets.list_all()
    if not found:
        say("There is no dataset version yet: 'masis dataset freeze NAME --format FORMAT' makes one.")
    emit(
        [each.model_dump(mode="json", exclude={"manifest"}) for each in found],
        ("name", "frozen", "format", "rows", "cases", "by", "for"),
        [
            (each.name, moment(each.at), each.form, f"{each.rows:,}", f"{each.cases:,}", each.by, each.description)
            for each in found
        ],
        as_json=as_json,
    )


@click.command()
@click.argument("name")
@database_option
def show(name: str, db: Path | None) -> None:
    """Print the manifest of the version NAME as JSON, and say whether it can be rebuilt."""
    workbench = open_existing(db)
    version = workbench.store.datasets.get(name)
    click.echo(json.dumps(version.manifest, ensure_ascii=False, indent=2))
    say(f"{name} is {workbench.store.datasets.lost(name)}.")


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="How many cases to name.")
@database_option
def compare(first: str, second: str, limit: int, db: Path | None) -> None:
    """Say which cases the version SECOND adds to FIRST, removes, or has another label for.

    A line for each case: how it differs, its id, its state and side of the split before and after.
    """
    found = open_existing(db).datasets.compare(first, second, limit)
    for each in found.cases:
        click.echo(change_line(each))
    if (more := found.total - len(found.cases)) > 0:
        say(f"and {more:,} more: --limit {found.total} names all.")
    parts = [f"{count:,} {KIND_SAYS[kind]}" for kind, count in found.counts.items() if count]
    say(f"{first} and {second}: {', '.join(parts) or 'the same cases, labels and audits'}.")


def change_line(change: Change) -> str:
    """Return a case that differs as one line."""
    shown = [" ".join(each) if each else "absent" for each in (change.was, change.now)]
    kinds = ", ".join(KIND_SAYS[kind] for kind in change.kinds)
    return f"{kinds}  {printable(change.case_id)}  {shown[0]} -> {shown[1]}"


@click.command()
@click.argument("name")
@out_option(folders=True, default="-", show_default=True, help="The file to write (a folder for hf); '-' for stdout.")
@database_option
def export(name: str, out: Path, db: Path | None) -> None:
    """Write the version NAME again with its manifest: the bytes that were frozen.

    Exit code 0: written. 1: it can't be rebuilt, and why; a file that is there stays as it was.
    """
    workbench = open_existing(db)
    version = workbench.store.datasets.get(name)
    if version.form == "hf" and out == STDIO:
        raise click.UsageError("hf is a folder: name one with --out.")
    if version.form != "hf":
        not_a_folder(out)
    with Progress("Exporting", version.cases) as progress:
        exported = workbench.datasets.write(
            operator(), name, out, on_case=lambda done: progress.move(done, f"{done:,} of {version.cases:,}")
        )
    say_what(exported.manifest, out)


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask.")
@database_option
def remove(name: str, yes: bool, db: Path | None) -> None:
    """Remove the version NAME; its cases and their decisions stay."""
    workbench = open_existing(db)
    workbench.store.datasets.get(name)
    if not yes:
        confirm_removal(f"Remove the dataset version {name}?")
    workbench.datasets.remove(operator(), name)
    say(f"Dataset version {name} is removed.")
