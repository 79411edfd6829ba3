"""``masis db redact``: remove what was written about a case, or in one entry of a log, for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from masis.cli.group import Command, CommandGroup
from masis.cli.options import confirm_removal, database_option, open_existing, operator
from masis.cli.output import say
from masis.schema.wording import counted

F = TypeVar("F", bound=Callable[..., Any])

COMMANDS = {
    "case": Command("masis.cli.redact:case", "Remove every text of a case, its runs and its decisions."),
    "decision": Command("masis.cli.redact:decision", "Remove what was written in one entry of a log."),
}


@click.group("redact", cls=CommandGroup, entries=COMMANDS)
def redact() -> None:
    """Remove texts on request, for good: those of a case, or those of one decision.

    \b
      masis db redact case bridge-07 --reason "asked for by the person named in it"
      masis db redact decision 3f5a09... --reason "names a patient" --by "Ada Lind"

    Ids, verdicts, figures and the hash chain of the log stay, so that 'masis verify-log' still verifies; the log
    records who redacted, when and why. Backups and copies made before are not changed.
    """  # noqa: D301 (click reads the backspace)


def _options(command: F) -> F:
    for option in (
        database_option,
        click.option("--yes", is_flag=True, help="Don't ask."),
        click.option(
            "--by", metavar="NAME", help="Who redacts, for the log. Default: the name you are logged in with."
        ),
        click.option("--reason", required=True, help="Why; stored in the log, so it must not repeat what is to go."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("case_id", metavar="ID")
@_options
def case(case_id: str, reason: str, by: str | None, yes: bool, db: Path | None) -> None:
    """Remove every text of the case ID: question, answer, evidence, results, drafts, and what reviewers wrote.

    Its id, the digest of what it was, its verdicts and its figures stay. Its other versions are redacted with it. Exit
    code 0: redacted. 1: there is no such case, it is redacted already or being audited just now.
    """
    workbench = open_existing(db)
    workbench.cases.summary(case_id)
    if not yes:
        confirm_removal(f"Remove every text of case {case_id} for good?")
    done = workbench.reviews.redact_case(operator(by), case_id, reason)
    say(
        f"Case {case_id} is redacted: {counted(done.entries, 'decision')}, {counted(done.runs, 'run')} and "
        f"{counted(done.drafts, 'field')} of drafts with it. Entry {done.entry.id} of the decision log records it."
    )


@click.command()
@click.argument("entry_id", metavar="ID")
@_options
def decision(entry_id: str, reason: str, by: str | None, yes: bool, db: Path | None) -> None:
    """Remove reviewer, reason, note and corrected answer from the entry ID of the decision log or the screening log.

    The verdict and the entry's place in the chain stay. Exit code 0: redacted. 1: there is no such entry, or it is
    redacted already.
    """
    workbench = open_existing(db)
    if not yes:
        confirm_removal(f"Remove what was written in entry {entry_id} for good?")
    record = workbench.reviews.redact_entry(operator(by), entry_id, reason)
    say(f"Entry {entry_id} is redacted. Entry {record.id} of the log records it.")
