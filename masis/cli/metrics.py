"""``masis metrics`` and ``masis trust``: figures of the audits, and how reliable they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, TextIO, get_args

import click

from masis.cli import options as shared
from masis.cli.commands import Command
from masis.cli.options import Names, day
from masis.cli.output import Emit, plain, table
from masis.datasets.lake import is_lake
from masis.datasets.writers.metrics import metrics_csv
from masis.schema.wording import count_noun
from masis.services.arrivals.lake import MissRate
from masis.services.records import MeasureFilter, MetricsReport, Period, RunGroup
from masis.services.trust.service import PeopleReport, TrustFilter
from masis.services.trust.summary import figure_text, short_answers, simulated_text
from masis.settings import Role
from masis.trust.machine import MachineComparison
from masis.views.metrics import (
    SPREAD_TITLES,
    column_metrics,
    period_name,
    spread_cells,
    value_text,
)
from masis.views.numbers import percent
from masis.views.words import model_words


def _day_after(until: date | None) -> str | None:
    """Return the day after ``until`` as text, or None if there is no limit."""
    # There is no day after date.max.
    return (until + timedelta(days=1)).isoformat() if until and until < date.max else None


@click.command(cls=Command)
@click.argument("lake", required=False, metavar="[DIR]", type=shared.existing_or_address)
@click.option(
    "--since",
    metavar="DAY",
    type=day,
    help="Runs that finished on this day (UTC) or later, or 30d.",
)
@click.option("--until", metavar="DAY", type=day, help="Runs that finished on this day or before.")
@click.option(
    "--by",
    type=click.Choice(get_args(Period)),
    default="week",
    show_default=True,
    help="The period of each row of rates. A week starts on Monday.",
)
@click.option(
    "--role",
    type=click.Choice(get_args(Role)),
    default="critic",
    show_default=True,
    help="Group runs by the model in this role.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="Only runs with this model. Can be repeated.",
)
@shared.dataset_option
@click.option(
    "--csv",
    "csv_file",
    # lazy opens the file on the first write, so that a failed command doesn't empty it.
    type=click.File("w", encoding="utf-8", lazy=True),
    help="Also write every number to this CSV file.",
)
@shared.json_option
@shared.database_option
def metrics(
    lake: str | None,
    since: date | None,
    until: date | None,
    by: Period,
    role: Role,
    models: Names,
    datasets: Names,
    csv_file: TextIO | None,
    emit: Emit,
    db: Path | None,
) -> None:
    """Show rates, times, scores and costs of the finished runs.

    DIR is a folder of audited cases ('masis audit --engine ray --out'). Its metrics are read
    directly from the Parquet files, without a database.

      masis metrics
      masis metrics audited/ --by day
      masis metrics --since 30d --by day --csv metrics.csv
      masis metrics --model openai:gpt-4o --json | jq .total.critique_hallucination_rate
    """
    if since and until and until < since:
        raise click.UsageError("--until is before --since.")
    first = since.isoformat() if since else None
    measure_filter = MeasureFilter(
        since=first, until=_day_after(until), role=role, models=models, datasets=datasets
    )
    if lake is None:
        workbench = shared.open_existing(db)
        report, missed = workbench.metrics.report(measure_filter, by), workbench.lake.miss_rates()
        record = report.model_dump(mode="json", exclude={"measure_filter"}) | {
            "samples": plain(missed)
        }
        _save_csv(report, csv_file)
        emit(record, (*lines(report), *_sample_lines(missed)))
        return
    if db is not None:
        raise click.UsageError("Use DIR or --db, not both. DIR is read without a database.")
    if not is_lake(str(lake)):
        raise click.BadParameter(f"{lake} has no audited cases.", param_hint="'[DIR]'")
    from masis.datasets.lake_figures import lake_figures

    read = lake_figures(str(lake), measure_filter, by)
    report = MetricsReport(
        measure_filter=measure_filter,
        period=by,
        **read.rates._asdict(),
        distributions=read.distributions,
    )
    rows = sum(read.outcomes.values())
    parts = [
        f"{number:,} {name.replace('_', ' ')} ({number / rows:.1%})"
        for name, number in read.outcomes.items()
        if rows
    ]
    head = f"{count_noun(rows, 'case')}: {', '.join(parts)}" if rows else "No cases match."
    record = {
        "outcomes": read.outcomes,
        **report.model_dump(mode="json", exclude={"measure_filter"}),
    }
    _save_csv(report, csv_file)
    emit(record, (head, *lines(report)))


def _save_csv(report: MetricsReport, csv_file: TextIO | None) -> None:
    if csv_file is not None:
        csv_file.write(metrics_csv(report))


def _sample_lines(missed: Iterable[MissRate]) -> Iterator[str]:
    """Yield a summary of the decisions on each sample of auto-accepted answers."""
    for miss in missed:
        sample = miss.sample
        drawn = (
            f"{sample.drawn:,} of {sample.accepted:,} auto-accepted (share {sample.share:.2%}, seed"
            f" {sample.seed})"
        )
        decided = (
            f"{miss.present:,} in this database, {miss.decided:,} decided, {miss.wrong:,} of them"
            " wrong"
        )
        yield from ("", f"Sample of {sample.place}: {drawn}; {decided}.")
        if miss.low is not None and miss.high is not None:
            yield (
                f"Miss rate: {miss.wrong / miss.decided:.1%} of the auto-accepted answers (95%"
                f" interval {miss.low:.1%} to {miss.high:.1%}), {miss.low * sample.accepted:,.0f}"
                f" to {miss.high * sample.accepted:,.0f} answers."
            )


def lines(report: MetricsReport) -> Iterator[str]:
    """Yield the lines of the report."""
    total = report.total
    if not total.runs:
        yield "No finished runs match."
        return
    yield from (count_noun(total.runs, "run"), "")
    role, columns = report.measure_filter.role, column_metrics()
    groups = [("all", total)]
    groups += [(period_name(report.period, period.name or ""), period) for period in report.periods]
    groups += [
        (f"{role} {model_words(model.name or '(unknown)')}", model) for model in report.models
    ]
    yield from table(
        ("", "runs", *(metric.label.lower() for metric in columns)),
        [(name, f"{group.runs:,}", *_group_cells(group)) for name, group in groups],
        figures=True,
    )
    yield ""
    measured = [distribution for distribution in report.distributions if distribution.count]
    yield from table(SPREAD_TITLES, map(spread_cells, measured), figures=True)


def _group_cells(group: RunGroup) -> list[str]:
    return [
        percent(group.values[metric.name]) if metric.unit == "share" else value_text(metric, group)
        for metric in column_metrics()
    ]


_LEVELS: tuple[Literal["claim", "reference"], ...] = ("claim", "reference")


@click.command(cls=Command)
@click.option(
    "--against",
    type=click.Choice(["decisions", "labels"]),
    default="decisions",
    show_default=True,
    help="Compare the audit with reviewers' decisions, or with labels imported with the cases.",
)
@click.option(
    "--seen",
    is_flag=True,
    help="Also count decisions by reviewers who saw the audit's verdict before deciding.",
)
@click.option("--dataset", default="", metavar="NAME", help="Only cases in this data set.")
@click.option("--field", default="", metavar="NAME", help="Only cases in this field.")
@click.option(
    "--since",
    metavar="DAY",
    type=day,
    help="Only decisions made on this day (UTC) or later, or 30d.",
)
@click.option("--until", metavar="DAY", type=day, help="Only decisions made on this day or before.")
@shared.queue_option
@click.option(
    "--fit",
    is_flag=True,
    help="Fit the probability of fault on the decisions so far, and order the queue by it.",
)
@click.option(
    "--by", metavar="NAME", help="The name to record with --fit. Default: your login name."
)
@shared.json_option
@shared.database_option
def trust(
    against: Literal["decisions", "labels"],
    seen: bool,
    dataset: str,
    field: str,
    since: date | None,
    until: date | None,
    queue: str,
    fit: bool,
    by: str | None,
    emit: Emit,
    db: Path | None,
) -> None:
    """Show how reliable the audit is: its agreement with reviewers, their agreement with each
    other, missed errors, and the guarantee.

    Leads draw samples and apply guarantees on the Trust page.

      masis trust
      masis trust --against labels --dataset ExpertQA
      masis trust --json | jq .machine.recall
    """
    workbench, person = shared.open_existing(db), shared.operator(by)
    service = workbench.trust
    queue_id = workbench.queues.get(person, queue).id if queue else ""
    if fit:
        service.fit(person)
    filters = TrustFilter(
        source="gold" if against == "labels" else "decision",
        blind_only=not seen,
        dataset=dataset,
        field=field,
        since=since.isoformat() if since else "",
        until=_day_after(until) or "",
        queue=queue_id,
    )
    report, missed, watch = (
        service.compare(person, filters),
        service.miss_report(person),
        service.watch(),
    )
    people, score = service.people(person, queue=queue_id or None), service.score()
    blind = (
        # The short answers are always about blind decisions.
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
        **{str(level): comparison for level, comparison in parts.items()},
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
        else "the built-in estimate"
    )
    shown = (
        *filter(None, [simulated_text(report.simulated, len(report.rows))]),
        *(f"{question}\n  {answer}" for question, answer in answers.items()),
        *_machine_lines("answers", report.answers),
        *(line for level in _LEVELS for line in _machine_lines(f"{level}s", parts[level])),
        *_people_lines(people),
        f"Order of the queue: {fitted}.",
    )
    emit(record, shown)


def _machine_lines(title: str, comparison: MachineComparison) -> Iterator[str]:
    if not comparison.n:
        return
    yield f"The audit compared with reviewers, over {comparison.n:,} {title}:"
    for name in ("faulty", "precision", "recall", "accuracy"):
        yield f"  {name:<10} {figure_text(getattr(comparison, name))}"
    yield f"  {'kappa':<10} {figure_text(comparison.kappa, share=False)}"
    yield (
        f"  {'constant':<10} {comparison.constant or 0:.1%} accuracy and kappa 0 for always giving"
        " the more frequent verdict"
    )
    if comparison.calibration is not None:
        yield (
            f"  {'ECE':<10} {comparison.calibration:.3f} (a perfectly calibrated score would have"
            f" up to {comparison.error_floor or 0:.3f} by chance)"
        )
    for name, (faulty, right) in comparison.confusion.items():
        yield f"  {name.replace('_', ' ')}: {faulty:,} faulty, {right:,} correct"


def _people_lines(report: PeopleReport) -> Iterator[str]:
    if not report.agreement.units:
        return
    yield f"Agreement between reviewers, over {count_noun(report.agreement.units, 'case')}:"
    yield f"  {'agreement':<10} {figure_text(report.agreement.raw)}"
    for name, coefficient in (("alpha", report.agreement.alpha), ("AC1", report.agreement.ac1)):
        yield f"  {name:<10} {figure_text(coefficient, share=False)}"
