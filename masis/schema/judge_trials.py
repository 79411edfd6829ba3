"""The decided cases that measure the judge, and the trial audits of a judge version on them.

A trial is an ordinary audit whose result is stored beside the case's runs instead of among them,
so it changes no state, no queue and no figure.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from masis.schema.audit import Issue
from masis.schema.base import Record
from masis.schema.calls import Usage
from masis.schema.judge import CaseId, HouseRuling, QuestionId

MOST_TRIED = 500
"""Maximum number of cases per trial, each of which is an audit."""

Half = Literal["first", "held_out"]
"""A half of the decided cases, by question."""


class HalfRow(NamedTuple):
    """The words of a half, and what it's for."""

    words: str
    meaning: str


HALVES: dict[Half, HalfRow] = {
    "first": HalfRow("First half", "Its cases are shown, to write rules and examples from"),
    "held_out": HalfRow("Held-out half", "It only measures versions; none is written from it"),
}
"""The halves of the decided cases."""


class DecidedFilter(Record):
    """Selects the decided cases that measure the judge.

    Attributes:
        blind_only: Leave out cases that were decided with the audit's verdict in view.
        auditor: The auditor's digest; "" for all.
        dataset: The name of the data set; "" for all.
        field: The field of knowledge; "" for all.
        since: The first day, ISO 8601.
        until: The day after the last one, ISO 8601.

    """

    blind_only: bool = True
    auditor: str = Field(default="", max_length=200)
    dataset: str = Field(default="", max_length=1000)
    field: str = Field(default="", max_length=1000)
    since: str = Field(default="", max_length=40)
    until: str = Field(default="", max_length=40)


class DecidedSplit(Record):
    """Decided cases that somebody chose, split into halves by question.

    ``seed`` and the questions give the halves: no question is in both, so the answers of two
    systems to one question aren't either. A question that is decided later belongs to the first
    half, because a version may have been written from everything that isn't held out.
    """

    id: str
    at: str
    by: str
    seed: int
    filters: DecidedFilter
    cases: int
    questions: int
    held_out: tuple[QuestionId, ...]

    def half_of(self, question: str) -> Half:
        """Return the half of a question, given by its id."""
        return "held_out" if question in self.held_out else "first"


class TrialOutcome(Record):
    """What the judge with a version found in the original answer of a decided case.

    Attributes:
        run_id: The stored audit that the decision is about. The trial had its settings.
        digest: The digest of the version's content.
        judge: The version's name when it was tried.
        verdict: One of ``AUDIT_VERDICTS``.
        before: The judge version of the stored audit by name; "" for the default judge.
        rulings: The critic's issues that a house rule or the severity table changed.
        same_prompts: Whether the stored audit had the same prompts and models apart from the
            version. If it hadn't, they may be the reason for another verdict.

    """

    case_id: CaseId
    run_id: str
    digest: str
    judge: str
    verdict: str
    before: str = ""
    issues: tuple[Issue, ...] = ()
    rulings: tuple[HouseRuling, ...] = ()
    same_prompts: bool = True
    usage: Usage
    by: str
    at: str
