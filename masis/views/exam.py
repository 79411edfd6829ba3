"""Describes the result of a model's exam for pages, commands and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from masis.schema.exam import ExamCount, ExamResult, ExamStanding
from masis.schema.wording import count_noun
from masis.views.numbers import cost_text, day

_DIFFERS = {
    "exam": "an earlier version of the exam",
    "address": "another address",
    "prompts": "other prompts or rules",
    "": "",
}


def exam_line(standing: ExamStanding) -> str:
    """Return the line shown wherever a model is named.

    Examples: "has not taken the exam", "passed the exam on 3 Mar 2026 (of 16 faulty answers it
    accepted none, as required, and flagged 15; it left 1 to a person)".
    """
    if standing.result is not None:
        if standing.result.passed:
            found = standing.result.found
            left = found.of - found.count  # a model that passes has accepted none
            judged = (
                f"of {count_noun(found.of, 'faulty answer')} it accepted none, as required, and"
                f" flagged {found.count or 'none'}"
            )
            if left:
                judged += f"; it left {left} to a person"
            return f"passed the exam on {day(standing.result.taken_at)} ({judged})"
        return (
            f"did not pass the exam on {day(standing.result.taken_at)}:"
            f" {'; '.join(standing.result.shortfalls)}"
        )
    if standing.earlier is not None:
        outcome = "passed" if standing.earlier.passed else "did not pass"
        other = f"{'at' if standing.differs == 'address' else 'with'} {_DIFFERS[standing.differs]}"
        return (
            f"has not taken the exam as it is used here ({outcome} on"
            f" {day(standing.earlier.taken_at)} {other})"
        )
    return "has not taken the exam"


def exam_costs(calls: int, tokens: int, cost_usd: float | None) -> str:
    """Describe the maximum cost of an exam, to be read before it starts."""
    if not calls:
        return "The exam calls no language model and costs nothing."
    return f"The exam needs up to {calls:,} calls and {tokens:,} tokens, {cost_text(cost_usd)}."


class ExamFigure(NamedTuple):
    """One figure of a result in words: its title, the count, and the 95% interval of the share."""

    title: str
    counted: str
    interval: str


def exam_figures(result: ExamResult) -> tuple[ExamFigure, ...]:
    """Return the four figures that decide an exam.

    Unreadable replies also count but have no figure here.
    """
    return (
        _exam_figure("Faulty answers accepted", result.accepted),
        _exam_figure("Faulty answers flagged", result.found),
        _exam_figure("Faulty passages called supported", result.confirmed),
        _exam_figure("Correct answers flagged", result.flagged),
    )


def exam_kinds(result: ExamResult) -> tuple[tuple[str, str, str, str], ...]:
    """Return the results by kind of fault: kind, faulty flagged, faulty accepted, sound flagged."""
    return tuple(
        (
            kind.kind,
            f"{kind.found} of {kind.faulty}" if kind.faulty else "",
            f"{kind.accepted} of {kind.faulty}" if kind.faulty else "",
            f"{kind.flagged} of {kind.sound}" if kind.sound else "",
        )
        for kind in result.kinds
    )


def exam_lines(result: ExamResult) -> Iterator[str]:
    """Yield the result as lines of text: outcome, figures with intervals, and results by kind."""
    yield f"{result.name}: {exam_line(ExamStanding(result))}"
    for figure in exam_figures(result):
        yield f"  {figure.title:<34}{figure.counted:<10}95% interval {figure.interval}"
    for kind in result.kinds:
        faulty = f"{kind.found} of {kind.faulty} faulty ones flagged" if kind.faulty else ""
        sound = f"{kind.flagged} of {kind.sound} correct ones flagged" if kind.sound else ""
        yield f"  {kind.kind:<20}{faulty:<28}{sound}".rstrip()
    yield f"  {exam_effort(result)}"
    for line in exam_conditions(result):
        yield f"  {line}"


def exam_effort(result: ExamResult) -> str:
    """Describe what the exam used: calls, unreadable replies, tokens, cost and time."""
    if not result.calls:
        return f"No calls to a language model, {result.seconds:,.0f} s"
    return (
        f"{result.calls:,} calls ({result.failed_calls:,} without a reply that could be read),"
        f" {result.tokens:,} tokens, {cost_text(result.cost_usd)}, {result.seconds:,.0f} s"
    )


def exam_conditions(result: ExamResult) -> tuple[str, ...]:
    """Return the conditions under which the result holds: models, addresses and prompt versions."""
    return (
        f"Models: {result.name}",
        f"Address: {_join_distinct(result.addresses.values(), 'on this machine')}",
        f"Prompts: {_join_distinct(result.prompts.values(), 'none')}",
    )


def _join_distinct(values: Iterable[str], empty: str) -> str:
    return ", ".join(dict.fromkeys(value or empty for value in values))


def _exam_figure(title: str, count: ExamCount) -> ExamFigure:
    return ExamFigure(title, f"{count.count} of {count.of}", f"{count.low:.0%} to {count.high:.0%}")
