"""``masis screen``: are the abstracts of a file good enough evidence to answer a question from?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import click

from masis.audit.run_control import RunBudget, RunControl
from masis.cli.abstract_files import counted_off, read_shown
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.log import measured
from masis.cli.options import STDIO, chosen_settings, input_argument, open_workbench, operator, out_option
from masis.cli.output import ErrorReport, Interruption, Progress, say
from masis.datasets.writers.files import whole_file
from masis.datasets.writers.screenings import write_screening_csv, write_screening_ris
from masis.errors import InputError, UnknownRecord
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.screening import Abstract, Round, Screening, ScreeningEvent
from masis.schema.wording import counted
from masis.screening.critic import grader_for, study_type_weights
from masis.screening.grading.question import (
    PARTS,
    Part,
    concept_lines,
    concepts_as_text,
    question_of,
    written_lines,
)
from masis.screening.rounds import round_loop
from masis.screening.sources.retrievers import FixedSetRetriever, InMemoryRetriever, Retriever
from masis.screening.synthesis.prisma_svg import prisma_svg
from masis.services import Workbench
from masis.services.screening import CORPUS, records_corpus
from masis.settings import Settings, database_path
from masis.settings.reference import option_help

Form = Literal["json", "csv", "ris", "svg"]


def concept_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each part of the question."""
    for part in reversed(PARTS):
        other = ", or '' for none" if part == "comparison" else ""
        text = f"The {part}, in place of what is read of the question{other}."
        command = click.option(f"--{part}", metavar="TEXT", help=text)(command)
    return command


@click.command()
@input_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--question", "-q", required=True, help="What the evidence is to answer.")
@concept_options
@click.option(
    "--grader",
    "graders",
    metavar="MODEL",
    multiple=True,
    help="Who grades: offline (the default: no key, no network) or a model. Repeated, they grade together.",
)
@click.option("--retrieve", type=click.IntRange(1, 1000), metavar="N", help=option_help("screening_retrieve"))
@click.option("--all", "everything", is_flag=True, help="Grade every abstract, in one round: they are all there is.")
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Any other setting of screening.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "ris", "svg"]),
    default="json",
    show_default=True,
    help="json: everything about the screening. csv: a line for each abstract graded. ris: the kept "
    "abstracts. svg: the PRISMA 2020 flow diagram.",
)
@click.option(
    "--db", type=click.Path(path_type=Path), help="Store it, and the records of its files, in this database too."
)
@out_option(default="-", show_default=True, help="The file to write; '-' for stdout.")
def screen(
    files: tuple[Path, ...],
    question: str,
    graders: tuple[str, ...],
    retrieve: int | None,
    everything: bool,
    assignments: tuple[str, ...],
    form: Form,
    db: Path | None,
    out: Path,
    **concepts: str | None,
) -> None:
    """Screen abstracts for a question: grade them, round by round, until they suffice or nothing more can be found.

    A FILE holds abstracts as JSON Lines, RIS, BibTeX, PubMed XML or MEDLINE text ('-' for stdin). It is searched for
    the question; what is found is graded for relevance, method, sample size and study type; where that is not enough,
    further rounds search with other words for what was missing. Rounds are shown on stderr.

    The question is read as concepts: population, intervention, comparison, outcome. Set those that are read wrong;
    commas separate concepts, an equals sign gives another name for one.

    \b
      masis screen export.ris -q "Does metformin reduce mortality in heart failure?" --out screening.json
      masis screen export.ris -q "Is statin therapy worth it after a stroke?" --outcome "recurrence = second stroke"
      masis screen found.jsonl -q "Does exercise help low back pain?" --all --format csv > log.csv

    Exit code 0: screened, whatever came of it; "decision" says whether the evidence suffices. 1: records that could not
    be read, or no source or grader that could be asked; the rest is screened. 2: wrong use. 130: stopped.
    """  # noqa: D301 (click reads the backspace)
    settings = _with_concepts(_settings(graders, retrieve, assignments), concepts)
    control = RunControl(RunBudget(call_s=settings.call_deadline_s))
    grader = grader_for(settings, control)  # before anything is read: a model that can't be asked is wrong use
    if not question.strip():
        raise click.UsageError("--question: is empty. Ask what the evidence is to answer.")
    errors = ErrorReport()
    with Interruption("Stopping; what is graded so far is written. Press Ctrl-C again to stop at once.") as stop:
        abstracts = _distinct(_read(files, errors, stop), errors)
        name = _named(files)
        corpus = None if db is None or everything else records_corpus(name, abstracts)
        source = _source(abstracts, name if corpus is None else f"{CORPUS}{corpus}", stop, everything=everything)
        if stop.asked:
            say("Stopped before anything was graded.")
            click.get_current_context().exit(INTERRUPTED)
        if not abstracts:
            raise JobFailed("There is no abstract to screen.")

        def stopped() -> bool:
            if stop.asked:
                control.cancellation.cancel()
            return stop.asked

        work = round_loop.screen(
            question,
            (source,),
            grader,
            settings,
            screening_id=round_loop.new_screening_id(),
            thresholds=None if db is None else open_workbench(database_path(db)).screenings.thresholds(settings),
            study_types_version=study_type_weights(settings),
            limit=len(abstracts) if everything else None,
            read_on=not everything,
            cancelled=stopped,
        )
        with measured(settings):
            found = _watched(work)
    _show_result(found)
    by_id = {abstract.id: abstract for abstract in abstracts}
    if db is not None:
        graded = [by_id[grade.abstract_id] for grade in found.grades]
        workbench = open_workbench(database_path(db))
        workbench.screenings.store_screening(operator(), found, graded)
        say(f"Screening {found.id} is stored in {database_path(db)}.")
        if corpus is not None and not stop.asked:
            _keep_records(workbench, corpus, abstracts, name)
    with whole_file(out) as stream:
        _write(found, by_id, form, stream)
    if stop.asked:
        sys.exit(INTERRUPTED)
    if found.outcome == "error":
        raise JobFailed(" ".join(found.reasons))
    if errors.count:
        raise JobFailed(f"{counted(errors.count, 'error')}, named above. The rest is screened.")


