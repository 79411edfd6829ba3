"""Drafts: what a person has typed and not yet submitted, stored as they type so that nothing typed is lost."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from masis.schema.actor import ANONYMOUS, Actor
from masis.services.access import OPEN, Access
from masis.services.records import Draft
from masis.store import Store


def case_subject(case_id: str) -> str:
    """Return the subject of a draft of a decision on a case."""
    return f"case:{case_id}"


class DraftService:
    """The use cases of drafts. A draft belongs to an actor's name and a subject: ``case:1``, ``new-audit``."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._drafts, self._access = store.drafts, access

    def get(self, actor: Actor, subject: str) -> Draft:
        """Return the actor's draft; without values where there is none."""
        return self._drafts.get(actor.name, subject)

    def save(self, actor: Actor, subject: str, values: Mapping[str, JsonValue]) -> None:
        """Store these fields of a draft in place of what they held. Raises StoreError and NotAllowed."""
        self._access.require(actor, "decide")
        self._drafts.save_all(actor.name, subject, values)

    def clear(self, actor: Actor, subject: str, *fields: str) -> None:
        """Remove these fields of a draft, or all of it where none is named."""
        self._access.require(actor, "decide")
        self._drafts.clear(actor.name, subject, *fields)

    def adopt(self, actor: Actor) -> None:
        """Give the actor the drafts that were typed before a name was known."""
        self._access.require(actor, "decide")
        self._drafts.hand_over(ANONYMOUS.name, actor.name)
