"""A screening as plain data for the components: its rounds, its flow, the table of its abstracts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypedDict

from masis.schema.screening import Abstract, Flow, Grade, Recommendation, Round, Screening
from masis.schema.wording import counted
from masis.services.records import ScreeningSummary
from masis.ui.components.linked_table import Row, column, row
from masis.ui.screening.abstract import facts
from masis.ui.screening.wording import (
    INTERRUPTED,
    OUTCOME,
    OVERRIDDEN,
    RECOMMENDATION,
    RECOMMENDATIONS,
    REMOVED,
    RULES,
    STUDY_TYPE,
    SUFFICIENCY,
    UNDER_WAY,
    size_words,
)
from masis.ui.shell.address import link
from masis.ui.shell.wording import LabelData, label

Order = Literal["quality", "relevance", "found", "size"]
ORDERS: dict[Order, str] = {
    "quality": "Best quality first",
    "relevance": "Most relevant first",
    "size": "Largest study first",
    "found": "As they were found",
}


class QueryData(TypedDict):
    """A query and why it was made."""

    text: str
    why: str


class RoundRow(TypedDict):
    """One round as the table shows it. ``shares`` are of its votes, in the order keep, needs more, discard."""

    number: int
    queries: list[QueryData]
    found: int
    new: int
    votes: list[int]
    shares: list[float]
    required: float
    average: float | None
    reached: bool
    consensus: LabelData
    decision: LabelData
    why: str
    missing: list[str]
    warnings: list[str]


class Left(TypedDict):
    """What left the flow for one reason."""

    name: str
    count: int


class FlowStep(TypedDict):
    """A box of the flow: its count, its name, what left the flow there."""

    name: str
    count: int
    left: list[Left]
    left_title: str


def round_rows(rounds: Iterable[Round]) -> list[RoundRow]:
    """Return the rounds, the first one first."""
    return [_round_row(each) for each in rounds]


def _round_row(each: Round) -> RoundRow:
    ruling, votes = each.ruling, each.ruling.tally
    counts = [votes.keep, votes.needs_more, votes.discard]
    return {
        "number": each.number,
        "queries": [{"text": query.text, "why": query.why} for query in each.queries],
        "found": len(each.retrieved),
        "new": len(each.new),
        "votes": counts,
        "shares": [count / votes.votes if votes.votes else 0.0 for count in counts],
        "required": ruling.required_average,
        "average": ruling.average,
        "reached": ruling.average is not None and ruling.average >= ruling.required_average,
        "consensus": label(SUFFICIENCY[ruling.consensus]),
        "decision": label(SUFFICIENCY[ruling.decision]),
        "why": ruling.why,
        "missing": list(each.missing),
        "warnings": list(each.warnings),
    }


def flow_steps(flow: Flow) -> list[FlowStep]:
    """Return the boxes of a PRISMA flow, from identified to kept."""
    excluded = sum(each.count for each in flow.excluded)
    undecided: list[Left] = [{"name": "ask for more evidence", "count": flow.undecided - flow.unscored}]
    if flow.unscored:
        undecided.append({"name": "could not be graded", "count": flow.unscored})
    return [
        {
            "name": "Identified",
            "count": flow.identified,
            "left_title": f"Duplicates removed ({flow.duplicates:,})" if flow.duplicates else "No duplicates",
            "left": [],
        },
        {
            "name": "Screened",
            "count": flow.screened,
            "left_title": f"Excluded ({excluded:,})" if excluded else "Nothing excluded",
            "left": [{"name": each.label, "count": each.count} for each in flow.excluded],
        },
        {
            "name": "Not excluded",
            "count": flow.screened - excluded,
            "left_title": f"Undecided ({flow.undecided:,})" if flow.undecided else "Nothing undecided",
            "left": undecided if flow.undecided else [],
        },
        {"name": "Kept", "count": flow.kept, "left_title": "", "left": []},
    ]


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
    word = OUTCOME[summary.outcome] if summary.outcome else UNDER_WAY if summary.state == "running" else INTERRUPTED
    if summary.removed_at is not None:
        word = REMOVED
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
        summary.started_at[:16].replace("T", " "),
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
    size = size_words(grade) or "sample size not reported"
    return row(
        {
            "text": (abstract.title if abstract else "") or grade.abstract_id,
            "href": link("screening", screening=screening.id, abstract=grade.abstract_id),
            "open": grade.abstract_id,
            "current": grade.abstract_id == opened,
            "below": ["  ·  ".join(below)],
        },
        {"pills": recommendation, "below": [RULES[grade.rule]]},
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
