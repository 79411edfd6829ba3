"""``masis batch``: preview, apply, undo and list actions on many cases."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import click

from masis.cli import options as shared
from masis.cli.commands import Command, CommandGroup, JobFailed, RegisteredChoice
from masis.cli.options import Body, Names
from masis.cli.output import Emit, Interruption, ProgressBar, say, table
from masis.cli.remote import desk_options
from masis.schema.batches import Batch
from masis.schema.wording import count_noun, shorten
from masis.services.batch_actions import ACTIONS
from masis.services.batches import BatchPreview
from masis.services.cases import WAITING
from masis.services.desk import FILTERS, Desk
from masis.services.records import CaseFilter
from masis.views.batch_words import LEFT_OUT, batch_result, left_out_lines


@click.group(cls=CommandGroup)
def batch() -> None:
    """Approve, reject, tag or assign many cases at once, and undo that.

    Each case gets its own entry in the decision log, by the rules for one case.

      masis batch preview approve --field Medicine
      masis batch apply reject --case bridge-01 --case bridge-02 --why unsupported
      masis batch undo b41c7d
    """


def action_names() -> list[str]:
    """Return the actions that a command can name. A label is given by ``masis label``."""
    return [name for name, action in ACTIONS.items() if "label" not in action.needs]


def request_options(command: Body) -> Body:
    """Add ACTION, its values and the filters, passed as ``action`` and ``values``."""

    @click.argument("action", type=RegisteredChoice(action_names))
    @click.option(
        "--case",
        "cases",
        multiple=True,
        metavar="CASE",
        help="This case; can be repeated. Without it, all cases that the filters choose.",
    )
    @click.option(
        "--why",
        default="",
        metavar="CODE|TEXT",
        help="With reject and approve: the reason, as for 'masis decide --reason'.",
    )
    @click.option("--note", default="", help="A note to record with each decision.")
    @click.option(
        "--name",
        "names",
        multiple=True,
        metavar="NAME",
        help="With tag and untag: the tag. With assign: the reviewer. Can be repeated.",
    )
    @click.option(
        "--acknowledge",
        is_flag=True,
        help="With approve: confirm that you have read the serious issues that 'masis batch"
        " preview' lists.",
    )
    @shared.filter_options("cases that need a decision", WAITING)
    @functools.wraps(command)
    def call(
        action: str,
        cases: Names,
        why: str,
        note: str,
        names: Names,
        acknowledge: bool,
        case_filter: CaseFilter,
        **arguments: Any,
    ) -> None:
        values: dict[str, Any] = {
            "reason": why,
            "note": note,
            "names": names,
            "acknowledge": acknowledge,
        }
        chosen = case_filter.model_dump(exclude_defaults=True, include=set(FILTERS))
        if cases and chosen != {"states": WAITING}:
            raise click.UsageError("Name cases with --case, or use filters, but not both.")
        if not cases:
            values |= {"states": (), **chosen}
        command(action=action, values={"cases": cases, **values}, **arguments)

    return call


@batch.command(cls=Command, short_help="Show what an action on many cases would do.")
@request_options
@desk_options
@shared.json_option
def preview(action: str, values: dict[str, Any], desk: Desk, emit: Emit) -> None:
    """Show what ACTION would do on many cases, and which cases it would leave out and why.

    Nothing is recorded.

      masis batch preview approve --field Medicine
      masis batch preview tag --name bridges --search bridge --json
    """
    found = desk.preview_batch(action, **values)
    emit(found, _preview_lines(found))


def _preview_lines(found: BatchPreview) -> Iterator[str]:
    title = ACTIONS[found.action].title
    yield f"{title}: {found.included:,} of {count_noun(found.total, 'case')}"
    for why, cases in found.left_out.items():
        ids = ", ".join(cases.examples) + (", ..." if cases.count > len(cases.examples) else "")
        yield f"  left out {cases.count:,}: {LEFT_OUT[why]} ({ids})"
    if found.serious:
        yield ""
        yield "Serious issues that an approval would leave open (--acknowledge)"
    for case in found.serious:
        yield f"  {case.case_id}  {shorten(case.query, 80)}"
        yield from (f"    {shorten(' '.join(issue.split()), 240)}" for issue in case.issues)


@batch.command(cls=Command, short_help="Apply an action to many cases, and record it for each.")
@request_options
@shared.yes_option
@desk_options
@shared.json_option
def apply(action: str, values: dict[str, Any], yes: bool, desk: Desk, emit: Emit) -> None:
    """Apply ACTION to many cases after a preview. Each case gets its own entry in the log.

    A case that is refused doesn't affect the others. Under a blind policy, only cases that you have
    opened are decided. Ctrl-C stops after the current cases; recorded entries are kept.

      masis batch apply tag --name bridges --search bridge
      masis batch apply approve --field Medicine --quality 0.9-1
      masis batch apply reject --case bridge-01 --case bridge-02 --why unsupported --yes
      masis batch apply reject --similar-to bridge-01 --why "The same answer as bridge-01."

    Exit code 0: recorded. 1: no case could be included, or some were refused; the message says why.
    2: wrong usage.
    """
    found = desk.preview_batch(action, **values)
    if not yes:
        for line in _preview_lines(found):
            say(line)
    if found.included:
        question = f"{ACTIONS[action].title} {count_noun(found.included, 'case')}?"
        shared.confirm(question, "Nothing was recorded.", yes=yes)
    with Interruption() as stop, ProgressBar(ACTIONS[action].title, found.included) as progress:
        done = desk.apply_batch(
            action,
            **values,
            expected=found.digest,
            progress=lambda batch: progress.move(max(0, found.included - batch.left)),
            cancelled=stop.is_stopped,
        )
    _report(done, emit)


def _report(done: Batch, emit: Emit) -> None:
    emit(done, [batch_result(done, ACTIONS[done.action].done), *left_out_lines(done.kept)])
    say(f"The batch is {done.id}. Undo it with 'masis batch undo {done.id}'.")
    if done.state == "cancelled":
        raise JobFailed("Stopped. Recorded entries are kept.")
    if refused := sum(done.kept.get(why, 0) for why in ("refused", "changed")):
        raise JobFailed(f"{count_noun(refused, 'case')} refused, for the reasons listed above.")


@batch.command(cls=Command, short_help="Undo all entries of a batch.")
@click.argument("batch_id", metavar="BATCH")
@desk_options
@shared.json_option
def undo(batch_id: str, desk: Desk, emit: Emit) -> None:
    """Undo the entries of BATCH, each by a further entry. 'masis batch list' shows the ids.

    An entry stays if a later one has replaced it, or if several reviewers have settled its case.

    masis batch undo b41c7d
    """
    with ProgressBar("Undoing") as progress:
        done = desk.undo_batch(batch_id, lambda made: progress.move(made.undone))
    emit(done, [batch_result(done, ""), *left_out_lines(done.not_undone)])


@batch.command("list", cls=Command, short_help="List the newest batches.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many batches to list.",
)
@desk_options
@shared.json_option
def list_batches(limit: int, desk: Desk, emit: Emit) -> None:
    """List the newest batches with their entries, newest first.

    masis batch list
    """
    batches = desk.list_batches(limit=limit)
    if not batches:
        say("There are no batches. Make one with 'masis batch apply'.")
    rows = [
        (
            batch.id,
            batch.at[:16],
            batch.by,
            batch.action,
            ", ".join(batch.names),
            _count_entries(batch),
        )
        for batch in batches
    ]
    emit(list(batches), table(("batch", "time", "by", "action", "names", "entries"), rows))


def _count_entries(batch: Batch) -> str:
    undone = f", {batch.undone:,} undone" if batch.undone else ""
    waiting = f", {batch.waiting:,} waiting" if batch.waiting else ""
    return f"{batch.recorded:,}{undone}{waiting}"
