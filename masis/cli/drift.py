"""``masis screening drift``: what screening has learned from people and itself: drift and the acceptance memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from masis.cli.options import database_option, open_existing
from masis.cli.output import printable
from masis.schema.wording import counted
from masis.services.screening import DriftSeries, MemoryView


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
@database_option
def drift(as_json: bool, db: Path | None) -> None:
    """Show whether people change grades of abstracts more often than before, and what the acceptance memory holds.

    A judgement is a grade that a person changed or agreed with. For each grader and each reviewer a cumulative sum
    over them says whether the share that is changed has drifted; 60 judgements are the baseline. docs/screening.md has
    the test, and what memory can change. Memory is switched on by the setting screening_memory.

    \b
      masis screening drift
      masis screening drift --json --db review.db

    Exit code 0: shown, whether anything drifted or not. 2: wrong use.
    """  # noqa: D301 (click reads the backspace)
    screenings = open_existing(db).screenings
    series, memory = screenings.drifts(), screenings.memory()
    if as_json:
        click.echo(json.dumps(_record(series, memory), ensure_ascii=False))
        return
    if not series:
        click.echo("No grade has been changed or agreed with yet: there is no drift to look for.")
    for each in series:
        click.echo(printable(f"{each.who}: {each.what}. {each.drift.why}"))
    state = "on" if memory.on else "off"
    click.echo(
        f"Acceptance memory ({state}): {counted(len(memory.entries), 'acceptance')}. {memory.shift.why} "
        f"{'It changes' if memory.on else 'Switched on, it would change'} what is required by {memory.shift.by:+.3f}."
    )


def _record(series: tuple[DriftSeries, ...], memory: MemoryView) -> dict[str, Any]:
    return {
        "drift": [
            {
                "who": each.who,
                "judgements": len(each.drift.points),
                "disagreements": int(sum(point.value for point in each.drift.points)),
                "usual": each.drift.usual,
                "alarms": [number + 1 for number in each.drift.alarms],
                "direction": each.drift.direction,
                "why": each.drift.why,
            }
            for each in series
        ],
        "memory": {
            "on": memory.on,
            "acceptances": len(memory.entries),
            "shift": memory.shift.by,
            "why": memory.shift.why,
        },
    }
