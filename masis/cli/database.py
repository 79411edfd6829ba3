"""Maintenance: ``masis health``, ``verify-log``, ``purge``, and ``db`` for copies and redaction."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from masis.audit.acceptance import RULE_VERSION
from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed, end_interrupted
from masis.cli.options import Judges
from masis.cli.output import Emit, Interruption, ProgressBar, plain, say
from masis.datasets.writers.files import whole_file
from masis.errors import StoreError
from masis.extensions import load_all
from masis.schema.retention import Purge, PurgePlan, RetentionRule
from masis.schema.review import LogCheck, SubjectCheck
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.maintenance import backups
from masis.services.maintenance.health import report_without_database
from masis.services.maintenance.retention import rule_of
from masis.services.reassessment import Reassessment, result_lines
from masis.services.records import DecisionFilter
from masis.services.reviews import ReviewService
from masis.settings import database_path, log_key
from masis.settings.reference import option_help
from masis.views.numbers import file_size, moment


@click.command(cls=Command)
@shared.judges_options
@click.option(
    "--ask/--no-ask",
    default=True,
    show_default=True,
    help="Send each language model in use a test request, which may cost a fraction of a cent.",
)
@shared.json_option
@shared.database_option
def health(judges: Judges, ask: bool, emit: Emit, db: Path | None) -> None:
    """Check that the workbench works: its database, logs, auditor and models.

    The checks cover the database (intact, current, writable), both logs, every module, a small
    audit, the models, and free disk space. docs/running.md explains each check and what to do if it
    fails.

      masis health
      masis health --json --db review.db
      masis health --model critic=openai:gpt-4o     check that this model responds

    Exit code 0: every check passed. 1: a check failed.
    """
    settings, path = judges.load().settings, database_path(db)
    if path.exists():
        try:
            report = shared.open_existing(db, "open").health(settings, ask_models=ask)
        except StoreError as error:  # an unreadable database is a failed check, not a crash
            report = report_without_database(path, settings, error, ask_models=ask)
    else:
        report = report_without_database(
            path, settings, shared.no_database(path) if db else None, ask_models=ask
        )
    width = max((len(item.name) for item in report.items), default=0)
    lines = []
    for item in report.items:
        sign = "BAD" if not item.ok else "-  " if item.absent else "ok "
        lines.append(f"{sign}  {item.name:<{width}}  {item.message}")
        lines += [f"     {'':<{width}}  {item.hint}"] if item.hint and not item.ok else []
    emit(report.to_json(), lines)
    if not report.ok:
        raise JobFailed(
            f"Checks failed: {', '.join(item.name for item in report.items if not item.ok)}."
        )


@click.command(cls=Command)
@click.option(
    "--note",
    type=shared.FILE,
    metavar="PATH",
    help="A file on another disk or machine: compare the log with the head noted in it, then note"
    " the current head.",
)
@click.option(
    "--key",
    type=shared.FILE,
    metavar="PATH",
    help="The file with the signing key. Default: MASIS_LOG_KEY. Without a key, signatures aren't"
    " checked.",
)
@click.option(
    "--new-key", type=shared.FILE, metavar="PATH", help="Create a key and sign every entry with it."
)
@click.option(
    "--sign",
    is_flag=True,
    help="Sign entries that have no signature, if the log is otherwise intact.",
)
@click.option("--rearm", is_flag=True, help="Restore the triggers of a log that has lost them.")
@shared.json_option
@shared.database_option
def verify_log(
    note: Path | None,
    key: Path | None,
    new_key: Path | None,
    sign: bool,
    rearm: bool,
    emit: Emit,
    db: Path | None,
) -> None:
    """Check that no decision, and no case, run or answer that it refers to, was changed or removed.
    Print the length and the head of the log.

    Entries form a hash chain, so a changed entry can be named. Each entry has digests of its case,
    run and answer, which are compared with the stored data. If the case was redacted or the run
    removed, the entry can't be compared, which isn't a problem.

    Anyone with write access to the database can rewrite the whole chain. Use a signing key stored
    elsewhere (MASIS_LOG_KEY names its file) to detect entries that were rewritten, backdated or
    added without the key. Use --note to detect a log that was cut off or replaced by an older copy;
    it compares the log with a head noted elsewhere and then updates the note. Database triggers
    refuse any change to the log; if they were removed, --rearm restores them.

    Overrides of grades in screenings have a separate log with its own chain. It is checked too, and
    printed if it has entries, but --note applies only to the decision log.

      masis verify-log
      masis verify-log --new-key /secure/log.key
      masis verify-log --key /secure/log.key --note /elsewhere/head.json

    Exit code 0: the log is intact. 1: it isn't; the problems are listed.
    """
    if new_key is not None and key is not None:
        raise click.UsageError("Use --key or --new-key, not both.")
    secret = log_key(key) if new_key is None else None
    if sign and secret is None:
        raise click.UsageError(
            "--sign needs a key: name it with --key FILE, or create one with --new-key FILE."
        )
    writes = rearm or sign or new_key is not None
    # The temporary copy is deleted when the command ends.
    path = click.get_current_context().with_resource(
        _openable_database(database_path(db), writes=writes)
    )
    workbench = shared.open_existing(path, "rearm" if rearm else "open")
    check, graded = workbench.store.decisions.verify(), workbench.store.screening_log.verify()
    preferred = workbench.store.preference_log.verify()
    figures = {name: getattr(check, name) for name in ("length", "head", "redacted")}
    screening_figures = {name: getattr(graded, name) for name in figures} if graded.length else {}
    emit.lines(f"{name:<8} {value}" for name, value in figures.items())
    emit.lines(f"screening {name:<8} {value}" for name, value in screening_figures.items())
    preference_figures = (
        {name: getattr(preferred, name) for name in figures} if preferred.length else {}
    )
    emit.lines(f"preference {name:<8} {value}" for name, value in preference_figures.items())
    for entry in (*check.set_back, *graded.set_back, *preferred.set_back):
        say(f"{entry}: the clock was set back, or the entry was written later.")
    subjects, grades = (
        workbench.store.decisions.check_subjects(),
        workbench.store.screening_log.check_subjects(),
    )
    _say_compared(subjects, "entry", "entries", "the stored case, run and answer")
    if graded.length:
        _say_compared(grades, "screening entry", "screening entries", "the screening and grade")
    pairs = workbench.store.preference_log.check_subjects()
    if preferred.length:
        _say_compared(pairs, "preference", "preferences", "the two stored cases")
    problems = [
        problem
        for found in (check, graded, preferred, subjects, grades, pairs)
        for problem in found.broken
    ]
    if note is not None and note.exists():
        problems += _differences_from_note(workbench.reviews, check, note)
    if secret and not sign:
        problems += workbench.reviews.check_signatures(secret).broken
    signed = None
    # A log with problems is never signed, because a signature would vouch for the changed entries.
    if not problems and new_key is not None:
        secret = _make_key(new_key)
    if not problems and secret is not None:
        if sign or new_key is not None:
            new = workbench.reviews.sign(shared.operator(), secret)
            say(f"{count_noun(new, 'entry', 'entries')} without a signature signed.")
        signatures = workbench.reviews.check_signatures(secret)
        problems += signatures.broken
        signed = signatures.signed
    record = {
        **figures,
        "screening": screening_figures or None,
        "preference": preference_figures or None,
        "signed": signed,
        "problems": problems,
    }
    emit(record, [f"signed   {signed}"] if signed is not None else ())
    for problem in problems:
        say(problem)
    if problems:
        raise JobFailed(
            f"The decision log isn't intact: {count_noun(len(problems), 'problem')}, listed above."
        )
    say("The decision log is intact.")
    if note is not None:
        with whole_file(note) as stream:
            stream.write(json.dumps({"length": check.length, "head": check.head}).encode() + b"\n")


def _say_compared(checked: SubjectCheck, singular: str, plural: str, what: str) -> None:
    say(f"{count_noun(checked.checked, singular, plural)} compared with {what}.")
    for reason, count in checked.not_checkable.items():
        say(f"{count_noun(count, singular, plural)} not checkable: {reason}.")


@contextlib.contextmanager
def _openable_database(path: Path, *, writes: bool) -> Iterator[Path]:
    """Yield the database to check, or a temporary copy if it is read-only.

    SQLite needs write access to the folder even to read a database in WAL mode
    (sqlite.org/wal.html, "Read-Only Databases").
    """
    # SQLite takes an empty file for an empty database.
    if path.exists() and not path.stat().st_size:
        raise JobFailed(f"{path} is empty and has no decision log. Compare with a backup.")
    if (
        writes
        or not path.exists()
        or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    ):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="masis-") as folder:
        say(f"{path} is read-only, so a copy of it is checked.")
        copy = Path(folder) / path.name
        # Recent changes may be only in the -wal file.
        for end in ("", "-wal"):
            if (part := path.with_name(path.name + end)).exists():
                shutil.copyfile(part, copy.with_name(copy.name + end))
        yield copy


def _make_key(file: Path) -> bytes:
    """Write a new key to a file that only its owner can read. Raises JobFailed if it exists."""
    # 256 bits, the length of a SHA-256, as RFC 2104 (section 3) advises for the key of an HMAC
    key = secrets.token_hex(32)
    try:
        # The mode applies from the creation on, so that no other user can open the key in between.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise JobFailed(
            f"{file} already exists. Use it with --key, or name another file."
        ) from error
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(f"{key}\n")
    say(
        f"Key written to {file}. Keep it where people with write access to the database can't"
        " change it, and set"
        f" MASIS_LOG_KEY={file}."
    )
    return key.encode()


def _differences_from_note(log: ReviewService, check: LogCheck, note: Path) -> Iterator[str]:
    """Yield the differences between the log and the head noted earlier.

    Raises JobFailed if the file doesn't have a head.
    """
    try:
        noted = json.loads(note.read_text(encoding="utf-8"))
        head, length = str(noted["head"]), int(noted["length"])
    except (ValueError, KeyError, TypeError) as error:
        raise JobFailed(
            f"{note} wasn't written by `masis verify-log --note`. Name another file."
        ) from error
    if check.length < length:
        yield (
            f"the log has {count_noun(check.length, 'entry', 'entries')}, but {length:,} were"
            " noted, so its end was cut off"
        )
    elif length > 0:
        # With one entry per page, oldest first, the page number is the number of the entry.
        entry = log.entries(DecisionFilter(page=length, size=1, newest_first=False)).rows[0]
        if entry.digest != head:
            yield (
                f"entry {length:,} has another digest than the head that was noted, so the log was"
                " rewritten or cut off"
            )


@click.command(cls=Command)
@click.option(
    "--older-than",
    type=click.IntRange(0, 36_500),
    metavar="DAYS",
    help=option_help(
        "retention_days", "Remove audits that ended longer ago than this; 0: all that have ended."
    ),
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@shared.yes_option
@click.option(
    "--include-decided",
    is_flag=True,
    help="Also remove audits that people decided on. Their decisions are kept.",
)
@click.option("--keep-waiting", is_flag=True, help="Keep audits that need review, however old.")
@click.option(
    "--shrink/--no-shrink",
    default=True,
    show_default=True,
    help="Return the freed space to the disk.",
)
@click.option(
    "--list", "listed", is_flag=True, help="List every run and screening, not only their counts."
)
@click.option("--history", is_flag=True, help="Show past purges and who ran them.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def purge(
    older_than: int | None,
    dry_run: bool,
    yes: bool,
    include_decided: bool,
    keep_waiting: bool,
    shrink: bool,
    listed: bool,
    history: bool,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Remove audits and screenings past their retention period, with their results, iterations,
    drafts, events and grades.

    Audits that people decided on are kept, unless you pass --include-decided. Audits that need
    review are removed and counted, unless you pass --keep-waiting. Cases, corpora, decisions, the
    metrics of every audit and the execution log are always kept. The purge is recorded without the
    removed texts.

      masis purge --dry-run                      show what would be removed
      masis purge --older-than 90
      masis purge --yes --json                   for a nightly job
      masis purge --history

    Exit code 0: success, or nothing to remove. 1: the purge failed, or you answered no. 2: wrong
    usage. 130: interrupted; records removed so far are in the history.
    """
    if history:
        _show_history(workbench, emit, listed=listed)
        return
    days = workbench.settings.retention_days if older_than is None else older_than
    if older_than is None and not days:
        emit({"removed": None})
        say("retention_days is 0, so nothing is removed by age. Set an age with --older-than.")
        return
    rule = rule_of(days, decided=include_decided, waiting=not keep_waiting)
    plan = workbench.store.retention.plan(rule)
    # Compiled programs may contain texts of cases, but they may also be in use, so a person has to
    # decide whether to delete them.
    kept = [find(workbench.settings, rule.cutoff) for find in load_all("kept_texts")]
    old = [name for texts in kept for name in texts.names]
    goes = [record.model_dump(include={"kind", "id", "ended_at", "bytes"}) for record in plan.goes]
    names = ("rule", "runs", "screenings", "parts", "bytes", "waiting", "kept")
    in_json = {name: plain(getattr(plan, name)) for name in names} | {"goes": goes}
    record: dict[str, Any] = {"plan": in_json, "removed": None, "programs": old}
    emit.lines(_plan_lines(workbench, plan, listed=listed))
    for texts in kept:
        if texts.names:
            files = count_noun(len(texts.names), texts.one, texts.several)
            note = "which may contain text from cases; delete files that aren't in use from"
            emit.lines(
                (f"  keep    {files}: {', '.join(texts.names)}", f"          {note} {texts.folder}")
            )
    if dry_run or not plan.goes:
        emit(record)
        say(
            "This was a dry run; nothing was removed." if dry_run else "There is nothing to remove."
        )
        return
    shared.confirm("Remove this permanently?", yes=yes)
    with (
        Interruption("Stopping after the batch in progress.") as stop,
        ProgressBar("Removing", len(plan.goes)) as progress,
    ):
        done = workbench.retention.purge(
            shared.operator(by),
            rule,
            how="command",
            on_batch=lambda to: progress.move(to, count_noun(to, "record")),
            stopped=stop.is_stopped,
            shrink=shrink,
        )
    gone, file = done.purge, done.shrunk
    line = f"Removed as purge {gone.seq}: {_amount(gone)}." if gone else ""
    emit(record | {"removed": gone, "file": file}, [line] if line else ())
    if gone is not None and gone.runs < plan.runs:
        say(
            f"{count_noun(plan.runs - gone.runs, 'run')} kept, because they were decided or resumed"
            " in the meantime, or the purge was stopped."
        )
    if done.lingers:
        say(
            "Another program is still reading the old state. Until it ends,"
            f" {workbench.database}-wal contains the removed data."
        )
    if file is not None:
        why = f"; not all space was freed: {file.why_not}" if file.why_not else ""
        say(
            f"{workbench.database}: {file_size(file.before)} before, {file_size(file.after)}"
            f" now{why}."
        )
    if stop.asked:
        end_interrupted("Interrupted. Run the same command again to continue.")


