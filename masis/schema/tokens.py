"""Personal tokens, with which a program acts for a person over the JSON API."""

from __future__ import annotations

from masis.schema.actor import Role
from masis.schema.base import Record

TOKEN_PREFIX = "masis_"  # noqa: S105 (the start of every token, so that scanners recognise one)


class ApiToken(Record):
    """A personal token, without its text.

    Attributes:
        owner: The person that requests with this token act for.
        role: The highest role of such a request. It never exceeds the owner's current role.
        label: What the token is for, in the owner's words.
        created_by: The person who created it.
        used_at: The time of its last use, accurate to an hour; None if it was never used.
        revoked_at: The time from which it is refused, or None.

    """

    id: str
    owner: str
    role: Role
    label: str
    created_at: str
    created_by: str
    expires_at: str
    used_at: str | None = None
    revoked_at: str | None = None
    revoked_by: str | None = None

    def is_valid(self, now: str) -> bool:
        """Return whether a request at this time (ISO 8601, UTC) may use the token.

        Both times have the same format and zone, so they compare as text.
        """
        return self.revoked_at is None and now < self.expires_at
