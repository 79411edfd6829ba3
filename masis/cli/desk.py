"""``masis queue``, ``show``, ``decide``, ``label``, ``undo`` and ``log``: the desk by program, by the page's rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from masis.cli.group import JobFailed
from masis.cli.options import STDIO, checked_input, database_option, json_option, open_existing, operator, spooled
from masis.cli.output import emit, printable, say
from masis.datasets.readers.decisions import read_decisions
from masis.errors import InputError
from masis.schema.review import LogEntry, Verdict, decided_about
from masis.schema.run import Iteration
from masis.schema.wording import counted, shortened
from masis.services.cases import CaseView
from masis.services.desk import SHOWN, Desk
from masis.services.records import CaseSummary, QueueOrder
from masis.views.log_entries import entry_word
from masis.views.numbers import score_text
from masis.views.words import FLAG, ISSUES, STATE, VERDICT

F = TypeVar("F", bound=Callable[..., Any])


def _person_option(command: F) -> F:
    return click.option("--by", metavar="NAME", help="Whose desk. Default: the name you are logged in with.")(command)


def _desk(db: Path | None, by: str | None) -> Desk:
    return Desk.on(open_existing(db), operator(by).name)


@click.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many cases.")
@click.option("--search", "text", default="", metavar="WORDS", help="Only cases that hold all these words.")
@click.option("--field", "fields", multiple=True, metavar="NAME", help="Only cases of this field.")
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Only cases of this data set.")
@click.option("--order", type=click.Choice(get_args(QueueOrder)), default="risk", show_default=True, help="What first.")
@_person_option
@json_option
@database_option
def queue(by: str | None, as_json: bool, db: Path | None, **filters: Any) -> None:
    """List the cases that wait for your decision, the most pressing first.

    \b
      masis queue
      masis queue --field Medicine --limit 5
      masis queue --json | jq -r .id

    Exit code 0: listed, also where nothing waits.
    """  # noqa: D301 (click reads the backspace)
    desk = _desk(db, by)
    rows = desk.queue(**filters)
    if not rows:
        say("No case waits for you. 'masis audit FILE' brings some in; 'masis log' shows what was decided.")
    emit(
        [row.model_dump(mode="json") for row in rows],
        ("case", "state", "worst", "quality", "question"),
        [
            (
                row.id,
                STATE[row.state].text,
                worst(row),
                "" if row.quality is None else score_text(row.quality),
                row.query,
            )
            for row in rows
        ],
        as_json=as_json,
    )


def worst(row: CaseSummary) -> str:
    """Return the worst issue of a case's original answer in words; "" where there is none, or it is hidden."""
    return next((FLAG[flag].text for flag in ISSUES if flag in row.flags), "")


@click.command()
@click.argument("case")
@_person_option
@json_option
@database_option
def show(case: str, by: str | None, as_json: bool, db: Path | None) -> None:
    """Show CASE: question, answer, evidence, what the audit found, and what was decided.

    \b
      masis show strategy-01
      masis show strategy-01 --json | jq .run.review_reasons

    Exit code 1: there is no such case.
    """  # noqa: D301 (click reads the backspace)
    view = _desk(db, by).show(case)
    if as_json:
        click.echo(json.dumps(_as_json(view), ensure_ascii=False))
        return
    for line in _as_lines(view):
        click.echo(printable(line))


def _as_json(view: CaseView) -> dict[str, Any]:
    run = view.run.model_dump(mode="json") if view.run else None
    history = [entry.model_dump(mode="json") for entry in view.history]
    summary = view.summary.model_dump(mode="json")
    return {"case": view.case.to_json_dict(), "summary": summary, "run": run, "history": history}


def _as_lines(view: CaseView) -> Iterator[str]:
    iteration = view.run.iterations[0] if view.run and view.run.iterations else None
    yield f"{view.case.id} · {STATE[view.state].text} · version {view.summary.version}"
    yield from ("", "Question", f"  {view.case.query}", "")
    answer = iteration.answer if iteration else view.case.answer or "There is none: an audit drafts one."
    yield "Answer" if view.case.answer is not None else "Answer (drafted by MASIS)"
    yield from (f"  {line}" for line in answer.splitlines())
    yield from ("", "Evidence")
    for chunk in view.case.evidence:
        yield f"  [{chunk.id}] {shortened(' '.join(chunk.text.split()), 300) or chunk.source or 'no text'}"
    if view.machine_hidden:
        yield from ("", "What the audit found is hidden until your decision: the team's policy says so.")
    elif iteration is not None:
        yield from _found(iteration)
        revisions = len(view.run.iterations) - 1 if view.run else 0
        if revisions:
            yield from ("", f"{counted(revisions, 'revision')} suggested: masis show {view.case.id} --json")
    if view.history:
        yield from ("", "Log")
        for entry in view.history:
            yield f"  {_entry_line(entry)}"


