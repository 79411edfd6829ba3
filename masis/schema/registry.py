"""Registries that a package can add to: named entries, looked up at run time.

Entries of other packages are found by their entry points. Settings, tools and forms that accept
the names of a registry annotate them with ``RegisteredName`` in place of a ``Literal``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import (
    no_info_plain_validator_function,
    plain_serializer_function_ser_schema,
)


@cache
def added_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group that the installed packages declare.

    They are read once per process, because reading them opens the metadata of every package.
    """
    return tuple(entry_points(group=group))


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
