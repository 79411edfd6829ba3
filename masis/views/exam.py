"""How the result of a model's exam is worded, for pages, commands and reports alike."""

from __future__ import annotations

from collections.abc import Iterator

from masis.schema.exam import ExamCount, ExamResult
from masis.views.numbers import cost_text, day


def exam_summary(result: ExamResult | None) -> str:
    """Return one sentence that can stand beside a model's name.

    Example:
        "Passed the exam on 3 March 2026: 16 of 16 faulty answers found, 0 accepted, 0 of 16 sound ones flagged."

    """
    if result is None:
        return "Has not taken the exam."
    outcome = "Passed" if result.passed else "Did not pass"
    return (
        f"{outcome} the exam on {day(result.taken_at)}: {result.found.count} of {result.found.of} faulty answers "
        f"found, {result.accepted.count} accepted, {result.flagged.count} of {result.flagged.of} sound ones flagged."
    )


def exam_lines(result: ExamResult) -> Iterator[str]:
    """Yield the result as lines of text: the outcome, each figure with its interval, and what happened by kind."""
    yield f"{result.name}: {'passed' if result.passed else 'did not pass'}"
    for reason in result.shortfalls:
        yield f"  {reason}"
    yield f"faulty answers accepted   {_with_interval(result.accepted)}"
    yield f"faulty answers flagged    {_with_interval(result.found)}"
    yield f"faulty passages supported {_with_interval(result.confirmed)}"
    yield f"sound answers flagged     {_with_interval(result.flagged)}"
    for kind in result.kinds:
        faulty = f"{kind.found} of {kind.faulty} flagged" if kind.faulty else ""
        sound = f"{kind.flagged} of {kind.sound} flagged by mistake" if kind.sound else ""
        yield f"  {kind.kind:<20}{faulty:<20}{sound}"
    if result.calls:
        yield (
            f"{result.calls:,} calls ({result.failed_calls} unreadable), {result.tokens:,} tokens, "
            f"{cost_text(result.cost_usd)}, {result.seconds:,.0f} s"
        )


def _with_interval(count: ExamCount) -> str:
    return f"{count.count} of {count.of} (95% interval of the share: {count.low:.0%} to {count.high:.0%})"
