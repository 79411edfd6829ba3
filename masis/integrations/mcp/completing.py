"""Ids completed as somebody types them: of the templates of resources, and of the arguments of prompts."""

from __future__ import annotations

from typing import Literal, NamedTuple

from masis.integrations.mcp.desk import Desk

MOST = 100
"""Values that the protocol takes in one completion."""

_KINDS: dict[str, Literal["case", "run"]] = {"case_id": "case", "run_id": "run"}


class Completed(NamedTuple):
    """The ids that begin so, newest first, and how many there are in all."""

    values: tuple[str, ...]
    total: int


def completed(desk: Desk, argument: str, begun: str) -> Completed:
    """Ids of the kind that an argument of this name takes; none for an argument that takes no id."""
    kind = _KINDS.get(argument)
    if kind is None or any("\ud800" <= char <= "\udfff" for char in begun):  # half a character begins no id
        return Completed((), 0)
    found = desk.store.evidence.ids_beginning(kind, begun, MOST)
    return Completed(found.ids, found.total)
