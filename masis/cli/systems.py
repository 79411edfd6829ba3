"""``masis systems`` lists and describes systems, and ``masis compare`` compares them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed
from masis.cli.output import Emit, say, table
from masis.pipeline.systems import worse_because
from masis.schema.comparison import GROUPS, MEASURES, SystemComparison
from masis.schema.systems import SystemDetails
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.views.systems import (
    causes_text,
    conclusion_word,
    difference_text,
    figure_with_base,
    left_out_text,
    listed_parts,
    measure_groups,
    no_parts_differ_text,
    regression_lines,
    small_parts_text,
    verdict_details,
    verdict_head,
)

_REGRESSIONS_SHOWN = 50


@click.group(cls=CommandGroup)
def systems() -> None:
    """List and describe the systems whose answers are stored.

      masis import answers.jsonl --system v2
      masis systems list
      masis systems describe v2 --model gpt-4o

    docs/comparing_systems.md says how a case gets its system.
    """


@systems.command("list", cls=Command, short_help="List the systems with their cases.")
@shared.json_option
@shared.workbench_option
def list_systems(emit: Emit, workbench: Workbench) -> None:
    """List the systems with their number of cases.

    masis systems list
    masis systems list --json | jq -r .name
    """
    rows = workbench.systems.all(shared.operator())
    if not rows:
        say("There are no cases yet. Import some: masis import answers.jsonl --system v2")
    cells = [
        (row.name, f"{row.cases:,}", row.model, row.version, row.date, row.prompt) for row in rows
    ]
    emit(list(rows), table(("system", "cases", "model", "version", "date", "prompt"), cells))


@systems.command("describe", cls=Command, short_help="Describe a system.")
@click.argument("name")
@click.option("--model", metavar="MODEL", help="The model that answered.")
@click.option("--prompt", metavar="TEXT", help="The prompt, or where it's kept.")
@click.option("--version", metavar="TEXT", help="The version of the program around the model.")
@click.option("--date", metavar="TEXT", help="When it answered.")
@shared.json_option
@shared.workbench_option
def describe(
    name: str,
    model: str | None,
    prompt: str | None,
    version: str | None,
    date: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Set the model, prompt, version or date of the system NAME. Options left out change nothing.

    masis systems describe v2 --model gpt-4o --date 2026-05-01
    """
    given = {"model": model, "prompt": prompt, "version": version, "date": date}
    stored = workbench.systems.get(shared.operator(), name)
    details = SystemDetails(
        **{
            field: getattr(stored, field) if value is None else value
            for field, value in given.items()
        }
    )
    changed = workbench.systems.describe(shared.operator(), name, details)
    emit(changed, [f"{changed.name}: described."])


@click.command("compare", cls=Command)
@click.argument("names", metavar="SYSTEM SYSTEM...", nargs=-1, required=True)
@click.option(
    "--gate",
    is_flag=True,
    help="Exit with code 1 if a later system is worse than the first.",
)
@click.option(
    "--most-regressions",
    type=click.IntRange(min=0),
    metavar="N",
    help="Exit with code 1 if a later system has more than N regressions. Implies --gate.",
)
@shared.json_option
@shared.workbench_option
def compare(
    names: tuple[str, ...],
    gate: bool,
    most_regressions: int | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Compare systems over the questions that all of them answered: the first SYSTEM with each of
    the others.

    Questions that a later system gets wrong and the first one got right are listed first. An answer
    is wrong if a person rejected or corrected it, or if the audit flagged it and nobody decided it.

      masis compare v1 v2
      masis compare v1 v2 --json | jq .regressions
      masis compare v1 v2 --gate --most-regressions 5

    Exit code 0: compared. 1: with --gate or --most-regressions, a later system is worse, has too
    many regressions, or shares no judged question. 2: wrong usage.
    """
    comparisons = workbench.comparison.compare(shared.operator(), names)
    for comparison in comparisons:
        emit(comparison, _systems_lines(comparison))
    if gate or most_regressions is not None:
        reasons = [worse_because(comparison, most_regressions) for comparison in comparisons]
        if failed := [reason for reason in reasons if reason]:
            raise JobFailed(" ".join(failed))


def _systems_lines(comparison: SystemComparison) -> Iterator[str]:
    yield verdict_head(comparison)
    yield from verdict_details(comparison)
    if left_out := left_out_text(comparison):
        yield left_out
    if comparison.regression_count:
        yield ""
        yield (f"{count_noun(comparison.regression_count, 'regression')}: right before, wrong now")
        yield from regression_lines(comparison, _REGRESSIONS_SHOWN)
    header = ("", comparison.first.name, comparison.second.name, "difference", "")
    for group in measure_groups(comparison):
        yield ""
        yield from filter(None, (f"{group.title}:", group.note))
        yield from table(
            header,
            [
                (
                    measure.title,
                    figure_with_base(measure, row, second=False),
                    figure_with_base(measure, row, second=True),
                    difference_text(measure, row),
                    conclusion_word(row, measure).text,
                )
                for measure, row in group.rows
            ],
        )
    yield from _part_lines(comparison, header)


def _part_lines(comparison: SystemComparison, header: tuple[str, ...]) -> Iterator[str]:
    if not comparison.groups:
        return
    yield ""
    if nothing := no_parts_differ_text(comparison):
        yield nothing
    if causes := causes_text(comparison):
        yield causes
    parts, small_parts = listed_parts(comparison)
    yield from table(
        header,
        [
            (
                f"{GROUPS[row.group]}: {row.value}",
                figure_with_base(MEASURES["flagged"], row, second=False),
                figure_with_base(MEASURES["flagged"], row, second=True),
                difference_text(MEASURES["flagged"], row),
                conclusion_word(row, MEASURES["flagged"]).text,
            )
            for row in parts
        ],
    )
    if small_parts:
        yield small_parts_text(small_parts)
