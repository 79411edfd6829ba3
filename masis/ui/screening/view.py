"""A screening as plain data for the components: its rounds, its flow, the table of its abstracts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypedDict

from masis.schema.screening import Abstract, Flow, Grade, Recommendation, Round, Screening
from masis.services.records import ScreeningSummary
from masis.ui.screening.abstract import facts
from masis.ui.screening.wording import (
    INTERRUPTED,
    OUTCOME,
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
from masis.ui.shell.wording import LabelData, label, spoken

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


class AbstractRow(TypedDict):
    """One graded abstract in the table."""

    id: str
    href: str
    title: str
    facts: str
    recommendation: LabelData
    rule: str
    study_type: str
    size: str
    adequate: bool | None
    relevance: float | None
    methodology: float | None
    quality: float | None
    overridden: bool
    round: int | None
    opened: bool


def round_rows(rounds: Iterable[Round]) -> list[RoundRow]:
    """The rounds, the first one first."""
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
    """The boxes of a PRISMA flow, from identified to kept."""
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


class SummaryRow(TypedDict):
    """A screening in the list of those made before."""

    id: str
    href: str
    question: str
    outcome: LabelData
    rounds: int | None
    kept: int | None
    searched: str
    at: str


def summary_row(summary: ScreeningSummary) -> SummaryRow:
    """A screening as the list shows it; the outcome is the machine's, with a word where a person has spoken since."""
    word = OUTCOME[summary.outcome] if summary.outcome else UNDER_WAY if summary.state == "running" else INTERRUPTED
    if summary.removed_at is not None:
        word = REMOVED
    searched = ", ".join(source.removeprefix("corpus:") for source in summary.sources)
    if summary.overrides:
        searched += f" · {spoken(summary.overrides, 'override')}"
    return {
        "id": summary.id,
        "href": link("screening", screening=summary.id),
        "question": summary.question,
        "outcome": label(word),
        "rounds": summary.rounds,
        "kept": summary.kept,
        "searched": searched,
        "at": summary.started_at,
    }


class Listed(NamedTuple):
    """The grades of a page of the table, and how many match in all."""

    rows: tuple[Grade, ...]
    total: int


def listed(
    screening: Screening, wanted: Sequence[Recommendation], order: Order, *, page: int = 1, size: int = 20
) -> Listed:
    """One page of the grades with these recommendations (all where none is named), in this order."""
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
    """How many abstracts have each recommendation."""
    return {each: sum(grade.recommendation == each for grade in screening.grades) for each in RECOMMENDATIONS}


def abstract_row(screening: Screening, grade: Grade, abstract: Abstract | None, *, opened: str = "") -> AbstractRow:
    """A graded abstract as the table lists it. ``abstract`` None: its record is gone, its grade is not."""
    return {
        "id": grade.abstract_id,
        "href": link("screening", screening=screening.id, abstract=grade.abstract_id),
        "title": (abstract.title if abstract else "") or grade.abstract_id,
        "facts": " · ".join(facts(abstract)) if abstract else "",
        "recommendation": label(RECOMMENDATION[grade.recommendation]),
        "rule": RULES[grade.rule],
        "study_type": STUDY_TYPE[grade.study_type] if grade.study_type else "not recognised",
        "size": size_words(grade),
        "adequate": grade.sample_size_adequate,
        "relevance": grade.relevance_score,
        "methodology": grade.methodology_score,
        "quality": grade.quality,
        "overridden": bool(grade.overridden),
        "round": _first_round(screening, grade.abstract_id),
        "opened": grade.abstract_id == opened,
    }


def _first_round(screening: Screening, abstract_id: str) -> int | None:
    return next((each.number for each in screening.rounds if abstract_id in each.new), None)
