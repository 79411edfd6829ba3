"""``masis trust``: how far the automatic audit may be relied on, by what people decided."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import click

from masis.cli.metrics import Day
from masis.cli.options import database_option, open_existing, operator
from masis.cli.output import printable
from masis.schema.wording import counted
from masis.services.trust import PeopleReport, TrustFilter
from masis.services.trust_summary import SIMULATED, figure, short_answers
from masis.trust.machine import Comparison


@click.command()
@click.option(
    "--against",
    type=click.Choice(["decisions", "labels"]),
    default="decisions",
    show_default=True,
    help="What the audit is compared with: people's decisions, or labels that cases came with.",
)
@click.option("--seen", is_flag=True, help="Count decisions made with the audit's verdict in view, too.")
@click.option("--auditor", default="", metavar="DIGEST", help="Only answers of this auditor.")
@click.option("--dataset", default="", metavar="NAME", help="Only cases of this data set.")
@click.option("--field", default="", metavar="NAME", help="Only cases of this field.")
@click.option("--since", type=Day(), metavar="DAY", help="Decided on this day (UTC) or later, or 30d.")
@click.option("--until", type=Day(), metavar="DAY", help="Decided on this day or before.")
@click.option(
    "--fit", is_flag=True, help="Fit the probability of fault on the decisions so far, and order the queue by it."
)
@click.option("--by", metavar="NAME", help="Who fits, for the record. Default: the name you are logged in with.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@database_option
def trust(
    against: str,
    seen: bool,
    auditor: str,
    dataset: str,
    field: str,
    since: date | None,
    until: date | None,
    fit: bool,
    by: str | None,
    as_json: bool,
    db: Path | None,
) -> None:
    """Show how far the audit may be relied on: against people, between people, what passes unseen, and the guarantee.

    Samples are drawn and guarantees applied on the page Trust, by a lead.

    \b
      masis trust
      masis trust --against labels --dataset ExpertQA
      masis trust --json | jq .machine.recall
    """  # noqa: D301 (click reads the backspace)
    service, person = open_existing(db).trust, operator(by)
    if fit:
        service.fit(person)
    filters = TrustFilter(
        source="gold" if against == "labels" else "decision",
        blind_only=not seen,
        auditor=auditor,
        dataset=dataset,
        field=field,
        since=since.isoformat() if since else "",
        until=(until + timedelta(days=1)).isoformat() if until else "",
    )
    report, missed, watch = service.compare(person, filters), service.missed(person), service.watch()
    people, score = service.people(person), service.score()
    answers = short_answers(report, missed, watch)
    parts = {level: service.parts(person, level, filters.source).comparison for level in _LEVELS}
    if as_json:
        found: dict[str, Any] = {
            "short": answers,
            "simulated": report.simulated,
            "left_out": report.left._asdict(),
            "machine": plain(report.answers),
            **{level: plain(each) for level, each in parts.items()},
            "people": plain(people.agreement),
            "spans": plain(people.spans),
            "missed": plain(missed.total),
            "yield": service.yields(person, filters).curves,
            "score": score.model_dump(mode="json", exclude={"case_ids"}) if score.version else None,
            "guarantee": watch.guarantee.model_dump(mode="json", exclude={"score"}) if watch else None,
            "lapsed": watch.lapsed if watch else None,
        }
        click.echo(json.dumps(found))
        return
    if report.simulated:
        click.echo(SIMULATED.format(counted(report.simulated, "decision")))
    for question, answer in answers.items():
        click.echo(f"{question}\n  {printable(answer)}")
    for title, each in (("answers", report.answers), *((f"{level}s", parts[level]) for level in _LEVELS)):
        for line in _comparison(title, each):
            click.echo(printable(line))
    for line in _people(people):
        click.echo(line)
    fitted = f"score {score.version} of {score.at[:10]}, by {score.by}" if score.version else "the built-in one"
    click.echo(printable(f"Order of the queue: {fitted}."))


_LEVELS: tuple[Literal["claim", "reference"], ...] = ("claim", "reference")


def _comparison(title: str, found: Comparison) -> Iterable[str]:
    if not found.n:
        return
    yield f"The audit beside people, over {found.n:,} {title}:"
    for name in ("faulty", "precision", "recall", "accuracy"):
        yield f"  {name:<10} {figure(getattr(found, name))}"
    yield f"  {'kappa':<10} {figure(found.kappa, share=False)}"
    yield f"  {'constant':<10} {found.constant or 0:.1%} accuracy, kappa 0, by always the more frequent verdict"
    if found.calibration is not None:
        yield f"  {'ECE':<10} {found.calibration:.3f} (a perfect score: up to {found.error_floor or 0:.3f} by chance)"
    for name, (faulty, right) in found.confusion.items():
        yield f"  {name.replace('_', ' ')}: {faulty:,} faulty, {right:,} right"


def _people(found: PeopleReport) -> Iterable[str]:
    if not found.agreement.units:
        return
    yield f"Between people, over {counted(found.agreement.units, 'case')}:"
    yield f"  {'agreement':<10} {figure(found.agreement.raw)}"
    for name, each in (("alpha", found.agreement.alpha), ("AC1", found.agreement.ac1)):
        yield f"  {name:<10} {figure(each, share=False)}"


def plain(found: Any) -> Any:
    """Return a report as JSON takes it: named tuples become objects."""
    if hasattr(found, "_asdict"):
        return {name: plain(value) for name, value in found._asdict().items()}
    if isinstance(found, dict):
        return {str(name): plain(value) for name, value in found.items()}
    return [plain(each) for each in found] if isinstance(found, list | tuple) else found
