"""Reviewing as a team: assignment, the number of decisions per case, and visibility rules."""

from __future__ import annotations

import hashlib
import random
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from masis.schema.base import Record, Share

PolicyRule = Literal["first", "agree", "adjudicated"]
"""The decision that is valid once all wanted ones are made.

``first`` is the first one; ``agree`` the one that ``agree`` reviewers share; ``adjudicated`` the
one that all share. If the last two rules find none, the case needs an adjudication.
"""

SystemsShown = Literal["always", "after"]
"""When a reviewer sees which system wrote an answer: ``after`` is after their preference."""

MachineShown = Literal["first", "after", "never"]
"""When a reviewer sees the machine's verdict.

``first`` is at once, ``after`` is after submitting, and ``never`` lasts while the policy is in
force.
"""

MOST_REVIEWERS = 9
LEASE_MINUTES = 15
"""Minutes after which an opened case is released if its reviewer shows no activity."""

Name = Annotated[str, Field(min_length=1, max_length=200)]


class CasePolicy(Record):
    """The policy that one case is decided under, as each of its decisions records it.

    It stays the same if the queue's policy changes.
    """

    version: int = Field(ge=1)
    reviewers: int = Field(ge=2, le=MOST_REVIEWERS)
    rule: PolicyRule
    agree: int = Field(ge=1, le=MOST_REVIEWERS)


class TeamRecord(Record):
    """A setting that a team makes for all its reviewers.

    ``version`` counts the settings of its kind; 0 is the default.
    """

    kind: ClassVar[str]
    version: int = Field(default=0, ge=0)


class QueuePolicy(TeamRecord):
    """How the cases of a database are assigned to reviewers.

    Attributes:
        share: The share of cases that ``reviewers`` people decide, drawn by case id and ``seed``.
            One person decides each of the others.
        agree: The number of reviewers who must give the same verdict on the same answer under the
            rule ``agree``.

    """

    kind = "policy"
    reviewers: int = Field(default=1, ge=1, le=MOST_REVIEWERS)
    share: Share = 1.0
    seed: int = Field(default=0, ge=0)
    rule: PolicyRule = "adjudicated"
    agree: int = Field(default=2, ge=1, le=MOST_REVIEWERS)
    machine: MachineShown = "first"
    systems: SystemsShown = "always"
    lease_minutes: int = Field(default=LEASE_MINUTES, ge=1, le=24 * 60)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        if self.rule == "agree" and self.reviewers > 1 and self.agree > self.reviewers:
            raise ValueError(f"{self.agree} reviewers can't agree if only {self.reviewers} decide")
        return self

    def for_case(self, case_id: str) -> CasePolicy | None:
        """Return the policy of one case, or None if one person decides it."""
        digest = hashlib.sha256(f"{self.seed}\n{case_id}".encode()).digest()
        if self.reviewers == 1 or int.from_bytes(digest[:8]) >= self.share * 2**64:
            return None
        agree = {"first": 1, "agree": self.agree, "adjudicated": self.reviewers}[self.rule]
        return CasePolicy(
            version=max(1, self.version), reviewers=self.reviewers, rule=self.rule, agree=agree
        )

    def decisions_needed(self, case_id: str) -> int:
        """Return the number of people who decide a case."""
        policy = self.for_case(case_id)
        return policy.reviewers if policy else 1


class RubricScore(Record):
    """A score that the team defines: a scale of whole numbers, or named categories."""

    name: Name
    guidance: str = Field(default="", max_length=2000)
    low: int | None = None
    high: int | None = None
    categories: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        scale = (
            self.low is not None
            and self.high is not None
            and self.low < self.high <= self.low + 100
        )
        if scale == bool(self.categories) or (
            not scale and (self.low is not None or self.high is not None)
        ):
            raise ValueError(
                f"{self.name!r} needs a scale (low below high, at most 100 steps) or categories,"
                " not both"
            )
        return self

    def accepts(self, value: object) -> bool:
        """Return whether a value is on the scale or one of the categories."""
        if self.categories:
            return value in self.categories
        return (
            type(value) is int
            and self.low is not None
            and self.high is not None
            and self.low <= value <= self.high
        )


