"""``masis screening corpus``: store abstracts in the database, to be searched and screened."""

from __future__ import annotations

from pathlib import Path

import click

from masis.cli.abstract_files import read_shown
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.options import database_option, input_argument, open_existing, open_workbench, operator
from masis.cli.output import ErrorReport, Interruption, printable, say
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import CorpusSummary
from masis.settings import database_path


@click.command()
@click.argument("name", required=False)
@input_argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--search", "query", metavar="WORDS", help="Print the abstracts that hold any of these words, best first."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many to print.")
@click.option("--remove", is_flag=True, help="Remove the corpus; screenings keep copies of what they graded.")
@database_option
def corpus(
    name: str | None, files: tuple[Path, ...], query: str | None, limit: int, remove: bool, db: Path | None
) -> None:
    """Store abstracts, to be searched and screened.

    With a NAME and FILEs, the abstracts of the files are added to that corpus, which is made where there is none. A
    FILE holds JSON Lines, RIS, BibTeX, PubMed XML or MEDLINE text ('-' for stdin). A study that is there already, by
    DOI, PubMed id or title, is counted as a duplicate. With a NAME alone its imports are listed, without one all
    corpora.

    \b
      masis screening corpus asthma export.ris pubmed.nbib
      masis screening corpus asthma --search "inhaled steroids in children" --limit 5
      masis screening corpus

    Exit code 0: done. 1: records that could not be read, named; the rest is stored. 2: wrong use. 130: stopped; what
    was read is stored.
    """  # noqa: D301 (click reads the backspace)
    if name is None:
        _list(open_existing(db).store.corpora.list_all())
        return
    if sum((bool(files), query is not None, remove)) > 1:
        raise click.UsageError("Add files, search or remove: one at a time.")
    if files:
        _add(open_workbench(database_path(db)), name, files)
        return
    workbench = open_existing(db)
    if query is not None:
        for found in workbench.store.corpora.search(name, query, limit):
            click.echo(found.model_dump_json(exclude_defaults=True))
    elif remove:
        held = workbench.store.corpora.summary(name).abstracts
        workbench.corpora.remove(operator(), name)
        say(f"Corpus {name!r} with {counted(held, 'abstract')} is removed.")
    else:
        _describe(workbench, name)


def _list(found: tuple[CorpusSummary, ...]) -> None:
    if not found:
        say("There is no corpus yet: 'masis screening corpus NAME FILE' makes one.")
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        click.echo(
            f"{printable(each.name):<{width}}  {counted(each.abstracts, 'abstract')}, "
            f"{each.identified:,} identified, {counted(each.duplicates, 'duplicate')}, {each.faulty:,} unreadable"
        )


def _describe(workbench: Workbench, name: str) -> None:
    _list((workbench.store.corpora.summary(name),))
    for each in workbench.store.corpora.imports(name):
        click.echo(
            f"{each.at}  {printable(each.source)}: {each.identified:,} identified, {each.added:,} added, "
            f"{counted(each.duplicates, 'duplicate')}, {each.faulty:,} unreadable"
        )


def _add(workbench: Workbench, name: str, files: tuple[Path, ...]) -> None:
    errors = ErrorReport()
    with Interruption("Stopping; what has been read is stored. Press Ctrl-C again to stop at once.") as stop:
        for file in files:
            if stop.asked:
                break
            found = read_shown(file, errors, stop, label="Importing")
            done = workbench.corpora.add(operator(), name, found, source=file.name, on_error=errors.add)
            say(
                f"{file}: {counted(done.identified, 'record')}, {done.added:,} added, "
                f"{counted(done.duplicates, 'duplicate')}, {done.faulty:,} unreadable."
            )
    held = workbench.store.corpora.summary(name).abstracts
    say(f"Corpus {name!r} holds {counted(held, 'abstract')}.")
    if stop.asked:
        say("The import was stopped: the same command again adds the rest.")
        click.get_current_context().exit(INTERRUPTED)
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. Everything else is stored.")
