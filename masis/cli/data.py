"""``masis import``, ``export`` and ``dataset`` move cases and data sets into and out of MASIS."""

from __future__ import annotations

import functools
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed, RegisteredChoice
from masis.cli.options import FileOptions
from masis.cli.output import Emit, ErrorReport, ProgressBar, say, table
from masis.datasets import loading
from masis.datasets.exports.export import DECIDED, ENCODINGS, Selection, manifest_bytes
from masis.datasets.exports.formats import export_formats
from masis.datasets.exports.splits import SPLITS, SplitShares
from masis.datasets.lake import is_lake
from masis.datasets.mapping.profile import profile_text
from masis.datasets.mapping.reader import read_any
from masis.datasets.writers.files import whole_file
from masis.datasets.writers.lines import case_line, write_line
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.reading import FIELDS, SPLIT, columns_in
from masis.schema.systems import UNNAMED
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.arrivals.lake import LakeService
from masis.services.records import CaseFilter
from masis.services.relabelling import GuaranteeState, guarantee_text, offer_text
from masis.settings import database_path
from masis.views.numbers import moment
from masis.views.words import unanswered_words

_SHOWN_ROWS = 3
"""How many parsed rows ``--dry-run`` shows."""

_SHOWN_LENGTH = 100
"""How many characters of a text ``--dry-run`` shows."""


def _parse_share(value: str | float) -> float:
    """Parse a share written as ``2%`` or ``0.02``, above 0 and at most 1. Raises BadParameter."""
    # click also passes values that it has converted before through the type.
    if isinstance(value, float):
        return value
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise shared.wrong(value, "write a share as 2% or 0.02.")
    return share


@click.command("import", cls=Command)
@click.argument(
    "files", type=shared.existing_or_address, nargs=-1, required=True, metavar="FILE..."
)
@shared.reading_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the first parsed rows and every problem, without storing anything.",
)
@click.option(
    "--suggest", is_flag=True, help="Suggest a map for the file and show two cases parsed with it."
)
@click.option(
    "--save", type=shared.FILE, metavar="PATH", help="With --suggest: write the map to a TOML file."
)
@click.option(
    "--needs-review",
    is_flag=True,
    help="From a folder of audited cases: import cases that need review or failed.",
)
@click.option(
    "--sample",
    type=_parse_share,
    metavar="SHARE",
    help="From a folder of audited cases: import a random share, such as 2%, of the auto-accepted"
    " cases.",
)
@click.option(
    "--seed", metavar="N", default=0, show_default=True, help="The random seed of the sample."
)
@shared.json_option
@shared.database_option
def import_files(
    files: tuple[Path | str, ...],
    reading: FileOptions,
    dry_run: bool,
    suggest: bool,
    save: Path | None,
    needs_review: bool,
    sample: float | None,
    seed: int,
    emit: Emit,
    db: Path | None,
) -> None:
    """Import cases from files of MASIS or of other tools into the database, without auditing them.

    A FILE has one case per line ('-' for stdin). A case that is already in the database is skipped.
    A different case with an id that is already in use is an error, because decisions refer to ids.

    Files of other tools (Ragas, DeepEval, LangSmith, Langfuse, Phoenix, MLflow, promptfoo,
    RAGTruth, replies of OpenAI and Anthropic, and more) are detected by their first row; use --as
    to name the format. They may be JSON Lines, JSON, CSV, TSV or Parquet, compressed with gzip or
    zip.

    A second system's answers to the same questions are imported with --system NAME, so that
    'masis compare' can compare both: its answer to the question q1 gets the id q1:NAME. A column
    with the name is read with --map system=COLUMN.

    A folder of audited cases ('masis audit --engine ray --out') is imported with its audits:
    --needs-review imports the cases that need review or failed, and --sample a random share of the
    auto-accepted cases for spot checks. Decisions on that sample estimate how many wrong answers
    were auto-accepted, which 'masis metrics' shows. The seed is recorded.

      masis import cases.jsonl more-cases.jsonl
      masis import answers.jsonl --system v2
      masis import audited/ --needs-review --sample 2%
      masis import traces.json --as langfuse-traces --dry-run
      masis import own.csv.gz --map own.toml
      masis import answers.csv --suggest --save own.toml
      masis import answers.csv --map query=question --map answer=response --dry-run

    Exit code 0: everything was read. 1: some of it couldn't be read; the rest is stored. 2: wrong
    usage.
    """
    paths = [
        file
        for file in files
        if isinstance(file, Path) and not (file.is_dir() and is_lake(str(file)))
    ]
    lakes = [str(file) for file in files if file not in paths]
    for lake in lakes:
        if not is_lake(lake):
            problem = f"{lake} has no audited cases. Name a folder written by masis audit."
            raise click.BadParameter(problem, param_hint="'FILE...'")
    # FileOptions is a tuple, so any() is true if one of the options was given.
    if lakes and (paths or any(reading)):
        raise click.UsageError(
            "import a folder of audited cases on its own, without --as, --map and --system."
        )
    if lakes and not (needs_review or sample or dry_run):
        raise click.UsageError("use --needs-review, --sample 2%, or both, to select the cases.")
    if not lakes and (needs_review or sample is not None):
        raise click.UsageError("--needs-review and --sample need a folder of audited cases.")
    if suggest or save is not None:
        for file in paths:
            with shared.spool_stdin(file) as path:
                _suggest(path, _data_file_name(file), reading.sheet, save, emit)
        return
    if dry_run:
        for lake in lakes:
            counts = LakeService.count_outcomes(lake)
            emit({"file": lake, **counts})
            say(f"{lake}: {_amounts(counts)}. Nothing is stored.")
        if failed := sum(_preview(file, reading, emit) for file in paths):
            raise JobFailed(
                f"{count_noun(failed, 'row')} can't be imported. The reasons are listed above."
            )
        return
    database, errors = database_path(db), ErrorReport()
    workbench = shared.open_workbench(database)
    stored = sum(
        _import_lake(workbench, lake, needs_review, sample or 0.0, seed, errors, emit)
        for lake in lakes
    )
    for file in paths:
        with shared.spool_stdin(file) as path:
            stored += _import_cases(path, _data_file_name(file), reading, workbench, errors, emit)
    say(f"Database: {database}")
    errors.end("Everything else is stored." if stored else "Nothing was stored.")