def _found(iteration: Iteration) -> Iterator[str]:
    scores = (("quality", iteration.quality_score), ("confidence", iteration.critique.confidence))
    yield from ("", "Audit: " + ", ".join(f"{name} {score_text(value)}" for name, value in scores))
    for check in iteration.claims:
        yield f"  {VERDICT[check.verdict].text:<14} {shortened(' '.join(check.claim.text.split()), 200)}"
    if iteration.issues:
        yield from ("", "Issues")
    for issue in sorted(iteration.issues, key=lambda issue: not issue.major):
        yield f"  {issue.severity:<9} {shortened(' '.join(issue.description.split()), 240)}"


@click.command()
@click.argument("case", required=False)
@click.argument("verdict", type=click.Choice(get_args(Verdict)), required=False)
@click.option("--reason", default="", metavar="CODE|TEXT", help="Why: a code such as unsupported, or your words.")
@click.option("--note", default="", metavar="TEXT", help="Anything else worth recording.")
@click.option("--corrected-answer", metavar="TEXT", help="With override: the answer as it should be.")
@click.option(
    "--corrected-file", callback=checked_input, type=click.Path(path_type=Path), help="With override: a file of it."
)
@click.option(
    "--iteration",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="1: the original answer; 2: revision 2.",
)
@click.option("--label", "labels", multiple=True, metavar="LABEL=WORDS", help="Label these words of the answer.")
@click.option("--acknowledge", is_flag=True, help="You have read the serious issues that the answer has open.")
@click.option(
    "--saw", type=click.Choice(["audit", "nothing"]), help="What of the audit you saw before. Default: not known."
)
@click.option("--version", type=int, metavar="N", help="Refuse unless the case still has this version ('masis show').")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    callback=checked_input,
    help="Decide every row of a file ('-' for stdin): JSON Lines or CSV of case, verdict, reason and so on, or what "
    "Label Studio or Argilla exported.",
)
@click.option("--dry-run", is_flag=True, help="With --file: say what would become of each row, and record nothing.")
@_person_option
@json_option
@database_option
def decide(
    case: str | None,
    verdict: Verdict | None,
    labels: tuple[str, ...],
    corrected_answer: str | None,
    corrected_file: Path | None,
    acknowledge: bool,
    saw: str | None,
    file: Path | None,
    dry_run: bool,
    by: str | None,
    as_json: bool,
    db: Path | None,
    **given: Any,
) -> None:
    """Decide about CASE: approve, override, reject or escalate.

    The rules are the page's: override needs the corrected answer, override and reject a reason, and an answer with
    serious issues is approved only with --acknowledge. 'masis undo' takes a decision back.

    A file has a decision a row: {"case": "a", "verdict": "reject", "reason": "unsupported"}. Each gives one result a
    line; a wrong row stops no other. What a tool showed its reviewers of the machine's verdict is recorded as unknown,
    which never counts as blind, unless a row says "machine_shown". The same file again decides nothing twice.

    \b
      masis decide strategy-01 reject --reason unsupported
      masis decide strategy-01 override --corrected-answer "It is 120 metres long [1]." --reason contradicted
      masis decide strategy-01 approve --acknowledge --label "supported=It is 120 metres long"
      masis decide --file decisions.jsonl --dry-run
      masis decide --file label-studio-export.json --json

    Exit code 0: recorded. 1: refused, or some rows were, and why. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    desk = _desk(db, by)
    if file is not None:
        if case or verdict:
            raise click.UsageError("--file: goes without CASE and VERDICT.")
        _decide_file(desk, file, acknowledge=acknowledge, dry_run=dry_run, as_json=as_json)
        return
    if case is None or verdict is None or dry_run:
        raise click.UsageError("Name a case and a verdict, such as: masis decide CASE approve. Or a --file.")
    if corrected_file is not None:
        corrected_answer = corrected_file.read_text(encoding="utf-8")
    entry = desk.decide(
        case,
        verdict,
        corrected_answer=corrected_answer,
        labels=[_label(each) for each in labels],
        acknowledge=acknowledge,
        machine_shown=None if saw is None else SHOWN if saw == "audit" else (),
        **given,
    )
    _say_entry(entry, as_json=as_json)


def _label(written: str) -> dict[str, Any]:
    label, equals, words = written.partition("=")
    if not equals or not words:
        raise click.UsageError(
            f"--label {printable(written[:60])}: write it as LABEL=WORDS, such as unsupported=in 1932."
        )
    return {"label": label, "text": words}


def _say_entry(entry: LogEntry, *, as_json: bool) -> None:
    if as_json:
        click.echo(entry.model_dump_json())
    else:
        click.echo(printable(_entry_line(entry)))


def _entry_line(entry: LogEntry) -> str:
    decision = entry.decision
    who = decision.reviewer if decision else ""
    about = f" {decided_about(decision)}" if decision and decided_about(decision) else ""
    reason = (
        f": {shortened(decision.reason or decision.note, 120)}"
        if decision and (decision.reason or decision.note)
        else ""
    )
    case = f" of {decision.case_id}" if decision else ""
    return f"{entry.seq}  {entry.at[:16]}  {entry_word(entry).text}{about}{case} by {who}{reason}  ({entry.id})"


def _decide_file(desk: Desk, file: Path, *, acknowledge: bool, dry_run: bool, as_json: bool) -> None:
    failed = made = 0
    with spooled(file) as path:
        rows: list[dict[str, Any]] = []
        for row in read_decisions(path, name="stdin" if file == STDIO else str(file)):
            if isinstance(row, InputError):
                failed += 1
                say(str(row))
            else:
                rows.append({"acknowledge": True, **row} if acknowledge else row)
    for result in desk.decide_all(rows, dry_run=dry_run):
        failed, made = failed + (result.entry is None), made + (result.entry is not None)
        word = "refused" if result.entry is None else "would be recorded" if dry_run else "recorded"
        if as_json:
            entry = result.entry.id if result.entry and not dry_run else None
            error = str(result.error) if result.error else None
            held = {"line": result.line, "case": result.case, "verdict": result.verdict, "result": word}
            click.echo(json.dumps({**held, "entry": entry, "error": error}, ensure_ascii=False))
        else:
            why = f": {result.error}" if result.error else ""
            click.echo(printable(f"line {result.line}  {result.case}  {result.verdict}  {word}{why}"))
    say(f"{counted(made, 'decision')} {'would be ' if dry_run else ''}recorded, {failed:,} refused.")
    if failed:
        raise JobFailed(f"{counted(failed, 'row')} refused, for the reasons above. The others stand.")


@click.command()
@click.argument("case")
@click.argument("label")
@click.argument("words", required=False)
@click.option(
    "--start", type=click.IntRange(0), metavar="N", help="Where the words begin, if they stand more than once."
)
@click.option(
    "--severity",
    type=click.Choice(["critical", "high", "medium", "low"]),
    help="Report an issue that the audit missed.",
)
@click.option("--note", default="", metavar="TEXT", help="What is wrong, in your words.")
@_person_option
@json_option
@database_option
def label(
    case: str,
    label: str,
    words: str | None,
    start: int | None,
    severity: str | None,
    note: str,
    by: str | None,
    as_json: bool,
    db: Path | None,
) -> None:
    """Label WORDS of the answer that you decided about, or report an issue in it.

    Labels belong to your decision on the case: a further entry repeats it with them. With --severity LABEL is one of
    the team's types of issues, and without WORDS it is about the whole answer.

    \b
      masis label strategy-01 unsupported "It was opened in 1931"
      masis label strategy-01 fabricated citation "120 metres" --severity high

    Exit code 0: recorded. 1: refused, and why.
    """  # noqa: D301 (click reads the backspace)
    given = {"label": label, "text": words or "", "start": start, "severity": severity, "note": note}
    _say_entry(_desk(db, by).label(case, [given]), as_json=as_json)


@click.command("log")
@click.argument("case", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many entries.")
@_person_option
@json_option
@database_option
def decision_log(case: str | None, limit: int, by: str | None, as_json: bool, db: Path | None) -> None:
    """List the newest entries of the decision log, of CASE or of all cases.

    \b
      masis log
      masis log strategy-01 --json | jq .decision.verdict

    'masis verify-log' checks that none was changed or removed.
    """  # noqa: D301 (click reads the backspace)
    entries = _desk(db, by).log(case, limit=limit)
    _list(entries, as_json=as_json)


def _list(entries: Iterable[LogEntry], *, as_json: bool) -> None:
    for entry in entries:
        _say_entry(entry, as_json=as_json)


@click.command()
@click.argument("entry")
@_person_option
@json_option
@database_option
def undo(entry: str, by: str | None, as_json: bool, db: Path | None) -> None:
    """Undo the decision that ENTRY of the log made, by a further entry; 'masis log' shows the ids.

    \b
      masis undo 5f0c1d2e3a4b

    Exit code 0: undone. 1: there is no such entry, or it decides nothing any more.
    """  # noqa: D301 (click reads the backspace)
    _say_entry(_desk(db, by).undo(entry), as_json=as_json)
