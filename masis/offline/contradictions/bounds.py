"""Bounds turned round: "at least 80%" where the evidence has "up to 80%".

A number that claim and evidence share is bounded from below in one and from above in the other. A stretch that forbids
what lies beyond a bound grants what lies within: such stretches are compared only with their like.
"""

import re
from typing import Literal

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.parsing.facts import Fact, agree

Bound = Literal["least", "most"]
_MORE = r"(?:more|over|later|longer|larger|wider|higher|greater|older|heavier)"
_LESS = r"(?:less|fewer|earlier|sooner|shorter|smaller|narrower|lower|younger|lighter)"
_STATED: tuple[tuple[Bound, re.Pattern[str]], ...] = (
    ("most", re.compile(rf"\b(?:no|not|never) {_MORE} than(?: after)?\s*$", re.IGNORECASE)),
    ("least", re.compile(rf"\b(?:no|not|never) {_LESS} than(?: after)?\s*$", re.IGNORECASE)),
)
_BEFORE: tuple[tuple[Bound, re.Pattern[str]], ...] = (
    ("least", re.compile(rf"\b(?:at least|{_MORE} than|over|above|exceed\w*|minimum of)(?: the)?\s*$", re.IGNORECASE)),
    (
        "most",
        re.compile(rf"\b(?:at most|up to|{_LESS} than|under|below|within|maximum of)(?: the)?\s*$", re.IGNORECASE),
    ),
)
_AFTER: tuple[tuple[Bound, re.Pattern[str]], ...] = (
    (
        "least",
        re.compile(r"\s(?:\w+ )?(?:or|and) (?:more|over|above|older|higher|longer)\b|\s(?:\w+ )?at the earliest\b"),
    ),
    (
        "most",
        re.compile(
            r"\s(?:\w+ )?(?:or|and) (?:less|fewer|under|below|younger|shorter)\b|\s(?:\w+ )?at (?:the latest|most)\b"
        ),
    ),
)
_NOT_BEFORE = re.compile(r"(?:\b(?:not|never|no|cannot)|n['’]t)\b[^.;,]{0,24}$", re.IGNORECASE)
_NOT_AFTER = re.compile(
    r"[^.;,]{0,24}\b(?:not|never|cannot|forbidden|prohibited|banned|rejected|refused|excluded)\b", re.IGNORECASE
)
_COUNTED_BACK = re.compile(r"\s(?:\w+ )?(?:before|ago|earlier|prior)\b")
_TOLD = 0.5
_WINDOW = 44


def bound_signals(found: Match) -> list[Signal]:
    """A signal for each number of the claim that the evidence bounds from the other side."""
    made = []
    for fact in found.sentence.facts:
        mine = _bound(found.sentence.text, fact)
        if mine is None or fact.kind == "name":
            continue
        bits = found.mask(fact.start, fact.end)
        for i in found.top[:3]:
            passage, covered = found.passages[i], found.coverage((i,), without=bits)
            same = [(other, _bound(passage.text, other)) for other in passage.facts if agree(fact, other)]
            other = next((other for other, theirs in same if theirs is not None and _opposed(mine, theirs)), None)
            if other is None or covered < _TOLD or any(theirs == mine for _, theirs in same):
                continue
            if _held_elsewhere(found, i, fact, mine):
                continue
            side, rest = ("below", "above") if mine[0] == "least" else ("above", "below")
            reason = f"{fact.text!r} is a bound from {side} in the claim, from {rest} in the evidence"
            span = (fact.start, fact.end, fact.text)
            made.append(signal("direction", span, passage, (other.start, other.end), reason, 0.55 + 0.4 * covered))
            break
    return made


def _held_elsewhere(found: Match, i: int, fact: Fact, mine: tuple[Bound, bool]) -> bool:
    return any(
        agree(fact, other) and _bound(found.passages[k].text, other) == mine
        for k in found.top[:3]
        if k != i
        for other in found.passages[k].facts
    )


def _bound(text: str, fact: Fact) -> tuple[Bound, bool] | None:
    """The side from which the number is bounded, and whether a negation around it turns that round."""
    before, after = text[max(0, fact.start - _WINDOW) : fact.start], text[fact.end : fact.end + _WINDOW]
    if _COUNTED_BACK.match(after):
        return None  # "later than 14 days before" is less than 14 days before
    for side, pattern in _STATED:
        if pattern.search(before):
            return side, False
    sides = [side for side, pattern in _BEFORE if pattern.search(before)]
    sides += [side for side, pattern in _AFTER if pattern.match(after)]
    return (sides[0], _denied(before, after)) if sides else None


def _opposed(mine: tuple[Bound, bool], theirs: tuple[Bound, bool]) -> bool:
    """Whether the sides differ as written and in effect: a negation that turns one of them is not always seen."""
    return mine[0] != theirs[0] and mine[1] == theirs[1]


def _denied(before: str, after: str) -> bool:
    # "Openings wider than 120 mm are not allowed" grants up to 120 mm.
    return bool(_NOT_BEFORE.search(before) or _NOT_AFTER.match(after))