def _plan_lines(workbench: Workbench, plan: PurgePlan, *, listed: bool) -> Iterator[str]:
    yield f"{_rule_words(plan.rule)}, of {count_noun(plan.runs_in_all, 'run')}"
    yield f"  remove  {_amount(plan)}"
    if plan.waiting:
        yield f"          {plan.waiting:,} of these need review (--keep-waiting keeps them)"
    reasons = {
        "decided": "because people decided on them (--include-decided removes them too)",
        "waiting": "because they need review",
    }
    for why, number in plan.kept.items():
        yield f"  keep    {number:,} more {reasons[why]}"
    yield (
        "  keep    cases, decisions, metrics of every audit, the execution log;"
        f" {workbench.database}"
    )
    for record in plan.goes if listed else ():
        if record.id:
            ended = record.ended_at[:19]
            yield f"  - {record.kind} {record.id}  ended {ended}  {record.about[:80]}"


def _rule_words(rule: RetentionRule) -> str:
    age = f"older than {count_noun(rule.days, 'day')}" if rule.days else "everything that has ended"
    return f"Ended before {moment(rule.cutoff)} UTC ({age})"


def _amount(purge: PurgePlan | Purge) -> str:
    """Return in words how much a purge will remove, or has removed."""
    amounts = {"runs": purge.runs, "screenings": purge.screenings, **purge.parts.model_dump()}
    words = [count_noun(count, name.removesuffix("s")) for name, count in amounts.items() if count]
    return f"{', '.join(words) or 'nothing'}: {file_size(purge.bytes)}"


