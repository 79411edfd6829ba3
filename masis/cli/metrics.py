"""``masis metrics`` and ``masis trust``: what audits found, took and cost, and how far they may be
relied on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import click

from masis.cli import options as shared
from masis.cli.commands import argument, command, option
from masis.cli.options import Names, day
from masis.cli.output import Emit, plain, table
from masis.datasets.lake import is_lake
from masis.schema.wording import count_noun
from masis.services.arrivals.lake import MissRate
from masis.services.records import Distribution, MeasureFilter, MetricsReport, Period, Rates
from masis.services.trust.service import PeopleReport, TrustFilter
from masis.services.trust.summary import SIMULATED, figure_text, short_answers
from masis.settings import Role
from masis.trust.machine import MachineComparison
from masis.views.metrics import RATES, SPREADS, period_name, rate_share
from masis.views.numbers import dollars, duration, in_unit
from masis.views.words import model_words


def _day_after(until: date | None) -> str | None:
    """Return the first moment after a day; None for the last day there is."""
    return (until + timedelta(days=1)).isoformat() if until and until < date.max else None


@command()
def metrics(
    lake: str | None = argument(required=False, metavar="[DIR]", type=shared.place),
    since: date | None = option("Runs that finished on this day (UTC) or later, or 30d.", type=day),
    until: date | None = option("Runs that finished on this day or before.", type=day),
    by: Period = option(
        "The periods that rates are given for; a week begins on Monday.", default="week"
    ),
    role: Role = option("The role by whose model runs are grouped.", default="critic"),
    models: Names = option(
        "Only runs with this model. May be repeated.", "--model", metavar="MODEL"
    ),
    datasets: Names = shared.DATASET,
    emit: Emit = shared.EMIT,
    db: Path | None = shared.DATABASE,
) -> None:
    """Show the metrics of the audits: rates, times, scores and costs of the finished runs.

    With DIR, a folder of audited cases ('masis audit --engine ray --out'), they are read straight
    from its Parquet files, and no database is opened.

      masis metrics
      masis metrics audited/ --by day
      masis metrics --since 30d --by day
      masis metrics --model openai:gpt-4o --json | jq .total.critique_hallucination_rate
    """
    if since and until and until < since:
        raise click.UsageError("--until lies before --since.")
    first = since.isoformat() if since else None
    measure_filter = MeasureFilter(
        since=first, until=_day_after(until), role=role, models=models, datasets=datasets
    )
    if lake is None:
        workbench = shared.open_existing(db)
        found, missed = workbench.metrics.report(measure_filter, by), workbench.lake.miss_rates()
        record = found.model_dump(mode="json", exclude={"measure_filter"}) | {
            "samples": plain(missed)
        }
        emit(record, (*lines(found), *_sample_lines(missed)))
        return
    if db is not None:
        raise click.UsageError("DIR is read without a database: leave out one of the two.")
    if not is_lake(str(lake)):
        raise click.BadParameter(f"{lake}: holds no audited cases.", param_hint="'[DIR]'")
    from masis.datasets.lake_figures import lake_figures

    read = lake_figures(str(lake), measure_filter, by)
    found = MetricsReport(
        measure_filter=measure_filter,
        period=by,
        **read.rates._asdict(),
        distributions=read.distributions,
    )
    rows = sum(read.outcomes.values())
    parts = [
        f"{number:,} {name.replace('_', ' ')} ({number / rows:.1%})"
        for name, number in read.outcomes.items()
    ]
    head = f"{count_noun(rows, 'case')}: {', '.join(parts)}" if rows else "No case matches."
    record = {
        "outcomes": read.outcomes,
        **found.model_dump(mode="json", exclude={"measure_filter"}),
    }
    emit(record, (head, *lines(found)))


def _sample_lines(missed: Iterable[MissRate]) -> Iterator[str]:
    """Yield what the decisions on each sample say of what was auto-accepted."""
    for each in missed:
        sample = each.sample
        drawn = (
            f"{sample.drawn:,} of {sample.accepted:,} auto-accepted (share {sample.share:.2%}, seed"
            f" {sample.seed})"
        )
        decided = f"{each.present:,} here, {each.decided:,} decided, {each.wrong:,} of them wrong"
        yield from ("", f"Sample of {sample.place}: {drawn}; {decided}.")
        if each.low is not None and each.high is not None:
            yield (
                f"Miss rate: {each.wrong / each.decided:.1%} of what was auto-accepted (95%"
                f" interval {each.low:.1%} to {each.high:.1%}), {each.low * sample.accepted:,.0f}"
                f" to {each.high * sample.accepted:,.0f} answers."
            )


def lines(found: MetricsReport) -> Iterator[str]:
    """Yield the report for people, line by line."""
    total = found.total
    if not total.runs:
        yield "No finished run matches."
        return
    yield from (count_noun(total.runs, "run"), "")
    yield from table(
        (
            "",
            "runs",
            *(words.title.lower() for words in RATES.values()),
            "mean time",
            "tokens",
            "cost",
        ),
        [
            _rates_row("all", total),
            *(
                _rates_row(period_name(found.period, each.name or ""), each)
                for each in found.periods
            ),
            *(
                _rates_row(
                    f"{found.measure_filter.role} {model_words(each.name or '(unknown)')}", each
                )
                for each in found.models
            ),
        ],
        figures=True,
    )
    yield ""
    yield from table(
        ("", "count", "mean", "p50", "p95", "most", "95% under"),
        map(_spread_row, (each for each in found.distributions if each.count)),
        figures=True,
    )


def _rates_row(name: str, rates: Rates) -> list[str]:
    return [
        name,
        f"{rates.runs:,}",
        *(rate_share(rates, rate).percent for rate in RATES),
        duration(rates.critique_latency_ms),
        f"{rates.input_tokens + rates.output_tokens:,}",
        dollars(rates.cost_usd),
    ]


def _spread_row(each: Distribution) -> list[str]:
    spread = SPREADS[each.measure]
    write, limit = in_unit(spread.unit), ""
    if spread.limit is not None and each.p95 is not None:
        limit = f"{write(spread.limit)} {'met' if each.p95 <= spread.limit else 'MISSED'}"
    return [
        spread.title,
        f"{each.count:,}",
        *map(write, (each.mean, each.p50, each.p95, each.most)),
        limit,
    ]


_LEVELS: tuple[Literal["claim", "reference"], ...] = ("claim", "reference")


@command()
def trust(
    against: Literal["decisions", "labels"] = option(
        "What the audit is compared with: people's decisions, or labels that cases came with.",
        default="decisions",
    ),
    seen: bool = option("Count decisions made with the audit's verdict in view, too."),
    dataset: str = option("Only cases of this data set.", default="", metavar="NAME"),
    field: str = option("Only cases of this field.", default="", metavar="NAME"),
    since: date | None = option("Decided on this day (UTC) or later, or 30d.", type=day),
    until: date | None = option("Decided on this day or before.", type=day),
    fit: bool = option(
        "Fit the probability of fault on the decisions so far, and order the queue by it."
    ),
    by: str | None = option(
        "Who fits, for the record. Default: the name you are logged in with.", metavar="NAME"
    ),
    emit: Emit = shared.EMIT,
    db: Path | None = shared.DATABASE,
) -> None:
    """Show how far the audit may be relied on: against people, between people, what passes unseen,
    and the guarantee.

    Samples are drawn and guarantees applied on the page Trust, by a lead.

      masis trust
      masis trust --against labels --dataset ExpertQA
      masis trust --json | jq .machine.recall
    """
    service, person = shared.open_existing(db).trust, shared.operator(by)
    if fit:
        service.fit(person)
    filters = TrustFilter(
        source="gold" if against == "labels" else "decision",
        blind_only=not seen,
        dataset=dataset,
        field=field,
        since=since.isoformat() if since else "",
        until=_day_after(until) or "",
    )
    report, missed, watch = (
        service.compare(person, filters),
        service.miss_report(person),
        service.watch(),
    )
    people, score = service.people(person), service.score()
    blind = (
        service.compare(person, filters.model_copy(update={"blind_only": True})) if seen else report
    )
    answers = short_answers(blind, missed, watch)
    parts = {
        level: service.compare_parts(person, level, filters.source).comparison for level in _LEVELS
    }
    record: dict[str, Any] = {
        "short": answers,
        "simulated": report.simulated,
        "left_out": report.excluded,
        "machine": report.answers,
        **{str(level): each for level, each in parts.items()},
        "people": people.agreement,
        "spans": people.spans,
        "missed": missed.total,
        "yield": service.yield_report(person, filters).curves,
        "score": score.model_dump(mode="json", exclude={"case_ids"}) if score.version else None,
        "guarantee": watch.guarantee.model_dump(mode="json", exclude={"score"}) if watch else None,
        "lapsed": watch.lapsed if watch else None,
    }
    fitted = (
        f"score {score.version} of {score.at[:10]}, by {score.by}"
        if score.version
        else "the built-in one"
    )
    shown = (
        *([SIMULATED.format(count_noun(report.simulated, "decision"))] if report.simulated else []),
        *(f"{question}\n  {answer}" for question, answer in answers.items()),
        *_machine_lines("answers", report.answers),
        *(line for level in _LEVELS for line in _machine_lines(f"{level}s", parts[level])),
        *_people_lines(people),
        f"Order of the queue: {fitted}.",
    )
    emit(record, shown)


def _machine_lines(title: str, found: MachineComparison) -> Iterator[str]:
    if not found.n:
        return
    yield f"The audit beside people, over {found.n:,} {title}:"
    for name in ("faulty", "precision", "recall", "accuracy"):
        yield f"  {name:<10} {figure_text(getattr(found, name))}"
    yield f"  {'kappa':<10} {figure_text(found.kappa, share=False)}"
    yield (
        f"  {'constant':<10} {found.constant or 0:.1%} accuracy, kappa 0, by always the more"
        " frequent verdict"
    )
    if found.calibration is not None:
        yield (
            f"  {'ECE':<10} {found.calibration:.3f} (a perfect score: up to"
            f" {found.error_floor or 0:.3f} by chance)"
        )
    for name, (faulty, right) in found.confusion.items():
        yield f"  {name.replace('_', ' ')}: {faulty:,} faulty, {right:,} right"


def _people_lines(found: PeopleReport) -> Iterator[str]:
    if not found.agreement.units:
        return
    yield f"Between people, over {count_noun(found.agreement.units, 'case')}:"
    yield f"  {'agreement':<10} {figure_text(found.agreement.raw)}"
    for name, each in (("alpha", found.agreement.alpha), ("AC1", found.agreement.ac1)):
        yield f"  {name:<10} {figure_text(each, share=False)}"
