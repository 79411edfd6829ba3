"""``masis verify-log``: check that the decision log is intact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from masis.cli.group import JobFailed
from masis.cli.options import database_option, open_existing
from masis.cli.output import say
from masis.schema.review import LogCheck
from masis.schema.wording import counted
from masis.services.records import DecisionFilter
from masis.services.reviews import ReviewService


@click.command("verify-log")
@click.option("--head", metavar="HEX", help="The head noted earlier.")
@click.option("--length", type=click.IntRange(min=0), metavar="N", help="The length noted earlier.")
@click.option("--rearm", is_flag=True, help="Restore the guards of a log that has lost them.")
@database_option
def verify_log(head: str | None, length: int | None, rearm: bool, db: Path | None) -> None:
    """Check that no decision was changed or removed, and print the log's length and head.

    Entries form a hash chain, so that a changed one is named. Entries cut off at the end show only against a length and
    head noted elsewhere: note them now and then, and give them here. The log may have grown since. The log is guarded
    by triggers that refuse every change; where something has removed them, --rearm puts them back.

    People's overrides of grades in screenings are a log and a chain of their own, which is checked too and printed
    where it holds anything; --head and --length are the decision log's.

    \b
      masis verify-log
      masis verify-log --length 120 --head 3f5a...

    Exit code 0: the log is intact. 1: it is not; what is wrong is listed.
    """  # noqa: D301 (click reads the backspace)
    workbench = open_existing(db, "rearm" if rearm else "open")
    check, screenings = workbench.reviews.verify(), workbench.screenings.verify_log()
    click.echo(f"length   {check.length}")
    click.echo(f"head     {check.head}")
    click.echo(f"redacted {check.redacted}")
    if screenings.length:
        click.echo(f"screening length   {screenings.length}")
        click.echo(f"screening head     {screenings.head}")
        click.echo(f"screening redacted {screenings.redacted}")
    wrong = [*check.broken, *screenings.broken, *_missing(workbench.reviews, check, head, length)]
    for problem in wrong:
        say(problem)
    if wrong:
        raise JobFailed(f"The decision log is not intact: {counted(len(wrong), 'problem')}, listed above.")


def _missing(log: ReviewService, check: LogCheck, head: str | None, length: int | None) -> Iterator[str]:
    """Yield what the log lacks of what was noted earlier."""
    if length is not None and check.length < length:
        yield f"the log has {counted(check.length, 'entry', 'entries')}, {length:,} were noted: the end was cut off"
        return
    if head is None:
        return
    noted = head.strip().lower()
    if length is None:
        found = noted == check.head or any(entry.digest == noted for entry in log.iterate())
    elif length == check.length:
        found = noted == check.head
    else:
        entries = log.entries(DecisionFilter(page=length, size=1, newest_first=False)).rows if length else ()
        found = not length or entries[0].digest == noted
    if not found:
        place = f"entry {length:,} has another digest than" if length else "no entry has"
        yield f"{place} the head that was noted: the log was rewritten or cut off"