def _show_history(workbench: Workbench, emit: Emit, listed: bool) -> None:
    records, lines = [], list[str]()
    for past in workbench.store.purges.history():
        removed = list(workbench.store.purges.removals(past.seq)) if listed else []
        records.append(plain(past) | ({"removed": plain(removed)} if listed else {}))
        lines.append(
            f"purge {past.seq}  {past.at[:19]}  by {past.by} ({past.how})  {_amount(past)}"
        )
        lines.append(f"         {_rule_words(past.rule)}{past.rule.departures}")
        lines += [
            f"  - {removal.kind} {removal.id}  sha256 {removal.digest}" for removal in removed
        ]
    if not records:
        say("Nothing has been purged yet.")
    emit({"purges": records}, lines)


@click.group(cls=CommandGroup)
def db() -> None:
    """Back up and restore a database, redact text, and apply the current acceptance rule.

    masis db backup backups/ --keep 7
    masis db redact case bridge-01 --reason "asked by the person"
    """


@db.command(short_help="Copy the database while it is in use, and verify the copy.")
@click.argument("target", type=shared.PATH)
@click.option(
    "--keep", type=click.IntRange(1), metavar="N", help="In a folder: remove all but the newest N."
)
@shared.json_option
@shared.workbench_option
def backup(target: Path, keep: int | None, emit: Emit, workbench: Workbench) -> None:
    """Copy the database to TARGET, even while it is in use, and verify the copy.

    TARGET is a new file, or a folder, where the copy's name includes the time. The copy is a
    consistent snapshot in a single file. It gets its final name only after it was read completely
    and verified, so a file with that name is always a good backup. A damaged database isn't backed
    up; 'masis health' shows what is wrong. If the setting backup_folder is set, 'masis serve' makes
    backups automatically.

      masis db backup backups/ --keep 14
      masis db backup before-the-update.db --db review.db

    Exit code 0: the backup was made and verified. 1: the backup failed, and no file is left of it.
    """
    if keep is not None and not target.is_dir():
        raise click.UsageError(f"--keep: {target} isn't an existing folder.")
    result = workbench.backups.make(shared.operator(), target, keep=keep or 0)
    emit({**plain(result.check), "removed": plain(result.removed)})
    say(f"Backup: {backups.backup_line(result.check)}")
    for path in result.removed:
        say(f"Removed: {path}")


