"""``masis verify-log``: check that the decision log is intact, and sign it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import click

from masis.cli.group import JobFailed
from masis.cli.options import database_option, open_existing, operator
from masis.cli.output import say
from masis.schema.review import LogCheck
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import DecisionFilter
from masis.services.reviews import ReviewService
from masis.settings import log_key


@click.command("verify-log")
@click.option("--head", metavar="HEX", help="The head noted earlier.")
@click.option("--length", type=click.IntRange(min=0), metavar="N", help="The length noted earlier.")
@click.option(
    "--note",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file elsewhere: compare with the head noted there, then note the present one.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file with the key that signs entries. Default: MASIS_LOG_KEY; without one no signature is checked.",
)
@click.option(
    "--new-key", type=click.Path(path_type=Path, dir_okay=False), help="Make a key, and sign every entry with it."
)
@click.option("--sign", is_flag=True, help="Sign the entries that have no signature, if all else is in order.")
@click.option("--rearm", is_flag=True, help="Restore the guards of a log that has lost them.")
@database_option
def verify_log(
    head: str | None,
    length: int | None,
    note: Path | None,
    key: Path | None,
    new_key: Path | None,
    sign: bool,
    rearm: bool,
    db: Path | None,
) -> None:
    """Check that no decision was changed or removed, nor what it was about, and print the log's length and head.

    Entries form a hash chain, so that a changed one is named. Each carries digests of the case, the run and the answer
    that were decided about, which are compared with what is stored; an entry whose case was redacted or whose run was
    removed is not checkable, which is no problem.

    Who can write the file can rewrite the whole chain. With a key that lies elsewhere the workbench signs each entry
    (MASIS_LOG_KEY names its file), and an entry that was rewritten, moved in time or appended by another shows. A log
    cut off at its end, or replaced by an older copy, shows only against a head noted elsewhere: --note does both. The
    log is guarded by triggers that refuse every change; where something has removed them, --rearm puts them back.

    People's overrides of grades in screenings are a log and a chain of their own, which is checked too and printed
    where it holds anything; --head, --length and --note are the decision log's.

    \b
      masis verify-log
      masis verify-log --length 120 --head 3f5a...
      masis verify-log --new-key /secure/log.key
      masis verify-log --key /secure/log.key --note /elsewhere/head.json

    Exit code 0: the log is intact. 1: it is not; what is wrong is listed.
    """  # noqa: D301 (click reads the backspace)
    if new_key is not None and key is not None:
        raise click.UsageError("--key and --new-key: name one of them.")
    secret = log_key(key) if new_key is None else None
    if sign and secret is None:
        raise click.UsageError("--sign: name the key with --key FILE, or make one with --new-key FILE.")
    workbench = open_existing(db, "rearm" if rearm else "open")
    check, wrong = _checked(workbench, head, length, note)
    unsigned = list(workbench.reviews.check_signatures(secret).broken) if secret and not sign else []
    for problem in [*wrong, *unsigned]:
        say(problem)
    if wrong or unsigned:
        problems = counted(len(wrong) + len(unsigned), "problem")
        raise JobFailed(f"The decision log is not intact: {problems}, listed above.")
    if new_key is not None:
        secret = _make_key(new_key)
    if secret is not None and (sign or new_key is not None):
        _sign(workbench, secret)
    if secret is not None:
        click.echo(f"signed   {workbench.reviews.check_signatures(secret).signed}")
    if note is not None:
        _write_note(note, check)


def _checked(
    workbench: Workbench, head: str | None, length: int | None, note: Path | None
) -> tuple[LogCheck, list[str]]:
    """Check chain, subjects and what was noted; print the figures."""
    check, screenings = workbench.store.decisions.verify(), workbench.store.screening_log.verify()
    subjects = workbench.store.decisions.check_subjects()
    click.echo(f"length   {check.length}")
    click.echo(f"head     {check.head}")
    click.echo(f"redacted {check.redacted}")
    if screenings.length:
        click.echo(f"screening length   {screenings.length}")
        click.echo(f"screening head     {screenings.head}")
        click.echo(f"screening redacted {screenings.redacted}")
    say(f"{counted(subjects.checked, 'entry', 'entries')} compared with case, run and answer as stored.")
    for reason, count in subjects.not_checkable.items():
        say(f"{counted(count, 'entry', 'entries')} not checkable: {reason}.")
    graded = workbench.store.screening_log.check_subjects()
    if screenings.length:
        say(f"{counted(graded.checked, 'screening entry', 'screening entries')} compared with screening and grade.")
        for reason, count in graded.not_checkable.items():
            say(f"{counted(count, 'screening entry', 'screening entries')} not checkable: {reason}.")
    wrong = [*check.broken, *screenings.broken, *subjects.broken, *graded.broken]
    wrong += _missing(workbench.reviews, check, head, length)
    if note is not None and note.exists():
        wrong += _missing(workbench.reviews, check, *_read_note(note))
    return check, wrong


def _sign(workbench: Workbench, key: bytes) -> None:
    new = workbench.reviews.sign(operator(), key)
    say(f"{counted(new, 'entry', 'entries')} signed that had no signature.")
    if broken := workbench.reviews.check_signatures(key).broken:
        for problem in broken:
            say(problem)
        raise JobFailed(f"The decision log is not intact: {counted(len(broken), 'problem')}, listed above.")


def _make_key(file: Path) -> bytes:
    """Write a new key into a file that only its owner reads. Raises JobFailed where the file is there already."""
    key = secrets.token_hex(32)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise JobFailed(f"{file}: is there already. Use it with --key, or name another file.") from error
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(f"{key}\n")
    say(f"Key written to {file}. Keep it where who can write the database can't, and set MASIS_LOG_KEY={file}.")
    return key.encode()


def _read_note(file: Path) -> tuple[str, int]:
    try:
        noted = json.loads(file.read_text(encoding="utf-8"))
        return str(noted["head"]), int(noted["length"])
    except (ValueError, KeyError, TypeError) as error:
        raise JobFailed(f"{file}: holds no head that `masis verify-log --note` wrote. Name another file.") from error


def _write_note(file: Path, check: LogCheck) -> None:
    """Replace the note as a whole, so that a full disk leaves the old one."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps({"length": check.length, "head": check.head}) + "\n", encoding="utf-8")
    new.replace(file)


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
