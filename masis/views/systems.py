"""The words of a comparison of two systems."""

from __future__ import annotations

from masis.schema.comparison import (
    MEASURES,
    Conclusion,
    GroupDifference,
    Judgement,
    Measure,
    MeasuredDifference,
    PairedDifference,
    SystemComparison,
)
from masis.schema.systems import System
from masis.schema.wording import count_noun, shorten
from masis.views.numbers import NOTHING, dollars, percent
from masis.views.words import Word

CONCLUSION: dict[Conclusion, Word] = {
    "better": Word("Better", "good", "The difference is larger than chance explains"),
    "worse": Word("Worse", "bad", "The difference is larger than chance explains"),
    "no_difference": Word(
        "No difference shown", "calm", "Chance explains a difference of this size"
    ),
    "too_few": Word(
        "Too few to tell", "calm", "Too few questions, or the answers differ on too few of them"
    ),
}

JUDGEMENT: dict[Judgement, Word] = {
    "approved": Word("Approved", "good", "A person approved the answer"),
    "overridden": Word("Corrected", "bad", "A person corrected the answer"),
    "rejected": Word("Rejected", "bad", "A person rejected the answer"),
    "flagged": Word("Flagged", "bad", "The audit flagged the answer; nobody has decided it"),
    "not_confirmed": Word(
        "Not confirmed", "calm", "The audit couldn't confirm the answer, which may still be right"
    ),
    "nothing_found": Word("Nothing found", "good", "The audit found nothing wrong"),
}


def measure_text(measure: Measure, value: float | None) -> str:
    """Return a figure of a measure in its unit."""
    if value is None:
        return NOTHING
    if measure.unit == "share":
        return percent(value)
    return dollars(value) if measure.unit == "USD" else f"{value:,.0f}"


def figure_with_base(measure: Measure, row: PairedDifference, *, second: bool) -> str:
    """Return one system's figure; a share with its base, as in "12% (12 of 100)"."""
    value = row.second if second else row.first
    text = measure_text(measure, value)
    if measure.unit != "share" or value is None:
        return text
    return f"{text} ({round(value * row.questions):,} of {row.questions:,})"


def _format_signed(measure: Measure, value: float) -> str:
    if measure.unit == "share":
        return f"{100 * value:+.1f}"
    if measure.unit == "USD":
        return f"{'-' if value < 0 else '+'}{dollars(abs(value))}"
    return f"{value:+,.0f}"


def difference_text(measure: Measure, row: PairedDifference) -> str:
    """Return a difference with its interval, as in "+8.0 points (+2.1 to +14.0)"."""
    if row.difference is None:
        return NOTHING
    unit = {"share": " points", "characters": " characters", "USD": ""}[measure.unit]
    text = f"{_format_signed(measure, row.difference)}{unit}"
    if row.low is None or row.high is None:
        return text
    return f"{text} ({_format_signed(measure, row.low)} to {_format_signed(measure, row.high)})"


def certainty_text(row: PairedDifference) -> str:
    """Return how sure a difference in shares is, as in "p = 0.002, McNemar's exact test"."""
    if row.p is None:
        return ""
    return f"p {'< 0.001' if row.p < 0.001 else f'= {row.p:.3f}'}, McNemar's exact test"


def verdict_text(comparison: SystemComparison) -> str:
    """Return in a sentence which system is better, and how sure that is."""
    row = comparison.measure("flagged")
    first, second = comparison.first.name, comparison.second.name
    if not row.questions:
        return (
            f"Nothing can be said yet: no question has an audited or decided answer of both"
            f" {first} and {second}."
        )
    counts = (
        f"Of {count_noun(row.questions, 'question')}, {second} got {row.only_second or 0:,} wrong"
        f" that {first} got right, and {row.only_first or 0:,} right that {first} got wrong"
    )
    measure = MEASURES["flagged"]
    difference, low, high = (
        _format_signed(measure, value or 0) for value in (row.difference, row.low, row.high)
    )
    how_sure = (
        f"The share of wrong answers differs by {difference} points (95% interval {low} to {high};"
        f" {certainty_text(row)})"
    )
    if row.conclusion == "too_few":
        return (
            f"Too few to tell whether {second} is better or worse than {first}. {counts}. That's"
            " too few differences to rule out chance."
        )
    if row.conclusion == "no_difference":
        return f"No difference between {first} and {second} is shown. {counts}. {how_sure}."
    return f"{second} is {row.conclusion} than {first}. {counts}. {how_sure}."


def left_out_text(comparison: SystemComparison) -> str:
    """Return which questions a comparison leaves out, and why; "" if none."""
    parts = []
    for count, system in (
        (comparison.only_first, comparison.first.name),
        (comparison.only_second, comparison.second.name),
    ):
        if count:
            parts.append(f"{count_noun(count, 'question')} that only {system} answered")
    if comparison.unjudged:
        parts.append(
            f"{count_noun(comparison.unjudged, 'question')} with an answer that is neither audited"
            " nor decided"
        )
    if comparison.hidden:
        parts.append(
            f"{count_noun(comparison.hidden, 'question')} whose results your team's policy hides"
            " until you've decided"
        )
    return f"Left out: {'; '.join(parts)}." if parts else ""


def system_text(system: System) -> str:
    """Return what is known of a system in one line."""
    details = [system.model, system.version, system.date]
    return " · ".join([count_noun(system.cases, "answer"), *filter(None, details)])


def conclusion_word(row: PairedDifference, measure: Measure) -> Word:
    """Return what a difference says; nothing about measures without a better direction."""
    if measure.lower_is_better is None and row.conclusion == "no_difference":
        shown = row.low is not None and row.high is not None and not row.low <= 0 <= row.high
        return Word("Differs", "calm", "Neither is better") if shown else CONCLUSION[row.conclusion]
    return CONCLUSION[row.conclusion]


def measure_rows(
    comparison: SystemComparison,
) -> list[tuple[Measure, MeasuredDifference]]:
    """Return the measures that both systems have for some question, with their differences."""
    return [(MEASURES[row.measure], row) for row in comparison.measures if row.questions]


def regression_lines(comparison: SystemComparison, most: int = 10) -> list[str]:
    """Return the worst regressions as plain text, one line each."""
    lines = []
    for pair in comparison.regressions[:most]:
        before, now = JUDGEMENT[pair.first_judgement].text, JUDGEMENT[pair.second_judgement].text
        lines.append(
            f"  {shorten(pair.question, 60)}: {pair.first} {before.lower()}, {pair.second}"
            f" {now.lower()}"
        )
    if (more := comparison.regression_count - len(lines)) > 0:
        lines.append(f"  and {more:,} more")
    return lines


FEWEST_QUESTIONS = 5
"""Parts with fewer questions aren't listed: they can't show a difference, and there may be many."""


def listed_parts(comparison: SystemComparison) -> tuple[list[GroupDifference], int]:
    """Return the parts (fields, failure modes, causes) with enough questions, and how many haven't.

    If no part has enough, all are listed.
    """
    large = [part for part in comparison.groups if part.questions >= FEWEST_QUESTIONS]
    if not large:
        return list(comparison.groups), 0
    return large, len(comparison.groups) - len(large)


def small_parts_text(count: int) -> str:
    """Say how many parts aren't listed."""
    parts = count_noun(count, "part")
    return f"{parts} with fewer than {FEWEST_QUESTIONS} questions not listed (`--json` has all)."
