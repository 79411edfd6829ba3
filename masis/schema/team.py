"""Reviewing as a team: who is asked for a decision, how many people decide a case, and what they
may see before.
"""

from __future__ import annotations

import hashlib
import random
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from masis.schema.base import Record, Share

PolicyRule = Literal["first", "agree", "adjudicated"]
"""Which decision stands once all wanted ones are in: the first; the one that ``agree`` reviewers
share; the one that all share. Where none stands by the last two rules, the case needs an
adjudication."""

MachineShown = Literal["first", "after", "never"]
"""When a reviewer sees the machine's verdict: at once, after submitting, or not while the policy is
in force.
"""

MOST_REVIEWERS = 9
LEASE_MINUTES = 15
"""How long an opened case stays with its reviewer without a sign of them."""

Name = Annotated[str, Field(min_length=1, max_length=200)]


class CasePolicy(Record):
    """The policy one case is decided under, as each of its decisions records it: it outlasts the
    queue's policy.
    """

    version: int = Field(ge=1)
    reviewers: int = Field(ge=2, le=MOST_REVIEWERS)
    rule: PolicyRule
    agree: int = Field(ge=1, le=MOST_REVIEWERS)


class TeamRecord(Record):
    """What a team sets for all its reviewers: ``version`` counts those of its kind that were set, 0
    is the default.
    """

    kind: ClassVar[str]
    version: int = Field(default=0, ge=0)


class QueuePolicy(TeamRecord):
    """How the cases of a database are given to reviewers.

    ``share`` of the cases, drawn by their ids and ``seed``, is decided by ``reviewers`` people, the
    others by one. ``agree`` is how many have to give the same verdict on the same answer under the
    rule ``agree``.
    """

    kind = "policy"
    reviewers: int = Field(default=1, ge=1, le=MOST_REVIEWERS)
    share: Share = 1.0
    seed: int = Field(default=0, ge=0)
    rule: PolicyRule = "adjudicated"
    agree: int = Field(default=2, ge=1, le=MOST_REVIEWERS)
    machine: MachineShown = "first"
    lease_minutes: int = Field(default=LEASE_MINUTES, ge=1, le=24 * 60)

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        if self.rule == "agree" and self.reviewers > 1 and self.agree > self.reviewers:
            raise ValueError(f"{self.agree} reviewers can't agree where {self.reviewers} decide")
        return self

    def for_case(self, case_id: str) -> CasePolicy | None:
        """Return the policy of one case; None where one person decides it."""
        digest = hashlib.sha256(f"{self.seed}\n{case_id}".encode()).digest()
        if self.reviewers == 1 or int.from_bytes(digest[:8]) >= self.share * 2**64:
            return None
        agree = {"first": 1, "agree": self.agree, "adjudicated": self.reviewers}[self.rule]
        return CasePolicy(
            version=max(1, self.version), reviewers=self.reviewers, rule=self.rule, agree=agree
        )

    def decisions_needed(self, case_id: str) -> int:
        """Return how many people decide a case."""
        policy = self.for_case(case_id)
        return policy.reviewers if policy else 1


class RubricScore(Record):
    """A score of the team's own: a scale of whole numbers, or named categories."""

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
        """Whether a value lies on the scale or is one of the categories."""
        if self.categories:
            return value in self.categories
        return (
            type(value) is int
            and self.low is not None
            and self.high is not None
            and self.low <= value <= self.high
        )


class Rubric(TeamRecord):
    """What the team asks of every reviewer beside the verdict."""

    kind = "rubric"
    guidelines: str = Field(default="", max_length=20_000)
    scores: tuple[RubricScore, ...] = Field(default=(), max_length=20)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [score.name.casefold() for score in self.scores]
        if len(set(names)) < len(names):
            raise ValueError("two scores of a rubric have the same name")
        return self


class LabelType(Record):
    """A kind of issue that reviewers report by labelling words of an answer, under the team's own
    name for it.
    """

    name: Annotated[str, Field(min_length=1, max_length=60)]
    guidance: str = Field(default="", max_length=500)


DEFAULT_LABEL_TYPES = (
    LabelType(
        name="fabricated citation",
        guidance="cites evidence that does not exist, or quotes words that it does not hold",
    ),
    LabelType(name="unsupported", guidance="says more than the evidence"),
    LabelType(name="contradicted", guidance="the evidence contradicts it"),
    LabelType(name="incomplete", guidance="a point that the question needs is missing"),
    LabelType(
        name="unsafe",
        guidance="could harm who acts on it, or orders its reader or a tool to do something",
    ),
    LabelType(name="other", guidance="say what is wrong"),
)
"""The types until a team sets its own."""


class LabelTypes(TeamRecord):
    """The team's label types, in the order offered."""

    kind = "label_types"
    types: tuple[LabelType, ...] = Field(default=DEFAULT_LABEL_TYPES, min_length=1, max_length=30)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [each.name.casefold() for each in self.types]
        if len(set(names)) < len(names):
            raise ValueError("two label types have the same name")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types."""
        return tuple(each.name for each in self.types)


class SavedView(Record):
    """A filter of the queue under a name; ``parameters`` are those of the queue's address."""

    name: Name
    owner: str = Field(default="", max_length=200)
    parameters: dict[str, str] = Field(default_factory=dict)
    removed: bool = False


class Lease(Record):
    """A case taken for decision: by whom, since when and until when (ISO 8601, UTC)."""

    case_id: str
    reviewer: str
    taken_at: str
    until: str


class CaseWork(Record):
    """What the team knows about the work on one case.

    ``decided_by`` names who has a decision that counts; ``pending`` says how many decisions a case
    with several reviewers still lacks after the first.
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
    """An import from a lake of audited cases: what it held, and the share of the auto-accepted that
    was drawn.

    A case is drawn by its id and ``seed`` alone (``draws``), so that the sample can be named again
    at any time; what was not drawn stays in the lake. ``accepted``, ``needs_review`` and ``failed``
    count what it held.
    """

    place: str
    share: Share
    seed: int
    accepted: int = Field(ge=0)
    drawn: int = Field(ge=0)
    needs_review: int = Field(ge=0)
    failed: int = Field(ge=0)

    def draws(self, case_id: str) -> bool:
        """Return whether the sample holds a case that was auto-accepted."""
        return is_drawn_from_lake(case_id, self.seed, self.share)


def is_drawn_from_lake(case_id: str, seed: int, share: float) -> bool:
    """Return whether a random sample draws a case, by its id and the seed.

    The spot checks of audits draw by the same means: a word of its own keeps this draw apart from
    theirs, which have left the auto-accepted cases already.
    """
    return random.Random(f"lake:{seed}:{case_id}").random() < share
