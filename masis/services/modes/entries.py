"""The log entries that apply failure modes, for one case and for many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.codebook import MOST_CODES, Codebook, FailureMode
from masis.schema.review import Decision
from masis.services.reviews import entry_on_case
from masis.store import Store


def mode_named(book: Codebook, code: str) -> FailureMode:
    """Return a mode by its code, after merges.

    Raises:
        InputError: The codebook doesn't have it.

    """
    mode = book.find(code)
    if mode is None:
        raise InputError(
            f"the codebook has no failure mode {code!r}",
            hint="Add it first, or choose one of the codebook's.",
            field="codes",
        )
    return mode


def known_codes(store: Store, codes: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of the modes in use that these stand for, each once.

    Raises:
        InputError: A code isn't in the codebook, or there are none or too many.

    """
    book = store.team.in_force(Codebook)
    unique = tuple(dict.fromkeys(mode_named(book, code).code for code in codes))
    if not 1 <= len(unique) <= MOST_CODES:
        raise InputError(
            "no code is given" if not unique else f"{len(unique)} codes are too many",
            hint=f"Give 1 to {MOST_CODES} codes.",
            field="codes",
        )
    return unique


def code_entry(
    store: Store,
    actor: Actor,
    case_id: str,
    codes: tuple[str, ...],
    place: str | None,
    **more: Any,
) -> Decision:
    """Return the entry that applies codes to a place in a case, or to the case for None."""
    entry = entry_on_case(actor, case_id, "code", codes=codes, observation=place, **more)
    version = str(store.team.in_force(Codebook).version)
    return entry.model_copy(update={"versions": entry.versions | {"codebook": version}})


def uncode_entry(
    actor: Actor,
    case_id: str,
    codes: Sequence[str],
    place: str | None,
    coded_by: str,
    **more: Any,
) -> Decision:
    """Return the entry that removes codes which a person applied."""
    return entry_on_case(
        actor,
        case_id,
        "uncode",
        codes=tuple(dict.fromkeys(codes)),
        observation=place,
        coded_by=None if coded_by == actor.name else coded_by,
        **more,
    )
