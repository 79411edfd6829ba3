"""Actions on many cases at once: why a case is left out, and what became of the others."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from masis.schema.base import Record
from masis.schema.case import Severity

LeftOut = Literal[
    "decided",
    "held",
    "your_draft",
    "not_opened",
    "drawn",
    "serious_issues",
    "no_answer",
    "being_audited",
    "needs_adjudication",
    "superseded",
    "redacted",
    "planted",
    "nothing_to_change",
    "no_decision_of_yours",
    "sentence_missing",
    "changed",
    "refused",
    "replaced",
    "settled",
    "cancelled",
]
"""Why an action, or its undo, leaves a case as it is. The words are in ``views/batch_words.py``.

``held``: another reviewer has taken the case. ``your_draft``: the reviewer has a draft on it, which
a decision would remove. ``not_opened``: the policy hides the audit's results
and the reviewer hasn't opened the case. ``drawn``: the case is part of the sample for a guarantee,
whose answers are judged one by one. ``changed``: the case has changed since the preview.
``refused``: a rule of the log refuses the entry. ``replaced``: a later entry has taken the place of
the one to undo. ``settled``: all decisions of several reviewers are made, so none can be undone.
"""

Outcome = Literal["waiting", "recorded", "kept", "undone", "not_undone"]
"""What became of a case of a batch.

``recorded``: an entry was made. ``kept``: no entry was made, for the reason stored with it.
``undone``: the entry was undone. ``not_undone``: it couldn't be.
"""

BatchState = Literal["applying", "applied", "cancelled", "undoing", "undone"]


class SentenceLabel(Record):
    """A label on words of a sentence, in every answer that has the sentence.

    ``text`` is the words of the sentence to label; empty for the whole sentence. With a
    ``severity`` it reports an issue of one of the team's label types.
    """

    sentence: str = Field(min_length=1)
    label: str
    text: str = ""
    severity: Severity | None = None
    note: str = ""
    target: Literal["claim", "span"] | None = None


class Batch(Record):
    """The entries that one action on several cases made.

    Attributes:
        by: The person who made them.
        at: When it began, as in the log.
        action: The name of the action (``services/batches.py``).
        names: The tags, or the reviewers that cases were assigned to.
        waiting: Cases that are still to be handled.
        recorded: Entries in the log that aren't undone.
        kept: Cases without an entry, by the reason.
        undone: Entries that were undone.
        not_undone: Entries that couldn't be undone, by the reason.

    """

    id: str
    by: str
    at: str
    action: str
    state: BatchState
    names: tuple[str, ...] = ()
    waiting: int = 0
    recorded: int = 0
    kept: dict[LeftOut, int] = Field(default_factory=dict)
    undone: int = 0
    not_undone: dict[LeftOut, int] = Field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether cases wait to be handled or undone."""
        return self.state in ("applying", "undoing")

    @property
    def total(self) -> int:
        """The number of its cases."""
        ended = self.undone + sum(self.not_undone.values())
        return self.waiting + self.recorded + sum(self.kept.values()) + ended

    @property
    def left(self) -> int:
        """The number of cases that the present pass has yet to handle."""
        return {"applying": self.waiting, "undoing": self.recorded}.get(self.state, 0)
