"""Who a use case acts for, the roles that people hold, and what each role may do."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from masis.schema.base import Record

Role = Literal["viewer", "reviewer", "lead", "admin"]
"""What a person who has signed in may do; each role includes those before it."""

ROLES: tuple[Role, ...] = get_args(Role)

Permission = Literal["read", "decide", "audit", "export", "oversee", "redact", "purge", "configure"]

PERMISSIONS: dict[Permission, Role] = {
    "read": "viewer",
    "decide": "reviewer",  # decide, undo one's own decisions, override grades of a screening
    # add cases and abstracts, start and stop audits and screenings, which may cost
    "audit": "reviewer",
    "export": "lead",  # cases with decisions, the decision log, screenings
    # undo what others decided, reassess, reset what is learned, remove abstracts
    "oversee": "lead",
    "redact": "lead",
    "purge": "admin",
    "configure": "admin",  # change settings, download models
}
"""The lowest role that grants each permission."""


class Actor(Record):
    """The person or program that a use case acts for; logs record the name.

    Where nobody signs in, the name is a signature, not a proof, and roles don't matter. A person
    who has not given a name yet has the empty one, which may keep drafts and may not decide.
    ``signed_in_by`` says who vouches for the name of an authenticated actor.
    """

    name: str = Field(default="", max_length=200)
    roles: tuple[Role, ...] = ()
    authenticated: bool = False
    signed_in_by: str = ""

    def may(self, permission: Permission) -> bool:
        """Return whether the actor has signed in with a role that grants this."""
        needed = ROLES.index(PERMISSIONS[permission])
        return self.authenticated and any(ROLES.index(role) >= needed for role in self.roles)


ANONYMOUS = Actor()
"""A person who has not said who they are."""
