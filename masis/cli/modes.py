"""``masis modes``: failure modes, from searching notes to counting coded cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from masis.cli import options as shared
from masis.cli.commands import CommandGroup, RegisteredChoice
from masis.cli.options import Names
from masis.cli.output import Emit, ProgressBar, say, table
from masis.datasets.writers.files import whole_file
from masis.schema.causes import CAUSES
from masis.schema.codebook import (
    OBSERVATION_KINDS,
    CaseObservation,
    Codebook,
    FailureMode,
    code_from_name,
)
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.modes.codebooks import starting_codebooks
from masis.services.modes.service import CodedBatch, CodingPreview
from masis.services.records import FACETS, Facet, ObservationFilter
from masis.services.trust.summary import figure_text
from masis.views.numbers import percent

_TEXT_LENGTH = 80
"""How many characters of a text a table shows."""

_GROUPS_SHOWN = 20


@click.group(cls=CommandGroup)
def modes() -> None:
    """Find out how answers fail: search what people and audits wrote, group it, apply the codes of
    failure modes, and count the cases of each.

      masis modes codebook start rag
      masis modes groups
      masis modes apply rag.incomplete --search "missing dose"
      masis modes list --facet field

    docs/failure_modes.md explains each step.
    """


def _filter_options(command: shared.Body) -> shared.Body:
    """Add the filters of observations, passed by the names of their fields."""
    for option in (
        click.option(
            "--kind",
            "kinds",
            type=click.Choice(tuple(OBSERVATION_KINDS)),
            multiple=True,
            help="Only this kind. Can be repeated.",
        ),
        click.option(
            "--code", "codes", multiple=True, metavar="CODE", help="Only those with this code."
        ),
        click.option("--uncoded", is_flag=True, help="Only those without a code."),
        click.option(
            "--author", "authors", multiple=True, metavar="NAME", help="Only what NAME wrote."
        ),
        shared.field_option,
        shared.dataset_option,
    ):
        command = option(command)
    return command


@modes.command(short_help="Search issues, reasons, notes, labels and comments.")
@click.argument("words", nargs=-1)
@_filter_options
@click.option(
    "--limit",
    "size",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many to list.",
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def search(words: Names, by: str | None, emit: Emit, workbench: Workbench, **filters: Any) -> None:
    """Search the text of issues, reasons, notes, labels and comments for all WORDS, newest first.

    masis modes search wrong dose --kind note --kind label
    masis modes search --uncoded --json | jq -r .text
    """
    wanted = ObservationFilter(text=" ".join(words), **filters)
    page = workbench.modes.search(shared.operator(by), wanted)
    book = workbench.modes.codebook(shared.operator(by))
    emit(list(page.rows), _observation_lines(page.rows, book))
    beyond = "more than " if page.more else ""
    say(f"{len(page.rows):,} of {beyond}{count_noun(page.total, 'observation')}.")


def _observation_lines(rows: Sequence[CaseObservation], book: Codebook) -> Iterator[str]:
    cells = [
        (
            row.id,
            row.case_id,
            row.kind,
            ", ".join(book.names_of(row.codes)),
            shorten(row.text, _TEXT_LENGTH),
        )
        for row in rows
    ]
    return table(("id", "case", "kind", "modes", "text"), cells)


@modes.command(short_help="Propose groups of similar observations that have no code yet.")
@click.option("--again", is_flag=True, help="Group again instead of using the stored groups.")
@click.option(
    "--suggest-names",
    "named",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Send notes of the N largest groups to the critic's model, which suggests names.",
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def groups(
    again: bool, named: int | None, by: str | None, emit: Emit, workbench: Workbench
) -> None:
    """Propose groups of similar issues, reasons, notes, labels and comments that have no code.

    masis modes groups
    masis modes groups --again --json | jq -r .name

    The names are the kind of fault that most of them name, if one is likely, and the words that
    distinguish a group from the others, unless a model suggests some.
    Confirm a group on the Failure modes page, or apply a code to what you find with its words.
    """
    person = shared.operator(by)
    proposal = workbench.modes.groups(person, again=again)
    suggested = {
        group.id: workbench.modes.suggest_name(person, group)
        for group in proposal.groups[: named or 0]
    }
    cells = [
        (
            suggested[group.id].name if group.id in suggested else group.heading,
            f"{group.observations:,}",
            f"{group.cases:,}",
        )
        for group in proposal.groups[:_GROUPS_SHOWN]
    ]
    record = [
        {name: getattr(group, name) for name in ("id", "title", "name", "observations", "cases")}
        | {"suggested": suggested.get(group.id)}
        for group in proposal.groups
    ]
    emit(record, table(("group", "texts", "cases"), cells))
    say(
        f"{count_noun(len(proposal.groups), 'group')} of"
        f" {count_noun(proposal.observations, 'text')}; {proposal.ungrouped:,} in no group."
    )


@modes.command("list", short_help="Count the cases of each failure mode.")
@click.option(
    "--facet",
    type=RegisteredChoice(lambda: FACETS),
    default="mode",
    show_default=True,
    help="The property of the cases to count by.",
)
@shared.by_option
@shared.json_option
@shared.workbench_option
def list_modes(facet: Facet, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Count the cases of each failure mode, with 95% intervals. A mode includes those under it.

    masis modes list
    masis modes list --facet system --json | jq -r '[.mode, .value, .cases] | @tsv'

    The base is the number of cases that were audited, decided or coded; for causes, the number of
    cases with the mode.
    """
    person = shared.operator(by)
    counts = workbench.modes.count_modes(person, facet)
    book = workbench.modes.codebook(person)
    cells = [
        (
            *book.names_of([row.mode]),
            CAUSES[row.value].name if facet == "cause" and row.value in CAUSES else row.value,
            f"{row.cases:,} of {row.base:,}",
            f"{percent(row.low)} to {percent(row.high)}",
        )
        for row in counts
    ]
    emit(list(counts), table(("mode", FACETS[facet].name.lower(), "cases", "interval"), cells))
    if not counts:
        say("No case has a failure mode yet. Apply one with 'masis modes apply'.")


