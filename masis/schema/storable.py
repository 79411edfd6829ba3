"""Checks that text can be stored.

Null bytes and lone surrogates are refused, and the error says where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticCustomError

SURROGATE_HALF = re.compile("[\ud800-\udfff]")
r"""Matches a lone surrogate such as ``"\ud83d"``, which no UTF encoding can represent (RFC 3629).
"""


def refuse_unstorable(data: Any, whole: str = "the record") -> None:
    """Raise an error if ``data`` has text that a database or a file can't store.

    Args:
        data: The data to check.
        whole: The name of the record in the message.

    Raises:
        PydanticCustomError: The first such text, with its path. A validator turns it into an error
            of the field.

    """
    # Finding which text it is takes longer, so it's only done if there is one.
    if is_storable(data):
        return
    for path, text in _texts_with_paths(data, whole):
        if "\x00" in text:
            raise PydanticCustomError(
                "null_byte",
                "{path} contains a null byte at character {at}",
                {"path": path, "at": text.index("\x00")},
            )
        if not is_storable(text):
            raise PydanticCustomError(
                "surrogate",
                "{path} contains half of a surrogate pair, which isn't text",
                {"path": path},
            )


def is_storable(value: Any) -> bool:
    """Return whether all text in a value, keys included, can be stored."""
    if isinstance(value, str):
        # isascii() is constant time and true of most texts.
        return "\x00" not in value and (value.isascii() or not SURROGATE_HALF.search(value))
    if isinstance(value, dict):
        return all(map(is_storable, value.keys())) and all(map(is_storable, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_storable, value))


def _texts_with_paths(value: Any, whole: str, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path or "the text", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"a key of {path or whole}", str(key)
            yield from _texts_with_paths(item, whole, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts_with_paths(item, whole, f"{path}[{index}]")