def _amounts(counts: Mapping[Any, int]) -> str:
    return ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items() if number
    )


def _say_imported(name: str, imported: int, unchanged: int, words: str = "") -> None:
    more = f", {count_noun(unchanged, 'case')} already stored" if unchanged else ""
    say(f"{name}: {count_noun(imported, 'case')} imported{words and f' ({words})'}{more}.")


def _data_file_name(file: Path) -> str:
    return "stdin" if file == shared.STDIO else str(file)


def _import_lake(
    workbench: Workbench,
    lake: str,
    needs_review: bool,
    share: float,
    seed: int,
    errors: ErrorReport,
    emit: Emit,
) -> int:
    """Import a folder of audited cases and return the number of stored cases."""
    with ProgressBar("Importing", sum(LakeService.count_outcomes(lake).values())) as progress:
        done = workbench.lake.import_cases(
            shared.operator(),
            lake,
            needs_review=needs_review,
            share=share,
            seed=seed,
            on_rows=lambda read: progress.move(read, f"{read:,} read"),
            on_problem=errors.add,
        )
    emit({"file": lake, "imported": done.imported, "there_already": done.unchanged})
    _say_imported(lake, sum(done.imported.values()), done.unchanged, _amounts(done.imported))
    if done.sample is not None:
        say(
            f"{done.sample.drawn:,} of {done.sample.accepted:,} auto-accepted cases were drawn"
            f" for a spot check (share {done.sample.share:.2%}, seed {done.sample.seed})."
        )
    return sum(done.imported.values()) + done.unchanged


