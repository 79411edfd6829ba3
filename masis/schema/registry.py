"""Registries that a package can add to: named entries, looked up at run time.

Entries of other packages are found by their entry points. Settings, tools and forms that accept
the names of a registry annotate them with ``RegisteredName`` in place of a ``Literal``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import (
    no_info_plain_validator_function,
    plain_serializer_function_ser_schema,
)

from masis.errors import SettingsError

T = TypeVar("T")

logger = logging.getLogger(__name__)


@cache
def added_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group that the installed packages declare.

    They are read once per process, because reading them opens the metadata of every package.
    """
    return tuple(entry_points(group=group))


def added_entry_point(
    group: str, name: str, *, setting: str, own: Sequence[str] = ()
) -> EntryPoint:
    """Return the entry point of a group that a setting names.

    Args:
        group: The group of entry points.
        name: The name in the setting.
        setting: The name of the setting, for the error.
        own: Names of this package's entries, which the error lists too.

    Raises:
        SettingsError: There is none; the error suggests the nearest name and lists all.

    """
    added = {point.name: point for point in added_entry_points(group)}
    if name in added:
        return added[name]
    known = [*own, *sorted(added)]
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(known) or "none, because no package adds one"
    raise SettingsError(f"{setting}: there is no {name!r}.{hint} There are: {listed}.")


def load_added(group: str, kind: type[T]) -> dict[str, T]:
    """Return what other packages add to a group, by name.

    An entry that can't be loaded, or that isn't of this kind, is left out with a warning. Otherwise
    one broken package would stop commands that don't need it.
    """
    added = {}
    for point in added_entry_points(group):
        try:
            loaded = point.load()
        except Exception as error:  # noqa: BLE001 (the package runs code of its own)
            logger.warning("%s: can't load %s: %s", group, point.value, error)
            continue
        if isinstance(loaded, kind):
            added[point.name] = loaded
        else:
            logger.warning("%s: %s isn't a %s", group, point.value, kind.__name__)
    return added


@dataclass(frozen=True)
class RegisteredName:
    """Checks a name against a registry, as a ``Literal`` checks a value, but at run time.

    Example:
        ``OrderName = Annotated[str, RegisteredName(lambda: ORDERS)]``

    Args:
        names: Returns the names that are valid now.
        describe: Returns a description of them for a JSON schema.

    """

    names: Callable[[], Iterable[str]]
    describe: Callable[[], str] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return no_info_plain_validator_function(
            self._check, serialization=plain_serializer_function_ser_schema(str)
        )

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema = {"type": "string", "enum": list(self.names())}
        return schema | ({"description": self.describe()} if self.describe else {})

    def _check(self, value: Any) -> str:
        names = list(self.names())
        if isinstance(value, str) and value in names:
            return value
        expected = ", ".join(map(repr, names))
        raise PydanticKnownError("literal_error", {"expected": expected})
