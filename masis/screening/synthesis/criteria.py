"""Inclusion and exclusion criteria that the team wrote: a line each, shown with the result and offered as reasons.

They are for people: no machine judges by them. What a person discards for one of them is counted under it in the flow.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

MOST = 40
LONGEST = 300


class Criterion(NamedTuple):
    """One criterion: whether it includes or excludes, and its words."""

    kind: Literal["include", "exclude"]
    text: str

    @property
    def reason(self) -> str:
        """The criterion as a reason to leave a study out."""
        return self.text if self.kind == "exclude" else f"not: {self.text}"


def read_criteria(written: str) -> tuple[Criterion, ...]:
    """Return the criteria, a line each: ``include: adults``, ``exclude: no control group``; others exclude."""
    found = []
    for line in written.splitlines()[:MOST]:
        head, colon, rest = line.partition(":")
        named = head.strip().lower()
        kind: Literal["include", "exclude"] = "include" if colon and named == "include" else "exclude"
        text = " ".join((rest if colon and named in ("include", "exclude") else line).split())[:LONGEST]
        if text:
            found.append(Criterion(kind, text))
    return tuple(dict.fromkeys(found))


def criteria_of(settings: dict[str, object]) -> tuple[Criterion, ...]:
    """Return the criteria that a screening was made with, from its stored settings."""
    written = settings.get("screening_criteria")
    return read_criteria(written) if isinstance(written, str) else ()
