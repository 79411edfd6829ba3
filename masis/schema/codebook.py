"""The codebook of failure modes, and what people and the audit wrote that modes are found in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator

from masis.schema.base import Record
from masis.schema.case import Severity
from masis.schema.causes import Cause
from masis.schema.team import TeamRecord

MOST_MODES = 300
"""Maximum number of modes per codebook. More than a person can choose from is no longer a codebook.
"""

MOST_CODES = 20
"""Maximum number of codes per log entry."""

Code = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", min_length=1, max_length=60)
]
"""A short name that never changes, such as ``missing-citation`` or ``mast.1.3``.

Log entries and addresses contain it, so a mode can be renamed without touching them.
"""


_SIMILAR_NAMES = 0.8
"""The minimum share of equal letters for two names of modes to count as similar."""


class FailureMode(Record):
    """One way in which answers fail, as people agreed to recognize it.

    Attributes:
        definition: When the mode applies.
        example: An answer, or a part of one, to which it applies.
        counter_example: Something similar to which it doesn't apply.
        parent: The code of the wider mode that this one is nested under.
        merged_into: The code of the mode that replaced this one. Entries with this code count for
            that mode, so that merging changes no entry and can be taken back.

    """

    code: Code
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
    definition: str = Field(default="", max_length=2000)
    example: str = Field(default="", max_length=2000)
    counter_example: str = Field(default="", max_length=2000)
    parent: Code | None = None
    merged_into: Code | None = None


class CodebookSource(Record):
    """Where modes of a codebook come from, under which license."""

    name: str = Field(min_length=1, max_length=200)
    url: str = Field(default="", max_length=500)
    license: str = Field(default="", max_length=500)


class NestedMode(NamedTuple):
    """A mode and how many modes it's nested under."""

    mode: FailureMode
    depth: int

    @property
    def indented_name(self) -> str:
        """Its name after a dot for each mode above it."""
        return "· " * self.depth + self.mode.name