def _preview(file: Path, reading: FileOptions, emit: Emit) -> int:
    """Show a summary and the first parsed cases on stdout, and all problems on stderr.

    Returns the number of rows that can't be imported.
    """
    name, errors = _data_file_name(file), ErrorReport()
    # A Counter keeps the order of first use, which is the order of the summary.
    counts, shown, bad = Counter[str](), list[str](), 0
    try:
        with shared.spool_stdin(file) as path:
            for row in read_any(
                path,
                reading.profile,
                reading.names,
                name=name,
                sheet=reading.sheet,
                system=reading.system,
            ):
                errors.add_all(row.problems or row.notes)
                bad += bool(row.problems)
                if row.case is not None:
                    case = row.case
                    counts["read as cases"] += 1
                    counts["with an answer"] += case.answer is not None
                    counts["without an answer, which an audit drafts"] += (
                        case.answer is None and not case.unanswered
                    )
                    counts["without an answer, since the system refused or failed"] += (
                        case.unanswered is not None
                    )
                    counts["chunks of evidence"] += len(case.evidence)
                    counts["chunks without text"] += len(case.without_text)
                    counts["with labels"] += case.labels is not None
                    counts["with citations beside the answer"] += bool(case.given_citations)
                    if counts["read as cases"] <= _SHOWN_ROWS:
                        shown += _case_lines(case)
    except InputError as error:
        errors.add(error)
        bad += 1
    emit({"file": name, **counts, "refused": bad}, (*shown, _amounts(counts)))
    cases = count_noun(counts["read as cases"], "case")
    say(
        f"{name}: {cases} would be imported, {count_noun(bad, 'row')} would not. Nothing is stored."
    )
    return bad


def _suggest(path: Path, name: str, sheet: str | None, save: Path | None, emit: Emit) -> None:
    """Print the most likely map for a file, two cases parsed with it, and the import command."""
    suggestion = loading.suggest(path, sheet=sheet)
    emit({"file": name, "format": suggestion.format, "map": suggestion.names})
    # The command is printed to be pasted into a shell, so its parts are quoted.
    chosen_sheet = [] if sheet is None else [f"--sheet {shlex.quote(sheet)}"]
    file = "-" if name == "stdin" else shlex.quote(name)
    if suggestion.format:
        options = " ".join(filter(None, (*chosen_sheet, _map_options(suggestion.names))))
        command = " ".join(filter(None, ("masis import", file, options, "--dry-run")))
        say(
            f"{name} has the format {suggestion.format}; options needed: {options or 'none'}."
            f" Preview it with: {command}"
        )
        return
    if suggestion.profile is None:
        keys = ", ".join(suggestion.row)
        raise JobFailed(
            f"{name}: the first row has no key that looks like a question with evidence (its keys:"
            f" {shorten(keys, 300)}). Name the keys: --map query=KEY --map evidence=KEY."
        )
    read = read_any(path, None, suggestion.names, name=name, sheet=sheet)
    rows = islice((row for row in read if row.case or row.problems), 2)
    shown = [
        line
        for row in rows
        for line in (*map(str, row.problems), *(_case_lines(row.case) if row.case else ()))
    ]
    emit.lines((profile_text(suggestion.profile), *shown))
    map_options = _map_options(suggestion.names)
    used = {
        part.partition(".")[0]
        for key in suggestion.names.values()
        for part in columns_in(suggestion.row, key)
    }
    if left := [key for key in suggestion.row if key not in used and key not in FIELDS]:
        say(
            f"Not mapped: {shorten(', '.join(left), 300)}. Set the id with --map id=KEY; by"
            " default it is derived from the content."
        )
    if save is not None:
        save.write_text(profile_text(suggestion.profile), encoding="utf-8")
        # the separator of chunks isn't part of a profile, so the command needs it as well
        split = _map_options({SPLIT: suggestion.names[SPLIT]} if SPLIT in suggestion.names else {})
        map_options = f"--map {shlex.quote(str(save))} {split}".rstrip()
    say(" ".join(("Import it: masis import", file, *chosen_sheet, map_options)))


def _map_options(names: dict[str, str]) -> str:
    """Return the ``--map`` options for a field map, quoted for the shell."""
    # JSON's escapes keep a separator such as a line break on one line
    written = {
        field: json.dumps(key)[1:-1] if field == SPLIT else key for field, key in names.items()
    }
    return " ".join(f"--map {shlex.quote(f'{field}={key}')}" for field, key in written.items())