@db.command(short_help="Restore the database from a backup.")
@click.argument("copy", type=shared.FILE, metavar="BACKUP")
@click.option("--check", is_flag=True, help="Only verify the backup, without restoring it.")
@click.option(
    "--replace",
    is_flag=True,
    help="Replace an existing database, which is kept under another name.",
)
@shared.yes_option
@shared.json_option
@shared.database_option
def restore(copy: Path, check: bool, replace: bool, yes: bool, emit: Emit, db: Path | None) -> None:
    """Verify BACKUP and restore the database from it.

    An existing database is replaced only with --replace, and is kept under a name that ends with
    the time. It must not be in use. Decisions made since the backup are in that file; 'masis
    export' can read it.

      masis db restore backups/masis-20260301T020000Z.db --check
      masis db restore backups/masis-20260301T020000Z.db --replace

    Exit code 0: the backup was restored (with --check: it is valid). 1: it wasn't, and nothing was
    changed.
    """
    database, aside = database_path(db), None
    if check:
        checked = backups.verify(copy)
        say(f"Valid: {backups.backup_line(checked)}")
    else:
        if replace and database.exists():
            question = f"Replace {database}? The current file is kept under another name."
            shared.confirm(question, "Nothing was changed.", yes=yes)
        checked, aside = backups.restore(shared.operator(), copy, database, replace=replace)
        checked = checked.model_copy(update={"path": str(database)})
        if aside is not None:
            say(f"The previous database is now {aside}.")
        say(f"Restored: {backups.backup_line(checked)}")
    emit({**plain(checked), "was_there": plain(aside)})


