"""Personal tokens: create, list and revoke them, and find out who a request acts for."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from masis.errors import InputError, NotAllowed
from masis.schema.actor import ROLES, Actor, Role
from masis.schema.base import add_time
from masis.schema.tokens import TOKEN_PREFIX, ApiToken
from masis.services.access import Service, may_require, requires
from masis.services.reviews import name_of

LONGEST_LABEL = 80
DEFAULT_DAYS, MOST_DAYS = 90, 366
"""How long a token is valid."""

SIGNED_IN_BY = "token"
"""The sign-in provider of an actor whom a token identifies, as log entries record it."""

_OF_OTHERS = "see or revoke other people's tokens"


class NewToken(NamedTuple):
    """A new token. ``text`` is shown once and can't be found again."""

    text: str
    token: ApiToken


class TokenService(Service):
    """The use cases of personal tokens."""

    @requires("read", "create or revoke your own tokens")
    def create(
        self, actor: Actor, label: str, *, role: Role | None = None, days: int = DEFAULT_DAYS
    ) -> NewToken:
        """Create a token that acts for this person.

        Args:
            actor: The person.
            label: What the token is for, such as "nightly import".
            role: The role that the token grants. It can't exceed the person's own role, which is
                the default.
            days: How many days it is valid, 1 to 366.

        Raises:
            InputError: The name, the label or the number of days isn't valid.
            NotAllowed: ``role`` is higher than the person's own role, or the actor is identified by
                a token.

        """
        # Otherwise a leaked token could create another one, which stays after the first one is
        # revoked or has expired.
        if actor.signed_in_by == SIGNED_IN_BY:
            raise NotAllowed(
                "You can't create a token with a token. Sign in on the workbench to create one."
            )
        label = " ".join(label.split())
        if not label or len(label) > LONGEST_LABEL or not label.isprintable():
            raise InputError(
                f"the label must have 1 to {LONGEST_LABEL} printable characters",
                hint="Say what the token is for, such as: nightly import.",
                field="label",
            )
        if not 1 <= days <= MOST_DAYS:
            raise InputError(
                f"is {days}",
                hint=f"Choose 1 to {MOST_DAYS} days.",
                field="days",
            )
        own = self._highest_role(actor)
        if role is not None and ROLES.index(role) > ROLES.index(own):
            raise NotAllowed(
                f"You can't create a token with the role {role}. Your role is {own}; choose it or"
                " a lower one."
            )
        text = TOKEN_PREFIX + secrets.token_urlsafe(32)
        now = self._store.database.now()
        token = ApiToken(
            id=secrets.token_hex(6),
            owner=name_of(actor),
            role=role or own,
            label=label,
            created_at=now,
            created_by=actor.name,
            expires_at=add_time(now, timedelta(days=days)),
        )
        self._store.tokens.add(token, digest(text))
        return NewToken(text, token)

    @requires("read", "create or revoke your own tokens")
    @may_require("configure", _OF_OTHERS)
    def list_for(self, actor: Actor) -> tuple[ApiToken, ...]:
        """Return this person's tokens, newest first; an admin gets everyone's."""
        every = self.access.allows(actor, "configure")
        return tuple(
            token for token in self._store.tokens.all() if every or token.owner == actor.name
        )

    @requires("read", "create or revoke your own tokens")
    @may_require("configure", _OF_OTHERS)
    def revoke(self, actor: Actor, token_id: str) -> ApiToken:
        """Revoke a token. The next request with it is refused.

        Raises:
            UnknownRecord: There is no such token.
            NotAllowed: It is another person's, and the actor isn't an admin.

        """
        token = self._store.tokens.get(token_id)
        if token.owner != actor.name:
            self.access.require(actor, "configure", _OF_OTHERS)
        return self._store.tokens.revoke(token_id, name_of(actor))

    def actor_of(self, text: str, current_role: Callable[[str, Role], Role | None]) -> Actor | None:
        """Return the person that a request with this token acts for, or None if it isn't valid.

        Args:
            text: The token.
            current_role: Returns the role that a person has now, given their name and the token's
                role; None if they may no longer sign in. The lower of both roles is used.

        """
        if not text.startswith(TOKEN_PREFIX):
            return None
        token, now = self._store.tokens.find(digest(text)), self._store.database.now()
        if token is None or not token.is_valid(now):
            return None
        role = current_role(token.owner, token.role)
        if role is None:
            return None
        self._store.tokens.note_use(token, now)
        # The person's role may have been lowered since the token was created.
        lower = min(role, token.role, key=ROLES.index)
        return Actor(
            name=token.owner, roles=(lower,), authenticated=True, signed_in_by=SIGNED_IN_BY
        )

    def _highest_role(self, actor: Actor) -> Role:
        """Return the person's highest role. Without sign-in everyone may do everything."""
        if not self.access.sign_in:
            return ROLES[-1]
        return max(actor.roles, key=ROLES.index)


def digest(text: str) -> str:
    """Return the SHA-256 of a token.

    A plain hash is enough because a token has 256 random bits, which can't be guessed.
    """
    return hashlib.sha256(text.encode()).hexdigest()