def _case_lines(case: Case) -> Iterator[str]:
    """Yield lines that show how each field of a case was parsed."""
    answer = " ".join(
        (case.answer or unanswered_words(case) or "none: an audit drafts one").split()
    )
    yield f"id        {shorten(case.id, _SHOWN_LENGTH)}"
    if case.system != UNNAMED:
        yield f"system    {case.system}"
    yield f"question  {shorten(' '.join(case.query.split()), _SHOWN_LENGTH)}"
    yield f"answer    {shorten(answer, _SHOWN_LENGTH)}"
    if case.model_reasoning:
        reasoning = shorten(" ".join(case.model_reasoning.split()), _SHOWN_LENGTH)
        yield f"reasoning {reasoning} (not audited)"
    for chunk in case.evidence[:2]:
        text = shorten(" ".join(chunk.text.split()), _SHOWN_LENGTH)
        yield f"evidence  [{shorten(chunk.id, 20)}] {text}"
    if len(case.evidence) > 2:
        yield f"          and {len(case.evidence) - 2:,} more"
    yield ""


def _import_cases(
    path: Path,
    name: str,
    reading: FileOptions,
    workbench: Workbench,
    errors: ErrorReport,
    emit: Emit,
) -> int:
    """Import a file of cases and return the number of stored cases."""
    added = unchanged = refused = 0
    import_id = ""
    noted = False
    try:
        with ProgressBar("Importing", path.stat().st_size) as progress:
            steps = workbench.imports.add_file(
                shared.operator(),
                path,
                reading.profile,
                reading.names,
                name=name,
                sheet=reading.sheet,
                system=reading.system,
            )
            for step in steps:
                added, unchanged, refused = step.added, step.unchanged, step.refused
                import_id = step.import_id
                progress.move(step.end, f"{step.rows:,} read")
                for problem in step.problems:
                    errors.add(problem if isinstance(problem, InputError) else f"{name}: {problem}")
                if step.notes and not noted:
                    noted = True
                    say(f"{step.notes[0]} (Shown once per file.)")
    # also after Ctrl-C, because the batches that were read are already stored
    finally:
        emit(
            {
                "file": name,
                "imported": added,
                "there_already": unchanged,
                "refused": refused,
                "import": import_id,
            }
        )
        _say_imported(name, added, unchanged)
        if added:
            say(f"List these cases with 'masis queue --import {import_id}'.")
    return added + unchanged


def _parse_shares(value: str | SplitShares) -> SplitShares:
    """Parse shares of train, validation and test such as ``80/10/10``. Raises BadParameter."""
    # click also passes values that it has converted before through the type.
    if isinstance(value, SplitShares):
        return value
    parts = value.split("/")
    # isdigit is also true of characters such as "²", which int() rejects.
    if len(parts) != 3 or not all(
        part.isascii() and part.isdigit() and len(part) < 4 for part in parts
    ):
        raise shared.wrong(value, "write the shares as 80/10/10.")
    shares = SplitShares(*map(int, parts))
    if sum(shares) != 100:
        raise shared.wrong(value, f"the shares add up to {sum(shares)} instead of 100.")
    return shares


SIDES = click.Choice(SPLITS)


def selection_options(command: shared.Body) -> shared.Body:
    """Add the filters of the queue, ``--split`` and ``--shares``, passed as ``selection``."""

    @shared.filter_options("cases that a person decided", DECIDED)
    @click.option("--split", type=SIDES, help="Only one part of the split by question.")
    @click.option(
        "--shares",
        type=_parse_shares,
        default="80/10/10",
        metavar="SHARES",
        show_default=True,
        help="Shares of train, validation and test.",
    )
    @functools.wraps(command)
    def call(
        case_filter: CaseFilter, split: str | None, shares: SplitShares, **arguments: Any
    ) -> None:
        command(selection=Selection(case_filter, split, shares), **arguments)

    return call


encoding_option = click.option(
    "--as",
    "encoding",
    type=click.Choice(ENCODINGS),
    help="The encoding of the rows; csv and parquet:"
    f" {', '.join(n for n, f in export_formats().items() if f.tabular)}. Default: the file's"
    " extension, otherwise jsonl.",
)
out_option = shared.out_option("The file to write (a folder for hf); '-' for stdout.", folders=True)

