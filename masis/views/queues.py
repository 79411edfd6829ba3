"""Named queues in words, for pages and commands."""

from __future__ import annotations

from typing import Any, Protocol

from masis.schema.team import QueuePolicy
from masis.schema.wording import count_noun
from masis.views.numbers import duration


class _HasPolicy(Protocol):
    @property
    def policy(self) -> QueuePolicy: ...


class _HasFigures(Protocol):
    @property
    def cases(self) -> int: ...
    @property
    def left(self) -> int: ...
    @property
    def own_left(self) -> int: ...
    @property
    def seconds_left(self) -> float | None: ...


class _CanBeDumped(Protocol):
    def model_dump(self, *, exclude_defaults: bool) -> dict[str, Any]: ...


_SHOWN = {
    "first": "the audit is shown at once",
    "after": "the audit is shown after a person's own decision",
    "never": "the audit is shown once a case is decided",
}

WHOLE_WORDS = (
    "In a queue, the words of the search must be whole words of the case. The list also finds"
    " beginnings of words, and notes."
)
"""What a list finds that a queue made of its filter doesn't hold."""

FIELD_WORDS = {
    "text": "words",
    "fields": "field",
    "datasets": "data set",
    "systems": "system",
    "months": "month of import",
    "assignees": "assigned to",
    "tags": "tag",
    "flags": "issue",
    "reasons": "reason for review",
    "tiers": "review priority",
    "severities": "worst issue",
    "models": "model",
    "quality_from": "quality from",
    "quality_to": "quality up to",
    "confidence_from": "confidence from",
    "confidence_to": "confidence up to",
    "states": "state",
    "standings": "status",
    "reviewers": "decided by",
    "similar_to": "similar answers",
    "modes": "failure mode",
    "causes": "cause",
    "queue": "queue",
}
"""The fields of a filter in words."""


def policy_text(queue: _HasPolicy) -> str:
    """Say how many people decide a case of a queue, and when they see the audit."""
    policy = queue.policy
    return f"{count_noun(policy.reviewers, 'reviewer')} per case, {_SHOWN[policy.machine]}"


def fill_text(case_filter: _CanBeDumped) -> str:
    """Say which cases a filter holds."""
    given = case_filter.model_dump(exclude_defaults=True)
    parts = [
        f"{words} {', '.join(value) if isinstance(value, tuple) else value}"
        for name, words in FIELD_WORDS.items()
        if (value := given.get(name)) is not None
    ]
    return "; ".join(parts) or "every case"


def left_text(figures: _HasFigures) -> str:
    """Say how many cases of a queue are left, and how long they take at the person's pace."""
    left = f"{figures.left:,} of {figures.cases:,} left"
    if not figures.own_left:
        return f"{left}, none for you now"
    own = "" if figures.own_left == figures.left else f", {figures.own_left:,} for you"
    pace = ""
    if figures.seconds_left is not None:
        pace = f", at your pace {duration(1000 * round(figures.seconds_left))}"
    return f"{left}{own}{pace}"
