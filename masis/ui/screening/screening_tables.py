"""Screenings and their abstracts as rows of linked tables, and which of them a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from masis.schema.screening import Abstract, Grade, Recommendation, Screening
from masis.schema.wording import counted
from masis.services.records import ScreeningSummary
from masis.ui.components.linked_table import Row, column, row
from masis.ui.shell.address import link
from masis.views.abstract import facts
from masis.views.numbers import moment
from masis.views.screening import (
    OUTCOME,
    OVERRIDDEN,
    RECOMMENDATION,
    RECOMMENDATIONS,
    STUDY_TYPE,
    rule_text,
    size_text,
)
from masis.views.words import RUN_STATE, label

Order = Literal["quality", "relevance", "found", "size"]
ORDERS: dict[Order, str] = {
    "quality": "Best quality first",
    "relevance": "Most relevant first",
    "size": "Largest study first",
    "found": "As they were found",
}


SUMMARY_COLUMNS = [
    column("Question", "main"),
    column("Outcome", "pills"),
    column("Rounds", "figure"),
    column("Kept", "figure"),
    column("Searched", hide="hide-narrow"),
    column("Started (UTC)", "figure", hide="hide-medium"),
]


def summary_row(summary: ScreeningSummary) -> Row:
    """Return a screening as the list shows it, with the critic's outcome and the number of overrides since."""
    word = OUTCOME[summary.outcome] if summary.outcome else RUN_STATE[summary.state]
    if summary.removed_at is not None:
        word = RUN_STATE["removed"]
    searched = ", ".join(source.removeprefix("corpus:") for source in summary.sources)
    if summary.overrides:
        searched += f" · {counted(summary.overrides, 'override')}"
    href = link("screening", screening=summary.id)
    return row(
        {"text": summary.question, "href": href, "open": summary.id},
        {"pills": [label(word)]},
        summary.rounds,
        summary.kept,
        searched,
        moment(summary.started_at),
        open=summary.id,
    )


class Listed(NamedTuple):
    """The grades of a page of the table, and how many match in all."""

    rows: tuple[Grade, ...]
    total: int


def listed(
    screening: Screening, wanted: Sequence[Recommendation], order: Order, *, page: int = 1, size: int = 20
) -> Listed:
    """Return one page of the grades with these recommendations (all where none is named), in this order."""
    found = [grade for grade in screening.grades if not wanted or grade.recommendation in wanted]
    if order != "found":
        found.sort(key=lambda grade: _rank(grade, order))
    start = (page - 1) * size
    return Listed(tuple(found[start : start + size]), len(found))


def _rank(grade: Grade, order: Order) -> tuple[bool, float, str]:
    if order == "size":
        value = float(grade.study_size.value) if grade.study_size else None
    else:
        value = grade.quality if order == "quality" else grade.relevance_score
    return (value is None, -(value or 0.0), grade.abstract_id)


def counts(screening: Screening) -> dict[Recommendation, int]:
    """Return how many abstracts have each recommendation."""
    return {each: sum(grade.recommendation == each for grade in screening.grades) for each in RECOMMENDATIONS}


ABSTRACT_COLUMNS = [
    column("Abstract", "main"),
    column("Recommendation", "pills"),
    column("Study", hide="hide-narrow"),
    column("Relevance", "figure", hide="hide-medium"),
    column("Methodology", "figure", hide="hide-medium"),
    column("Quality", "figure"),
]


def abstract_row(screening: Screening, grade: Grade, abstract: Abstract | None, *, opened: str = "") -> Row:
    """Return a graded abstract as the table lists it. ``abstract`` None: its record was removed, its grade was not."""
    number = _first_round(screening, grade.abstract_id)
    below = [*(facts(abstract) if abstract else ()), *([] if number is None else [f"round {number}"])]
    recommendation = [label(RECOMMENDATION[grade.recommendation])]
    if grade.overridden:
        recommendation.append(label(OVERRIDDEN))
    size = size_text(grade) or "sample size not reported"
    return row(
        {
            "text": (abstract.title if abstract else "") or grade.abstract_id,
            "href": link("screening", screening=screening.id, abstract=grade.abstract_id),
            "open": grade.abstract_id,
            "current": grade.abstract_id == opened,
            "below": ["  ·  ".join(below)],
        },
        {"pills": recommendation, "below": [rule_text(grade)]},
        {
            "text": STUDY_TYPE[grade.study_type] if grade.study_type else "not recognised",
            "below": [f"{size}, too few" if grade.sample_size_adequate is False else size],
        },
        {"score": grade.relevance_score},
        {"score": grade.methodology_score},
        {"score": grade.quality},
        open=grade.abstract_id,
        marked=grade.abstract_id == opened,
    )


def _first_round(screening: Screening, abstract_id: str) -> int | None:
    return next((each.number for each in screening.rounds if abstract_id in each.new), None)
