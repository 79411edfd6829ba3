"""Who a use case acts for."""

from __future__ import annotations

from pydantic import Field

from masis.schema.base import Record


class Actor(Record):
    """The person or program that a use case acts for; logs record the name.

    Nobody is authenticated today and nobody holds roles: the name is a signature, not a proof. A person who has not
    given a name yet has the empty one, which may keep drafts and may not decide.
    """

    name: str = Field(default="", max_length=200)
    roles: tuple[str, ...] = ()
    authenticated: bool = False


ANONYMOUS = Actor()
"""A person who has not said who they are."""
