"""Preferences: people's verdicts between two systems' answers to a question, shown without names.

The sides are shuffled by a seed that is recorded with the verdict, so that nobody can tell the
systems by their place, and so that a preference for a side can be measured.
"""

from __future__ import annotations

import hashlib
import random
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from masis.schema.base import Record
from masis.schema.review import ChainedEntry

PreferenceVerdict = Literal["left", "right", "equal", "both_bad"]
PREFERENCE_VERDICTS: tuple[PreferenceVerdict, ...] = get_args(PreferenceVerdict)

PreferenceKind = Literal["preference", "undo", "redaction"]

PairVerdict = Literal["first", "second", "equal", "both_bad"]
"""A verdict regardless of the sides: which of two cases is better, the one added first or not."""

LONGEST_REASON = 2_000
"""Maximum length of the reason for a preference, in characters."""


class VerdictChoice(NamedTuple):
    """How a verdict is given: its key, and its words on a button and in a log."""

    key: str
    title: str


VERDICT_CHOICES: dict[PreferenceVerdict, VerdictChoice] = {
    "left": VerdictChoice("1", "Left is better"),
    "right": VerdictChoice("2", "Right is better"),
    "equal": VerdictChoice("0", "Equally good"),
    "both_bad": VerdictChoice("B", "Both are bad"),
}


class PreferenceDigests(Record):
    """The digests of the two cases that a verdict is about."""

    left: str
    right: str


class PreferenceDecision(Record):
    """A person's verdict between two answers as shown, or an entry that undoes or redacts one.

    Attributes:
        left_case: The case whose answer was shown on the left.
        right_case: The case whose answer was shown on the right.
        seed: The seed that chose the sides.
        undoes: The id of the entry that an undo cancels.
        token: Makes a repeated submission harmless.
        about: Set by the store; None in redactions.

    """

    kind: PreferenceKind = "preference"
    reviewer: str = Field(min_length=1, max_length=200)
    left_case: str
    right_case: str
    seed: int | None = None
    verdict: PreferenceVerdict | None = None
    reason: str = Field(default="", max_length=LONGEST_REASON)
    undoes: str | None = None
    token: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    extra: dict[str, Any] = Field(default_factory=dict)
    about: PreferenceDigests | None = None

    @model_validator(mode="after")
    def _complete(self) -> PreferenceDecision:
        is_verdict = self.kind == "preference"
        if is_verdict != (self.verdict is not None) or is_verdict != (self.seed is not None):
            raise ValueError("a preference has a verdict and a seed, and no other entry has them")
        if (self.kind == "undo") != (self.undoes is not None):
            raise ValueError("only an undo names the entry that it cancels")
        if self.left_case == self.right_case:
            raise ValueError("an answer can't be compared with itself")
        return self


class PreferenceEntry(ChainedEntry):
    """One entry of the preference log; ``decision`` is None if it was redacted."""

    decision: PreferenceDecision | None


def seed_of_sides(reviewer: str, first_case: str, second_case: str) -> int:
    """Return the seed of a reviewer's sides, which stays the same when the page is loaded again."""
    text = "\n".join((reviewer, first_case, second_case))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4])


def swaps_sides(seed: int) -> bool:
    """Return whether the case that was added first is on the right."""
    return random.Random(seed).random() < 0.5


def pair_verdict(verdict: PreferenceVerdict, *, is_first_left: bool) -> PairVerdict:
    """Return a verdict regardless of the sides."""
    if verdict == "equal" or verdict == "both_bad":
        return verdict
    return "first" if (verdict == "left") == is_first_left else "second"
