"""What outlasts a run: the log of executions, and the record of what retention removed. No text of
any run.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from masis.schema.base import Record
from masis.schema.run import TerminationReason

ExecutionEnd = TerminationReason | Literal["abandoned"]
"""How an execution ended: as the loop says, or ``abandoned`` where its process was cut short."""

PurgedKind = Literal["run", "screening", "remembered_grades"]
KeptFor = Literal["decided", "waiting"]
"""Why something old enough is kept: a person's entry in a log is about it, or it waits for one and
is to be kept.
"""

Trigger = Literal["command", "page", "automatic", "redaction"]
"""Where a purge came from; ``redaction``: the case of its runs was redacted."""


class Execution(Record):
    """One execution of the critic loop (REQ-CRITIC-COMP-001).

    A run that is cut short and taken up again is executed twice: ``start`` counts from 1. ``at`` is
    when it ended. ``final_quality`` is of the best iteration, ``improvement`` in percent; both None
    where nothing was scored.
    """

    at: str
    run_id: str
    start: int = Field(ge=1)
    case_id: str
    started_at: str
    iterations: int = Field(ge=0)
    final_quality: float | None
    improvement: float | None
    termination: ExecutionEnd
    models: dict[str, str]
    app: str
    rubric: str


class RetentionRule(Record):
    """What is removed: everything that ended before ``cutoff``, but for what is retained by
    default.

    ``days`` is the age that the cutoff was computed from. ``decided`` takes what people's decisions
    rest on too; ``waiting=False`` keeps the runs that wait for a person.
    """

    cutoff: str
    days: int = Field(ge=0)
    decided: bool = False
    waiting: bool = True

    @property
    def departures(self) -> str:
        """Where this is not the plain rule, to be put behind the rule in words."""
        return (", with what was decided" if self.decided else "") + (
            "" if self.waiting else ", without what was waiting"
        )


class PartCounts(Record):
    """How many of which parts; those of a kind that there is none of are 0."""

    iterations: int = 0
    drafts: int = 0
    events: int = 0
    steps: int = 0
    rounds: int = 0
    abstracts: int = 0
    grades: int = 0


class Removal(Record):
    """One thing that went: which, how much of it, and the digest of what it was."""

    kind: PurgedKind
    id: str
    digest: str
    bytes: int
    parts: PartCounts


class Amount(Record):
    """How much content goes, or went: how many runs and screenings, bytes inside the file, and
    parts.
    """

    runs: int = 0
    screenings: int = 0
    bytes: int = 0
    parts: PartCounts = PartCounts()


class Purge(Amount):
    """One purge: when, by whom, by which rule, and how much went. ``seq`` counts from 1."""

    seq: int
    at: str
    by: str
    how: Trigger
    rule: RetentionRule
    app: str


class Candidate(Record):
    """Something that is old enough to go; ``waits``: it is what a person has yet to decide on."""

    kind: PurgedKind
    id: str
    about: str
    state: str
    ended_at: str
    bytes: int
    parts: PartCounts
    waits: bool = False


class PurgePlan(Amount):
    """What a purge would do now: what goes and what is old enough and kept; ``file_bytes`` is the
    file as it is.
    """

    rule: RetentionRule
    goes: tuple[Candidate, ...]
    kept: dict[KeptFor, int]
    runs_in_all: int
    screenings_in_all: int
    file_bytes: int

    @property
    def waiting(self) -> int:
        """How many of the runs that go wait for a person."""
        return sum(each.waits for each in self.goes)


class Shrunk(Record):
    """What giving free space back to the disk came to: the file's size before and after, and why it
    did not shrink.
    """

    before: int
    after: int
    why_not: str = ""
