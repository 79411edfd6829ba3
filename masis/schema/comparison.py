"""The comparison of two systems over the questions that both answered."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.systems import System

Judgement = Literal[
    "approved", "overridden", "rejected", "flagged", "not_confirmed", "nothing_found"
]
"""What is known of an answer: the decision in force (the first three), or what the audit found."""

WRONG: frozenset[Judgement] = frozenset(("overridden", "rejected", "flagged"))
"""Judgements of answers that count as wrong. An answer that isn't confirmed doesn't."""

MeasureName = Literal[
    "flagged", "fabricated", "contradicted", "unsupported", "missing", "cost", "length"
]
GroupName = Literal["field", "mode", "cause"]
Conclusion = Literal["better", "worse", "no_difference", "too_few"]
"""What a difference says about the second system. ``no_difference`` means that none was shown."""


class Measure(NamedTuple):
    """A figure by which systems are compared.

    Attributes:
        title: Its name in tables.
        meaning: What it counts, in one sentence.
        flag: The flag that counts; empty for figures from elsewhere.
        unit: "share" of questions, or the unit of a mean.
        lower_is_better: Whether less of it is better; None if neither is better.

    """

    title: str
    meaning: str
    flag: str = ""
    unit: Literal["share", "characters", "USD"] = "share"
    lower_is_better: bool | None = True


MEASURES: dict[MeasureName, Measure] = {
    "flagged": Measure(
        "Wrong",
        "Answers that a person rejected or corrected, or that the audit flagged and nobody decided",
    ),
    "fabricated": Measure(
        "Fabricated", "Answers with a reference that is not in the evidence", "invalid_reference"
    ),
    "contradicted": Measure(
        "Contradicted", "Answers with a claim that the evidence contradicts", "contradicted"
    ),
    "unsupported": Measure(
        "Unsupported", "Answers with a claim that the evidence doesn't support", "unsupported"
    ),
    "missing": Measure("Missing", "Answers that leave out what the question needs", "missing"),
    "cost": Measure("Cost", "The mean cost of an answer, where both are known", unit="USD"),
    "length": Measure(
        "Length", "The mean length of an answer", unit="characters", lower_is_better=None
    ),
}
"""The measures of a comparison, in display order."""

GROUPS: dict[GroupName, str] = {"field": "Field", "mode": "Failure mode", "cause": "Cause"}
"""What differences are broken down by."""


class PairedDifference(Record):
    """A measure of two systems over the same questions.

    Attributes:
        questions: The questions for which both systems have the measure.
        first: The first system's share or mean; None without questions.
        second: The second system's.
        only_first: For shares: the questions where only the first system's answer counts.
        only_second: For shares: the questions where only the second system's answer counts.
        difference: The second system's figure less the first one's.
        low: The lower end of its 95% interval; None if there are too few questions for one.
        high: The upper end.
        p: For shares: the p-value of McNemar's exact test.

    """

    questions: int
    first: float | None = None
    second: float | None = None
    only_first: int | None = None
    only_second: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    conclusion: Conclusion = "too_few"


class MeasuredDifference(PairedDifference):
    """The difference in one measure."""

    measure: MeasureName


class GroupDifference(PairedDifference):
    """The difference in flagged answers among the questions of a field, or in one mode or cause."""

    group: GroupName
    value: str


class AnswerPair(Record):
    """Two systems' answers to one question, and what is known of each."""

    question: str
    query: str
    field: str | None
    first: str
    second: str
    first_judgement: Judgement
    second_judgement: Judgement
    severity: Severity | None


class SystemComparison(Record):
    """Two systems over the questions that both answered.

    Attributes:
        shared: The questions that both answered.
        only_first: The questions that only the first system answered.
        only_second: The questions that only the second system answered.
        unjudged: Shared questions where an answer is neither audited nor decided.
        hidden: Shared questions where the policy hides results from this person.
        regressions: Questions with a right answer of the first system and a wrong one of the
            second, the worst first; at most ``MOST_LISTED``.
        improvements: The opposite.

    """

    first: System
    second: System
    shared: int
    only_first: int
    only_second: int
    unjudged: int
    hidden: int
    measures: tuple[MeasuredDifference, ...]
    groups: tuple[GroupDifference, ...] = ()
    regressions: tuple[AnswerPair, ...] = ()
    improvements: tuple[AnswerPair, ...] = ()
    regression_count: int = Field(default=0, ge=0)
    improvement_count: int = Field(default=0, ge=0)

    def measure(self, name: MeasureName) -> MeasuredDifference:
        """Return the difference in a measure."""
        return next(row for row in self.measures if row.measure == name)