WHOLE = {
    "cases": "the cases as imported",
    "runs": "the newest finished run of each case",
    "executions": "the execution log, with counts and times but no texts",
}
"""Formats without filters, because they copy all records of their kind."""


@click.command(cls=Command)
@click.option(
    "--format",
    "form",
    type=RegisteredChoice(lambda: [*WHOLE, *export_formats()]),
    required=True,
    help=" ".join(
        f"{name}: {summary}."
        for name, summary in (WHOLE | {n: f.summary for n, f in export_formats().items()}).items()
    ),
)
@encoding_option
@out_option
@click.option("--manifest", type=shared.FILE, metavar="PATH", help="Also write the manifest here.")
@selection_options
@shared.database_option
@shared.url_option
@shared.insecure_option
@shared.json_option
def export(
    form: str,
    encoding: str | None,
    out: Path,
    manifest: Path | None,
    selection: Selection,
    db: Path | None,
    url: str | None,
    insecure: bool,
    emit: Emit,
) -> None:
    """Export cases, runs or executions as stored, or data sets made from people's decisions.

    'masis import' can read the formats cases and decided. For a lossless copy of the whole
    database, use 'masis db backup'.

    The other formats are data sets. They accept the filters of the queue, keep near-duplicate
    questions on one side of a split, and write a manifest next to the file with versions, filter,
    counts, class balance, provenance, licenses and digests.

    An existing file is replaced only when the new one is complete. If --out is a device, a pipe or
    a symbolic link, the data is written through it. With the format decided and a folder as --out,
    the file is Parquet and has a row for each decided case, with its digest and its full record as
    JSON; in a folder of audited cases it is written to _decided/. --json prints the manifest.

      masis export --format cases --out cases.jsonl
      masis export --format runs --out runs.jsonl
      masis export --format labels --as parquet --out labels.parquet
      masis export --format claims --state any --dataset pilot --out claims.jsonl
      masis export --format pairs --split train --out train.jsonl
      masis export --format hf --out dataset/
      masis export --format decided --out audited/
      masis export --format claims --out claims.jsonl --url https://audits.example.org
    """
    if url is not None:
        from masis.cli.remote import export_from_server

        export_from_server(url, form, out, selection, insecure=insecure, encoding=encoding)
        return
    workbench = shared.open_existing(db)
    if form == "decided" and out != shared.STDIO and out.is_dir():
        if is_lake(str(out)):  # readers of Parquet folders skip names that start with "_"
            out /= "_decided"
            out.mkdir(exist_ok=True)
        out /= "decided.parquet"
    encoding = encoding or (
        ending if (ending := out.suffix[1:].lower()) in ENCODINGS else ENCODINGS[0]
    )
    _check_out(form, out, emit)
    if form in WHOLE:
        for name, written in shared.given_options().items():
            if name not in ("form", "out", "db", "emit"):
                raise click.UsageError(f"{written}: the format {form} has no filters or encodings.")
    # The export isn't refused: anyone who can run this command can read the database file anyway.
    if count := workbench.exports.shows_hidden(form, None if form in WHOLE else selection):
        say(
            f"Warning: this shows audit results of {count_noun(count, 'undecided case')} that"
            " the team's policy hides from reviewers. Don't share it with people who have yet to"
            " decide them."
        )
    if form in WHOLE:
        # stays 0 if there is nothing to write
        lines = 0
        with whole_file(out) as stream:
            for lines, text in enumerate(_whole_lines(form, workbench), 1):  # noqa: B007 (counts)
                write_line(text, stream)
        emit({"lines": lines, "file": out})
        say(f"{count_noun(lines, 'line')} written{_to(out)}.")
        return
    with ProgressBar("Exporting", workbench.cases.count(selection.cases)) as progress:
        exported = workbench.exports.write_file(
            shared.operator(), out, form, selection, encoding=encoding, on_case=progress.move
        )
    if manifest is not None:
        with whole_file(manifest) as stream:
            stream.write(manifest_bytes(exported.manifest))
    _report_manifest(exported.manifest, out, emit)


