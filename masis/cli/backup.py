"""``masis db backup`` and ``masis db restore``: copies of the database, verified."""

from __future__ import annotations

from pathlib import Path

import click

from masis.cli.options import confirm_removal, database_option, open_existing, operator
from masis.cli.output import say
from masis.services import backups
from masis.settings import database_path


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="In a folder: remove all but the newest N.")
@database_option
def backup(target: Path, keep: int | None, db: Path | None) -> None:
    """Copy the database to TARGET while it is in use, and verify the copy.

    TARGET is a file that does not exist yet, or a folder, in which the copy gets a name with the time. The copy is of
    one moment and a single file; it gets its name only when it has been read whole and everything in it fits, so a
    file of that name is always a good backup. A database that is not in order is not backed up: 'masis health' says
    what is wrong. The setting backup_folder has 'masis serve' do it by itself.

    \b
      masis db backup /backups --keep 14
      masis db backup before-the-update.db --db review.db

    Exit code 0: the backup was made and verified. 1: it was not, and nothing is left of it.
    """  # noqa: D301 (click reads the backspace)
    if keep is not None and not target.is_dir():
        raise click.UsageError(f"--keep: {target} is no folder that exists.")
    made = open_existing(db).backups.make(operator(), target, keep=keep or 0)
    say(f"Backup: {backups.in_words(made.check)}")
    for path in made.removed:
        say(f"Removed: {path}")


@click.command()
@click.argument("copy", metavar="BACKUP", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--check", is_flag=True, help="Only verify the backup; restore nothing.")
@click.option("--replace", is_flag=True, help="Put it in the place of a database that is there, which is kept beside.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@database_option
def restore(copy: Path, check: bool, replace: bool, yes: bool, db: Path | None) -> None:
    """Verify BACKUP and put it where the database belongs.

    The database that is there is replaced only with --replace, and kept under a name that ends in the time. It must
    not be in use. Decisions made since the backup are in that file: 'masis export' can read it.

    \b
      masis db restore /backups/masis-20260301T020000Z.db --check
      masis db restore /backups/masis-20260301T020000Z.db --replace

    Exit code 0: it was restored (with --check: it is in order). 1: it was not, and nothing was changed.
    """  # noqa: D301 (click reads the backspace)
    database = database_path(db)
    if check:
        found = backups.verify(copy)
        say(f"In order: {backups.in_words(found)}")
        return
    if replace and database.exists() and not yes:
        confirm_removal(
            f"Replace {database}? It is kept beside the backup that takes its place.", "Nothing was changed."
        )
    found, aside = backups.restore(operator(), copy, database, replace=replace)
    if aside is not None:
        say(f"The database that was there is {aside} now.")
    say(f"Restored: {backups.in_words(found.model_copy(update={'path': str(database)}))}")
