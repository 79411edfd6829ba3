"""The actor of a use case, the roles of people, and the permissions of each role."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from masis.schema.base import Record

Role = Literal["viewer", "reviewer", "lead", "admin"]
"""The role of a signed-in person; each role includes those before it."""

ROLES: tuple[Role, ...] = get_args(Role)

Permission = Literal["read", "decide", "audit", "export", "oversee", "redact", "purge", "configure"]

PERMISSIONS: dict[Permission, Role] = {
    "read": "viewer",
    "decide": "reviewer",  # decide, undo own decisions, override grades of a screening
    # add cases and abstracts, start and stop audits and screenings, which may cost money
    "audit": "reviewer",
    "export": "lead",  # cases with decisions, the decision log, screenings
    # undo others' decisions, reassess, reset learned thresholds, remove abstracts
    "oversee": "lead",
    "redact": "lead",
    "purge": "admin",
    "configure": "admin",  # change settings, download models
}
"""The lowest role that grants each permission."""


class Actor(Record):
    """The person or program that a use case acts for; logs record the name.

    Without sign-in, the name is self-reported and unverified, and roles are ignored. A person
    without a name may keep drafts but not decide. ``signed_in_by`` names the identity provider of
    an authenticated actor. ``browser`` is the id of the browser of a person who isn't signed in,
    or "" if it isn't known: drafts without a name belong to the browser that they were typed in.
    """

    name: str = Field(default="", max_length=200)
    roles: tuple[Role, ...] = ()
    authenticated: bool = False
    signed_in_by: str = ""
    browser: str = Field(default="", max_length=100)

    @property
    def unnamed_owner(self) -> str:
        """The owner of drafts that were typed in this actor's browser before a name was known.

        Nobody can enter it as a name, because nobody else knows the id.
        """
        return f"browser {self.browser}" if self.browser else ""

    @property
    def draft_owner(self) -> str:
        """The owner of this actor's drafts."""
        return self.name or self.unnamed_owner

    def may(self, permission: Permission) -> bool:
        """Return whether the actor is signed in with a role that grants the permission."""
        needed = ROLES.index(PERMISSIONS[permission])
        return self.authenticated and any(ROLES.index(role) >= needed for role in self.roles)


ANONYMOUS = Actor()
"""A person who hasn't given a name."""