class Rubric(TeamRecord):
    """The questions that the team asks every reviewer in addition to the verdict."""

    kind = "rubric"
    guidelines: str = Field(default="", max_length=20_000)
    scores: tuple[RubricScore, ...] = Field(default=(), max_length=20)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [score.name.casefold() for score in self.scores]
        if len(set(names)) < len(names):
            raise ValueError("two scores of a rubric have the same name")
        return self


class ProposalOutcome(TeamRecord):
    """What became of a sentence that an adjudication proposed for the rubric.

    It names the entry of the log, without the sentence, so that a redaction of the entry removes
    the sentence everywhere but in the rubric. ``rubric`` is the version with an accepted sentence.
    """

    kind = "rubric_proposal"
    entry_id: str = ""
    accepted: bool = False
    rubric: int | None = None


class LabelType(Record):
    """A kind of issue, under the team's own name, that reviewers report on words of an answer."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    guidance: str = Field(default="", max_length=500)


DEFAULT_LABEL_TYPES = (
    LabelType(
        name="fabricated citation",
        guidance="cites evidence that doesn't exist, or quotes words that aren't in it",
    ),
    LabelType(name="unsupported", guidance="says more than the evidence"),
    LabelType(name="contradicted", guidance="the evidence contradicts it"),
    LabelType(name="incomplete", guidance="a point that the question needs is missing"),
    LabelType(
        name="unsafe",
        guidance="could harm someone who acts on it, or tells its reader or a tool to do something",
    ),
    LabelType(name="misattributed", guidance="cites a chunk that isn't the one that says it"),
    LabelType(name="other", guidance="say what is wrong"),
)
"""The label types until a team sets its own."""


class LabelTypes(TeamRecord):
    """The team's label types, in display order."""

    kind = "label_types"
    types: tuple[LabelType, ...] = Field(default=DEFAULT_LABEL_TYPES, min_length=1, max_length=30)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [label_type.name.casefold() for label_type in self.types]
        if len(set(names)) < len(names):
            raise ValueError("two label types have the same name")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types."""
        return tuple(label_type.name for label_type in self.types)


class SavedView(Record):
    """A named filter of the queue; ``parameters`` are those of the queue's address."""

    name: Name
    owner: str = Field(default="", max_length=200)
    parameters: dict[str, str] = Field(default_factory=dict)
    removed: bool = False


class Lease(Record):
    """A case claimed for decision by one reviewer, with its start and end (ISO 8601, UTC)."""

    case_id: str
    reviewer: str
    taken_at: str
    until: str


class CaseWork(Record):
    """The work that the team has done on one case.

    ``decided_by`` names the reviewers whose decisions count. ``pending`` counts the decisions that
    a case with several reviewers still needs after the first.
    """

    case_id: str
    wanted: int
    pending: int
    policy: CasePolicy | None
    decided_by: tuple[str, ...]
    assignees: tuple[str, ...]
    tags: tuple[str, ...]
    leases: tuple[Lease, ...]
    skipped_by: tuple[str, ...]


class LakeSample(Record):
    """An import from a lake of audited cases, with the share of auto-accepted cases that was drawn.

    Drawing depends only on the case id and ``seed`` (``draws``), so the sample can be recomputed at
    any time. The other cases stay in the lake. ``accepted``, ``needs_review`` and ``failed`` count
    the cases of the lake.
    """

    place: str
    share: Share
    seed: int
    accepted: int = Field(ge=0)
    drawn: int = Field(ge=0)
    needs_review: int = Field(ge=0)
    failed: int = Field(ge=0)

    def draws(self, case_id: str) -> bool:
        """Return whether the sample includes an auto-accepted case."""
        return is_drawn_from_lake(case_id, self.seed, self.share)


def is_drawn_from_lake(case_id: str, seed: int, share: float) -> bool:
    """Return whether a random sample draws a case, by its id and the seed.

    The prefix ``lake:`` makes this draw independent of the spot checks of audits, which use the
    same method and have already removed their cases from the auto-accepted ones.
    """
    return random.Random(f"lake:{seed}:{case_id}").random() < share
