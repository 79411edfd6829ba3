"""``masis audit --engine ray``: the same audits on Ray, into a folder of Parquet files; run again, it goes on."""

from __future__ import annotations

import time
from typing import NamedTuple

import click

from masis.api.roles import unpriced_models
from masis.cli.group import INTERRUPTED, JobFailed
from masis.cli.log import measured
from masis.cli.output import ErrorReport, Interruption, Progress, printable, say
from masis.datasets.lake_repeats import Repeats, repeated_ids
from masis.datasets.mapping import Profile
from masis.errors import InputError
from masis.integrations.ray import RayAudit, Report, Totals, audit_on_ray
from masis.schema.wording import counted
from masis.settings import Settings
from masis.views.numbers import dollars, duration


def run(
    context: click.Context,
    cases: str,
    out: str | object,
    settings: Settings,
    profile: Profile | None,
    address: str | None,
    workers: int | None,
    max_cost: float | None,
) -> None:
    """Audit what is not audited yet, with progress, and say what was done."""
    if cases == "-" or not isinstance(out, str) or out == "-":
        raise click.UsageError("--engine ray: name a file or a folder to read, and with --out a folder to write.")
    if max_cost is not None and (unpriced := unpriced_models(settings)):
        raise click.UsageError(f"--max-cost: no price is known for {', '.join(unpriced)} (docs/models.md).")
    job = RayAudit(cases, out, settings, profile, address, workers, max_cost)
    began = time.monotonic()
    with (
        measured(settings),
        Interruption("Stopping after the audits under way (Ctrl-C again to drop them).") as stop,
        Progress("Auditing", None) as progress,
    ):
        errors = ErrorReport(progress)

        def watch(totals: Totals, total: int, before: int) -> bool:
            progress.move(before + totals.size, pace(totals, total - before, time.monotonic() - began).note())
            return stop.asked

        try:
            report = audit_on_ray(job, watch, errors.add)
        except InputError as error:
            raise click.UsageError(printable(str(error))) from error
    _say_end(report, out, time.monotonic() - began)
    if report.complete and report.totals.cases:
        say_repeats(repeated_ids(out))
    if stop.asked and not report.complete:
        say("Interrupted. What is finished is written; the same command goes on from here.")
        context.exit(INTERRUPTED)
    if report.totals.failed:
        raise JobFailed(f"{counted(report.totals.failed, 'case')} could not be audited: see outcome=failed in {out}.")
    if not report.complete and not report.totals.exhausted:
        raise JobFailed("Not everything was audited. The same command goes on from here.")


class Pace(NamedTuple):
    """How far a job is, and how fast: cases a second, and seconds left; None where nothing was written yet."""

    totals: Totals
    rate: float
    left_s: float | None

    def note(self) -> str:
        """Return that in words."""
        cost = f", {dollars(self.totals.cost_usd)}" if self.totals.calls else ""
        left = "" if self.left_s is None else f", about {duration(self.left_s * 1000)} left"
        failed = f", {self.totals.failed:,} failed" if self.totals.failed else ""
        return f"{self.totals.cases:,} audited, {self.rate:.1f} a second{cost}{failed}{left}"


def pace(totals: Totals, size: int, seconds: float) -> Pace:
    """Return the pace of a job that has ``size`` bytes of input to audit and has run for so long."""
    left = seconds * (size - totals.size) / totals.size if totals.size else None
    return Pace(totals, totals.cases / max(seconds, 1e-9), left)


def say_repeats(found: Repeats) -> None:
    """Name the ids that occur in several rows, with their rows; nothing where there are none."""
    if not found.total:
        return
    say(f"{counted(found.total, 'id occurs', 'ids occur')} in several rows; each row was audited:")
    for each in found.named:
        rows = "; ".join(
            f"{source}, row {row}{f' from {offset:,}' if offset else ''}" for source, offset, row in each.rows
        )
        say(printable(f"  {each.case_id}: {rows}"))
    if found.total > len(found.named):
        say(f"  and {found.total - len(found.named):,} more")
    say("A desk takes one case of an id: give each an id of its own before you import.")


def _say_end(report: Report, out: str, seconds: float) -> None:
    totals = report.totals
    if not totals.cases and report.complete:
        say("Everything was audited before.")
    else:
        say(
            f"{counted(totals.cases, 'case')} in {duration(seconds * 1000)} ({totals.cases / max(seconds, 1e-9):.1f} a "
            f"second): {totals.accepted:,} auto-accepted, {totals.needs_review:,} need review, "
            f"{totals.failed:,} failed."
        )
    if totals.incomplete:
        say(f"{counted(totals.incomplete, 'audit')} left something unscored after a failure: the column incomplete.")
    if totals.calls:
        say(f"{totals.calls:,} calls, {totals.tokens:,} tokens, {dollars(totals.cost_usd)}.")
    if totals.exhausted:
        say("The limit of --max-cost was reached: the same command with a higher one goes on from here.")
    say(f"Audits: {out}")
