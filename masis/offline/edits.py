"""Edits to an answer: applied together, and clauses that can go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from masis.offline.facts import Day, extract
from masis.offline.ground import plain
from masis.schema.audit import ClaimCheck, Contradiction

_LEAD = re.compile(r"[ \t]*(?:[-*•–+]|\d{1,3}[.)]|[a-z][.)])[ \t]+$")
_JOINTS = re.compile(r"[,;]\s+|\s+[–—]\s+|\s+(?=\()|\s+(?:while|whereas|because|although)\s+")
_IN_OR_ON = re.compile(r"\b(in|on)\s+$", re.IGNORECASE)
MOST_JOINTS = 12
LEAST_LEFT = 6
"""Words that must be left of a sentence for a cut to be worth it."""


class Edit(NamedTuple):
    """``answer[start:end]`` becomes ``text``; ``sentences`` are the numbers of the sentences it touches."""

    start: int
    end: int
    text: str
    sentences: tuple[int, ...]


def applied(answer: str, edits: Iterable[Edit]) -> str:
    """The answer with all edits made, the blanks and bullets around removed sentences gone with them."""
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        start, end = (
            (edit.start, edit.end) if edit.text or edit.start == edit.end else _room(answer, edit.start, edit.end)
        )
        answer = answer[:start] + edit.text + answer[end:]
    return re.sub(r"\n{3,}", "\n\n", answer).strip()


def _room(answer: str, start: int, end: int) -> tuple[int, int]:
    """A removed sentence takes its bullet and one of the blanks around it along."""
    line = answer.rfind("\n", 0, start) + 1
    alone = end >= len(answer) or answer[end] == "\n"
    if alone and (not answer[line:start].strip() or _LEAD.fullmatch(answer[line:start])):
        return line, min(end + 1, len(answer))
    while end < len(answer) and answer[end] in " \t":
        end += 1
    if end >= len(answer) or answer[end] == "\n":
        while start > line and answer[start - 1] in " \t":
            start -= 1
    return start, end


def without(check: ClaimCheck, bears: Callable[[str], bool]) -> str | None:
    """The claim less what follows one of its commas, if that holds all that is bare and the evidence bears the rest.

    None where no cut helps. Only ends are cut: what is left begins as the sentence began.
    """
    said = plain(check.claim)
    if not check.uncovered:
        return None
    first_bare = check.uncovered[0][0]
    for joint in list(_JOINTS.finditer(said))[:MOST_JOINTS]:
        kept = said[: joint.start()].rstrip()
        if joint.end() <= first_bare and len(kept.split()) >= LEAST_LEFT and bears(kept):
            return kept + "."
    return None


def with_values(text: str, values: Sequence[Contradiction]) -> str:
    """The text with what the evidence has in the place of each denied value."""
    for value in sorted(values, key=lambda v: -v.claim_start):
        text = _led(text[: value.claim_start], value) + value.evidence_text + text[value.claim_end :]
    return text


def _led(before: str, value: Contradiction) -> str:
    """What stands before a value, with the preposition that the new one asks for: "in 1887", "on 31 March 1889"."""
    lead = _IN_OR_ON.search(before) if value.kind == "date" else None
    days = [fact.value for fact in extract(value.evidence_text) if isinstance(fact.value, Day)] if lead else []
    if lead is None or not days:
        return before
    wanted = "on" if days[0].day else "in"
    return before[: lead.start(1)] + (wanted.capitalize() if lead[1][0].isupper() else wanted) + before[lead.end(1) :]
