"""Words an action on many cases: why cases were left out, and what became of the others."""

from __future__ import annotations

from collections.abc import Mapping

from masis.schema.batches import Batch, LeftOut
from masis.schema.wording import count_noun

LEFT_OUT: dict[LeftOut, str] = {
    "decided": "already decided",
    "held": "taken by another reviewer",
    "your_draft": "you have a draft of a decision on it; submit or discard it first",
    "not_opened": "the policy hides the audit's results, and you haven't opened it",
    "drawn": "drawn for a guarantee, so it must be decided on its page",
    "serious_issues": "has serious open issues, which you must acknowledge to approve it",
    "no_answer": "has no answer",
    "being_audited": "is being audited",
    "needs_adjudication": "waits for adjudication",
    "superseded": "a newer version replaced it",
    "redacted": "redacted",
    "planted": "a planted fault, whose decisions are only measured",
    "nothing_to_change": "nothing would change",
    "no_decision_of_yours": "you haven't decided it",
    "sentence_missing": "the decided answer doesn't have the sentence",
    "changed": "it has changed since the preview",
    "refused": "the rules of a decision refuse it",
    "replaced": "a later entry has replaced it",
    "settled": "all of its decisions are made, so none can be undone",
    "cancelled": "cancelled before its turn",
}
"""Why an action, or its undo, left a case as it was."""


def left_out_lines(counts: Mapping[LeftOut, int]) -> list[str]:
    """Return one line for each reason why cases were left out, with their number."""
    return [f"{count:,}: {LEFT_OUT[reason]}" for reason, count in counts.items()]


def batch_result(batch: Batch, done: str) -> str:
    """Say in one sentence what became of a batch; ``done`` is its action in the past tense."""
    if batch.state in ("undoing", "undone"):
        ended = batch.undone + sum(batch.not_undone.values())
        total = ended + batch.recorded
        return f"Undone: {batch.undone:,} of {count_noun(total, 'entry', 'entries')}."
    left = sum(batch.kept.values())
    left_out = f" {left:,} left as {'it was' if left == 1 else 'they were'}." if left else ""
    waiting = f" {batch.waiting:,} still waiting." if batch.waiting else ""
    return f"{done} {count_noun(batch.recorded, 'case')}.{left_out}{waiting}"
