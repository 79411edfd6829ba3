"""Systems: list those whose answers are stored, and describe them."""

from __future__ import annotations

from masis.schema.actor import Actor
from masis.schema.systems import System, SystemDetails
from masis.services.access import Service, requires
from masis.services.reviews import name_of

DESCRIBE_SYSTEMS = "describe systems: their model, prompt, version and date"


class SystemService(Service):
    """The use cases of systems."""

    @requires("read")
    def all(self, actor: Actor) -> tuple[System, ...]:
        """Return the systems with answers here, in the order in which they were added."""
        return self._store.systems.all()

    @requires("read")
    def get(self, actor: Actor, name: str) -> System:
        """Return a system. Raises UnknownRecord."""
        return self._store.systems.get(name)

    @requires("audit", DESCRIBE_SYSTEMS)
    def describe(self, actor: Actor, name: str, details: SystemDetails) -> System:
        """Replace the model, prompt, version and date of a system, and return it.

        Raises:
            UnknownRecord: There is no such system.
            InputError: The actor has no name.
            NotAllowed: The actor's role doesn't allow it.

        """
        return self._store.systems.change(name, details, name_of(actor))
