"""``masis purge``: remove what is past its time, and record that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from masis.cli.group import INTERRUPTED
from masis.cli.options import confirm_removal, database_option, open_existing, operator
from masis.cli.output import Interruption, Progress, printable, say
from masis.integrations.dspy import programs
from masis.schema.retention import Parts, Purge, PurgePlan, RetentionRule
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.retention import Purged, rule_of
from masis.settings.reference import option_help
from masis.views.numbers import file_size, moment


@click.command()
@click.option(
    "--older-than",
    type=click.IntRange(0, 36_500),
    metavar="DAYS",
    help=option_help("retention_days", "What ended longer ago than this; 0: all that has ended."),
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--include-decided", is_flag=True, help="Also what people's decisions are about. The decisions stay.")
@click.option("--keep-waiting", is_flag=True, help="Keep audits that need review, however old.")
@click.option("--shrink/--no-shrink", default=True, show_default=True, help="Give the room back to the disk.")
@click.option("--list", "listed", is_flag=True, help="Name every run and screening, not only how many.")
@click.option("--history", is_flag=True, help="Show what was removed so far, and by whom.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--by", metavar="NAME", help="Who removes it, for the record. Default: the name you are logged in with.")
@database_option
@click.pass_context
def purge(
    context: click.Context,
    older_than: int | None,
    dry_run: bool,
    yes: bool,
    include_decided: bool,
    keep_waiting: bool,
    shrink: bool,
    listed: bool,
    history: bool,
    as_json: bool,
    by: str | None,
    db: Path | None,
) -> None:
    """Remove audits and screenings that are past their time: their results, iterations, drafts, events and grades.

    What people decided on stays unless you say otherwise; what needs review is removed, and named, unless you keep
    it. Cases, corpora, decisions, the metrics of every audit and the execution log always stay. What was
    removed is recorded, without its texts.

    \b
      masis purge --dry-run                      what would be removed?
      masis purge --older-than 90
      masis purge --yes --json                   for a job that runs every night
      masis purge --history

    Exit code 0: done, or nothing to do. 1: it could not be done, or you said no. 2: wrong use. 130: interrupted; what
    was removed by then is recorded.
    """  # noqa: D301 (click reads the backspace)
    workbench = open_existing(db)
    if history:
        _show_history(workbench, as_json=as_json, listed=listed)
        return
    days = workbench.settings.retention_days if older_than is None else older_than
    if older_than is None and not days:
        say("retention_days is 0: nothing is removed for its age. Name an age with --older-than.")
        if as_json:
            click.echo(json.dumps({"removed": None}))
        return
    rule = rule_of(days, decided=include_decided, waiting=not keep_waiting)
    plan = workbench.store.retention.plan(rule)
    if not as_json:
        _show_plan(workbench, plan, listed=listed)
    if dry_run or not plan.goes:
        if as_json:
            result = {"plan": plan_json(plan), "removed": None, "programs": _programs(workbench, rule)}
            click.echo(json.dumps(result, ensure_ascii=False))
        say("Nothing was removed: this was a dry run." if dry_run else "There is nothing to remove.")
        return
    if not yes:
        confirm_removal("Remove this for good?")
    with Interruption("Stopping after the batch under way.") as stop, Progress("Removing", len(plan.goes)) as progress:
        done = workbench.retention.purge(
            operator(by),
            rule,
            how="command",
            on_batch=lambda to: progress.move(to, counted(to, "record")),
            stopped=lambda: stop.asked,
            shrink=shrink,
        )
    _show_done(workbench, plan, done, as_json=as_json)
    if stop.asked:
        say("Interrupted. The same command goes on from here.")
        context.exit(INTERRUPTED)


def _show_plan(workbench: Workbench, plan: PurgePlan, *, listed: bool) -> None:
    rule = plan.rule
    click.echo(f"{rule_words(rule)}, of {counted(plan.runs_in_all, 'run')}")
    click.echo(f"  goes   {amount_words(plan.runs, plan.screenings, plan.parts, plan.bytes)}")
    if plan.waiting:
        click.echo(f"         {counted(plan.waiting, 'of them', 'of them')} needing review; --keep-waiting keeps those")
    for line in kept_lines(plan):
        click.echo(f"  stays  {line}")
    click.echo(f"  stays  cases, decisions, metrics of every audit, the execution log; {workbench.database}")
    if texts := _programs(workbench, plan.rule):
        folder = programs.folder(workbench.settings.programs_folder)
        names = (
            f"{counted(len(texts), 'compiled critic or reviser', 'compiled critics or revisers')}: {', '.join(texts)}"
        )
        click.echo(printable(f"  stays  {names}"))
        click.echo(printable(f"         which may hold texts of cases; delete files that are not in use from {folder}"))
    for each in plan.goes if listed else ():
        if each.id:
            name = f"{each.kind} {each.id}  ended {each.ended_at[:19]}  {each.about[:80]}"
            click.echo(f"  - {printable(name)}")


def _programs(workbench: Workbench, rule: RetentionRule) -> list[str]:
    """Return the compiled programs past their time, which no rule removes: a person checks whether they are in use."""
    at = programs.folder(workbench.settings.programs_folder)
    return [each.string for each in programs.with_texts_from_before(at, rule.cutoff)]


def rule_words(rule: RetentionRule) -> str:
    """Return a rule as a heading."""
    age = f"older than {counted(rule.days, 'day')}" if rule.days else "all that has ended"
    return f"Ended before {moment(rule.cutoff)} UTC ({age})"


def kept_lines(plan: PurgePlan) -> list[str]:
    """Return what is old enough and stays all the same, and how it would be removed."""
    reasons = {
        "decided": "for what people decided (--include-decided removes that too)",
        "waiting": "since a person has yet to decide",
    }
    return [f"{counted(number, 'of these', 'of these')} {reasons[why]}" for why, number in plan.kept.items()]


def amount_words(runs: int, screenings: int, parts: Parts, size: int) -> str:
    """Return the amounts in words."""
    of_runs = [counted(parts.iterations, "iteration"), counted(parts.events, "event")]
    amounts = [f"{counted(runs, 'run')} ({', '.join(of_runs)})" if runs else ""]
    if screenings:
        amounts.append(f"{counted(screenings, 'screening')} ({counted(parts.abstracts, 'abstract')})")
    if parts.grades:
        amounts.append(counted(parts.grades, "grade"))
    return f"{', '.join(filter(None, amounts)) or 'nothing'}: {file_size(size)}"


def plan_json(plan: PurgePlan) -> dict[str, Any]:
    """Return a plan for programs: what ``--json`` prints and ``docs/running.md`` describes."""
    return {
        "rule": plan.rule.model_dump(),
        "runs": plan.runs,
        "screenings": plan.screenings,
        "parts": plan.parts.model_dump(),
        "bytes": plan.bytes,
        "waiting": plan.waiting,
        "kept": dict(plan.kept),
        "goes": [each.model_dump(include={"kind", "id", "ended_at", "bytes"}) for each in plan.goes],
    }


def _show_done(workbench: Workbench, plan: PurgePlan, done: Purged, *, as_json: bool) -> None:
    if as_json:
        removed = done.purge.model_dump() if done.purge else None
        file = done.shrunk.model_dump() if done.shrunk else None
        result = {"plan": plan_json(plan), "removed": removed, "file": file}
        click.echo(json.dumps(result | {"programs": _programs(workbench, plan.rule)}, ensure_ascii=False))
    elif done.purge is not None:
        gone = done.purge
        amount = amount_words(gone.runs, gone.screenings, gone.parts, gone.bytes)
        click.echo(f"Removed as purge {gone.seq}: {amount}.")
    if done.purge is not None and done.purge.runs < plan.runs:
        say(f"{counted(plan.runs - done.purge.runs, 'run')} stayed: decided, resumed, or left when it was stopped.")
    if done.lingers:
        say(f"Another program still reads it as it was: until that ends {workbench.database}-wal holds what went.")
    if (shrunk := done.shrunk) is not None:
        size = f"{file_size(shrunk.before)} before, {file_size(shrunk.after)} now"
        why = f"; it did not give all room back: {shrunk.why_not}" if shrunk.why_not else ""
        say(f"{workbench.database}: {size}{why}.")


def _show_history(workbench: Workbench, *, as_json: bool, listed: bool) -> None:
    purges = workbench.store.purges.history()
    if as_json:
        click.echo(json.dumps({"purges": [_purge_json(workbench, each, listed) for each in purges]}))
        return
    if not purges:
        say("Nothing has been removed so far.")
    for each in purges:
        amount = amount_words(each.runs, each.screenings, each.parts, each.bytes)
        click.echo(printable(f"purge {each.seq}  {each.at[:19]}  by {each.by} ({each.how})  {amount}"))
        click.echo(f"         {rule_words(each.rule)}{each.rule.departures}")
        for removal in workbench.store.purges.removals(each.seq) if listed else ():
            click.echo(printable(f"  - {removal.kind} {removal.id}  sha256 {removal.digest}"))


def _purge_json(workbench: Workbench, purge: Purge, listed: bool) -> dict[str, Any]:
    removed = [each.model_dump() for each in workbench.store.purges.removals(purge.seq)] if listed else None
    return purge.model_dump() | ({"removed": removed} if removed is not None else {})
