"""The comparison of two systems over the questions that both answered."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from pydantic import Field

from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.systems import System

Judgement = Literal[
    "approved", "overridden", "rejected", "flagged", "not_confirmed", "nothing_found"
]
"""What is known of an answer: the decision in force (the first three), or what the audit found."""

DECIDED: frozenset[str] = frozenset(("approved", "overridden", "rejected"))
"""Judgements that are people's decisions, which are also states of cases."""

WRONG: frozenset[Judgement] = frozenset(("overridden", "rejected", "flagged"))
"""Judgements of answers that count as wrong. An answer that isn't confirmed doesn't."""

LEAST_DECISIVE = 6
"""Fewer pairs that differ are too few to tell which system is better.

Even if all of them agree, the exact McNemar test of five pairs gives p = 2 / 2^5 = 0.0625.
"""

MeasureName = Literal[
    "flagged", "fabricated", "contradicted", "unsupported", "missing", "cost", "length"
]
GroupName = Literal["reason", "field", "mode", "cause"]
ListName = Literal["worse", "better", "both_wrong", "both_right"]
"""The lists of questions: by which system's answer is wrong."""
LIST_NAMES: tuple[ListName, ...] = get_args(ListName)
MeasureBasis = Literal["judged", "audit", "amount"]
"""What a measure rests on: people's decisions where there are any, the audit's issues, or neither.
"""
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
        basis: What it rests on.

    """

    title: str
    meaning: str
    flag: str = ""
    unit: Literal["share", "characters", "USD"] = "share"
    lower_is_better: bool | None = True
    basis: MeasureBasis = "audit"


MEASURES: dict[MeasureName, Measure] = {
    "flagged": Measure(
        "Wrong",
        "Answers that a person rejected or corrected, or that the audit flagged and nobody decided",
        basis="judged",
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
    "missing": Measure(
        "Missing", "Answers that leave out something relevant that the evidence says", "missing"
    ),
    "cost": Measure(
        "Cost", "The mean cost of an answer, where both are known", unit="USD", basis="amount"
    ),
    "length": Measure(
        "Length",
        "The mean length of an answer",
        unit="characters",
        lower_is_better=None,
        basis="amount",
    ),
}
"""The measures of a comparison, in display order."""

GROUPS: dict[GroupName, str] = {
    "reason": "Reason",
    "field": "Field",
    "mode": "Failure mode",
    "cause": "Cause",
}
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
    """The difference in wrong answers among the questions of a field, or in the answers with one
    reason, failure mode or cause.
    """

    group: GroupName
    value: str


class AnswerPair(Record):
    """Two systems' answers to one question, and what is known of each.

    ``severity`` is that of the audit's worst issue in the wrong answer, or in either if both are
    alike. The other two name the answer; None if the audit found no issue in it, or if it wasn't
    audited.
    """

    question: str
    query: str
    field: str | None
    first: str
    second: str
    first_judgement: Judgement
    second_judgement: Judgement
    severity: Severity | None
    first_severity: Severity | None = None
    second_severity: Severity | None = None
    first_audited: bool = True
    second_audited: bool = True


class VerdictBasis(Record):
    """What the share of wrong answers rests on.

    Attributes:
        decided: The questions on which people decided both answers.
        by_audit: The questions on which at least one answer counts by the audit alone.
        reviewers: The people whose decisions count.
        answers: The answers that people decided.
        blind: Those of them that were decided without the audit's verdict in view.

    """

    decided: int = 0
    by_audit: int = 0
    reviewers: int = 0
    answers: int = 0
    blind: int = 0


class AuditAccuracy(Record):
    """How far the audit agrees with people on the compared answers that both judged.

    Attributes:
        wrong: The answers that people rejected or corrected.
        wrong_flagged: Those of them that the audit flagged.
        right: The answers that people approved.
        right_flagged: Those of them that the audit flagged.

    """

    wrong: int = 0
    wrong_flagged: int = 0
    right: int = 0
    right_flagged: int = 0


class QuestionsNeeded(Record):
    """About how many questions would show a difference of this many points, with a power of 80%."""

    points: int
    questions: int


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
        both_wrong: Questions with two wrong answers.
        both_right: Questions without a wrong answer.
        basis: What the share of wrong answers rests on.
        audit_accuracy: How far the audit agrees with people here.
        needed: How many questions would show a difference, if as many differ as here; empty if no
            question differs.
        causes_by: Whose causes ``groups`` has: people's if they gave any, or else the audit's.

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
    both_wrong: tuple[AnswerPair, ...] = ()
    both_right: tuple[AnswerPair, ...] = ()
    both_wrong_count: int = Field(default=0, ge=0)
    both_right_count: int = Field(default=0, ge=0)
    basis: VerdictBasis = VerdictBasis()
    audit_accuracy: AuditAccuracy = AuditAccuracy()
    needed: tuple[QuestionsNeeded, ...] = ()
    causes_by: Literal["people", "audit"] = "audit"

    def measure(self, name: MeasureName) -> MeasuredDifference:
        """Return the difference in a measure."""
        return next(row for row in self.measures if row.measure == name)

    def list_questions(self, name: ListName) -> tuple[tuple[AnswerPair, ...], int]:
        """Return a list of questions, and how many there are of this kind."""
        return {
            "worse": (self.regressions, self.regression_count),
            "better": (self.improvements, self.improvement_count),
            "both_wrong": (self.both_wrong, self.both_wrong_count),
            "both_right": (self.both_right, self.both_right_count),
        }[name]
