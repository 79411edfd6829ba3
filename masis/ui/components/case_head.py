"""The head of a page about one case or screening: its question, its state and what is known of it."""

from __future__ import annotations

from typing import TypedDict

from masis.ui.components import registered
from masis.views.words import LabelData

_HEAD = registered("case_head")


class CaseHead(TypedDict):
    """The question, the state with further labels, facts in a few words, and why a person should look."""

    question: str
    state: LabelData
    flags: list[LabelData]
    facts: list[str]
    reasons: list[str]


def case_head(head: CaseHead, *, key: str) -> None:
    """Draw the head of a page; a question of any length stays text, and its size that of a title."""
    _HEAD(data=head, key=key)
