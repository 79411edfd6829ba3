"""The review commands: ``masis queue``, ``show``, ``decide``, ``label``, ``undo`` and more.

They follow the same rules as the pages, because both call the same services.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import click

from masis.cli import options as shared
from masis.cli.commands import Command, JobFailed, RegisteredChoice
from masis.cli.options import Names
from masis.cli.output import MAX_QUESTION_LENGTH, Emit, ProgressBar, say, table
from masis.cli.remote import desk_options
from masis.datasets.readers.decisions import read_decisions
from masis.datasets.writers.files import whole_file
from masis.errors import InputError
from masis.schema.labels import SupportKind
from masis.schema.review import LogEntry, Verdict, answer_name, decided_about, decision_outcome
from masis.schema.run import Iteration
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.batch_actions import ACTIONS
from masis.services.cases import CaseView
from masis.services.decision_rules import OTHER, reasons_for
from masis.services.desk import SHOWN, Desk
from masis.services.records import DEFAULT_ORDER, ORDERS, CaseFilter, OrderName
from masis.views.batch_words import batch_result, left_out_lines
from masis.views.faults import revealed_words
from masis.views.headline import headline
from masis.views.labels import flat_lines, label_lines
from masis.views.log_entries import entry_number, entry_word, with_case
from masis.views.numbering import numbered_issues
from masis.views.numbers import score_text
from masis.views.scores import changing_rules
from masis.views.story import failure_message, review_messages
from masis.views.words import (
    REASONING,
    REASONING_SHOWN,
    status_label,
    unanswered_words,
    verdict_word,
)

note_option = click.option("--note", default="", help="A note to record with the decision.")


@click.command(cls=Command)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many cases to list.",
)
@shared.search_option
@shared.field_option
@shared.dataset_option
@shared.system_option
@shared.import_option
@shared.queue_option
@click.option(
    "--order",
    type=RegisteredChoice(lambda: ORDERS),
    default=DEFAULT_ORDER,
    show_default=True,
    help="The order of the list.",
)
@desk_options
@shared.json_option
def queue(
    limit: int,
    text: str,
    fields: Names,
    datasets: Names,
    systems: Names,
    imports: Names,
    queue: str,
    order: OrderName,
    desk: Desk,
    emit: Emit,
) -> None:
    """List the cases that need your decision, most urgent first.

    masis queue
    masis queue --field Medicine --limit 5
    masis queue --queue "All cases" --limit 5
    masis queue --json | jq -r .id
    """
    rows = desk.queue(
        limit=limit,
        text=text,
        fields=fields,
        datasets=datasets,
        systems=systems,
        imports=imports,
        order=order,
        queue=queue,
    )
    if not rows:
        say(
            f"No case of the queue {queue!r} needs your decision. 'masis queues show' has its"
            " figures."
            if queue
            else "No cases need your decision. Add some with 'masis audit FILE'; 'masis log' shows"
            " past decisions."
        )
    cells = []
    for row in rows:
        # headline and quality are empty if the team's policy hides the audit from this reviewer
        worst = (row.headline or "").partition("\n")[0]
        quality = "" if row.quality is None else score_text(row.quality)
        label, _ = status_label(row.standing, row.state, row.severity)
        cells.append((row.id, label.text, worst, quality, shorten(row.query, MAX_QUESTION_LENGTH)))
    emit(list(rows), table(("case", "status", "worst issue", "quality", "question"), cells))


@click.command(cls=Command)
@click.argument("case")
@desk_options
@shared.json_option
def show(case: str, desk: Desk, emit: Emit) -> None:
    """Show CASE with its question, answer, evidence, audit and decisions.

    masis show bridge-01
    masis show bridge-01 --json | jq .run.review_reasons
    """
    view = desk.show(case)
    record = {
        "case": view.case.to_json_dict(),
        "summary": view.summary,
        "run": view.run,
        "history": view.history,
    }
    if view.planted is not None:
        record["planted"] = view.planted
    emit(record, _as_lines(view))


def _as_lines(view: CaseView) -> Iterator[str]:
    iteration = view.run.iterations[0] if view.run and view.run.iterations else None
    word, more = status_label(view.summary.standing, view.state, view.summary.severity)
    yield " · ".join(
        filter(None, (view.case.id, word.text, more, f"version {view.summary.version}"))
    )
    if view.planted is not None:
        yield from ("", revealed_words(view.planted))
    if view.run is not None and not view.machine_hidden:
        worst = headline(view.run)
        yield from ("", worst.text, *([worst.others] if worst.others else ()))
        if reasons := review_messages(view.run):
            yield from ("", "Reasons for review", *(f"  {reason}" for reason in reasons))
            if failed := failure_message(view.run):
                yield f"    {failed}"
    yield from ("", "Question", f"  {view.case.query}", "")
    none = unanswered_words(view.case) or "There is no answer yet. An audit drafts one."
    drafted = view.run is not None and view.run.draft is not None
    answer = (iteration.answer if iteration else view.case.answer) or none
    yield "Answer (drafted by MASIS)" if drafted else "Answer"
    yield from (f"  {line}" for line in answer.splitlines())
    if drafted and view.case.unanswered:
        yield f"  {none}"
    if view.case.model_reasoning:
        yield from ("", REASONING.text)
        yield from (
            f"  {line}" for line in shorten(view.case.model_reasoning, REASONING_SHOWN).splitlines()
        )
    decided = view.decision.decision if view.decision else None
    if decided is not None and decided.corrected_answer is not None:
        yield from ("", f"Corrected answer, by {decided.reviewer}")
        yield from (f"  {line}" for line in decided.corrected_answer.splitlines())
    yield from ("", "Evidence")
    for chunk in view.case.evidence:
        yield (
            f"  [{chunk.id}]"
            f" {shorten(' '.join(chunk.text.split()), 300) or chunk.source or 'no text'}"
        )
    if view.machine_hidden:
        yield from (
            "",
            "The team's policy hides the audit's results until you decide.",
        )
    elif iteration is not None:
        yield from _iteration_lines(iteration)
        for revision in view.run.iterations[1:] if view.run else ():
            name, quality = (
                answer_name(revision.iteration_number).capitalize(),
                score_text(revision.quality_score),
            )
            how = f"decide it with --iteration {revision.iteration_number}"
            yield from ("", f"{name}, suggested by the audit (quality {quality}, {how})")
            yield from (f"  {line}" for line in revision.answer.splitlines())
    if view.history:
        yield from ("", "Log")
        for entry in view.history:
            yield f"  {_entry_line(entry)}"
            if entry.decision is not None and entry.decision.note:
                yield f"      Note: {' '.join(entry.decision.note.split())}"
            for line in flat_lines(label_lines(entry.decision, view.case, view.run)):
                yield f"      {' '.join(line.split())}"


def _iteration_lines(iteration: Iteration) -> Iterator[str]:
    scores = (("quality", iteration.quality_score), ("confidence", iteration.critique.confidence))
    yield from ("", "Audit: " + ", ".join(f"{name} {score_text(value)}" for name, value in scores))
    yield from (f"  {line}" for line in changing_rules(iteration))
    for check in iteration.claims:
        yield (
            f"  {verdict_word(check).text:<16} {shorten(' '.join(check.claim.text.split()), 200)}"
        )
    groups = numbered_issues(iteration)
    if groups:
        yield from ("", "Issues")
    for number, group in enumerate(groups, 1):
        for issue in group:
            name = str(number) if issue is group[0] else ""
            described = shorten(" ".join(issue.description.split()), 240)
            yield f"  {name:>3} {issue.severity:<9} {described}"
            if issue.major and issue.suggestion:
                yield f"  {'':>3} {'':<9} {issue.suggestion}"


@click.command(cls=Command)
@click.argument("case", required=False)
@click.argument("verdict", type=click.Choice(get_args(Verdict)), required=False)
@click.option(
    "--reason",
    default="",
    metavar="CODE|TEXT",
    help="The reason: a sentence, or"
    f" {', '.join(reason.code for reason in reasons_for('reject') if reason.code != OTHER)}.",
)
@note_option
@click.option("--corrected-answer", help="With override: the corrected answer.")
@shared.iteration_option
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="LABEL=WORDS",
    help="Label these words of the answer.",
)
@click.option(
    "--acknowledge",
    is_flag=True,
    help="Confirm that you have read the serious open issues of the answer.",
)
@click.option(
    "--acknowledge-citations",
    is_flag=True,
    help="Keep references of the corrected answer that don't match any evidence.",
)
@click.option(
    "--saw",
    type=click.Choice(["audit", "nothing"]),
    help="Whether you saw the audit's results before you decided. Default: unknown.",
)
@click.option(
    "--version",
    type=int,
    metavar="N",
    help="Refuse if the case no longer has this version ('masis show').",
)
@click.option(
    "--queue",
    default="",
    metavar="NAME",
    help="The queue in which to decide. Default: 'All cases'.",
)
@click.option(
    "--file",
    type=shared.existing_file,
    metavar="PATH",
    help="Decide every row of a file ('-' for stdin): JSON Lines, CSV or Excel with case,"
    " verdict, reason and so on, or an export of Label Studio or Argilla.",
)
@shared.sheet_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="With --file: show the result of each row without recording anything.",
)
@desk_options
@shared.json_option
def decide(
    case: str | None,
    verdict: Verdict | None,
    reason: str,
    note: str,
    corrected_answer: str | None,
    iteration: int,
    labels: Names,
    acknowledge: bool,
    acknowledge_citations: bool,
    saw: Literal["audit", "nothing"] | None,
    version: int | None,
    queue: str,
    file: Path | None,
    sheet: str | None,
    dry_run: bool,
    desk: Desk,
    emit: Emit,
) -> None:
    """Decide CASE: approve, override, reject or escalate it.

    The rules are the same as on the page: override needs a corrected answer, override and reject
    need a reason or a note, and to approve an answer with serious issues you need --acknowledge. If
    the corrected answer cites evidence that doesn't exist, you need --acknowledge-citations. Use
    'masis undo' to undo a decision.

    A file has one decision per row, such as {"case": "a", "verdict": "reject", "reason":
    "unsupported"}. The result of each row is printed on its own line, and an invalid row doesn't
    affect the others. Unless a row has "machine_shown", it is recorded as unknown whether the
    reviewer saw the audit's verdict, and such a decision doesn't count as blind. Importing the same
    file again doesn't record its decisions twice.

    The rows of 'masis export --format decided' (jsonl or parquet) come back in as decisions of
    their reviewers, marked as imported, with labels and final verdicts. A case that isn't here is
    added. Such decisions never count as blind. A CSV export can't be imported.

      masis decide bridge-01 reject --reason unsupported
      masis decide bridge-01 override --corrected-answer "120 metres [1]." --reason contradicted
      masis decide bridge-01 approve --acknowledge --label "supported=It is 120 metres long"
      masis decide --file decisions.jsonl --dry-run
      masis decide --file label-studio-export.json --json

    Exit code 0: recorded. 1: the decision, or a row of the file, was refused; the message says why.
    2: wrong usage.
    """
    if file is not None:
        if case or verdict:
            raise click.UsageError("--file: leave out CASE and VERDICT.")
        confirmed = {
            name: given
            for name, given in (
                ("acknowledge", acknowledge),
                ("acknowledge_citations", acknowledge_citations),
                ("queue", queue),
            )
            if given
        }
        _decide_file(desk, file, sheet, confirmed, dry_run=dry_run, emit=emit)
        return
    if case is None or verdict is None or dry_run:
        raise click.UsageError(
            "Name a case and a verdict, such as: masis decide CASE approve. Or use --file."
        )
    entry = desk.decide(
        case,
        verdict,
        reason=reason,
        note=note,
        corrected_answer=corrected_answer,
        iteration=iteration,
        labels=[_parse_label(written) for written in labels],
        machine_shown=None if saw is None else SHOWN if saw == "audit" else (),
        acknowledge=acknowledge,
        acknowledge_citations=acknowledge_citations,
        version=version,
        queue=queue,
    )
    # A copy with a planted fault may be revealed once it is decided.
    planted = desk.show(case).planted
    emit(entry, [_entry_line(entry), *([revealed_words(planted)] if planted else [])])


def _parse_label(written: str) -> dict[str, Any]:
    label, equals, words = written.partition("=")
    if not equals or not words:
        raise click.UsageError(
            f"--label {written[:60]}: write it as LABEL=WORDS, such as unsupported=in 1932."
        )
    return {"label": label, "text": words}


def _parse_passage(written: str, stance: str) -> dict[str, Any]:
    evidence_id, equals, words = written.partition("=")
    if not equals or not words:
        option = "--supported-by" if stance == "supports" else "--contradicted-by"
        raise click.UsageError(
            f"{option} {written[:60]}: write it as ID=WORDS, such as c2=opened in 1932."
        )
    return {"evidence_id": evidence_id, "text": words, "stance": stance}


def _entry_line(entry: LogEntry) -> str:
    number, decision = entry_number(entry), entry.decision
    head = f"{number}  {entry.at[:16]}  {entry_word(entry).text}"
    # Readers who may not know the number see the id in its place.
    end = "" if number == entry.id else f"  ({entry.id})"
    if decision is None:
        return f"{head}{end}"
    answer = decided_about(decision)
    outcome = f", {text}" if (text := decision_outcome(decision)) else ""
    about = f": {with_case(answer, decision.case_id)}" if answer else f": case {decision.case_id}"
    why = f": {shorten(words, 120)}" if (words := decision.reason or decision.note) else ""
    return f"{head}{about}{outcome}, by {decision.reviewer}{why}{end}"


_OUTCOMES = {
    "recorded": "recorded",
    "imported": "imported",
    "unchanged": "already here",
    "refused": "refused",
}
"""The words for the outcome of a row."""


def _decide_file(
    desk: Desk,
    file: Path,
    sheet: str | None,
    confirmed: Mapping[str, bool | str],
    *,
    dry_run: bool,
    emit: Emit,
) -> None:
    failed = cases_added = 0
    counts: Counter[str] = Counter()
    with shared.spool_stdin(file) as path:
        rows: list[dict[str, Any]] = []
        for row in read_decisions(
            path, name="stdin" if file == shared.STDIO else str(file), sheet=sheet
        ):
            if isinstance(row, InputError):
                failed += 1
                say(str(row))
            else:
                rows.append({**confirmed, **row})
    for result in desk.decide_all(rows, dry_run=dry_run):
        counts[result.outcome] += 1
        cases_added += result.case_added
        would = "would be " if dry_run and result.outcome in ("recorded", "imported") else ""
        word = would + _OUTCOMES[result.outcome]
        entry, error = (
            result.entry.id if result.entry and not dry_run else None,
            (str(result.error) if result.error else None),
        )
        about = {"line": result.line, "case": result.case, "verdict": result.verdict}
        record = {**about, "result": word, "entry": entry, "error": error}
        why = f": {result.error}" if result.error else ""
        emit(record, [f"line {result.line}  {result.case}  {result.verdict}  {word}{why}"])
    failed += counts["refused"]
    would = "would be " if dry_run else ""
    parts = [f"{count_noun(counts['recorded'], 'decision')} {would}recorded"]
    if counts["imported"] or counts["unchanged"] or cases_added:
        parts += [
            f"{counts['imported']:,} {would}imported",
            f"{counts['unchanged']:,} already here",
            f"{count_noun(cases_added, 'case')} {would}added",
        ]
    say(f"{', '.join(parts)}, {failed:,} refused.")
    if failed:
        raise JobFailed(
            f"{count_noun(failed, 'row')} refused for the reasons listed above. The others were"
            " recorded."
        )


@click.command(cls=Command)
@click.argument("case")
@click.argument("label")
@click.argument("words", required=False)
@click.option(
    "--start",
    type=click.IntRange(0),
    metavar="N",
    help="The offset of the words in the answer, if they occur more than once.",
)
@click.option(
    "--severity",
    type=click.Choice(["critical", "high", "medium", "low"]),
    help="Report an issue of this severity that the audit missed.",
)
@click.option("--note", default="", help="What is wrong, in your own words.")
@click.option(
    "--supported-by",
    "supporting",
    multiple=True,
    metavar="ID=WORDS",
    help="Words of a chunk that support the labeled words. Repeatable.",
)
@click.option(
    "--contradicted-by",
    "contradicting",
    multiple=True,
    metavar="ID=WORDS",
    help="Words of a chunk that contradict the labeled words. Repeatable.",
)
@click.option(
    "--kind",
    type=click.Choice(get_args(SupportKind)),
    help="How the labeled words follow from the supporting ones.",
)
@click.option("--right-reference", metavar="ID", help="The chunk that should have been cited.")
@click.option("--chunk", metavar="ID", help="Label this chunk of the evidence, not the answer.")
@click.option("--conflicts-with", metavar="ID", help="The chunk that --chunk contradicts.")
@click.option(
    "--acknowledge",
    is_flag=True,
    help="Confirm that you have seen the serious issues of the answer that you approved.",
)
@click.option(
    "--acknowledge-citations",
    is_flag=True,
    help="Keep references of the corrected answer that don't match any evidence.",
)
@click.option(
    "--all-with-sentence",
    is_flag=True,
    help="Label the words in every answer that has the same sentence and that you decided.",
)
@desk_options
@shared.json_option
def label(
    case: str,
    label: str,
    words: str | None,
    start: int | None,
    severity: Literal["critical", "high", "medium", "low"] | None,
    note: str,
    supporting: Names,
    contradicting: Names,
    kind: SupportKind | None,
    right_reference: str | None,
    chunk: str | None,
    conflicts_with: str | None,
    acknowledge: bool,
    acknowledge_citations: bool,
    all_with_sentence: bool,
    desk: Desk,
    emit: Emit,
) -> None:
    """Label WORDS in the answer that you decided, a chunk, or the case.

    LABEL is supported, partial, unsupported, contradicted or unverifiable; about a reference valid,
    fabricated, misattributed, redundant or contradicts; about a sentence uncited or exempt. Labels
    are part of your decision on the case, so the decision is recorded again with the label. With
    --severity, LABEL is one of the team's issue types, and an issue is reported; without WORDS, it
    is about the whole answer. With --chunk, LABEL is relevant, irrelevant or conflicting. LABEL
    passage_missing says that the evidence lacks a passage that the answer needs.

      masis label tower-02 unsupported "It was opened in 1931"
      masis label tower-02 contradicted "in 1931" --contradicted-by "c2=opened in 1932"
      masis label tower-02 "fabricated citation" "120 metres" --severity high
      masis label tower-02 irrelevant --chunk c3
      masis label tower-02 passage_missing --note "the year of its opening"
      masis label tower-02 unsupported "It was opened in 1931" --all-with-sentence

    With --all-with-sentence, the entries are a batch, which 'masis batch undo' undoes.
    """
    if all_with_sentence:
        if words is None or start is not None:
            raise click.UsageError("--all-with-sentence: name WORDS, and leave out --start.")
        done = desk.label_sentence(
            case, words, label, severity=severity, note=note, acknowledge=acknowledge
        )
        emit(done, [batch_result(done, ACTIONS[done.action].done), *left_out_lines(done.kept)])
        say(f"The batch is {done.id}. Undo it with 'masis batch undo {done.id}'.")
        return
    passages = [
        _parse_passage(written, stance)
        for stance, texts in (("supports", supporting), ("contradicts", contradicting))
        for written in texts
    ]
    new_label = {
        "label": label,
        "text": words or "",
        "start": start,
        "severity": severity,
        "note": note,
        "evidence": passages,
        "kind": kind,
        "right_reference": right_reference,
        "evidence_id": chunk,
        "conflicts_with": conflicts_with,
    }
    entry = desk.label(
        case,
        [new_label],
        acknowledge=acknowledge,
        acknowledge_citations=acknowledge_citations,
    )
    emit(entry, [_entry_line(entry)])


@click.command("log", cls=Command)
@click.argument("case", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many entries to list.",
)
@click.option(
    "--search",
    "text",
    default="",
    metavar="WORDS",
    help="Only entries whose reason or notes contain all these words.",
)
@desk_options
@shared.json_option
def decision_log(case: str | None, limit: int, text: str, desk: Desk, emit: Emit) -> None:
    """List the newest entries of the decision log, for CASE or for all cases.

      masis log
      masis log bridge-01 --json | jq .decision.verdict
      masis log --search "wrong year"

    Use 'masis verify-log' to check that no entry was changed or removed.
    """
    entries = desk.log(case, limit=limit, text=text)
    emit(list(entries), map(_entry_line, entries))


@click.command(cls=Command)
@click.argument("entry")
@desk_options
@shared.json_option
def undo(entry: str, desk: Desk, emit: Emit) -> None:
    """Undo the decision in the log entry with the id ENTRY. 'masis log' shows the ids.

    masis undo 5f0c1d2e3a4b
    """
    record = desk.undo(entry)
    emit(record, [_entry_line(record)])


@click.command(cls=Command)
@click.argument("case")
@click.argument("text")
@desk_options
@shared.json_option
def comment(case: str, text: str, desk: Desk, emit: Emit) -> None:
    """Add a comment to CASE, which its other readers see.

    masis comment bridge-01 "The second source is newer."
    """
    entry = desk.comment(case, text)
    emit(entry, [_entry_line(entry)])


_ALL = CaseFilter(states=shared.STATES)


@click.command(cls=Command)
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option(
    "--run", "run_id", metavar="ID", help="A run of the case.  [default: the newest finished run]"
)
@shared.out_option("The file to write ('-' for stdout), or a folder.", folders=True)
@shared.filter_options("all, if another filter is given", shared.STATES)
@shared.json_option
@shared.workbench_option
def report(
    cases: Names,
    run_id: str | None,
    out: Path,
    case_filter: CaseFilter,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Write the audit of one case as an HTML page, or of several cases as a folder of pages.

    CASE is the id of a case. A page has the question, marked answers, evidence, scores and
    decisions. It is self-contained and has no scripts, so it can be printed, stored and sent. For
    several cases, or for the cases that match a filter, a folder is written with one page per case
    and an index.html that lists them.

      masis report bridge-01 --out audit.html
      masis report bridge-01 tower-02 --out reports/
      masis report --state needs_review --field Medicine --out reports/
    """
    if (case_filter != _ALL) == bool(cases):
        raise click.UsageError("Name cases or use a filter (--state any for all), but not both.")
    several = not cases or len(cases) > 1 or (out != shared.STDIO and out.is_dir())
    if several and run_id:
        raise click.UsageError("--run needs exactly one case and one file.")
    if out == shared.STDIO and (several or emit.as_json):
        what = (
            "Several reports need a folder" if several else "With --json, the report needs a file"
        )
        raise click.UsageError(f"{what}. Name it with --out.")
    # imported here because it takes a second, which --help must not wait for
    from masis.services.reports import INDEX, case_report, write_reports

    if not several:
        view, run = workbench.cases.open(cases[0]), workbench.runs.get(run_id) if run_id else None
        if run is not None and run.case_id != cases[0]:
            raise click.UsageError(f"--run {run_id} belongs to another case ({run.case_id}).")
        html = case_report(view, workbench.store.decisions.head(), run)
        with whole_file(out) as stream:
            stream.write(html.encode())
        if out != shared.STDIO:
            say(f"The report is in {out}.")
            emit({"reports": 1, "file": out})
        return
    total = len(cases) or workbench.cases.count(case_filter)
    if not total:
        raise JobFailed("No cases match the filter, so nothing was written.")
    with ProgressBar("Writing", total) as progress:
        written = write_reports(
            workbench,
            out,
            cases or case_filter,
            lambda done: progress.move(done, f"{done:,} of {total:,} reports"),
        )
    emit({"reports": written, "file": out / INDEX})
    say(f"{count_noun(written, 'report')} written. Open {out / INDEX} to read them.")