def _check_out(form: str, out: Path, emit: Emit) -> None:
    """Raise UsageError if the format can't be written to this path."""
    is_folder = form not in WHOLE and export_formats()[form].folder
    if not is_folder:
        shared.writable_file(out)
    if out == shared.STDIO and (is_folder or emit.as_json):
        what = (
            f"The format {form} writes a folder"
            if is_folder
            else "--json writes the manifest to stdout, so the data needs a file"
        )
        raise click.UsageError(f"{what}. Name it with --out.")


def _to(out: Path) -> str:
    return "" if out == shared.STDIO else f" to {out}"


def _report_manifest(manifest: dict[str, Any], out: Path, emit: Emit) -> None:
    """Report how many rows were written, how many were left out, and why."""
    emit(manifest)
    counts = manifest["counts"]
    say(
        f"{count_noun(counts['rows'], 'row')} of {count_noun(counts['cases'], 'case')} "
        f"written{_to(out)}."
    )
    for reason, number in counts["left_out"].items():
        hint = " Use --format decided to get every decided case." if reason == "no label" else ""
        say(f"Left out: {number:,} ({reason}).{hint}")


def _whole_lines(form: str, workbench: Workbench) -> Iterator[str]:
    """Yield the lines of a format that copies all records of its kind."""
    if form == "executions":
        yield from (
            execution.model_dump_json() for execution in workbench.store.executions.iterate()
        )
        return
    for case in workbench.store.cases.iterate():
        if form == "cases":
            yield case_line(case)
        elif (run := workbench.cases.open(case.id).run) is not None:
            yield run.model_dump_json()


CHANGES = {
    "added": "added",
    "removed": "removed",
    "relabelled": "relabeled",
    "moved": "moved to another split",
    "reaudited": "decided on another audit or answer",
}
"""The kinds of differences between two versions, in words."""


@click.group(cls=CommandGroup)
def dataset() -> None:
    """Freeze data sets under names, compare them, and export them again byte for byte.

      masis dataset freeze pilot-1 --format labels --dataset pilot --description "first round"
      masis dataset compare pilot-1 pilot-2
      masis dataset export pilot-1 --out pilot-1.jsonl

    A version records its cases, decisions and audits, and the digest of its bytes, so that later
    decisions, undos and audits don't change it. After one of its cases is redacted, or retention
    has removed an audit, a version can still be compared but not exported.
    """


