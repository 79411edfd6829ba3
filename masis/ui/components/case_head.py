"""The head of a page about one case or screening: its question, its state and what is
known of it.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from masis.ui.components import register_component
from masis.views.words import LabelData, Tone

_HEAD = register_component("case_head")


class HeadLine(TypedDict):
    """What is worst about the answer, how that feels, and what else was found, counted by kind."""

    text: str
    tone: Tone
    others: str


class CaseHead(TypedDict):
    """The question, the state, facts in a few words, and why a person should look (or should have:
    ``past``), folded.

    ``technical`` is what went wrong in the audit, as it was reported: folded once more below the
    reasons.
    """

    question: str
    state: LabelData
    facts: list[str]
    headline: NotRequired[HeadLine]
    reasons: NotRequired[list[str]]
    past: NotRequired[bool]
    technical: NotRequired[str]


def case_head(head: CaseHead, *, key: str) -> None:
    """Draw the head of a page; a question of any length stays text, and folds after two lines."""
    _HEAD(data=head, key=key)
