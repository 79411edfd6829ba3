"""Who may do what: asked by every use case that changes something or takes data out.

A command acts for whoever owns the database file, and may do everything. A server with sign-in opens its workbench with
``SIGN_IN_REQUIRED``; then a use case refuses an actor who has not signed in with a role that grants it, whichever page,
callback or message asked for it.
"""

from __future__ import annotations

from masis.errors import NotAllowed
from masis.schema.actor import PERMISSIONS, Actor, Permission

_DOING: dict[Permission, str] = {
    "read": "read",
    "decide": "decide",
    "audit": "add cases or start audits",
    "export": "export",
    "oversee": "change what others decided or what is learned from it",
    "redact": "redact",
    "purge": "remove what retention stores",
    "configure": "change settings",
}


class Access:
    """The rule of one workbench; ``sign_in`` says whether people have to sign in."""

    def __init__(self, *, sign_in: bool) -> None:
        self.sign_in = sign_in

    def allows(self, actor: Actor, permission: Permission) -> bool:
        """Return whether the actor may do this."""
        return not self.sign_in or actor.may(permission)

    def require(self, actor: Actor, permission: Permission) -> None:
        """Raise NotAllowed where the actor may not do this."""
        if self.allows(actor, permission):
            return
        if not actor.authenticated:
            raise NotAllowed(f"You can't {_DOING[permission]}: sign in first.")
        raise NotAllowed(
            f"You can't {_DOING[permission]}: that takes the role {PERMISSIONS[permission]}, and you have "
            f"{', '.join(actor.roles) or 'none'}. Ask whoever runs this workbench."
        )


OPEN = Access(sign_in=False)
"""Nobody signs in: whoever reaches the workbench may do everything."""

SIGN_IN_REQUIRED = Access(sign_in=True)
