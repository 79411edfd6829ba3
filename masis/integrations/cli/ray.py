"""``masis audit --engine ray`` runs the same audits on Ray and writes Parquet files.

Running the same command again audits the cases that aren't audited yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from masis.api.roles import unpriced_models
from masis.cli.commands import JobFailed, end_interrupted
from masis.cli.options import FileOptions
from masis.cli.output import ErrorReport, Interruption, ProgressBar, say
from masis.datasets.lake import Repeats, repeated_ids
from masis.errors import InputError
from masis.integrations.ray import RayAudit, Totals, audit_on_ray
from masis.observers.telemetry import send_telemetry
from masis.schema.wording import count_noun
from masis.settings import Settings
from masis.views.numbers import dollars, duration


def run_ray_audit(
    cases: str,
    out: str | None,
    settings: Settings,
    reading: FileOptions,
    address: str | None,
    workers: int | None,
    max_cost: float | None,
) -> None:
    """Audit the cases that aren't audited yet, show progress, and report the result."""
    if reading.names or isinstance(reading.profile, str):
        raise click.UsageError(
            "--map FIELD=KEY doesn't work with --engine ray. Write the keys to a TOML file and"
            " pass it with --map FILE."
        )
    if reading.system is not None:
        raise click.UsageError(
            '--system doesn\'t work with --engine ray. Name the system in each row: "system": "v2".'
        )
    if cases == "-" or out in (None, "-"):
        raise click.UsageError(
            "--engine ray needs a file or folder to read, and --out with a folder to write."
        )
    if max_cost is not None and (unpriced := unpriced_models(settings)):
        raise click.UsageError(
            f"--max-cost: the price is unknown for {', '.join(unpriced)} (docs/models.md)."
        )
    # checked above, in a way that mypy can't follow
    assert out is not None
    job, began = (
        RayAudit(cases, out, settings, reading.profile, address, workers, max_cost),
        time.monotonic(),
    )
    with (
        send_telemetry(settings),
        Interruption("Stopping after the audits in progress (Ctrl-C again to drop them).") as stop,
        ProgressBar("Auditing") as progress,
    ):
        errors = ErrorReport()

        def watch(totals: Totals, total: int, before: int) -> bool:
            progress.move(
                before + totals.size, pace(totals, total - before, time.monotonic() - began)
            )
            return stop.asked

        try:
            report = audit_on_ray(job, watch, errors.add)
        except InputError as error:
            raise click.UsageError(str(error)) from error
    totals, seconds = report.totals, time.monotonic() - began
    if not totals.cases and report.complete:
        say("All cases were already audited.")
    else:
        # The lower limit avoids a division by zero.
        speed = f"{duration(seconds * 1000)} ({totals.cases / max(seconds, 1e-9):.1f} a second)"
        outcomes = (
            f"{totals.accepted:,} auto-accepted, {totals.needs_review:,} need review,"
            f" {totals.failed:,} failed"
        )
        say(f"{count_noun(totals.cases, 'case')} in {speed}: {outcomes}.")
    if totals.incomplete:
        say(
            f"{count_noun(totals.incomplete, 'audit')} partly unscored because something failed;"
            " see the column incomplete."
        )
    if totals.calls:
        say(f"{totals.calls:,} calls, {totals.tokens:,} tokens, {dollars(totals.cost_usd)}.")
    if totals.exhausted:
        say(
            "The --max-cost limit was reached. Run the same command with a higher limit to"
            " continue."
        )
    say(f"Audits: {out}")
    if report.complete and totals.cases:
        for line in repeats(repeated_ids(out)):
            say(line)
    if stop.asked and not report.complete:
        end_interrupted(
            "Interrupted. Finished audits are written. Run the same command again to continue."
        )
    if totals.failed:
        raise JobFailed(
            f"{count_noun(totals.failed, 'case')} couldn't be audited. See outcome=failed in {out}."
        )
    if not report.complete and not totals.exhausted:
        raise JobFailed("Some cases weren't audited. Run the same command again to continue.")


def pace(totals: Totals, size: int, seconds: float) -> str:
    """Describe the progress, speed and remaining time of a job with ``size`` bytes of input."""
    cost = f", {dollars(totals.cost_usd)}" if totals.calls else ""
    left = seconds * (size - totals.size) / totals.size if totals.size else None
    rest = "" if left is None else f", about {duration(left * 1000)} left"
    failed = f", {totals.failed:,} failed" if totals.failed else ""
    return (
        f"{totals.cases:,} audited, {totals.cases / max(seconds, 1e-9):.1f} a"
        f" second{cost}{failed}{rest}"
    )


def repeats(repeated: Repeats) -> Iterator[str]:
    """Yield lines that list the ids found in several rows, or nothing if all ids are unique."""
    if not repeated.total:
        return
    ids = count_noun(repeated.total, "id occurs", "ids occur")
    yield f"{ids} in several rows; each row was audited:"
    for case_id, places in repeated.named.items():
        rows = (
            f"{source}, row {row}{f' from {offset:,}' if offset else ''}"
            for source, offset, row in places
        )
        yield f"  {case_id}: {'; '.join(rows)}"
    if repeated.total > len(repeated.named):
        yield f"  and {repeated.total - len(repeated.named):,} more"
    yield "A database holds one case per id. Give each case its own id before you import them."
