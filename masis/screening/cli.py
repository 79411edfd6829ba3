"""``masis screen`` and ``screening``: check whether abstracts are sufficient for a question."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import click

from masis.audit.control.run_control import RunBudget, RunControl
from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed, end_interrupted
from masis.cli.options import Names
from masis.cli.output import (
    Emit,
    ErrorReport,
    Interruption,
    ProgressBar,
    plain,
    say,
    table,
)
from masis.datasets.readers.lines import open_lines
from masis.datasets.writers.files import whole_file
from masis.errors import InputError, UnknownRecord
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.observers.telemetry import send_telemetry
from masis.schema.screening import Abstract, Recommendation, Screening, ScreeningEvent
from masis.schema.wording import count_noun
from masis.screening.critic import grader_for
from masis.screening.grading.question import (
    PARTS,
    Part,
    concept_lines,
    concepts_as_text,
    question_of,
    written_lines,
)
from masis.screening.readers import read_abstracts
from masis.screening.rounds import round_loop
from masis.screening.services import corpus_service, screening_service
from masis.screening.services.records import CorpusImport, CorpusSummary
from masis.screening.services.screenings import (
    CORPUS,
    PUBMED,
    records_corpus,
)
from masis.screening.sources.retrievers import FixedSetRetriever, InMemoryRetriever, Retriever
from masis.screening.synthesis.prisma import prisma_svg
from masis.screening.views.words import RECOMMENDATIONS, missing_abstracts_text
from masis.screening.writers import write_screening_csv, write_screening_ris
from masis.services import Workbench
from masis.settings import Settings, database_path
from masis.settings.reference import option_help

Form = Literal["json", "csv", "ris", "labels", "svg"]

files_argument = click.argument("files", type=shared.existing_file, nargs=-1, metavar="[FILE]...")
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
    default="json",
    show_default=True,
    help="json: the whole screening. csv: one line per graded abstract. ris: the kept abstracts."
    " labels: all abstracts as RIS with people's labels for ASReview and Rayyan, and a machine's"
    " grades as suggestions. svg: the flow diagram, as in PRISMA 2020.",
)


class Reader:
    """Reads files of abstracts with progress until a person stops it.

    ``errors`` shows all problems. ``unread`` counts the records that ``read_all`` left out, and
    ``without_abstract`` those that have only a title.
    """

    def __init__(
        self, notice: str = "Stopping. Press Ctrl-C again to stop at once.", label: str = "Reading"
    ) -> None:
        self.errors, self.stop, self._label = ErrorReport(), Interruption(notice), label
        self.unread = self.without_abstract = 0

    def read_file(self, file: Path) -> Iterator[Abstract | InputError]:
        """Yield the abstracts in a file ('-' for stdin), and an error for each unreadable record.

        If the file is truncated or has another format, the error is reported after the records
        before it.
        """
        piped = file == shared.STDIO
        size = None if piped else file.stat().st_size
        try:
            with (
                # nullcontext leaves stdin open, because this command didn't open it.
                nullcontext(sys.stdin.buffer) if piped else open_lines(file) as stream,
                ProgressBar(self._label, size) as progress,
            ):
                for number, record in enumerate(
                    read_abstracts(stream, name="stdin" if piped else str(file)), 1
                ):
                    if self.stop.asked:
                        return
                    # stdin can't tell its position, so records are counted instead.
                    at = stream.tell() if size else number
                    progress.move(
                        at,
                        f"{number:,} records read"
                        + (f", {at / size:.0%} of the file" if size else ""),
                    )
                    has_text = isinstance(record, InputError) or bool(record.text.strip())
                    self.without_abstract += not has_text
                    yield record
        except InputError as error:
            self.errors.add(error)

    def read_all(self, files: Iterable[Path], *others: Iterable[Abstract]) -> list[Abstract]:
        """Return the abstracts in the files and in ``others``, one per id.

        Reports different records with the same id.
        """
        by_id: dict[str, Abstract] = {}
        sources = (*map(self.read_file, files), *others)
        for record in (record for source in sources for record in source):
            if isinstance(record, InputError):
                self.errors.add(record)
                self.unread += 1
                continue
            first = by_id.setdefault(record.id, record)
            # The same study may have other fields in another export.
            if (first.title, first.text) != (record.title, record.text):
                self.errors.add(
                    f"{record.id}: two different records have this id. Give each record its own id."
                )
        return list(by_id.values())

    def with_progress(self, abstracts: Sequence[Abstract], label: str) -> Iterator[Abstract]:
        """Yield the abstracts with progress; ends early if a person stops it."""
        with ProgressBar(label, len(abstracts)) as progress:
            for number, abstract in enumerate(abstracts, 1):
                if self.stop.asked:
                    return
                yield abstract
                progress.move(number, f"{number:,} of {len(abstracts):,} records")


def _file_names(files: Iterable[Path]) -> str:
    return ", ".join("stdin" if file == shared.STDIO else file.name for file in files)


def _screening_source(value: str | Path) -> Path | str:
    """Parse a source: a file of abstracts, ``-``, a stored ``corpus:NAME``, or ``pubmed``."""
    stored = isinstance(value, str) and (value == PUBMED or value.startswith(CORPUS))
    return value if stored else shared.existing_file(value)


def _concept_option(name: Part) -> Callable[[shared.Body], shared.Body]:
    none_hint = ", or '' for none" if name == "comparison" else ""
    return click.option(
        f"--{name}", help=f"The {name}, instead of the one detected in the question{none_hint}."
    )


class ScreeningRequest(NamedTuple):
    """The question of a screening and its settings."""

    question: str
    settings: Settings


def request_options(command: shared.Body) -> shared.Body:
    """Add the question and the settings of a screening, passed as ``request``."""

    @click.option(
        "--question", "-q", required=True, help="The question that the evidence should answer."
    )
    @_concept_option("population")
    @_concept_option("intervention")
    @_concept_option("comparison")
    @_concept_option("outcome")
    @click.option(
        "--grader",
        "graders",
        multiple=True,
        metavar="MODEL",
        help="The grader: offline (the default, which needs no key and no network) or a model."
        " Repeat it to grade with several.",
    )
    @click.option(
        "--retrieve",
        type=click.IntRange(1, 1000),
        metavar="N",
        help=option_help("screening_retrieve"),
    )
    @click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="Any other screening setting, such as screening_max_rounds=5.",
    )
    @functools.wraps(command)
    def call(
        question: str,
        population: str | None,
        intervention: str | None,
        comparison: str | None,
        outcome: str | None,
        graders: Names,
        retrieve: int | None,
        assignments: Names,
        **arguments: Any,
    ) -> None:
        if not question.strip():
            raise click.UsageError(
                "--question is empty. Write the question that the evidence should answer."
            )
        named = {"screening_graders": ",".join(graders) or None, "screening_retrieve": retrieve}
        assigned = (f"{name}={value}" for name, value in named.items() if value is not None)
        settings = shared.chosen_settings((), (*assignments, *assigned))
        concepts = zip(PARTS, (population, intervention, comparison, outcome), strict=True)
        if stated := {part: text for part, text in concepts if text is not None}:
            lines = written_lines(concept_lines(settings.screening_concepts) | stated)
            try:
                settings = settings.with_values({"screening_concepts": lines})
            except ValueError as error:
                raise click.UsageError(
                    "The concepts are too long. Use at most 10,000 characters in total."
                ) from error
        command(request=ScreeningRequest(question, settings), **arguments)

    return call


@click.command(cls=Command)
@click.argument("sources", type=_screening_source, nargs=-1, required=True, metavar="SOURCE...")
@request_options
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Grade every abstract in the first round, without searching.",
)
@format_option
@click.option(
    "--db",
    type=shared.PATH,
    metavar="PATH",
    help="Store the screening and the records of its files in this database. A screening that"
    " searches a corpus is always stored.",
)
@shared.out_option()
def screen(
    sources: tuple[Path | str, ...],
    request: ScreeningRequest,
    everything: bool,
    form: Form,
    db: Path | None,
    out: Path,
) -> None:
    """Search abstracts for a question and grade them in rounds, until they are sufficient evidence
    or no more can be found.

    A SOURCE is a file of abstracts (JSON Lines, RIS, BibTeX, PubMed or EndNote XML, MEDLINE or CSV;
    '-' is stdin), corpus:NAME for a corpus in the database, or pubmed. All are searched. The
    abstracts found are graded for relevance, method, sample size and study type. If they aren't
    sufficient, further rounds search for the missing concepts in other words. Rounds are shown on
    stderr; the result is JSON unless you choose another --format.

    The question is split into concepts: population, intervention, comparison and outcome. If one is
    detected wrong, set it with its option. Separate several concepts with commas, and write
    synonyms with an equals sign.

      masis screen export.ris -q "Does metformin reduce mortality?" --out screening.json
      masis screen export.ris -q "Do statins prevent strokes?" --outcome "stroke = apoplexy"
      masis screen found.jsonl -q "Does exercise help low back pain?" --all --format csv > log.csv
      masis screen corpus:asthma pubmed -q "Do inhaled steroids slow growth in children?"

    Exit code 0: screened; "outcome" says whether the evidence is sufficient. 1: some records
    couldn't be read, or a source or grader couldn't be reached; the rest is screened. 2: wrong
    usage. 130: stopped.
    """
    files = [source for source in sources if isinstance(source, Path)]
    stored = tuple(source for source in sources if isinstance(source, str))
    if everything and PUBMED in stored:
        raise click.UsageError(
            "--all doesn't work with PubMed, which is too large to grade completely. Leave out"
            " --all, or name a file."
        )
    control = RunControl(RunBudget(call_s=request.settings.call_deadline_s))
    # An unknown grader is wrong usage, so it is reported before the files are read.
    grader = grader_for(request.settings, control)
    # Without --db or a stored source, no database is created.
    workbench = shared.open_workbench(database_path(db)) if db is not None or stored else None
    reader = Reader(
        "Stopping; the grades so far will be written. Press Ctrl-C again to stop at once."
    )
    with reader.stop as stop:
        read = reader.read_all(files)
        corpus = (
            records_corpus(_file_names(files), read)
            if files and db is not None and not everything
            else None
        )
        searched: list[Retriever] = []
        if everything:
            stored_abstracts = [
                corpus_service(workbench).iterate(source.removeprefix(CORPUS))
                for source in stored
                if workbench
            ]
            read = reader.read_all((), read, *stored_abstracts)
            searched.append(FixedSetRetriever(read))
        elif files:
            searched.append(
                InMemoryRetriever(
                    reader.with_progress(read, "Preparing the search"),
                    name=f"{CORPUS}{corpus}" if corpus else _file_names(files),
                )
            )
        if workbench is not None and stored and not everything:
            searched += screening_service(workbench).sources(
                stored, request.settings, control.cancellation
            )
        if stop.asked:
            end_interrupted("Stopped before the first abstract was graded.")
        if not read and not stored:
            raise JobFailed("There are no abstracts to screen.")

        def stopped() -> bool:
            if stop.asked:
                # This also ends a call in progress, which could take minutes.
                control.cancellation.cancel()
            return stop.asked

        finished: list[round_loop.FinishedRound] = []
        work = round_loop.screen(
            request.question,
            tuple(searched),
            grader,
            request.settings,
            screening_id=round_loop.new_screening_id(),
            thresholds=(
                None
                if workbench is None
                else screening_service(workbench).thresholds(request.settings)
            ),
            limit=max(1, len(read)) if everything else None,
            is_complete_set=everything,
            unread=reader.unread,
            cancelled=stopped,
            keep=finished.append,
        )
        with send_telemetry(request.settings), ProgressBar("Grading") as progress:
            result = run_to_completion(
                work, lambda event: _show_event(progress, event), ScreeningStart()
            )
    _show_screening(result)
    by_id = {
        abstract.id: abstract
        for finished_round in finished
        for abstract in finished_round.abstracts
    }
    if missing := missing_abstracts_text(by_id.values()):
        say(missing)
    if workbench is not None:
        screening_service(workbench).store_screening(
            shared.operator(), result, [by_id[grade.abstract_id] for grade in result.grades]
        )
        say(f"Screening {result.id} is stored in {database_path(db)}.")
        if corpus is not None and not stop.asked:
            _store_records(workbench, corpus, read, _file_names(files))
    _write_screening(result, by_id, form, out)
    if stop.asked:
        end_interrupted("Stopped. The grades so far are written.")
    if result.outcome == "error":
        raise JobFailed(" ".join(result.reasons))
    reader.errors.end("The other records were screened.")


@click.group(cls=CommandGroup)
def screening() -> None:
    """Continue screenings that 'masis screen' made, store corpora, import labels, and show drift.

    masis screening corpus asthma export.ris pubmed.nbib
    masis screening further 0b7c2f... --rounds 3
    masis screening drift
    """


@screening.command(short_help="Continue a finished screening with more rounds.")
@click.argument("screening")
@files_argument
@click.option(
    "--rounds",
    type=click.IntRange(1, 20),
    metavar="N",
    default=2,
    show_default=True,
    help="The maximum number of further rounds.",
)
@click.option(
    "--db", type=shared.PATH, metavar="PATH", help="The database that holds the screening."
)
@format_option
@shared.out_option()
def further(
    screening: str, files: tuple[Path, ...], rounds: int, db: Path | None, form: Form, out: Path
) -> None:
    """Continue a finished screening with more rounds that search for what is still missing.

    The result is a new screening with the rounds and overrides of the finished one, which isn't
    changed. If every query has been tried, it ends at once. 'masis screen --db' stores the records
    of its files as a corpus, which is searched again. If they weren't stored, or the file has more
    records now, pass the FILE again.

      masis screening further 0b7c2f... --rounds 3 --out further.json
      masis screening further 0b7c2f... export.ris

    Exit code 0: more rounds were made. 1: the screening doesn't exist, its sources are missing, or
    all their abstracts are graded. 2: wrong usage. 130: stopped.
    """
    workbench = shared.open_workbench(database_path(db))
    sources = None
    if files:
        reader, name = Reader(), _file_names(files)
        with reader.stop:
            abstracts = reader.read_all(files)
        if reader.stop.asked:
            end_interrupted("Stopped before the search started.")
        if not abstracts:
            raise JobFailed("There are no abstracts to search.")
        corpus = records_corpus(name, abstracts)
        _store_records(workbench, corpus, abstracts, name)
        sources = (f"{CORPUS}{corpus}",)
    try:
        with ProgressBar("Grading") as progress:
            started = screening_service(workbench).search_further(
                shared.operator(),
                screening,
                rounds,
                sources=sources,
                on_event=lambda event: _show_event(progress, event),
            )
        opened = screening_service(workbench).open(started.id)
    except (UnknownRecord, InputError) as error:
        raise JobFailed(str(error)) from error
    _show_screening(opened.screening)
    say(f"Screening {started.id} is stored in {database_path(db)}.")
    _write_screening(opened.screening, opened.abstracts, form, out)


def _store_records(workbench: Workbench, corpus: str, abstracts: list[Abstract], name: str) -> None:
    with ProgressBar("Storing the records", len(abstracts)) as progress:
        stored = 0

        def on_batch(count: int) -> None:
            nonlocal stored
            stored += count
            progress.move(stored, f"{stored:,} of {len(abstracts):,} records")

        corpus_service(workbench).keep_records(
            shared.operator(), corpus, abstracts, source=name, on_batch=on_batch
        )
    say(
        f"Its records are stored as corpus {corpus!r}, so that 'masis screening further' and the"
        " page can search them again."
    )


def _show_event(progress: ProgressBar, event: ScreeningEvent) -> None:
    if event.kind == "graded":
        done, of = event.data["done"], event.data["of"]
        progress.move(done, f"round {event.round}: {done:,} of {of:,} graded")
    elif event.kind == "warning":
        say(event.message)


def _show_screening(result: Screening) -> None:
    """Show the rounds as a table, then the outcome and its reasons."""
    question = question_of(result.question, result.settings)
    say("; ".join(f"{part}: {text or 'none'}" for part, text in concepts_as_text(question).items()))
    header = ("round", "found", "new", "keep", "more", "discard", "average", "required", "decision")
    rows = []
    for round_ in result.rounds:
        ruling, votes = round_.ruling, round_.ruling.tally
        average = "-" if ruling.decisive_average is None else f"{ruling.decisive_average:.3f}"
        numbers = (
            round_.number,
            len(round_.retrieved),
            len(round_.new),
            votes.keep,
            votes.needs_more,
            votes.discard,
        )
        rows.append(
            (
                *map(str, numbers),
                average,
                f"{ruling.required_average:.2f}",
                ruling.decision.replace("_", " "),
            )
        )
    for line in table(header, rows, figures=True):
        say(line)
    for round_ in result.rounds[1:]:
        for query in round_.queries:
            say(f"Round {round_.number} searched for “{query.text}”: {query.why}")
    flow = result.flow
    excluded = "; ".join(f"{group.count} {group.label}" for group in flow.excluded)
    unread = f" {flow.unread:,} unread," if flow.unread else ""
    say(
        f"{flow.identified:,} identified, {flow.duplicates:,} found again,{unread}"
        f" {flow.screened:,} screened, {flow.screened - flow.kept - flow.undecided:,}"
        f" excluded{f' ({excluded})' if excluded else ''}, {flow.undecided:,} undecided,"
        f" {flow.kept:,} kept."
    )
    for reason in (f"{result.outcome.replace('_', ' ').capitalize()}.", *result.reasons):
        say(reason)


def _write_screening(
    result: Screening, abstracts: dict[str, Abstract], form: Form, out: Path
) -> None:
    with whole_file(out) as stream:
        if form == "json":
            stream.write(result.model_dump_json(indent=2).encode() + b"\n")
        elif form == "csv":
            write_screening_csv(result, abstracts, stream)
        elif form == "svg":
            stream.write(prisma_svg(result).encode() + b"\n")
        else:
            write_screening_ris(
                result, abstracts, stream, RECOMMENDATIONS if form == "labels" else ("keep",)
            )


@screening.command(short_help="Store abstracts to search and screen.")
@click.argument("name", required=False)
@files_argument
@click.option(
    "--search",
    "query",
    metavar="WORDS",
    help="Print the abstracts that contain any of these words, best match first.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many abstracts to print.",
)
@click.option(
    "--remove",
    is_flag=True,
    help="Remove the corpus. Screenings keep copies of the abstracts they graded.",
)
@shared.json_option
@shared.database_option
def corpus(
    name: str | None,
    files: tuple[Path, ...],
    query: str | None,
    limit: int,
    remove: bool,
    emit: Emit,
    db: Path | None,
) -> None:
    """Store abstracts in a corpus to search and screen, or list what is stored.

    With NAME and FILEs, the abstracts in the files are added to the corpus NAME, which is created
    if needed. With NAME alone, its imports are listed. Without NAME, all corpora are listed.

    A FILE is JSON Lines, RIS, BibTeX, PubMed or EndNote XML, MEDLINE or CSV ('-' is stdin). A study
    that is already stored, by DOI, PubMed id or title, is counted as a duplicate.

      masis screening corpus asthma export.ris pubmed.nbib
      masis screening corpus asthma --search "inhaled steroids in children" --limit 5
      masis screening corpus

    Exit code 0: success. 1: some records couldn't be read and are listed; the rest is stored. 2:
    wrong usage. 130: stopped; records read so far are stored.
    """
    if name is not None and sum((bool(files), query is not None, remove)) > 1:
        raise click.UsageError("Add files, search or remove, but only one at a time.")
    if name is not None and files:
        _add_to_corpus(shared.open_workbench(database_path(db)), name, files, emit)
        return
    workbench = shared.open_existing(db)
    if name is None:
        if not (listed := corpus_service(workbench).list_all()):
            say("There are no corpora yet. Create one with 'masis screening corpus NAME FILE'.")
        emit(list(listed), map(_corpus_line, listed))
    elif query is not None:
        for abstract in corpus_service(workbench).search(name, query, limit):
            click.echo(abstract.model_dump_json(exclude_defaults=True))
    elif remove:
        count = corpus_service(workbench).summary(name).abstracts
        corpus_service(workbench).remove(shared.operator(), name)
        emit({"removed": name, "abstracts": count})
        say(f"Corpus {name!r} with {count_noun(count, 'abstract')} is removed.")
    else:
        summary, imports = (
            corpus_service(workbench).summary(name),
            corpus_service(workbench).imports(name),
        )
        lines = (
            f"{import_.at}  {import_.source}: {import_.identified:,} identified, "
            f"{import_.added:,} added,"
            f" {_refused_records(import_)}"
            for import_ in imports
        )
        emit({**plain(summary), "imports": imports}, (_corpus_line(summary), *lines))


def _corpus_line(summary: CorpusSummary) -> str:
    abstracts = count_noun(summary.abstracts, "abstract")
    return (
        f"{summary.name}  {abstracts}, {summary.identified:,} identified,"
        f" {_refused_records(summary)}"
    )


def _refused_records(counts: CorpusSummary | CorpusImport) -> str:
    return f"{count_noun(counts.duplicates, 'duplicate')}, {counts.faulty:,} unreadable"


def _add_to_corpus(workbench: Workbench, name: str, files: Iterable[Path], emit: Emit) -> None:
    reader = Reader(
        "Stopping; the records read so far will be stored. Press Ctrl-C again to stop at once.",
        "Importing",
    )
    with reader.stop as stop:
        for file in files:
            if stop.asked:
                break
            done = corpus_service(workbench).add(
                shared.operator(),
                name,
                reader.read_file(file),
                source=file.name,
                on_error=reader.errors.add,
            )
            say(
                f"{file}: {count_noun(done.identified, 'record')}, {done.added:,} added,"
                f" {_refused_records(done)}."
            )
    summary = corpus_service(workbench).summary(name)
    emit(summary)
    say(f"Corpus {name!r} holds {count_noun(summary.abstracts, 'abstract')}.")
    if reader.without_abstract:
        say(f"{count_noun(reader.without_abstract, 'record has', 'records have')} no abstract.")
    if stop.asked:
        end_interrupted("The import was stopped. Run the same command again to add the rest.")
    reader.errors.end()


@screening.command(short_help="Import decisions from ASReview, Rayyan or Covidence as overrides.")
@click.argument("screening")
@click.argument("files", type=shared.existing_file, nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as",
    "every",
    type=click.Choice(get_args(Recommendation)),
    help="The decision for every record in the files. Use it for Covidence, which exports one"
    " list per decision.",
)
@shared.json_option
@shared.database_option
def labels(
    screening: str,
    files: tuple[Path, ...],
    every: Recommendation | None,
    emit: Emit,
    db: Path | None,
) -> None:
    """Import decisions made in another screening tool as overrides of a screening.

    A FILE is an export of ASReview, Rayyan or Covidence as RIS or CSV. Records are matched by id,
    DOI, PubMed id or title. A decision that differs from the grade becomes an override with the
    tool as its reason, and the outcome is computed again. To get files that these tools can read,
    use 'masis screen' with --format csv or --format labels.

      masis screening labels 0b7c2f... rayyan.csv
      masis screening labels 0b7c2f... covidence_excluded.ris --as discard

    Exit code 0: imported. 1: the screening doesn't exist, or some records couldn't be read; the
    rest is imported. 2: wrong usage.
    """
    reader = Reader()
    workbench = shared.open_workbench(database_path(db))
    with reader.stop:
        records = [record for file in files for record in reader.read_file(file)]
    read = [record for record in records if isinstance(record, Abstract)]
    taken = screening_service(workbench).import_labels(
        shared.operator(), screening, read, every=every
    )
    reader.errors.add_all(record for record in records if isinstance(record, InputError))
    say(
        f"{count_noun(taken.changed, 'grade')} changed, {taken.unchanged} unchanged,"
        f" {taken.undecided} without a decision, {taken.unknown} not in the screening."
    )
    opened = screening_service(workbench).open(screening).screening
    line = f"{opened.outcome.replace('_', ' ')}, {count_noun(len(opened.kept), 'abstract')} kept"
    emit({"outcome": opened.outcome, "kept": len(opened.kept), **plain(taken)}, [line])
    reader.errors.end("")


@screening.command(short_help="List the abstracts to read next, and whether to read on.")
@click.argument("screening")
@shared.json_option
@shared.workbench_option
def order(screening: str, emit: Emit, workbench: Workbench) -> None:
    """List the abstracts that nobody has decided on, in the order in which to read them.

    After ten decisions of people the order follows from these, before that from the relevance to
    the question. Also shows the expected recall and whether to stop reading; docs/screening.md
    explains the rule.

      masis screening order 0b7c2f...
      masis screening order 0b7c2f... --json --db review.db
    """
    opened = screening_service(workbench).open(screening)
    reading = opened.reading_order()
    record = {
        "order": list(reading.ids),
        "included": reading.included,
        "excluded": reading.excluded,
        "learned": reading.learned,
        "expected_recall": reading.recall,
        "stop": reading.should_stop,
        "why": reading.why,
    }
    lines = [f"{key}  {opened.abstracts[key].title}" for key in reading.ids]
    emit(record, (*lines, reading.summary))


@screening.command(short_help="Show whether people change grades more often than before.")
@shared.json_option
@shared.workbench_option
def drift(emit: Emit, workbench: Workbench) -> None:
    """Show whether people change grades of abstracts more often than before, and the state of the
    acceptance memory.

    A judgement is a grade that a person changed or confirmed. For each grader and each reviewer, a
    cumulative sum test shows whether the share of changed grades has drifted; the first 60
    judgements are the baseline. docs/screening.md explains the test and the acceptance memory,
    which the setting screening_memory turns on.

      masis screening drift
      masis screening drift --json --db review.db
    """
    screenings = screening_service(workbench)
    series, memory = screenings.drifts(), screenings.memory()
    record = {
        "drift": [
            {
                "who": entry.name,
                "judgements": len(entry.drift.points),
                "disagreements": int(sum(point.value for point in entry.drift.points)),
                "usual": entry.drift.usual,
                "alarms": [number + 1 for number in entry.drift.alarms],
                "direction": entry.drift.direction,
                "why": entry.drift.why,
            }
            for entry in series
        ],
        "memory": {
            "on": memory.on,
            "acceptances": len(memory.entries),
            "shift": memory.shift.by,
            "why": memory.shift.why,
        },
    }
    none = ["Nobody has changed or confirmed a grade yet, so there is no drift to measure."]
    state, changes = ("on", "It changes") if memory.on else ("off", "If turned on, it would change")
    remembered = (
        f"Acceptance memory ({state}): {count_noun(len(memory.entries), 'acceptance')}."
        f" {memory.shift.why} {changes} the required average by {memory.shift.by:+.3f}."
    )
    shown = [f"{entry.name}: {entry.counts}. {entry.drift.why}" for entry in series]
    emit(record, (*(shown or none), remembered))
