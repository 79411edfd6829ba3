"""Records that outlast a run: the execution log and the purge log.

They contain no text of a run.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from masis.schema.base import Record
from masis.schema.run import TerminationReason

ExecutionEnd = TerminationReason | Literal["abandoned"]
"""How an execution ended: the loop's reason, or ``abandoned`` if its process was interrupted."""

PurgedKind = Literal["run", "screening", "remembered_grades"]
KeptFor = Literal["decided", "waiting"]
"""Why something is kept although it is old enough to remove.

``decided`` means that a log entry of a person is about it; ``waiting`` means that it waits for a
person and such runs are to be kept.
"""

Trigger = Literal["command", "page", "automatic", "redaction"]
"""The origin of a purge; ``redaction`` means that the case of its runs was redacted."""


class Execution(Record):
    """One execution of the critic loop (REQ-CRITIC-COMP-001).

    A run that is interrupted and resumed is executed twice: ``start`` counts from 1. ``at`` is the
    time of its end. ``final_quality`` is that of the best iteration and ``improvement`` is in
    percent; both are None if nothing was scored.
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
    """The rule of a purge: remove everything that ended before ``cutoff``, with exceptions.

    Attributes:
        days: The age from which the cutoff was computed.
        decided: Also remove runs that people's decisions are based on.
        waiting: Also remove runs that wait for a person.

    """

    cutoff: str
    days: int = Field(ge=0)
    decided: bool = False
    waiting: bool = True

    @property
    def departures(self) -> str:
        """The differences from the default rule, as a suffix for its description."""
        return (", with what was decided" if self.decided else "") + (
            "" if self.waiting else ", without what was waiting"
        )


class PartCounts(Record):
    """The number of parts by kind."""

    iterations: int = 0
    drafts: int = 0
    events: int = 0
    steps: int = 0
    rounds: int = 0
    abstracts: int = 0
    grades: int = 0


class Removal(Record):
    """One removed record, with its size and the digest of its content."""

    kind: PurgedKind
    id: str
    digest: str
    bytes: int
    parts: PartCounts


class Amount(Record):
    """An amount of content: runs, screenings, bytes in the file, and parts."""

    runs: int = 0
    screenings: int = 0
    bytes: int = 0
    parts: PartCounts = PartCounts()


class Purge(Amount):
    """One purge, with its time, person, rule and amount. ``seq`` counts from 1."""

    seq: int
    at: str
    by: str
    how: Trigger
    rule: RetentionRule
    app: str


class Candidate(Record):
    """A record that is old enough to remove.

    ``waits`` says that a person hasn't decided on it yet.
    """

    kind: PurgedKind
    id: str
    about: str
    state: str
    ended_at: str
    bytes: int
    parts: PartCounts
    waits: bool = False


class PurgePlan(Amount):
    """The effect that a purge would have now.

    ``goes`` lists the records to remove, ``kept`` counts those that are old enough but kept, and
    ``file_bytes`` is the current size of the file.
    """

    rule: RetentionRule
    goes: tuple[Candidate, ...]
    kept: dict[KeptFor, int]
    runs_in_all: int
    screenings_in_all: int
    file_bytes: int

    @property
    def waiting(self) -> int:
        """The number of runs to remove that wait for a person."""
        return sum(candidate.waits for candidate in self.goes)


class Shrunk(Record):
    """The result of returning free space to the disk.

    It holds the file's size before and after, and the reason if it didn't shrink.
    """

    before: int
    after: int
    why_not: str = ""