@click.group(cls=CommandGroup, short_help="Remove the text of a case or a decision on request.")
def redact() -> None:
    """Permanently remove the text of a case or of one decision, on request.

      masis db redact case bridge-01 --reason "asked for by the person named in it"
      masis db redact decision 3f5a09... --reason "names a patient" --by "Ada Lind"

    Ids, verdicts, figures and the hash chain of the log are kept, so 'masis verify-log' still
    succeeds. The log records who redacted, when and why. Existing backups and copies aren't
    changed.
    """


db.add_command(redact)
reason_option = click.option(
    "--reason",
    required=True,
    help="The reason. It is stored in the log, so it must not repeat the redacted text.",
)


@redact.command(short_help="Remove every text of a case, its runs and its decisions.")
@click.argument("case_id", metavar="ID")
@reason_option
@shared.by_option
@shared.yes_option
@shared.json_option
@shared.workbench_option
def case(
    case_id: str, reason: str, by: str | None, yes: bool, emit: Emit, workbench: Workbench
) -> None:
    """Remove every text of the case ID: question, answer, evidence, results, drafts, and what
    reviewers wrote.

      masis db redact case bridge-01 --reason "asked for by the person named in it"

    Its id, its digest, its verdicts and its figures are kept. Other versions of the case are
    redacted as well. Exit code 0: redacted. 1: the case doesn't exist, is already redacted, or is
    being audited.
    """
    # raises an error for an unknown id, before the question is asked
    workbench.cases.summary(case_id)
    shared.confirm(f"Permanently remove every text of case {case_id}?", yes=yes)
    done = workbench.reviews.redact_case(shared.operator(by), case_id, reason)
    emit({"case": case_id, **plain(done)})
    say(
        f"Case {case_id} is redacted: {count_noun(done.entries, 'decision')},"
        f" {count_noun(done.runs, 'run')} and {count_noun(done.drafts, 'draft field')}. Entry"
        f" {done.entry.id} of the decision log records it."
    )