class Codebook(TeamRecord):
    """The team's failure modes. Each change is a new version.

    Raises:
        ValueError: Two modes have the same code, two modes in use have the same name, or a parent
            or a replacement doesn't exist or leads back to the mode itself.

    """

    kind = "codebook"
    modes: tuple[FailureMode, ...] = Field(default=(), max_length=MOST_MODES)
    sources: tuple[CodebookSource, ...] = Field(default=(), max_length=20)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        modes = {mode.code: mode for mode in self.modes}
        if len(modes) < len(self.modes):
            raise ValueError("two failure modes have the same code")
        names = [mode.name.casefold() for mode in self.in_use]
        if len(set(names)) < len(names):
            raise ValueError("two failure modes have the same name")
        for mode in self.modes:
            for field in ("parent", "merged_into"):
                _assert_leads_to_end(modes, mode, field)
            if mode.parent is not None and modes[mode.parent].merged_into is not None:
                raise ValueError(f"the parent of {mode.code!r} was merged into another mode")
        return self

    @property
    def in_use(self) -> tuple[FailureMode, ...]:
        """The modes that weren't merged into others, in display order."""
        return tuple(mode for mode in self.modes if mode.merged_into is None)

    def find(self, code: str) -> FailureMode | None:
        """Return the mode that a code stands for, after merges, or None if there is none."""
        modes = {mode.code: mode for mode in self.modes}
        mode = modes.get(code)
        while mode is not None and mode.merged_into is not None:
            mode = modes.get(mode.merged_into)
        return mode

    def names_of(self, codes: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the modes that codes stand for, each once.

        A code that the codebook doesn't have stands for itself.
        """
        modes = ((code, self.find(code)) for code in codes)
        return tuple(dict.fromkeys(mode.name if mode else code for code, mode in modes))

    def codes_of(self, code: str, *, nested: bool = True) -> tuple[str, ...]:
        """Return every code whose entries count for a mode.

        These are its own, those of modes merged into it, and with ``nested`` those of all modes
        under it.
        """
        return tuple(
            mode.code
            for mode in self.modes
            if (target := self.find(mode.code)) is not None
            and (target.code == code or (nested and code in self.ancestors(target.code)))
        )

    def ancestors(self, code: str) -> tuple[str, ...]:
        """Return the codes of the modes that a mode is nested under, nearest first."""
        parents = {mode.code: mode.parent for mode in self.modes}
        above: list[str] = []
        parent = parents.get(code)
        while parent is not None:
            above.append(parent)
            parent = parents.get(parent)
        return tuple(above)

    def in_tree_order(self, parent: str | None = None, depth: int = 0) -> list[NestedMode]:
        """Return the modes in use, each followed by those nested under it, with their depths."""
        nested: list[NestedMode] = []
        for mode in self.children(parent):
            nested += [NestedMode(mode, depth), *self.in_tree_order(mode.code, depth + 1)]
        return nested

    def children(self, code: str | None) -> tuple[FailureMode, ...]:
        """Return the modes in use directly under a mode, or those at the top for None."""
        return tuple(mode for mode in self.in_use if mode.parent == code)

    def modes_like(self, name: str) -> tuple[FailureMode, ...]:
        """Return the modes in use whose names resemble a name, most similar first.

        Such a name differs by a few letters, or has all words of the other, of which the last may
        be a beginning.
        """
        words = _name_words(name)
        text = " ".join(words)
        ratios: dict[str, float] = {}
        for mode in self.in_use:
            own = _name_words(mode.name)
            ratio = SequenceMatcher(None, text, " ".join(own)).ratio()
            has_all = bool(words and own) and (
                set(own) <= set(words)
                or (set(words[:-1]) <= set(own) and any(w.startswith(words[-1]) for w in own))
            )
            if has_all or ratio >= _SIMILAR_NAMES:
                ratios[mode.code] = ratio
        alike = (mode for mode in self.in_use if mode.code in ratios)
        return tuple(sorted(alike, key=lambda mode: -ratios[mode.code])[:3])


class GroupDismissal(TeamRecord):
    """That a proposed group shows no failure mode, or that this was taken back.

    It names the group's patterns by digests and holds no text, so that a redaction of a note leaves
    no word of it here.

    Attributes:
        group: The digest of its patterns.
        patterns: The digests of the patterns, most typical ones first. Patterns change their
            numbers if a case is audited again, and digests don't.
        taken_back: Whether the group may be proposed again.

    """

    kind = "group_dismissal"
    group: str = ""
    patterns: tuple[str, ...] = ()
    taken_back: bool = False


def _assert_leads_to_end(
    modes: dict[str, FailureMode], mode: FailureMode, field: Literal["parent", "merged_into"]
) -> None:
    seen, code = {mode.code}, getattr(mode, field)
    while code is not None:
        if code not in modes:
            raise ValueError(f"{mode.code!r} names the mode {code!r}, which doesn't exist")
        if code in seen:
            raise ValueError(f"{mode.code!r} is nested under or merged into itself")
        seen.add(code)
        code = getattr(modes[code], field)


def _name_words(name: str) -> list[str]:
    return [word.removesuffix("s") for word in re.findall(r"\w+", name.casefold())]


def code_from_name(name: str, taken: Iterable[str] = ()) -> str:
    """Return a code for a new mode: the name in lowercase with hyphens, numbered if it's taken."""
    # Letters that a code can't have are left out, so a name in another script gets a number only.
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or "mode"
    used, code, number = set(taken), base, 2
    while code in used:
        code, number = f"{base}-{number}", number + 1
    return code


# Observations

ObservationKind = Literal["issue", "reason", "note", "label", "comment"]


class ObservationKindRow(NamedTuple):
    """The names of a kind of observation, and whether the audit or a person writes it."""

    one: str
    many: str
    by_audit: bool = False


OBSERVATION_KINDS: dict[ObservationKind, ObservationKindRow] = {
    "issue": ObservationKindRow("issue", "issues", by_audit=True),
    "reason": ObservationKindRow("reason", "reasons"),
    "note": ObservationKindRow("note", "notes"),
    "label": ObservationKindRow("label", "labels"),
    "comment": ObservationKindRow("comment", "comments"),
}
"""The kinds of observations: issues of the newest audit, and what people wrote in the log."""

NO_FAULT_LABELS = ("supported", "valid", "exempt", "cited")
"""Labels that confirm the audited words, so no failure is found in them."""


class CaseObservation(Record):
    """One thing that a person wrote, or that the audit found, about one case.

    Attributes:
        id: Stays the same while the case has this observation, even if it's audited again.
        place: Where it is in the case: ``issue:KEY``, or ``ENTRY:note`` with the id of a log entry.
        run_id: The audit of an issue.
        entry_id: The log entry of everything else.
        type: The rule of an issue, the code of a reason, or the name of a label.
        quote: The words of the answer that it's about, if it's about some.
        author: The reviewer; "" for the audit.
        cause: Where the fault comes from, if it's known.
        is_fault: Whether it says that something is wrong. Approvals and confirming labels don't.
        codes: The codes of the failure modes that people applied to it, limited to what the viewer
            may see.

    """

    id: str
    case_id: str
    place: str
    kind: ObservationKind
    run_id: str | None
    entry_id: str | None
    type: str
    severity: Severity | None
    author: str
    at: str
    text: str
    quote: str
    cause: Cause | None
    is_fault: bool
    codes: tuple[str, ...] = ()
