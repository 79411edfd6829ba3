"""``masis db reassess``: what the current acceptance rule makes of stored audits."""

from __future__ import annotations

import json
from pathlib import Path

import click

from masis.audit.acceptance import RULE_VERSION
from masis.cli.group import INTERRUPTED
from masis.cli.options import confirm_removal, database_option, open_existing, operator
from masis.cli.output import Interruption, Progress, say
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.reassessment import Reassessment, in_words


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--again", is_flag=True, help="Also what the current rule has judged, if thresholds have changed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--by", metavar="NAME", help="Who asks, for the record. Default: the name you are logged in with.")
@database_option
@click.pass_context
def reassess(
    context: click.Context, dry_run: bool, yes: bool, again: bool, as_json: bool, by: str | None, db: Path | None
) -> None:
    """Recompute from stored iterations whether answers need review, by the current acceptance rule and thresholds.

    Nothing is audited again, no model is asked, and no entry of the log is rewritten: an answer that is no longer
    accepted gets an entry that undoes its acceptance and says why, one that is accepted now gets an entry of its own.
    What a person has decided or undone stays as it is. docs/acceptance.md states the rule.

    \b
      masis db reassess --dry-run                   what would change?
      masis db reassess                             shows it, asks, and does it
      masis db reassess --again --yes               after review_threshold was changed

    Exit code 0: done, or nothing to do. 1: it could not be done, or you said no. 2: wrong use. 130: interrupted; what
    was reassessed by then stays, and the same command goes on from there.
    """  # noqa: D301 (click reads the backspace)
    workbench = open_existing(db)
    planned = _reassessed(context, workbench, "Looking", by=by, apply=False, again=again)
    _show(planned, as_json=as_json and (dry_run or not planned.total))
    if dry_run or not planned.total:
        say("Nothing was changed: this was a dry run." if dry_run else "There is nothing to reassess.")
        return
    if not yes:
        confirm_removal(f"Reassess {counted(planned.total, 'case')} by rule {RULE_VERSION}?", "Nothing was changed.")
    _show(_reassessed(context, workbench, "Reassessing", by=by, apply=True, again=again), as_json=as_json)


def _reassessed(
    context: click.Context, workbench: Workbench, title: str, *, by: str | None, apply: bool, again: bool
) -> Reassessment:
    service = workbench.reassessment
    waiting = service.waiting(again=again)
    with Interruption("Stopping after the batch under way.") as stop, Progress(title, waiting) as progress:
        found = service.run(
            operator(by),
            apply=apply,
            again=again,
            on_progress=lambda so_far: progress.move(so_far.done, counted(so_far.changed, "change")),
            stopped=lambda: stop.asked,
        )
    if stop.asked:
        _show(found, as_json=False)
        say("Interrupted. The same command goes on from here.")
        context.exit(INTERRUPTED)
    return found


def _show(found: Reassessment, *, as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                {
                    "rule": found.rule,
                    "applied": found.applied,
                    "cases": found.total,
                    "accepted_to_needs_review": found.to_review,
                    "needs_review_to_accepted": found.to_accepted,
                    "left": found.left,
                    "reasons": dict(found.reasons.most_common()),
                }
            )
        )
        return
    for line in in_words(found):
        say(line)
    for code, count in found.reasons.most_common():
        say(f"  {code}: {count:,}")
