"""Critics, revisers and verifiers that another package brings, by the name it gives them:
``dspy:careful``.

A package names them by an entry point of the group ``masis.critics``, ``masis.revisers`` or
``masis.verifiers``, whose name is what stands before the colon and whose object is a
``PluginRegistry``. What it fills a role with judges with a model of ours: calls, limits and records
are those of every other role. A verifier may also ask no language model, as ``local:FOLDER`` does.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from masis.errors import MasisError
from masis.llm.client.model import Model
from masis.llm.endpoints import KNOWN
from masis.settings import Settings

GROUPS = {"critic": "masis.critics", "reviser": "masis.revisers", "verifier": "masis.verifiers"}
"""The roles that a plug-in can fill, and the group of entry points for each."""

OWN = (EntryPoint("local", "masis.integrations.local.plugin:verifiers", "masis.verifiers"),)
"""Those that come with the project, found whatever the installation's metadata says."""


class PluggedIn(Protocol):
    """A critic, reviser or verifier, found by its name."""

    @property
    def string(self) -> str:
        """Its full name, as a run records it: ``dspy:careful@2``."""

    @property
    def asks(self) -> str:
        """The model string of the language model that it asks; empty for one that asks none."""

    @property
    def recorded(self) -> str:
        """The version of what it asks, recorded among the versions of the prompts."""

    @property
    def characters(self) -> int:
        """How long the instructions are that go with every question."""

    def check(self) -> None:
        """Raise MissingExtra where it can't be filled here."""

    def build(self, model: Model | None, settings: Settings) -> Any:
        """The role itself, for one run; ``model`` is None where it asks none. Raises MissingExtra
        and SettingsError.
        """


class PluginRegistry(Protocol):
    """What an entry point gives."""

    def find(self, name: str, settings: Settings) -> PluggedIn:
        """The one of this name. Raises SettingsError, with the nearest there is."""

    def available(self, settings: Settings) -> tuple[str, ...]:
        """The full names of those that could be asked for."""


def plugged_in(string: str, role: str, settings: Settings) -> PluggedIn | None:
    """Who fills the role by this name; None for a model string. Raises what the shelf raises."""
    prefix, colon, name = (part.strip() for part in string.partition(":"))
    if (
        not colon
        or prefix in KNOWN
        or prefix in settings.providers
        or prefix not in _entry_points(role)
    ):
        return None
    registry: PluginRegistry = _entry_points(role)[prefix].load()
    return registry.find(name, settings)


def fillable(string: str) -> tuple[str, ...]:
    """The roles that a name of this kind can fill: ``("verifier",)`` for ``local:FOLDER``."""
    prefix = string.partition(":")[0].strip()
    return tuple(role for role in GROUPS if ":" in string and prefix in _entry_points(role))


def offered_plugins(role: str, settings: Settings) -> tuple[str, ...]:
    """All names that the role could be filled by."""
    found: list[str] = []
    for point in _entry_points(role).values():
        try:
            found += point.load().available(settings)
        # what can't be read is said where somebody asks for it by name
        except (MasisError, OSError):
            continue
    return tuple(found)


@cache
def _entry_points(role: str) -> dict[str, EntryPoint]:
    if role not in GROUPS:
        return {}
    own = [point for point in OWN if point.group == GROUPS[role]]
    return {point.name: point for point in (*own, *entry_points(group=GROUPS[role]))}