@click.command(name="search-further")
@click.argument("screening")
@input_argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--rounds", type=click.IntRange(1, 20), default=2, show_default=True, help="Further rounds at most.")
@click.option("--db", type=click.Path(path_type=Path), help="The database that holds the screening.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "ris", "svg"]),
    default="json",
    show_default=True,
    help="As in masis screen.",
)
@out_option(default="-", show_default=True, help="The file to write; '-' for stdout.")
def search_further(
    screening: str, files: tuple[Path, ...], rounds: int, db: Path | None, form: Form, out: Path
) -> None:
    """Make further rounds for a finished screening: they ask for what is still missing.

    The result is a screening of its own, with the rounds and people's overrides of the finished one, which stays as it
    is. Where no query is left that was not tried, it ends at once. 'masis screen --db' stores the records of its files
    as a corpus for this; where they are not stored, or the file has grown, give the FILE again.

    \b
      masis screening search-further 0b7c2f... --rounds 3 --out further.json
      masis screening search-further 0b7c2f... export.ris

    Exit code 0: searched further. 1: no such screening, its sources are gone, or all that they hold is graded. 2: wrong
    use. 130: stopped.
    """  # noqa: D301 (click reads the backspace)
    workbench = open_workbench(database_path(db))
    sources = _given_again(workbench, files) if files else None
    try:
        with Progress("Grading", None) as progress:
            found = workbench.screenings.search_further(
                operator(), screening, rounds, sources=sources, on_event=lambda event: _show_event(progress, event)
            )
        opened = workbench.screenings.open(found.id)
    except (UnknownRecord, InputError) as error:
        raise JobFailed(str(error)) from error
    _show_result(opened.screening)
    say(f"Screening {found.id} is stored in {database_path(db)}.")
    with whole_file(out) as stream:
        _write(opened.screening, opened.abstracts, form, stream)


def _given_again(workbench: Workbench, files: tuple[Path, ...]) -> tuple[str, ...]:
    """Store the records of files as a corpus, and return it as the source of further rounds."""
    errors = ErrorReport()
    with Interruption("Stopping. Press Ctrl-C again to stop at once.") as stop:
        abstracts = _distinct(_read(files, errors, stop), errors)
    if stop.asked:
        say("Stopped before anything was searched.")
        click.get_current_context().exit(INTERRUPTED)
    if not abstracts:
        raise JobFailed("There is no abstract to search.")
    name = _named(files)
    corpus = records_corpus(name, abstracts)
    _keep_records(workbench, corpus, abstracts, name)
    return (f"{CORPUS}{corpus}",)


def _keep_records(workbench: Workbench, corpus: str, abstracts: list[Abstract], name: str) -> None:
    with Progress("Storing the records", len(abstracts)) as progress:
        stored = 0

        def on_batch(count: int) -> None:
            nonlocal stored
            stored += count
            progress.move(stored, f"{stored:,} of {len(abstracts):,} records")

        workbench.corpora.keep_records(operator(), corpus, abstracts, source=name, on_batch=on_batch)
    say(f"Its records are stored as corpus {corpus!r}: 'masis screening' and the page can search further.")


