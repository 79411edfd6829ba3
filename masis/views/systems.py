"""The words of a comparison of two systems."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, get_args

from masis.schema.case import Severity
from masis.schema.causes import CAUSES
from masis.schema.comparison import (
    GROUPS,
    LEAST_DECISIVE,
    MEASURES,
    AnswerPair,
    Conclusion,
    GroupDifference,
    GroupName,
    Judgement,
    ListName,
    Measure,
    MeasureBasis,
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
    """Return a difference with its sign; one that is rounded to zero has none."""
    size = abs(value)
    text = (
        f"{100 * size:.1f}"
        if measure.unit == "share"
        else dollars(size)
        if measure.unit == "USD"
        else f"{size:,.0f}"
    )
    return text if not text.strip("$0.") else f"{'-' if value < 0 else '+'}{text}"


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


def verdict_head(comparison: SystemComparison) -> str:
    """Return in one sentence which system is better, if that is shown."""
    row = comparison.measure("flagged")
    first, second = comparison.first.name, comparison.second.name
    if not row.questions:
        return (
            f"Nothing can be said yet: no question has an audited or decided answer of both"
            f" {first} and {second}."
        )
    if row.conclusion == "too_few":
        return f"Too few to tell whether {second} is better or worse than {first}."
    if row.conclusion == "no_difference":
        return f"No difference between {first} and {second} is shown."
    return f"{second} is {row.conclusion} than {first}."


def verdict_details(comparison: SystemComparison) -> list[str]:
    """Return what the verdict rests on, as sentences: counts, certainty, and what it leaves open.

    Empty if no question can be compared.
    """
    row = comparison.measure("flagged")
    first, second = comparison.first.name, comparison.second.name
    if not row.questions:
        return []
    measure = MEASURES["flagged"]
    difference, low, high = (
        _format_signed(measure, value or 0) for value in (row.difference, row.low, row.high)
    )
    both, only_first, only_second = (
        comparison.both_wrong_count,
        row.only_first or 0,
        row.only_second or 0,
    )
    counts = (
        f"Of {count_noun(row.questions, 'question')}, {second} got {only_second:,} wrong that"
        f" {first} got right, and {only_first:,} right that {first} got wrong. Both got {both:,}"
        f" wrong, so {first} has {both:,} + {only_first:,} = {both + only_first:,} wrong answers,"
        f" and {second} {both:,} + {only_second:,} = {both + only_second:,}."
    )
    how_sure = (
        f"The share of wrong answers differs by {difference} points (95% interval {low} to {high};"
        f" {certainty_text(row)})."
    )
    details = [counts, how_sure, basis_text(comparison)]
    if row.conclusion in ("no_difference", "too_few"):
        details += filter(None, (open_text(comparison), needed_text(comparison)))
    return details


def verdict_text(comparison: SystemComparison) -> str:
    """Return which system is better, how sure that is, and what it rests on."""
    return " ".join([verdict_head(comparison), *verdict_details(comparison)])


def basis_text(comparison: SystemComparison) -> str:
    """Return what the verdict rests on, as in "60 of 60 questions decided by people"."""
    basis, questions = comparison.basis, comparison.measure("flagged").questions
    people = f"{basis.decided:,} of {count_noun(questions, 'question')} decided by people"
    if basis.answers:
        blind = (
            "blind"
            if basis.blind == basis.answers
            else "not blind"
            if not basis.blind
            else f"{basis.blind:,} of {count_noun(basis.answers, 'answer')} blind"
        )
        people += f", {count_noun(basis.reviewers, 'reviewer')}, {blind}"
    counts = "counts" if basis.by_audit == 1 else "count"
    return f"{people}; {basis.by_audit:,} {counts} by the audit alone."


def open_text(comparison: SystemComparison) -> str:
    """Return what a verdict without a difference means, and how large the difference may be."""
    row, second = comparison.measure("flagged"), comparison.second.name
    why = (
        f"Too few to tell means that fewer than {LEAST_DECISIVE} questions differ, so that chance"
        " can't be ruled out even if one system wins them all"
        if row.conclusion == "too_few"
        else "No difference shown means that chance explains a difference of this size, not that"
        " the systems are equal"
    )
    sides = [
        f"{100 * abs(bound):.1f} points {word}"
        for bound, word in ((row.high, "worse"), (row.low, "better"))
        if bound is not None and (bound > 0 if word == "worse" else bound < 0)
    ]
    return f"{why}: {second} could still be up to {' or '.join(sides)}." if sides else f"{why}."


def needed_text(comparison: SystemComparison) -> str:
    """Return how many questions would show a difference; "" if none differs."""
    row = comparison.measure("flagged")
    if not comparison.needed:
        return ""
    needed = " and ".join(
        f"{needed.questions:,} {'questions to show' if not place else 'for'} {needed.points} points"
        for place, needed in enumerate(comparison.needed)
    )
    differing = (row.only_first or 0) + (row.only_second or 0)
    return (
        f"If as many answers differ as here ({differing:,} of {row.questions:,}), you'd need about"
        f" {needed} (with a power of 80%)."
    )


def accuracy_text(comparison: SystemComparison) -> str:
    """Return how far the audit agrees with people on these answers; "" if that isn't known."""
    known = comparison.audit_accuracy
    parts = [
        f"{flagged:,} of the {count_noun(count, 'answer')} that people {words}"
        for flagged, count, words in (
            (known.wrong_flagged, known.wrong, "rejected or corrected"),
            (known.right_flagged, known.right, "approved"),
        )
        if count
    ]
    return f"How reliable the audit is here: it flagged {', and '.join(parts)}." if parts else ""