@modes.command(short_help="Show how far reviewers agree about each failure mode.")
@shared.by_option
@shared.json_option
@shared.workbench_option
def agreement(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show how far reviewers agree about each failure mode, on cases that several of them decided.

    masis modes agreement
    """
    person = shared.operator(by)
    rows = workbench.modes.agreement(person)
    book = workbench.modes.codebook(person)
    record = [
        row._asdict() | {"agreement": row.agreement._asdict(), "kappa": row.kappa._asdict()}
        for row in rows
    ]
    cells = [
        (
            *book.names_of([row.mode]),
            f"{row.both:,}",
            f"{row.one:,}",
            figure_text(row.agreement, brief=True),
            figure_text(row.kappa, share=False, brief=True),
        )
        for row in rows
    ]
    emit(record, table(("mode", "both", "one of two", "agreement", "kappa"), cells))
    if not rows:
        say("No failure mode is on a case that several people decided.")


@modes.command(short_help="Apply failure modes to cases or to what was written about them.")
@click.argument("codes", nargs=-1, required=True)
@click.option(
    "--observation",
    "ids",
    multiple=True,
    metavar="ID",
    help="An observation, by its id in 'masis modes search'. Can be repeated.",
)
@click.option("--similar", metavar="ID", help="This observation and all similar ones.")
@click.option("--search", "text", default="", metavar="WORDS", help="All with these words.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="A case. Can be repeated.")
@click.option("--dry-run", is_flag=True, help="Only show what would get the codes.")
@shared.yes_option
@shared.by_option
@shared.json_option
@shared.workbench_option
def apply(
    codes: Names,
    ids: Names,
    similar: str | None,
    text: str,
    cases: Names,
    dry_run: bool,
    yes: bool,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Apply the failure modes CODES to cases, or to observations after a preview.

      masis modes apply rag.incomplete --case bridge-01
      masis modes apply rag.incomplete --similar 3f5a09c2d4e6f708
      masis modes apply rag.wrong-citation --search "wrong page" --yes

    Each is an entry in the decision log that names the batch; 'masis batch undo BATCH' removes them
    together.
    """
    if sum(map(bool, (ids, similar, text, cases))) != 1:
        raise click.UsageError("give one of --observation, --similar, --search and --case.")
    person, service = shared.operator(by), workbench.modes
    if cases:
        done = None if dry_run else service.apply_to_cases(person, codes, cases)
    else:
        wanted = ObservationFilter(ids=ids, text=text)
        if similar:
            wanted = service.similar(person, similar)
        preview = service.preview(person, codes, wanted)
        book = service.codebook(person)
        emit.lines(_observation_lines(preview.sample, book))
        say(_preview_text(preview))
        if dry_run or not preview.ids:
            emit(preview)
            return
        if not ids:
            names = "”, “".join(book.names_of(preview.codes))
            question = f"Apply “{names}” to {len(preview.ids):,}?"
            shared.confirm(question, "Nothing was applied.", yes=yes)
        with ProgressBar("Coding", preview.cases) as progress:
            done = service.apply(person, codes, preview.ids, on_progress=progress.move)
    if done is not None:
        emit(done)
        say(_batch_text(done))


def _preview_text(preview: CodingPreview) -> str:
    parts = [
        f"{count_noun(len(preview.ids), 'observation')} in {count_noun(preview.cases, 'case')}"
    ]
    if preview.left_out:
        parts.append(f"{preview.left_out:,} have the codes already")
    if preview.beyond:
        parts.append(f"{preview.beyond:,} more than one batch can have")
    return "; ".join(parts) + "."


def _batch_text(done: CodedBatch) -> str:
    entries = count_noun(done.entries, "entry", "entries")
    return f"{entries} applied in {count_noun(done.cases, 'case')}, batch {done.batch}."


@modes.group(cls=CommandGroup, short_help="Show and change the codebook.")
def codebook() -> None:
    """Show and change the codebook of failure modes.

    masis modes codebook start rag
    masis modes codebook add "Wrong unit" --definition "The figure is right, the unit isn't."
    masis modes codebook export --out codebook.json
    """


def _codebook_command(command: Callable[..., None]) -> shared.Body:
    """Add ``--by``, ``--json`` and ``--db``."""
    for option in (shared.workbench_option, shared.json_option, shared.by_option):
        command = option(command)
    return command


def _show_codebook(book: Codebook, emit: Emit) -> None:
    emit(book, _book_lines(book, None, ""))
    say(f"Version {book.version}: {count_noun(len(book.in_use), 'failure mode')}.")


def _book_lines(book: Codebook, parent: str | None, indent: str) -> Iterator[str]:
    for mode in book.children(parent):
        meaning = f": {shorten(mode.definition, _TEXT_LENGTH)}" if mode.definition else ""
        yield f"{indent}{mode.code}  {mode.name}{meaning}"
        yield from _book_lines(book, mode.code, indent + "  ")


@codebook.command(short_help="Show the codebook.")
@_codebook_command
def show(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show the codebook, nested modes under their parents.

    masis modes codebook show
    """
    _show_codebook(workbench.modes.codebook(shared.operator(by)), emit)


@codebook.command(short_help="Add the modes of a starting codebook.")
@click.argument("name", type=RegisteredChoice(starting_codebooks))
@_codebook_command
def start(name: str, by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Add the modes of a starting codebook: of answers from retrieved evidence (rag) or of systems
    of several agents (mast).

    masis modes codebook start rag
    """
    _show_codebook(workbench.modes.start_codebook(shared.operator(by), name), emit)


@codebook.command(short_help="Add a failure mode.")
@click.argument("name")
@click.option("--code", metavar="CODE", help="Its code, which never changes. Default: from NAME.")
@click.option("--definition", default="", metavar="TEXT", help="When it applies.")
@click.option("--example", default="", metavar="TEXT", help="An answer to which it applies.")
@click.option(
    "--counter-example", default="", metavar="TEXT", help="An answer to which it doesn't apply."
)
@click.option("--parent", metavar="CODE", help="The mode that it is nested under.")
@_codebook_command
def add(
    name: str,
    code: str | None,
    definition: str,
    example: str,
    counter_example: str,
    parent: str | None,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Add the failure mode NAME to the codebook.

    masis modes codebook add "Wrong unit" --parent rag.generation
    """
    person = shared.operator(by)
    taken = [mode.code for mode in workbench.modes.codebook(person).modes]
    mode = FailureMode(
        code=code or code_from_name(name, taken),
        name=name,
        definition=definition,
        example=example,
        counter_example=counter_example,
        parent=parent,
    )
    _show_codebook(workbench.modes.add_mode(person, mode), emit)


@codebook.command("export", short_help="Write the codebook as JSON.")
@shared.out_option()
@shared.by_option
@shared.workbench_option
def export_codebook(out: Path, by: str | None, workbench: Workbench) -> None:
    """Write the codebook as JSON, which 'masis modes codebook import' reads.

    masis modes codebook export --out codebook.json
    """
    text = workbench.modes.export_codebook(shared.operator(by))
    with whole_file(out) as file:
        file.write(f"{text}\n".encode())


@codebook.command("import", short_help="Add the modes of an exported codebook.")
@click.argument("file", type=shared.existing_file)
@click.option(
    "--replace", is_flag=True, help="Remove modes that the file lacks and that nobody applied."
)
@_codebook_command
def import_codebook(
    file: Path, replace: bool, by: str | None, emit: Emit, workbench: Workbench
) -> None:
    """Add the modes of FILE to the codebook; modes with the same code are replaced.

    masis modes codebook import codebook.json
    """
    with click.open_file(str(file), "rb") as opened:
        text = opened.read().decode(errors="replace")
    _show_codebook(
        workbench.modes.import_codebook(shared.operator(by), text, replace=replace), emit
    )
