"""``masis planted`` adds known faults to copies of correct answers to measure who finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import click

from masis.cli import options as shared
from masis.cli.commands import CommandGroup
from masis.cli.output import Emit, ProgressBar, say
from masis.schema.faults import FAULT_KINDS, FaultKind
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.planted import RecallReport
from masis.services.records import CaseFilter
from masis.services.trust.summary import figure_text
from masis.trust.faults import Recall
from masis.views.faults import FAULT

by_option = click.option(
    "--by", metavar="NAME", help="The name to record. Default: your login name."
)


@click.group(cls=CommandGroup)
def planted() -> None:
    """Add copies of correct answers with one known fault each to the queue, and measure who finds
    the faults.

      masis planted add 10
      masis planted recall
      masis planted withdraw

    An answer counts as correct if a person approved it unchanged. Reviewers can't tell a copy from
    other cases until they have decided it. docs/trust.md explains the measurement.
    """


@planted.command(short_help="Plant copies with faults in the queue.")
@click.argument("count", type=int)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(get_args(FaultKind)),
    multiple=True,
    help="A kind of fault to plant. Can be repeated. Default: all.",
)
@click.option("--dataset", default="", metavar="NAME", help="Only answers in this data set.")
@click.option("--field", default="", metavar="NAME", help="Only answers in this field.")
@click.option(
    "--text", default="", metavar="WORDS", help="Only answers whose cases contain these words."
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="The random seed, which selects answers and faults. Default: a random one, which is"
    " printed.",
)
@by_option
@shared.json_option
@shared.workbench_option
def add(
    count: int,
    kinds: tuple[FaultKind, ...],
    dataset: str,
    field: str,
    text: str,
    seed: int | None,
    by: str | None,
    emit: Emit,
    workbench: Workbench,
) -> None:
    """Add COUNT copies of correct answers to the queue, each with one known fault. Like other new
    cases, they have to be audited.

      masis planted add 10 --kind figure --kind negation
      masis planted add 5 --field Medicine --seed 7

    Exit code 0: copies were added, perhaps fewer than COUNT. 1: there are no correct answers.
    """
    filters = CaseFilter(
        text=text, datasets=(dataset,) if dataset else (), fields=(field,) if field else ()
    )
    with ProgressBar("Planting", count) as progress:
        planting = workbench.planted.plant(
            shared.operator(by),
            count,
            kinds or FAULT_KINDS,
            case_filter=filters,
            seed=seed,
            on_case=lambda done, _: progress.move(done),
        )
    emit(planting._asdict() | {"total": planting.total})
    by_kind = ", ".join(
        f"{FAULT[kind].lower()} {number:,}" for kind, number in planting.planted.items()
    )
    say(
        f"{count_noun(planting.total, 'copy', 'copies')} "
        f"planted{f' ({by_kind})' if by_kind else ''}, seed"
        f" {planting.seed}."
    )
    for reason, answers in planting.refused.items():
        say(f"{count_noun(answers, 'answer')} not used: {reason}.")


@planted.command(short_help="Withdraw the undecided copies.")
@by_option
@shared.json_option
@shared.workbench_option
def withdraw(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Withdraw every copy that hasn't been decided. Its text is removed, and the log records it.

    masis planted withdraw
    """
    done = workbench.planted.withdraw(shared.operator(by))
    emit({"withdrawn": done})
    say(f"{count_noun(done, 'copy', 'copies')} withdrawn.")


@planted.command(short_help="Show how many planted faults the audit and each reviewer found.")
@by_option
@shared.json_option
@shared.workbench_option
def recall(by: str | None, emit: Emit, workbench: Workbench) -> None:
    """Show how many planted faults the audit and each reviewer found, by kind of fault, with exact
    95% confidence intervals.

    masis planted recall
    masis planted recall --json | jq .audit.recall.total
    """
    person = shared.operator(by)
    counts, report = workbench.planted.count_copies(person), workbench.planted.recall(person)
    record: dict[str, Any] = {
        "copies": counts._asdict(),
        "audit": report.audit,
        "reviewers": report.reviewers,
        "decided": [
            {
                "case": decided.copy.case_id,
                "fault": decided.copy.fault,
                "audit": decided.audit,
                "found_by": decided.found_by,
                "missed_by": decided.missed_by,
            }
            for decided in report.decided
        ],
    }
    head = (
        f"{count_noun(counts.open + counts.started, 'copy', 'copies')} undecided,"
        f" {counts.decided:,} decided, {counts.withdrawn:,} withdrawn."
    )
    emit(record, [head, *_report_lines(report)])


def _report_lines(report: RecallReport) -> Iterator[str]:
    if report.audit is not None:
        yield from _recall_lines("the audit", report.audit.recall)
    for reviewer in report.reviewers:
        yield from _recall_lines(reviewer.reviewer or "all reviewers", reviewer.recall)


def _recall_lines(name: str, recalled: Recall) -> Iterator[str]:
    yield f"{name}: {figure_text(recalled.total)}"
    for kind, share in recalled.by_kind.items():
        yield f"  {FAULT[kind].lower():<10} {figure_text(share)}"
