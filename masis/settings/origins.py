"""Where a value came from, and what was given before it is known to be right."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from masis.settings.aliases import Name, written

Kind = Literal["default", "file", "environment", "flag"]
STRENGTH: tuple[Kind, ...] = ("default", "file", "environment", "flag")
"""From the weakest to the strongest."""


class Origin(NamedTuple):
    """Where a setting's value came from: the kind, and the exact place.

    ``place`` is the file, the variable or the option; ``line`` is that of the file, where it is known.
    """

    kind: Kind
    place: str = ""
    line: int | None = None

    @property
    def spot(self) -> str:
        """``masis.toml:3``, ``MASIS_STRICTNESS``, ``--set strictness``; empty for a default."""
        return f"{self.place}:{self.line}" if self.line else self.place

    @property
    def spoken(self) -> str:
        """``masis.toml, line 3``: the place as errors name it."""
        return f"{self.place}, line {self.line}" if self.line else self.place


class Assignment(NamedTuple):
    """A setting as one source sets it: ``name`` as written, ``means`` the setting and the keys inside its tables."""

    name: Name
    means: Name
    value: Any
    origin: Origin

    @property
    def place(self) -> str:
        """The place with the name, as errors begin."""
        return f"{self.origin.spoken}, {written(self.name)}" if self.origin.kind == "file" else self.origin.spoken


class Problem(NamedTuple):
    """What is wrong with something assignments, in words that name its place."""

    origin: Origin
    message: str

    @property
    def order(self) -> tuple[int, int]:
        """The order in which a reader meets them: the file line by line, then the environment, then the flags."""
        return STRENGTH.index(self.origin.kind), self.origin.line or 0


class Read(NamedTuple):
    """What one source gave: what is understood, what is wrong, and what a person should know."""

    assignments: tuple[Assignment, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
