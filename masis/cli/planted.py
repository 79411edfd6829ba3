"""``masis planted``: copies of sound answers with one certain fault, and who finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from masis.cli import options as shared
from masis.cli.commands import CommandGroup, argument, command, option
from masis.cli.output import Emit, ProgressBar, say
from masis.schema.faults import FAULT_KINDS, FaultKind
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.planted import RecallReport
from masis.services.records import CaseFilter
from masis.services.trust.summary import figure_text
from masis.trust.faults import Recall
from masis.views.faults import FAULT

BY = option(
    "Who does it, for the record. Default: the name you are logged in with.", metavar="NAME"
)


@click.group(cls=CommandGroup)
def planted() -> None:
    """Mix copies of sound answers with one certain fault into the queue, and see who finds them.

      masis planted add 10
      masis planted recall
      masis planted withdraw

    An answer is sound where a person approved it unchanged. Nothing tells a copy from other cases
    until it is decided; docs/trust.md says what is measured.
    """


@command("Plant copies with faults among the cases that wait.", group=planted)
def add(
    count: int = argument(),
    kinds: tuple[FaultKind, ...] = option(
        "What may be changed; several times for several. Default: all.", "--kind"
    ),
    dataset: str = option("Only answers of this data set.", default="", metavar="NAME"),
    field: str = option("Only answers of this field.", default="", metavar="NAME"),
    text: str = option("Only answers whose cases hold these words.", default="", metavar="WORDS"),
    seed: int | None = option(
        "Draws answers, places and words. Default: a random one, which is printed."
    ),
    by: str | None = BY,
    emit: Emit = shared.EMIT,
    workbench: Workbench = shared.WORKBENCH,
) -> None:
    """Plant COUNT copies of sound answers, each with one certain fault; they wait to be audited as
    other new cases do.

      masis planted add 10 --kind figure --kind negation
      masis planted add 5 --field Medicine --seed 7

    Exit code 0: planted, perhaps fewer than asked for. 1: there is no sound answer.
    """
    filters = CaseFilter(
        text=text, datasets=(dataset,) if dataset else (), fields=(field,) if field else ()
    )
    with ProgressBar("Planting", count) as progress:
        made = workbench.planted.plant(
            shared.operator(by),
            count,
            kinds or FAULT_KINDS,
            case_filter=filters,
            seed=seed,
            on_case=lambda done, _: progress.move(done),
        )
    emit(made._asdict() | {"total": made.total})
    by_kind = ", ".join(
        f"{FAULT[kind].lower()} {number:,}" for kind, number in made.planted.items()
    )
    say(
        f"{count_noun(made.total, 'copy', 'copies')} planted{f' ({by_kind})' if by_kind else ''}, seed"
        f" {made.seed}."
    )
    for reason, answers in made.refused.items():
        say(f"{count_noun(answers, 'answer')} left alone: {reason}.")


@command("Take back the copies that nobody has decided.", group=planted)
def withdraw(
    by: str | None = BY, emit: Emit = shared.EMIT, workbench: Workbench = shared.WORKBENCH
) -> None:
    """Take back every copy that nobody has decided; its text is removed and the log records it.

    masis planted withdraw
    """
    done = workbench.planted.withdraw(shared.operator(by))
    emit({"withdrawn": done})
    say(f"{count_noun(done, 'copy', 'copies')} withdrawn.")


@command("Show who found how many planted faults.", group=planted)
def recall(
    by: str | None = BY, emit: Emit = shared.EMIT, workbench: Workbench = shared.WORKBENCH
) -> None:
    """Show how many planted faults the audit and each reviewer found, by kind, with exact 95%
    intervals.

    masis planted recall
    masis planted recall --json | jq .audit.recall.total
    """
    person = shared.operator(by)
    counts, found = workbench.planted.count_copies(person), workbench.planted.recall(person)
    record: dict[str, Any] = {
        "copies": counts._asdict(),
        "audit": found.audit,
        "reviewers": found.reviewers,
        "decided": [
            {
                "case": each.copy.case_id,
                "fault": each.copy.fault,
                "audit": each.audit,
                "found_by": each.found_by,
                "missed_by": each.missed_by,
            }
            for each in found.decided
        ],
    }
    head = (
        f"{count_noun(counts.open + counts.started, 'copy', 'copies')} waiting, {counts.decided:,}"
        f" decided, {counts.withdrawn:,} withdrawn."
    )
    emit(record, [head, *_planted_lines(found)])


def _planted_lines(found: RecallReport) -> Iterator[str]:
    if found.audit is not None:
        yield from _recall_lines("the audit", found.audit.recall)
    for each in found.reviewers:
        yield from _recall_lines(each.reviewer or "all reviewers", each.recall)


def _recall_lines(name: str, found: Recall) -> Iterator[str]:
    yield f"{name}: {figure_text(found.total)}"
    for kind, share in found.by_kind.items():
        yield f"  {FAULT[kind].lower():<10} {figure_text(share)}"