@dataset.command(short_help="Freeze an export of the matching cases under a name.")
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=RegisteredChoice(export_formats),
    required=True,
    help="As in 'masis export'.",
)
@encoding_option
@click.option("--description", default="", help="The purpose of the version, stored with it.")
@click.option("--by", metavar="NAME", help="The name to record. Default: your login name.")
@selection_options
@shared.json_option
@shared.workbench_option
def freeze(
    name: str,
    form: str,
    encoding: str | None,
    description: str,
    by: str | None,
    selection: Selection,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Freeze an export of the matching cases under NAME, which may have letters, digits, '.', '-'
    and '_'.

      masis dataset freeze pilot-3 --format claims --state any

    Exit code 0: frozen. 1: the name is in use, or the matching cases have no rows in this format.
    """
    with ProgressBar("Freezing", workbench.cases.count(selection.cases)) as progress:
        version = workbench.datasets.freeze(
            shared.operator(by),
            name,
            form,
            selection,
            description=description,
            encoding=encoding or ENCODINGS[0],
            on_case=progress.move,
        )
    emit(version.model_dump(mode="json", exclude={"manifest"}))
    say(
        f"Dataset version {name} is frozen: {count_noun(version.rows, 'row')} of"
        f" {count_noun(version.cases, 'case')}."
    )


@dataset.command("list", short_help="List the dataset versions.")
@shared.json_option
@shared.workbench_option
def list_all(emit: Emit, workbench: Workbench) -> None:
    """List the dataset versions, newest first, with name, time, format, rows, author and purpose.

    masis dataset list
    """
    versions = workbench.store.datasets.list_all()
    if not versions:
        say(
            "There are no dataset versions yet. Create one with 'masis dataset freeze NAME"
            " --format FORMAT'."
        )
    records = [version.model_dump(mode="json", exclude={"manifest"}) for version in versions]
    rows = (
        (v.name, moment(v.at), v.form, f"{v.rows:,}", f"{v.cases:,}", v.by, v.description)
        for v in versions
    )
    emit(records, table(("name", "frozen", "format", "rows", "cases", "by", "for"), rows))


@dataset.command(short_help="Show the manifest of a version and whether it can be rebuilt.")
@click.argument("name")
@shared.json_option
@shared.workbench_option
def show(name: str, emit: Emit, workbench: Workbench) -> None:
    """Print the manifest of the version NAME as JSON, and say whether it can be rebuilt.

    masis dataset show pilot-1
    """
    manifest = workbench.relabelling.manifest(shared.operator(), name)
    emit(manifest, [json.dumps(manifest, ensure_ascii=False, indent=2)])
    say(f"{name} is {workbench.store.datasets.count_lost(name)}.")


@dataset.command(short_help="List the differences between two versions: added, removed, relabeled.")
@click.argument("first")
@click.argument("second")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    default=50,
    show_default=True,
    help="How many cases to list.",
)
@shared.json_option
@shared.workbench_option
def compare(first: str, second: str, limit: int, emit: Emit, workbench: Workbench) -> None:
    """List the cases that were added, removed or relabeled between the versions FIRST and SECOND.

    Each line has the difference, the id of the case, and its state and side of the split before
    and after.

      masis dataset compare pilot-1 pilot-2
    """
    comparison = workbench.datasets.compare(first, second, limit)
    lines = []
    for case in comparison.cases:
        before, after = (" ".join(state) if state else "absent" for state in (case.was, case.now))
        lines.append(
            f"{', '.join(CHANGES[kind] for kind in case.kinds)}  {case.case_id}  {before} -> "
            f"{after}"
        )
    emit(list(comparison.cases), lines)
    if (more := comparison.total - len(comparison.cases)) > 0:
        say(f"and {more:,} more; --limit {comparison.total} lists all.")
    parts = [f"{count:,} {CHANGES[kind]}" for kind, count in comparison.counts.items() if count]
    say(f"{first} and {second}: {', '.join(parts) or 'the same cases, labels and audits'}.")


@dataset.command(
    "export", short_help="Export a version again byte for byte, or explain why that isn't possible."
)
@click.argument("name")
@out_option
@shared.json_option
@shared.workbench_option
def export_version(name: str, out: Path, emit: Emit, workbench: Workbench) -> None:
    """Export the version NAME with its manifest, with exactly the bytes that were frozen.

      masis dataset export pilot-1 --out pilot-1.jsonl

    Exit code 0: exported. 1: it can't be rebuilt, and the message says why; an existing file isn't
    changed.
    """
    version = workbench.store.datasets.get(name)
    _check_out(version.form, out, emit)
    with ProgressBar("Exporting", version.cases) as progress:
        exported = workbench.datasets.write(shared.operator(), name, out, on_case=progress.move)
    _report_manifest(exported.manifest, out, emit)


@dataset.command(short_help="Remove a version, but not its cases and decisions.")
@click.argument("name")
@shared.yes_option
@shared.json_option
@shared.workbench_option
def remove(name: str, yes: bool, emit: Emit, workbench: Workbench) -> None:
    """Remove the version NAME. Its cases and their decisions aren't removed.

    masis dataset remove pilot-1
    """
    workbench.store.datasets.get(name)
    shared.confirm(f"Remove the dataset version {name}?", yes=yes)
    workbench.datasets.remove(shared.operator(), name)
    emit({"removed": name})
    say(f"Dataset version {name} is removed.")


@dataset.group(
    cls=CommandGroup, short_help="Show that at most a stated share of a version's labels is wrong."
)
def guarantee() -> None:
    """Show by a random sample, labeled again blind, that at most a stated share of labels is wrong.

      masis dataset guarantee needed pilot-1 --rate 3% --level 0.95
      masis dataset guarantee draw pilot-1 --to Ben --rate 3% --level 0.95
      masis dataset guarantee show pilot-1
      masis dataset guarantee withdraw pilot-1

    The drawn cases come back to other people's queues as copies without the label. A guarantee that
    holds is part of the version's manifest and card. docs/trust.md explains the method.
    """


rate_option = click.option(
    "--rate",
    type=_parse_share,
    default="3%",
    show_default=True,
    metavar="SHARE",
    help="The largest share of wrong labels.",
)
level_option = click.option(
    "--level",
    type=_parse_share,
    default="95%",
    show_default=True,
    metavar="SHARE",
    help="The confidence level.",
)
by_option = click.option(
    "--by", metavar="NAME", help="The name to record. Default: your login name."
)


@guarantee.command("needed", short_help="Say how many labels have to be relabeled.")
@click.argument("name")
@rate_option
@level_option
@shared.json_option
@shared.workbench_option
def show_needed(name: str, rate: float, level: float, emit: Emit, workbench: Workbench) -> None:
    """Say how many labels of the version NAME another person has to label again.

    masis dataset guarantee needed pilot-1 --rate 3% --level 95%
    """
    offer = workbench.relabelling.offer(shared.operator(), name, rate=rate, level=level)
    emit(offer._asdict(), [offer_text(offer, rate, level)])


@guarantee.command(short_help="Draw a sample and assign it to other people.")
@click.argument("name")
@click.option(
    "--to",
    "reviewers",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A person who labels the sample. Can be repeated.",
)
@rate_option
@level_option
@click.option(
    "--size",
    type=click.IntRange(1),
    metavar="N",
    help="The labels to draw. Default: as many as are needed if none is wrong.",
)
@click.option("--seed", type=int, metavar="N", help="The random seed. Default: a random one.")
@by_option
@shared.json_option
@shared.workbench_option
def draw(
    name: str,
    reviewers: tuple[str, ...],
    rate: float,
    level: float,
    size: int | None,
    seed: int | None,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Draw a random sample of the labels of the version NAME, and assign it to other people.

      masis dataset guarantee draw pilot-2 --to Ben --to Cy

    Exit code 0: drawn. 1: the sample can't show the rate, or nobody named can label a drawn case.
    """
    state = workbench.relabelling.draw(
        shared.operator(by), name, reviewers, rate=rate, level=level, n=size, seed=seed
    )
    _emit_guarantee(state, emit)


@guarantee.command("show", short_help="Show the progress and the result of the sample.")
@click.argument("name")
@shared.json_option
@shared.workbench_option
def show_guarantee(name: str, emit: Emit, workbench: Workbench) -> None:
    """Show the progress of the sample of the version NAME, and its result once all are decided.

    masis dataset guarantee show pilot-1
    """
    state = workbench.relabelling.state(shared.operator(), name)
    if state is None:
        emit(None, [])
        say(
            f"No sample of {name} was drawn. Draw one with"
            f" 'masis dataset guarantee draw {name} --to NAME'."
        )
        return
    _emit_guarantee(state, emit)


@guarantee.command("withdraw", short_help="Withdraw the undecided copies of the sample.")
@click.argument("name")
@by_option
@shared.json_option
@shared.workbench_option
def withdraw_sample(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Withdraw the undecided copies of the sample of the version NAME. It then gives no guarantee.

    masis dataset guarantee withdraw pilot-1
    """
    done = workbench.relabelling.withdraw(shared.operator(by), name)
    emit({"withdrawn": done})
    say(f"{count_noun(done, 'copy', 'copies')} withdrawn.")


def _emit_guarantee(state: GuaranteeState, emit: Emit) -> None:
    """Print a sample: its result, who labels it, and the labels that turned out wrong."""
    lines = [guarantee_text(state)]
    lines += [
        f"{name}: {done:,} of {total:,} labeled" for name, (done, total) in state.by_person.items()
    ]
    lines += [
        f"{label.case_id}: {label.verdict or 'redacted'} -> {label.again or 'redacted'}"
        for label in state.differing
    ]
    record = state._asdict() | {
        # Which cases were drawn would tell a person that they see a copy.
        "plan": state.plan.model_dump(mode="json", exclude={"case_ids"}),
        "differing": [label._asdict() for label in state.differing],
        "guarantee": state.guarantee.model_dump(mode="json") if state.guarantee else None,
    }
    emit(record, lines)