def basis_title(comparison: SystemComparison, basis: MeasureBasis) -> str:
    """Return the heading of the measures with this basis."""
    if basis != "judged":
        return {"audit": "Flagged by the audit", "amount": "Cost and length"}[basis]
    if not comparison.basis.answers:
        return "Judged by the audit alone"
    mixed = comparison.basis.by_audit
    return "Judged by people, or else by the audit" if mixed else "Judged by people"


def basis_note(comparison: SystemComparison, basis: MeasureBasis) -> str:
    """Return in words what the measures with this basis rest on."""
    if basis == "judged":
        return basis_text(comparison)
    if basis == "amount":
        return ""
    rests = "These rows count the audit's issues, whatever people decided."
    return f"{rests} {accuracy_text(comparison)}".strip()


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


class MeasureGroup(NamedTuple):
    """Measures that rest on the same, with a heading and a note that say on what."""

    title: str
    note: str
    rows: list[tuple[Measure, MeasuredDifference]]


def measure_groups(comparison: SystemComparison) -> list[MeasureGroup]:
    """Return the measures that both systems have for some question, by what they rest on."""
    groups = []
    for basis in get_args(MeasureBasis):
        rows = [
            (measure, row)
            for row in comparison.measures
            if row.questions and (measure := MEASURES[row.measure]).basis == basis
        ]
        if rows:
            title, note = basis_title(comparison, basis), basis_note(comparison, basis)
            groups.append(MeasureGroup(title, note, rows))
    return groups


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

WITHOUT_PARTS: dict[GroupName, str] = {
    "reason": "Nobody has given a reason for rejecting or correcting an answer.",
    "field": "No question has a field. Import it as `metadata.field`, or map a column to it.",
    "mode": "No answer has a failure mode. Add one on the page of a case (key Y).",
    "cause": "No answer has a known cause. Label what is wrong with it (key L on its page), or"
    " choose a reason when you reject it.",
}
"""Where to set what differences are broken down by, if nothing is set."""


def differing_parts(comparison: SystemComparison) -> list[GroupDifference]:
    """Return the reasons, fields, failure modes and causes for which one system is shown worse."""
    return [part for part in comparison.groups if part.conclusion in ("better", "worse")]


def listed_parts(comparison: SystemComparison) -> tuple[list[GroupDifference], int]:
    """Return the parts with enough questions, and how many haven't.

    If no part has enough, all are listed.
    """
    large = [part for part in comparison.groups if part.questions >= FEWEST_QUESTIONS]
    if not large:
        return list(comparison.groups), 0
    return large, len(comparison.groups) - len(large)


def small_parts_text(count: int) -> str:
    """Say how many groups aren't listed."""
    groups = count_noun(count, "group")
    return f"{groups} with fewer than {FEWEST_QUESTIONS} questions not listed (`--json` has all)."


