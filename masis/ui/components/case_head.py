"""The head of a page about a case or a screening: its question, its status and a few facts."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from masis.schema.rules import Tone
from masis.ui.components import register_component
from masis.views.words import LabelData

_HEAD = register_component("case_head")


class HeadLine(TypedDict):
    """The worst issue of the answer with its tone, and the numbers of the other issues."""

    text: str
    tone: Tone
    others: str


class CaseHead(TypedDict):
    """The data of the head.

    Attributes:
        question: The question.
        state: The label of the status.
        facts: Facts in a few words.
        headline: The worst issue.
        reasons: The reasons for a review, folded.
        reasons_title: The title of the reasons.
        technical: Errors of the audit as reported, folded again below the reasons.

    """

    question: str
    state: LabelData
    facts: list[str]
    headline: NotRequired[HeadLine]
    reasons: NotRequired[list[str]]
    reasons_title: NotRequired[str]
    technical: NotRequired[str]


def case_head(head: CaseHead, *, key: str) -> None:
    """Draw the head of a page. A long question folds after two lines."""
    _HEAD(data=head, key=key)
