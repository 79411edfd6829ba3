"""``masis queues`` lists, creates and changes the team's named queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup
from masis.cli.options import Names
from masis.cli.output import Emit, say, table
from masis.cli.remote import desk_options
from masis.schema.team import MOST_REVIEWERS, MachineShown
from masis.schema.wording import count_noun
from masis.services.desk import Desk
from masis.services.queues import QueueFigures
from masis.services.records import FIRST_QUEUE_NAME, CaseFilter
from masis.views.queues import WHOLE_WORDS, fill_text, left_text, policy_text


@click.group(cls=CommandGroup)
def queues() -> None:
    """List, create and change the team's named queues.

    A queue has the cases that a filter holds, and its own policy, rubric, label types, instructions
    and people. Cases without a queue of their own are in the first one, "All cases".

      masis queues create Medical --field Medicine
      masis queues change Medical --reviewers 2 --audit-shown after --person Ada --person Ben
      masis queue --queue Medical

    docs/as-a-team.md explains them.
    """


@queues.command("list", cls=Command, short_help="List the named queues with their figures.")
@click.option("--archived", is_flag=True, help="List archived queues, too.")
@desk_options
@shared.json_option
def list_queues(archived: bool, desk: Desk, emit: Emit) -> None:
    """List the named queues with their cases, and those that wait for you.

    masis queues list
    masis queues list --json | jq -r .queue.name
    """
    rows = desk.queues(archived=archived)
    if not rows:
        say(
            f"The team has only the queue {FIRST_QUEUE_NAME!r}. Create another one: masis queues"
            " create NAME --field FIELD"
        )
    cells = [
        (row.queue.name, f"{row.cases:,}", f"{row.left:,}", f"{row.own_left:,}", _state(row))
        for row in rows
    ]
    emit(list(rows), table(("queue", "cases", "left", "for you", "policy"), cells))


@queues.command("show", cls=Command, short_help="Show a queue: its filter, policy and figures.")
@click.argument("name")
@desk_options
@shared.json_option
def show_queue(name: str, desk: Desk, emit: Emit) -> None:
    """Show the queue NAME with its filter, its policy, its people and its figures.

    masis queues show Legal
    """
    folded = name.casefold()
    rows = desk.queues(archived=True)
    found = [row for row in rows if folded in (row.queue.id, row.queue.name.casefold())]
    if not found:
        known = ", ".join(row.queue.name for row in rows) or "none"
        raise click.UsageError(f"There is no queue {name[:60]!r}. Queues: {known}.")
    emit(found[0], _queue_lines(found[0]))


def _state(row: QueueFigures) -> str:
    return "archived" if row.queue.archived else policy_text(row.queue)


def _queue_lines(row: QueueFigures) -> Iterator[str]:
    queue = row.queue
    yield f"{queue.name} (id {queue.id}, version {queue.version}): {_state(row)}"
    yield f"  filled by    {fill_text(queue.cases)}"
    yield f"  people       {', '.join(queue.people) or 'everybody'}"
    if queue.label_types:
        yield f"  label types  {', '.join(queue.label_types)}"
    if queue.rubric is not None:
        yield f"  rubric       {count_noun(len(queue.rubric.scores), 'score')} of its own"
    yield f"  left         {left_text(row)}"
    for line in queue.instructions.splitlines():
        yield f"  | {line}"


@queues.command("create", cls=Command, short_help="Create a queue with the cases of a filter.")
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Only count the cases that the filter holds.")
@shared.filter_options("none, because decisions would change it", ())
@desk_options
@shared.json_option
def create(name: str, dry_run: bool, case_filter: CaseFilter, desk: Desk, emit: Emit) -> None:
    """Create the queue NAME with the cases that the filters hold, now and later.

    It starts with the team's policy. A filter by state can't fill a queue, because decisions change
    it.

    masis queues create Medical --field Medicine
    masis queues create Medical --field Medicine --dry-run
    """
    filters = case_filter.model_dump(exclude_defaults=True)
    preview = desk.preview_queue(**filters)
    common = ", ".join(f"{count:,} also in {other!r}" for other, count in preview.common.items())
    also = f" ({common})" if common else ""
    cases = count_noun(preview.cases, "case")
    if preview.left_out:
        say(f"Left out, because decisions change it: {', '.join(preview.left_out)}.")
    if preview.whole_words:
        say(WHOLE_WORDS)
    if dry_run:
        verb = "matches" if preview.cases == 1 else "match"
        emit(preview, [f"{cases} {verb} this filter{also}."])
        return
    queue = desk.create_queue(name, **filters)
    emit(queue, [f"The queue {queue.name!r} (id {queue.id}) holds {cases} now{also}."])


@queues.command("change", cls=Command, short_help="Change a queue's name, policy or people.")
@click.argument("name")
@click.option("--name", "new_name", metavar="NAME", help="A new name.")
@click.option(
    "--reviewers",
    type=click.IntRange(1, MOST_REVIEWERS),
    metavar="N",
    help="How many people decide each case.",
)
@click.option(
    "--audit-shown",
    "machine",
    type=click.Choice(get_args(MachineShown)),
    help="When they see the audit: first (at once), after (their decision) or never (before the"
    " case is decided).",
)
@click.option(
    "--person",
    "people",
    multiple=True,
    metavar="NAME",
    help="A person who decides its cases; replaces all others.",
)
@click.option("--everybody", is_flag=True, help="Let everybody decide its cases.")
@click.option(
    "--label-type",
    "label_types",
    multiple=True,
    metavar="NAME",
    help="A label type of the team that it offers; replaces all others.",
)
@click.option(
    "--instructions",
    type=shared.existing_file,
    metavar="FILE",
    help="A text file with instructions for its reviewers ('-' for stdin).",
)
@desk_options
@shared.json_option
def change(
    name: str,
    new_name: str | None,
    reviewers: int | None,
    machine: MachineShown | None,
    people: Names,
    everybody: bool,
    label_types: Names,
    instructions: Path | None,
    desk: Desk,
    emit: Emit,
) -> None:
    """Change the queue NAME. Options left out change nothing.

    Cases that its people have started to decide keep the policy of their first decision.

    masis queues change Legal --reviewers 2 --audit-shown after
    masis queues change Legal --person Ada --person Ben
    """
    changes: dict[str, Any] = {}
    policy = {"reviewers": reviewers, "machine": machine}
    if given := {key: value for key, value in policy.items() if value is not None}:
        changes["policy"] = given
    if new_name is not None:
        changes["name"] = new_name
    if people or everybody:
        changes["people"] = people
    if label_types:
        changes["label_types"] = label_types
    if instructions is not None:
        with shared.spool_stdin(instructions) as path:
            changes["instructions"] = path.read_text(encoding="utf-8").strip()
    if not changes:
        raise click.UsageError("Name what to change, such as --reviewers 2.")
    queue = desk.change_queue(name, **changes)
    emit(queue, [f"{queue.name}: version {queue.version} is in force. {policy_text(queue)}."])


@queues.command("archive", cls=Command, short_help="Close a queue. Its decisions stay.")
@click.argument("name")
@click.option("--restore", is_flag=True, help="Open it again.")
@desk_options
@shared.json_option
def archive(name: str, restore: bool, desk: Desk, emit: Emit) -> None:
    """Close the queue NAME, so that nothing is decided in it any more. Its decisions stay.

    masis queues archive Legal
    masis queues archive Legal --restore
    """
    queue = desk.change_queue(name, archived=not restore)
    emit(queue, [f"{queue.name} is {'archived' if queue.archived else 'open again'}."])