def no_parts_differ_text(comparison: SystemComparison) -> str:
    """Say that nothing differs in any part; "" if something does."""
    if differing_parts(comparison) or not comparison.groups:
        return ""
    counts = Counter(part.group for part in comparison.groups)
    parts = [
        count_noun(counts[name], noun.lower()) for name, noun in GROUPS.items() if counts[name]
    ]
    return f"No difference is shown in any group ({', '.join(parts)})."


def part_meaning(part: GroupDifference, comparison: SystemComparison) -> str:
    """Say what is counted in a part."""
    if part.group == "reason":
        return "Answers that people rejected, corrected or escalated for this reason first"
    if part.group == "field":
        return "Wrong answers to the questions of this field"
    if part.group == "mode":
        return "Answers to which people applied this failure mode"
    meaning = next((row.meaning for row in CAUSES.values() if row.name == part.value), "")
    people = comparison.causes_by == "people"
    whose = "by people's labels and reasons" if people else "by the audit's issues"
    return f"{meaning[:1].upper()}{meaning[1:]}; {whose}"


def causes_text(comparison: SystemComparison) -> str:
    """Say whose causes are counted; "" if there are none."""
    if not any(part.group == "cause" for part in comparison.groups):
        return ""
    if comparison.causes_by == "people":
        return "Causes are those of people's labels and reasons."
    return "People gave no causes for these answers, so the causes are those of the audit's issues."


class ListWords(NamedTuple):
    """The words of a list of questions: its heading, its description, and the text if empty."""

    title: str
    meaning: str
    nothing: str


LISTS: dict[ListName, ListWords] = {
    "worse": ListWords(
        "Regressions", "right before, wrong now", "No question that was right before is wrong now."
    ),
    "better": ListWords(
        "Improvements", "wrong before, right now", "No question that was wrong before is right now."
    ),
    "both_wrong": ListWords(
        "Wrong in both", "wrong before and now", "No question is wrong before and now."
    ),
    "both_right": ListWords(
        "Right in both", "right before and now", "No question is right before and now."
    ),
}


def issue_text(severity: Severity | None, *, audited: bool) -> str:
    """Return the audit's worst issue of an answer in a few words."""
    if not audited:
        return "not audited"
    return "no issue found by the audit" if severity is None else f"audit: {severity} issue"


class AnswerWords(NamedTuple):
    """What an answer says, and the reason and note of the decision on it."""

    reason: str = ""
    note: str = ""
    answer: str = ""


class ListedRow(NamedTuple):
    """A question of a list, as a row of a file."""

    question: str
    text: str
    field: str
    before: str
    before_judgement: str
    before_audit_issue: str
    now: str
    now_judgement: str
    now_audit_issue: str
    before_reason: str = ""
    before_note: str = ""
    now_reason: str = ""
    now_note: str = ""
    before_answer: str = ""
    now_answer: str = ""


def listed_rows(
    pairs: Iterable[AnswerPair], in_full: Mapping[str, AnswerWords] = MappingProxyType({})
) -> list[ListedRow]:
    """Return the questions of a list for a file.

    Args:
        pairs: The questions.
        in_full: The words of answers by case. The other rows have none.

    """
    none = AnswerWords()
    opened = [
        (pair, in_full.get(pair.first, none), in_full.get(pair.second, none)) for pair in pairs
    ]
    return [
        ListedRow(
            pair.question,
            pair.query,
            pair.field or "",
            pair.first,
            JUDGEMENT[pair.first_judgement].text,
            issue_text(pair.first_severity, audited=pair.first_audited),
            pair.second,
            JUDGEMENT[pair.second_judgement].text,
            issue_text(pair.second_severity, audited=pair.second_audited),
            before.reason,
            before.note,
            now.reason,
            now.note,
            before.answer,
            now.answer,
        )
        for pair, before, now in opened
    ]


def gate_command(comparison: SystemComparison) -> str:
    """Return the command that checks in CI that the second system isn't worse."""
    names = shlex.join([comparison.first.name, comparison.second.name])
    return f"masis compare {names} --gate --most-regressions {comparison.regression_count}"


def gate_test(comparison: SystemComparison) -> str:
    """Return the pytest test that checks the same."""
    return (
        "def test_the_new_version_is_not_worse(assert_not_worse):\n"
        f"    assert_not_worse({comparison.first.name!r}, {comparison.second.name!r},"
        f" most_regressions={comparison.regression_count})\n"
    )