@redact.command(short_help="Remove the text of one log entry.")
@click.argument("entry_id", metavar="ID")
@reason_option
@shared.by_option
@shared.yes_option
@shared.json_option
@shared.workbench_option
def decision(
    entry_id: str, reason: str, by: str | None, yes: bool, emit: Emit, workbench: Workbench
) -> None:
    """Remove reviewer, reason, note and corrected answer from the entry ID of the decision log or
    the screening log.

      masis db redact decision 3f5a09... --reason "names a patient"

    The verdict and the entry's place in the chain are kept. Exit code 0: redacted. 1: the entry
    doesn't exist or is already redacted.
    """
    shared.confirm(f"Permanently remove the text of entry {entry_id}?", yes=yes)
    record = workbench.reviews.redact_entry(shared.operator(by), entry_id, reason)
    emit(record)
    say(f"Entry {entry_id} is redacted. Entry {record.id} of the log records it.")


@db.command(short_help="Apply the current acceptance rule to stored audits.")
@click.option("--dry-run", is_flag=True, help="Show what would change without changing it.")
@shared.yes_option
@click.option(
    "--again",
    is_flag=True,
    help="Also reassess audits that the current rule has judged, for example after a threshold was"
    " changed.",
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def reassess(
    dry_run: bool, yes: bool, again: bool, by: str | None, emit: Emit, workbench: Workbench
) -> None:
    """Apply the current acceptance rule and thresholds to stored audits.

    Answers aren't audited again, models aren't called, and log entries aren't rewritten. An answer
    that is no longer accepted gets an entry that undoes its acceptance and says why; an answer that
    is now accepted gets a new entry. Cases that a person decided, or whose decision a person undid,
    aren't changed. docs/trust.md explains the rule.

      masis db reassess --dry-run                   show what would change
      masis db reassess                             show the changes, ask, and apply them
      masis db reassess --again --yes               after changing review_threshold

    Exit code 0: success, or nothing to change. 1: it failed, or you answered no. 2: wrong usage.
    130: interrupted; run the same command again to continue.
    """
    planned = _reassess_with_progress(workbench, "Checking", by=by, apply=False, again=again)
    # The plan is the command's JSON result only if nothing follows it.
    is_finished = dry_run or not planned.total
    _show(planned, emit if is_finished else Emit(as_json=False))
    if is_finished:
        say(
            "This was a dry run; nothing was changed."
            if dry_run
            else "There is nothing to reassess."
        )
        return
    question = f"Reassess {count_noun(planned.total, 'case')} with rule {RULE_VERSION}?"
    shared.confirm(question, "Nothing was changed.", yes=yes)
    _show(_reassess_with_progress(workbench, "Reassessing", by=by, apply=True, again=again), emit)


def _reassess_with_progress(
    workbench: Workbench, title: str, *, by: str | None, apply: bool, again: bool
) -> Reassessment:
    waiting = workbench.reassessment.waiting(again=again)
    with (
        Interruption("Stopping after the batch in progress.") as stop,
        ProgressBar(title, waiting) as progress,
    ):
        reassessment = workbench.reassessment.run(
            shared.operator(by),
            apply=apply,
            again=again,
            on_progress=lambda so_far: progress.move(
                so_far.done, count_noun(so_far.changed, "change")
            ),
            stopped=stop.is_stopped,
        )
    if stop.asked:
        _show(reassessment, Emit(as_json=False))
        end_interrupted("Interrupted. Run the same command again to continue.")
    return reassessment


def _show(reassessment: Reassessment, emit: Emit) -> None:
    record = {
        "rule": reassessment.rule,
        "applied": reassessment.applied,
        "cases": reassessment.total,
        "accepted_to_needs_review": reassessment.to_review,
        "needs_review_to_accepted": reassessment.to_accepted,
        "left": reassessment.skipped,
        "reasons": dict(reassessment.reasons.most_common()),
    }
    emit(record)
    if not emit.as_json:
        for line in (
            *result_lines(reassessment),
            *(f"  {code}: {count:,}" for code, count in reassessment.reasons.most_common()),
        ):
            say(line)
