"""``masis queues`` lists, creates and changes the team's named queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import ValidationError

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup
from masis.cli.options import Names
from masis.cli.output import Emit, say, table
from masis.cli.remote import desk_options
from masis.schema.team import MOST_REVIEWERS, MachineShown, PolicyRule, Rubric
from masis.schema.wording import count_noun
from masis.services.desk import Desk
from masis.services.queues import QueueFigures, QueuePreview
from masis.services.records import FIRST_QUEUE_NAME, CaseFilter
from masis.views.policy_words import RUBRIC_HELP, read_scores, rule_text, score_line
from masis.views.queues import WHOLE_WORDS, fill_text, left_text, policy_text


@click.group(cls=CommandGroup)
def queues() -> None:
    """List, create and change the team's named queues.

    A queue contains the cases that match a filter, and has its own policy, rubric, label types,
    instructions and people. The first queue, "All cases", has every case.

      masis queues create Medical --field Medicine
      masis queues change Medical --reviewers 2 --audit-shown after --person Ada --person Ben
      masis queue --queue Medical

    docs/as-a-team.md explains them.
    """


@queues.command("list", cls=Command, short_help="List the named queues with their figures.")
@click.option("--archived", is_flag=True, help="Also list archived queues.")
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
    found = _find_queue(name, desk)
    emit(found, _queue_lines(found))


def _find_queue(name: str, desk: Desk) -> QueueFigures:
    folded = name.casefold()
    rows = desk.queues(archived=True)
    found = [row for row in rows if folded in (row.queue.id, row.queue.name.casefold())]
    if not found:
        known = ", ".join(row.queue.name for row in rows) or "none"
        raise click.UsageError(f"There is no queue {name[:60]!r}. Queues: {known}.")
    return found[0]


def _state(row: QueueFigures) -> str:
    return "archived" if row.queue.archived else policy_text(row.queue)


def _queue_lines(row: QueueFigures) -> Iterator[str]:
    queue = row.queue
    yield f"{queue.name} (id {queue.id}, version {queue.version}): {_state(row)}"
    yield f"  filled by    {fill_text(queue.cases)}"
    if queue.policy.reviewers > 1:
        yield f"  verdict      {rule_text(queue.policy)}"
    yield f"  people       {', '.join(queue.people) or 'everybody'}"
    if queue.label_types:
        yield f"  label types  {', '.join(queue.label_types)}"
    if queue.rubric is not None:
        yield "  rubric       its own"
        yield from (f"    {score_line(score)}" for score in queue.rubric.scores)
        yield from (f"    | {line}" for line in queue.rubric.guidelines.splitlines())
    yield f"  left         {left_text(row)}"
    for line in queue.instructions.splitlines():
        yield f"  | {line}"


@queues.command("create", cls=Command, short_help="Create a queue with the cases of a filter.")
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Only count the cases that match the filter.")
@shared.filter_options("none, because decisions would change it", ())
@desk_options
@shared.json_option
def create(name: str, dry_run: bool, case_filter: CaseFilter, desk: Desk, emit: Emit) -> None:
    """Create the queue NAME with the cases that match the filters, now and later.

    It starts with the team's policy. A filter by state can't fill a queue, because decisions change
    it.

    masis queues create Medical --field Medicine
    masis queues create Medical --field Medicine --dry-run
    """
    filters = case_filter.model_dump(exclude_defaults=True)
    preview = _preview_queue(filters, desk)
    common = ", ".join(f"{count:,} also in {other!r}" for other, count in preview.common.items())
    also = f" ({common})" if common else ""
    cases = count_noun(preview.cases, "case")
    if dry_run:
        verb = "matches" if preview.cases == 1 else "match"
        emit(preview, [f"{cases} {verb} this filter{also}."])
        return
    queue = desk.create_queue(name, **filters)
    emit(queue, [f"The queue {queue.name!r} (id {queue.id}) holds {cases} now{also}."])


def _preview_queue(filters: Mapping[str, Any], desk: Desk) -> QueuePreview:
    """Return what filters would hold as a queue, and say which parts of them it can't use."""
    preview = desk.preview_queue(**filters)
    if preview.left_out:
        say(f"Left out, because decisions change it: {', '.join(preview.left_out)}.")
    if preview.whole_words:
        say(WHOLE_WORDS)
    return preview