def _named(files: Iterable[Path]) -> str:
    return ", ".join("stdin" if file == STDIO else file.name for file in files)


def _settings(graders: Iterable[str], retrieve: int | None, assignments: Iterable[str]) -> Settings:
    named = list(assignments)
    if chosen := ",".join(graders):
        named.append(f"screening_graders={chosen}")
    if retrieve is not None:
        named.append(f"screening_retrieve={retrieve}")
    return chosen_settings((), named)


def _with_concepts(settings: Settings, concepts: Mapping[str, str | None]) -> Settings:
    """The settings with the concepts that options set, over those that the settings hold."""
    named: dict[Part, str] = {part: text for part in PARTS if (text := concepts.get(part)) is not None}
    lines = written_lines(concept_lines(settings.screening_concepts) | named)
    try:
        return settings.updated({"screening_concepts": lines}) if named else settings
    except ValueError as error:
        raise click.UsageError("the concepts are too long: at most 10,000 characters together.") from error


def _read(files: Iterable[Path], errors: ErrorReport, stop: Interruption) -> Iterator[Abstract]:
    for file in files:
        for found in read_shown(file, errors, stop):
            if isinstance(found, InputError):
                errors.add(found)
            else:
                yield found


def _source(abstracts: list[Abstract], name: str, stop: Interruption, *, everything: bool) -> Retriever:
    """Return what is searched: all abstracts in their order, or by words, which takes a while for many of them."""
    if everything:
        return FixedSetRetriever(abstracts)
    return InMemoryRetriever(counted_off(abstracts, stop, "Preparing the search"), name=name)


def _distinct(abstracts: Iterable[Abstract], errors: ErrorReport) -> list[Abstract]:
    """The abstracts by id; another one under an id that is taken is reported."""
    by_id: dict[str, Abstract] = {}
    for abstract in abstracts:
        first = by_id.setdefault(abstract.id, abstract)
        if first != abstract and (first.title, first.text) != (abstract.title, abstract.text):
            errors.add(f"{abstract.id}: two records have this id. Give each its own.")
    return list(by_id.values())


def _watched(work: round_loop.ScreeningSteps) -> Screening:
    """Let the screening run to its end, with progress where a person watches."""
    with Progress("Grading", None) as progress:
        return run_to_completion(work, lambda event: _show_event(progress, event), ScreeningStart())


def _show_event(progress: Progress, event: ScreeningEvent) -> None:
    if event.kind == "graded":
        done, of = event.data["done"], event.data["of"]
        progress.move(done, f"round {event.round}: {done:,} of {of:,} graded")
    elif event.kind == "warning":
        progress.say(event.message)


def _show_result(found: Screening) -> None:
    """Show the rounds as a table, the outcome and its reasons."""
    asked = question_of(found.question, found.settings)
    say("; ".join(f"{part}: {text or 'none'}" for part, text in concepts_as_text(asked).items()))
    say("round  found  new  keep  more  discard  average  required  decision")
    for each in found.rounds:
        say(_row(each))
    for each in found.rounds[1:]:
        for query in each.queries:
            say(f"Round {each.number} searched for “{query.text}”: {query.why}")
    flow = found.flow
    excluded = "; ".join(f"{each.count} {each.label}" for each in flow.excluded)
    say(
        f"{flow.identified:,} identified, {flow.duplicates:,} found again, {flow.screened:,} screened, "
        f"{flow.screened - flow.kept - flow.undecided:,} excluded{f' ({excluded})' if excluded else ''}, "
        f"{flow.undecided:,} undecided, {flow.kept:,} kept."
    )
    for reason in (f"{found.outcome.replace('_', ' ').capitalize()}.", *found.reasons):
        say(reason)


def _row(each: Round) -> str:
    ruling, votes = each.ruling, each.ruling.tally
    average = "-" if ruling.average is None else f"{ruling.average:.3f}"
    return (
        f"{each.number:>5}  {len(each.retrieved):>5}  {len(each.new):>3}  {votes.keep:>4}  {votes.needs_more:>4}  "
        f"{votes.discard:>7}  {average:>7}  {ruling.required_average:>8.2f}  {ruling.decision.replace('_', ' ')}"
    )


def _write(found: Screening, abstracts: dict[str, Abstract], form: Form, stream: BinaryIO) -> None:
    if form == "json":
        stream.write(found.model_dump_json(indent=2).encode() + b"\n")
    elif form == "csv":
        write_screening_csv(found, abstracts, stream)
    elif form == "svg":
        stream.write(prisma_svg(found).encode() + b"\n")
    else:
        write_screening_ris(found, abstracts, stream)
