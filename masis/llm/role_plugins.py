"""Finds critics, revisers and verifiers that other packages provide, by names such as
``dspy:careful``.

A package registers them with an entry point of the group ``masis.critics``, ``masis.revisers`` or
``masis.verifiers``. The name of the entry point is the part before the colon, and its object is a
``PluginRegistry``. A plug-in uses one of our models, so its calls, limits and records are the same
as those of every other role. A verifier may also work without a language model, as ``local:FOLDER``
does.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, Protocol

from masis.errors import MasisError
from masis.extensions import extensions
from masis.llm.client.model import Model
from masis.llm.provider_apis import known_providers
from masis.schema.model_ref import ModelRef
from masis.schema.registry import added_entry_points
from masis.settings import Settings

GROUPS = {"critic": "masis.critics", "reviser": "masis.revisers", "verifier": "masis.verifiers"}
"""The roles that a plug-in can fill, and the group of entry points for each."""


class RolePlugin(Protocol):
    """A critic, reviser or verifier that was found by its name."""

    @property
    def string(self) -> str:
        """The full name, as a run records it: ``dspy:careful@2``."""

    @property
    def asks(self) -> str:
        """The model string of the language model that it uses; empty if it uses none."""

    @property
    def recorded(self) -> str:
        """The version of its instructions, recorded with the versions of the prompts."""

    @property
    def characters(self) -> int:
        """The length in characters of the instructions that are sent with every question."""

    def check(self) -> None:
        """Raise MissingExtra if a package that the plug-in needs isn't installed."""

    def build(self, model: Model | None, settings: Settings) -> Any:
        """Return the role object for one run; ``model`` is None if it uses no language model.

        Raises:
            MissingExtra: A package that it needs isn't installed.
            SettingsError: The settings don't fit the plug-in.

        """


class PluginRegistry(Protocol):
    """The object that an entry point provides."""

    def find(self, name: str, settings: Settings) -> RolePlugin:
        """Return the plug-in of this name. Raises SettingsError that suggests the nearest known
        name.
        """

    def available(self, settings: Settings) -> tuple[str, ...]:
        """Return the full names of the available plug-ins."""


def find_plugin(ref: ModelRef, role: str, settings: Settings) -> RolePlugin | None:
    """Return the plug-in registered under this name, or None if ``ref`` names a model.

    Propagates the entry point's own errors.
    """
    if ref.name is None or ref.provider in {*known_providers(), *settings.providers}:
        return None
    if (entry_point := _entry_points(role).get(ref.provider)) is None:
        return None
    registry: PluginRegistry = entry_point.load()
    return registry.find(ref.name, settings)


def fillable_roles(ref: ModelRef) -> tuple[str, ...]:
    """Return the roles that this kind of name can fill: ``("verifier",)`` for ``local:FOLDER``."""
    return tuple(
        role for role in GROUPS if ref.name is not None and ref.provider in _entry_points(role)
    )


def offered_plugins(role: str, settings: Settings) -> tuple[str, ...]:
    """Return all plug-in names that are available for the role."""
    names: list[str] = []
    for point in _entry_points(role).values():
        try:
            names += point.load().available(settings)
        # Reported when a setting names the plug-in. ImportError: the package is broken or gone.
        except (MasisError, OSError, ImportError):
            continue
    return tuple(names)


@cache
def _entry_points(role: str) -> dict[str, EntryPoint]:
    if role not in GROUPS:
        return {}
    # Those of this project are found even if the installation's metadata is incomplete.
    own = [
        EntryPoint(plugins.name, plugins.target, plugins.group)
        for extension in extensions()
        for plugins in extension.role_plugins
        if plugins.group == GROUPS[role]
    ]
    return {point.name: point for point in (*own, *added_entry_points(GROUPS[role]))}