@queues.command("change", cls=Command, short_help="Change a queue's filter, policy or people.")
@click.argument("name")
@click.option("--name", "new_name", metavar="NAME", help="A new name.")
@click.option(
    "--reviewers",
    "wanted",
    type=click.IntRange(1, MOST_REVIEWERS),
    metavar="N",
    help="How many people decide each case.",
)
@click.option(
    "--rule",
    type=click.Choice(get_args(PolicyRule)),
    help="Whose verdict counts: adjudicated (the one that all agree on), agree (the one that"
    " --agree people agree on) or first (the first one). Otherwise a lead adjudicates.",
)
@click.option(
    "--agree",
    type=click.IntRange(1, MOST_REVIEWERS),
    metavar="N",
    help="How many people have to agree under --rule agree.",
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
@click.option(
    "--guidelines",
    type=shared.existing_file,
    metavar="FILE",
    help="A text file with the guidelines of its own rubric ('-' for stdin).",
)
@click.option(
    "--score",
    "scores",
    multiple=True,
    metavar="LINE",
    help="A score of its own rubric, such as 'Clarity: 1-5 | how well it reads' or"
    " 'Tone: plain, harsh'; replaces all others.",
)
@click.option("--team-rubric", is_flag=True, help="Use the team's rubric instead of its own.")
@click.option("--all-cases", is_flag=True, help="Fill it with every case.")
@shared.filter_options("none, because decisions would change it", ())
@desk_options
@shared.json_option
def change(
    name: str,
    new_name: str | None,
    wanted: int | None,
    rule: PolicyRule | None,
    agree: int | None,
    machine: MachineShown | None,
    people: Names,
    everybody: bool,
    label_types: Names,
    instructions: Path | None,
    guidelines: Path | None,
    scores: Names,
    team_rubric: bool,
    all_cases: bool,
    case_filter: CaseFilter,
    desk: Desk,
    emit: Emit,
) -> None:
    """Change the queue NAME. Options left out change nothing.

    New filters replace the old ones. Cases that its people have started to decide keep the policy
    of their first decision.

    masis queues change Legal --reviewers 3 --rule agree --agree 2 --audit-shown after
    masis queues change Legal --person Ada --person Ben
    masis queues change Legal --tagged contract --score 'Clarity: 1-5'
    """
    changes: dict[str, Any] = {}
    policy = {"reviewers": wanted, "rule": rule, "agree": agree, "machine": machine}
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
    if team_rubric and (scores or guidelines is not None):
        raise click.UsageError("Use either --team-rubric or the queue's own rubric.")
    if team_rubric:
        changes["rubric"] = None
    elif scores or guidelines is not None:
        changes["rubric"] = _own_rubric(_find_queue(name, desk), scores, guidelines)
    filters = case_filter.model_dump(exclude_defaults=True)
    if all_cases and filters:
        raise click.UsageError("Use either --all-cases or filters.")
    if all_cases or filters:
        changes["cases"] = _member_filters(filters, _find_queue(name, desk), desk)
    if not changes:
        raise click.UsageError("Name what to change, such as --reviewers 2.")
    queue = desk.change_queue(name, **changes)
    emit(queue, [f"{queue.name}: version {queue.version} is in force. {policy_text(queue)}."])


def _own_rubric(row: QueueFigures, scores: Names, guidelines: Path | None) -> Rubric:
    """Return the rubric of a queue with other scores or guidelines."""
    rubric = row.queue.rubric or Rubric()
    try:
        content = {"scores": read_scores("\n".join(scores))} if scores else {}
    except ValidationError as error:
        raise click.BadParameter(
            f"It isn't a score. {RUBRIC_HELP}", param_hint="--score"
        ) from error
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--score") from error
    rubric = rubric.model_copy(update=content)
    if guidelines is not None:
        with shared.spool_stdin(guidelines) as path:
            text = path.read_text(encoding="utf-8").strip()
        rubric = rubric.model_copy(update={"guidelines": text})
    return rubric


def _member_filters(filters: dict[str, Any], row: QueueFigures, desk: Desk) -> dict[str, Any]:
    """Return the filters that can fill a queue, with its order; all cases for none."""
    left_out = _preview_queue(filters, desk).left_out if filters else ()
    kept = {name: value for name, value in filters.items() if name not in left_out}
    if filters and not kept:
        raise click.UsageError("None of these filters can fill a queue. Use --field, for example.")
    order = row.queue.cases.model_dump(include={"order", "seed"}, exclude_defaults=True)
    return {**kept, **order}


@queues.command("archive", cls=Command, short_help="Close a queue. Its decisions are kept.")
@click.argument("name")
@click.option("--restore", is_flag=True, help="Open it again.")
@desk_options
@shared.json_option
def archive(name: str, restore: bool, desk: Desk, emit: Emit) -> None:
    """Close the queue NAME, so that nothing is decided in it anymore. Its decisions are kept.

    masis queues archive Legal
    masis queues archive Legal --restore
    """
    queue = desk.change_queue(name, archived=not restore)
    emit(queue, [f"{queue.name} is {'archived' if queue.archived else 'open again'}."])
