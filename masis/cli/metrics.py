"""``masis metrics``: how often answers hallucinate, how long audits take, what they cost; by period and by model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import click

from masis.cli.options import database_option, open_existing, places_argument
from masis.cli.output import printable
from masis.schema.wording import counted
from masis.services.lake import MissRate, is_lake
from masis.services.records import Distribution, MeasureFilter, MetricsReport, Period, Rates
from masis.settings import ROLES, Role
from masis.views.metrics import RATES, SPREADS, Spread, period_name, share_of
from masis.views.numbers import dollars, duration, in_unit
from masis.views.words import model_words


class Day(click.ParamType[date]):
    """A day as ``2026-11-21``, or so many days ago as ``30d``."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Return the day; wrong use where it is none."""
        if isinstance(value, date):
            return value
        ago = value.removesuffix("d")
        if value.endswith("d") and ago.isascii() and ago.isdigit() and len(ago) < 6:
            return datetime.now(UTC).date() - timedelta(days=int(ago))
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{printable(value[:40])}: write a day as 2026-11-21, or 30d for thirty days ago.", param, ctx)


@click.command()
@places_argument("place", required=False, metavar="[DIR]")
@click.option("--since", type=Day(), metavar="DAY", help="Runs that finished on this day (UTC) or later, or 30d.")
@click.option("--until", type=Day(), metavar="DAY", help="Runs that finished on this day or before.")
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
    default="week",
    show_default=True,
    help="The periods that rates are given for; a week begins on Monday.",
)
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="critic",
    show_default=True,
    help="The role by whose model runs are grouped.",
)
@click.option("--model", "models", metavar="MODEL", multiple=True, help="Only runs with this model. May be repeated.")
@click.option("--dataset", "datasets", metavar="NAME", multiple=True, help="Only cases of this data set.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@database_option
def metrics(
    place: Path | str | None,
    since: date | None,
    until: date | None,
    by: str,
    role: str,
    models: tuple[str, ...],
    datasets: tuple[str, ...],
    as_json: bool,
    db: Path | None,
) -> None:
    """Show the metrics of the audits: rates, times, scores and costs of the finished runs.

    With DIR, a folder of audited cases ('masis audit --engine ray --out'), they are read straight from its Parquet
    files, and no database is opened.

    \b
      masis metrics
      masis metrics audited/ --by day
      masis metrics --since 30d --by day
      masis metrics --model openai:gpt-4o --json | jq .total.critique_hallucination_rate
    """  # noqa: D301 (click reads the backspace)
    if since and until and until < since:
        raise click.UsageError("--until lies before --since.")
    wanted = MeasureFilter(
        since=since.isoformat() if since else None,
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        role=cast("Role", role),
        models=models,
        datasets=datasets,
    )
    period = cast("Period", by)
    if place is not None:
        if db is not None:
            raise click.UsageError("DIR is read without a database: leave out one of the two.")
        _show_lake(str(place), wanted, period, as_json=as_json)
        return
    workbench = open_existing(db)
    found, missed = workbench.metrics.report(wanted, period), workbench.lake.miss_rates()
    if as_json:
        samples = [{**each._asdict(), "sample": each.sample.model_dump()} for each in missed]
        click.echo(json.dumps(found.model_dump(mode="json", exclude={"wanted"}) | {"samples": samples}))
        return
    for line in (*lines(found), *_sample_lines(missed)):
        click.echo(printable(line))


def _show_lake(place: str, wanted: MeasureFilter, period: Period, *, as_json: bool) -> None:
    """Print the figures of a folder of audited cases. Raises BadParameter where it is none."""
    if not is_lake(place):
        raise click.BadParameter(f"{printable(place)}: holds no audited cases.", param_hint="'[DIR]'")
    from masis.datasets.lake_figures import lake_figures  # pandas takes longer to import than most figures to read

    found = lake_figures(place, wanted, period)
    report = MetricsReport(
        wanted=wanted,
        period=period,
        **found.rates._asdict(),
        distributions=found.distributions,
    )
    if as_json:
        figures = report.model_dump(mode="json", exclude={"wanted"})
        click.echo(json.dumps({"outcomes": found.outcomes, **figures}))
        return
    rows = sum(found.outcomes.values())
    parts = [f"{number:,} {name.replace('_', ' ')} ({number / rows:.1%})" for name, number in found.outcomes.items()]
    click.echo(f"{counted(rows, 'case')}: {', '.join(parts)}" if rows else "No case matches.")
    for line in lines(report):
        click.echo(printable(line))


def _sample_lines(missed: Iterable[MissRate]) -> Iterable[str]:
    """Yield what the decisions on each sample say of what was auto-accepted."""
    for each in missed:
        sample = each.sample
        yield ""
        yield (
            f"Sample of {sample.place}: {sample.drawn:,} of {sample.accepted:,} auto-accepted "
            f"(share {sample.share:.2%}, seed {sample.seed}); "
            f"{each.present:,} here, {each.decided:,} decided, {each.wrong:,} of them wrong."
        )
        if each.low is not None and each.high is not None:
            yield (
                f"Miss rate: {each.wrong / each.decided:.1%} of what was auto-accepted (95% interval {each.low:.1%} to "
                f"{each.high:.1%}), {each.low * sample.accepted:,.0f} to {each.high * sample.accepted:,.0f} answers."
            )


def lines(found: MetricsReport) -> Iterable[str]:
    """Yield the report for people, line by line."""
    total = found.total
    if not total.runs:
        yield "No finished run matches."
        return
    yield counted(total.runs, "run")
    yield ""
    yield from _table(
        ("", "runs", *(words.title.lower() for words in RATES.values()), "mean time", "tokens", "cost"),
        [
            _rates_row("all", total),
            *(_rates_row(period_name(found.period, each.name or ""), each) for each in found.periods),
            *(
                _rates_row(f"{found.wanted.role} {model_words(each.name or '(unknown)')}", each)
                for each in found.models
            ),
        ],
    )
    yield ""
    yield from _table(
        ("", "count", "mean", "p50", "p95", "most", "95% under"),
        [_spread_row(each, SPREADS[each.measure]) for each in found.distributions if each.count],
    )


def _rates_row(name: str, rates: Rates) -> list[str]:
    return [
        name,
        f"{rates.runs:,}",
        *(share_of(rates, rate).percent for rate in RATES),
        duration(rates.critique_latency_ms),
        f"{rates.input_tokens + rates.output_tokens:,}",
        dollars(rates.cost_usd),
    ]


def _spread_row(each: Distribution, spread: Spread) -> list[str]:
    write = in_unit(spread.unit)
    limit = ""
    if spread.limit is not None and each.p95 is not None:
        limit = f"{write(spread.limit)} {'met' if each.p95 <= spread.limit else 'MISSED'}"
    return [spread.title, f"{each.count:,}", *map(write, (each.mean, each.p50, each.p95, each.most)), limit]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    for row in (titles, *rows):
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()
